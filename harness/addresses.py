"""Mail addresses as a mail server reads them: which mailboxes a text names, strictly.

Refuses to know who may get mail. What has an '@' and cannot be read (after RFC 5322, without its obsolete forms) is an
error, so that no reader finds an address where this one found none.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote

_ATOM = r"[^\s()<>\[\]:;@\\,\"]+"
_QUOTED = r'"(?:[^"\\\r\n]|\\[^\r\n])*"'
_ADDRESS = rf"(?P<local>{_ATOM}|{_QUOTED})@(?P<domain>[^\s()<>\[\]:;@\\,\"]+)"
_MAILBOX = re.compile(
    rf"\s*(?:(?:(?:{_ATOM}|{_QUOTED})\s*)*<\s*(?P<angle>[^<>]*)>|(?P<bare>[^\s<>]+|{_QUOTED}@\S+))\s*(?:\([^()@<>]*\)\s*)?"
)
_WHOLE = re.compile(_ADDRESS)
_GROUP = re.compile(rf"\s*(?:{_ATOM}|{_QUOTED})(?:\s+(?:{_ATOM}|{_QUOTED}))*\s*:(?P<members>[^:;]*);\s*")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")


class AddressError(ValueError):
    """A text with an '@' that is no list of addresses."""


@dataclass(frozen=True, slots=True)
class Address:
    """A mailbox: its local part as written, and its domain in lower case, in IDNA's ASCII form, without a last dot."""

    local: str
    domain: str

    @property
    def routed(self) -> bool:
        """Whether a mail server may send it on to another domain, by `%`, `!` or `@` in its local part."""
        return any(sign in self.local for sign in "%!@")

    def __str__(self) -> str:
        return f"{self.local}@{self.domain}"


def read_domain(text: str) -> str:
    """A domain in the form in which two are compared. Raises AddressError."""
    plain = text.strip().removesuffix(".").lower()
    try:
        ascii_form = plain if plain.isascii() else plain.encode("idna").decode()
    except UnicodeError as error:
        raise AddressError(f"{text!r} is no domain: {error}") from error
    if not ascii_form or any(_LABEL.fullmatch(label) is None for label in ascii_form.split(".")):
        raise AddressError(f"{text!r} is no domain")
    return ascii_form


def read_address(text: str) -> Address:
    """One bare address. Raises AddressError."""
    found = _WHOLE.fullmatch(text.strip())
    if found is None:
        raise AddressError(f"{text!r} is no address")
    local = found["local"]
    if local.startswith('"'):
        local = re.sub(r"\\(.)", r"\1", local[1:-1])
    return Address(local, read_domain(found["domain"]))


def read_addresses(text: str) -> tuple[Address, ...]:
    """Every address of a text: mailboxes parted by `,` or `;`, groups, a `mailto:` link. Raises AddressError."""
    told = text.strip()
    if told[:7].casefold() == "mailto:":
        return tuple(_of_link(told[7:]))
    if "@" not in told:
        return ()
    group = _GROUP.fullmatch(told)
    if group is not None:
        told = group["members"]
    return tuple(_mailbox(part) for part in _parts(told) if part.strip())


def _mailbox(text: str) -> Address:
    found = _MAILBOX.fullmatch(text)
    if found is None:
        raise AddressError(f"{text.strip()!r} is no address")
    return read_address(found["angle"] if found["angle"] is not None else found["bare"])


def _of_link(rest: str) -> Iterator[Address]:
    """The addresses of a `mailto:` link (RFC 6068), those of its to, cc and bcc fields among them."""
    path, _, query = rest.partition("?")
    fields = [value for name, value in parse_qsl(query) if name.casefold() in ("to", "cc", "bcc")]
    for text in (unquote(path), *fields):
        for part in _parts(text):
            if part.strip():
                yield _mailbox(part)


def _parts(text: str) -> Iterator[str]:
    """The text between commas and semicolons that stand in no quotes and no angle brackets."""
    start, quoted, angle, escaped = 0, False, False, False
    for place, letter in enumerate(text):
        if escaped:
            escaped = False
        elif quoted:
            escaped = letter == "\\"
            quoted = letter != '"'
        elif letter == '"':
            quoted = True
        elif letter == "<":
            angle = True
        elif letter == ">":
            angle = False
        elif letter in ",;" and not angle:
            yield text[start:place]
            start = place + 1
    yield text[start:]
