"""Reads the recipients that a caller gives, strictly. Does not know who may be written to.

An address is bare, `local@domain`: no display name, comment, quotes or group. One spelling each leaves no room for a
reader that sees another recipient than the server does.
"""

import re

MOST = 50
"""Addresses that one argument may hold."""

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ADDRESS = re.compile(rf"({_ATOM}(?:\.{_ATOM})*)@({_LABEL}(?:\.{_LABEL})+)")
"""The dot-atom form of RFC 5322 section 3.4.1, with a domain of at least two labels."""


class AddressError(ValueError):
    """What is not a list of addresses; the message is one sentence for the caller."""


def read_addresses(given: object) -> tuple[str, ...]:
    """The addresses of a list, or of a string that is exactly one address; as given, in order. Raises AddressError."""
    match given:
        case str():
            return (_address(given),)
        case list():
            if len(given) > MOST:
                raise AddressError(f"at most {MOST} addresses are taken, not {len(given)}")
            return tuple(_address(item) for item in given)
        case _:
            raise AddressError("give a list of addresses, or one address as text")


def _address(given: object) -> str:
    if not isinstance(given, str):
        raise AddressError("each address must be text")
    found = _ADDRESS.fullmatch(given)
    # The bounds of RFC 5321 section 4.5.3.1 for the local part and for the whole.
    if found is None or len(found[1]) > 64 or len(given) > 254:
        raise AddressError(f"{given[:80]!a} is no address; write it bare, as name@example.com, each its own item")
    return given
