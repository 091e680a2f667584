"""Which values are secret: those that a person names, and those whose variable's name says so (record.md section 4).

Refuses to know how a secret is found in a text, and costs next to nothing to import.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

_SECRET_WORDS = ("key", "token", "secret", "passw", "credential", "auth")


@lru_cache(256)
def is_secret_name(name: str) -> bool:
    """Whether what goes by this name is secret: key, token, secret, passw, credential or auth is in it."""
    lower = name.lower()
    return any(word in lower for word in _SECRET_WORDS)


def secret_environment(environment: Mapping[str, str]) -> list[str]:
    """The values that are secret by their variable's name: key, token, secret, passw, credential or auth in it."""
    return list(named_secrets((), environment, {}).values())


def named_secrets(entries: Sequence[str], served: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """Secret values by what a warning may call them.

    `entries` are values, or names of variables in `ours` that stand for their values; of `served`, the environment that
    a server gets, come the values whose names say that they are secret. Empty values are none.
    """
    found: dict[str, str] = {}
    for place, entry in enumerate(entries, 1):
        if entry in ours:
            found[entry] = ours[entry]
        else:
            found[f"secret {place}"] = entry
    for name, value in served.items():
        if is_secret_name(name):
            found.setdefault(name, value)
    return {name: value for name, value in found.items() if value.strip()}
