"""Whether a variable still has the secret that it had when a trial ran, of which the run folder knows next to nothing.

Refuses to know where secrets are looked for.
"""

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from functools import cache

from proxy.spans import JSON

_BITS = 16
"""Of a digest that are kept: another value has the same ones once in 65,536 times."""


def checks_of(names: Iterable[str], environment: Mapping[str, str]) -> dict[str, JSON]:
    """`{VARIABLE: {salt, check}}` of the variables that are set."""
    return {name: _check(environment[name]) for name in sorted(set(names)) if name in environment}


def unchanged(environment: Mapping[str, str], checks: Mapping[str, JSON]) -> tuple[dict[str, str], list[str]]:
    """The environment without the variables that are not what they were, and the names of those."""
    other = [name for name, told in checks.items() if name in environment and not _is_same(environment[name], told)]
    return {name: value for name, value in environment.items() if name not in other}, sorted(other)


@cache
def _check(value: str) -> dict[str, JSON]:
    salt = secrets.token_bytes(16)
    return {"salt": salt.hex(), "check": _digest(value, salt)}


def _is_same(value: str, told: JSON) -> bool:
    match told:
        case {"salt": str() as salt, "check": str() as check}:
            try:
                return _digest(value, bytes.fromhex(salt)) == check
            except ValueError:
                return False
        case _:
            return False


@cache
def _digest(value: str, salt: bytes) -> str:
    # Slow on purpose, so that few guesses can be tried; 16 MiB and some 50 ms each.
    found = hashlib.scrypt(value.encode("utf-8", "surrogateescape"), salt=salt, n=2**14, r=8, p=1)
    return found[: _BITS // 8].hex()
