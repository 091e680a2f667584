"""SHA-256 of recorded texts, for short ones without OpenSSL, which takes four megabytes and time to load.

Refuses to know what is digested.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Protocol

_LONG = 32768
"""Bytes from which on OpenSSL, which uses the processor's own instructions, is worth loading."""


class _Digest(Protocol):
    def hexdigest(self) -> str: ...


def _sha256(*modules: str) -> Callable[[bytes], _Digest]:
    for name in modules:
        try:
            made: Callable[[bytes], _Digest] = vars(import_module(name))["sha256"]
        except ImportError:
            continue
        return made
    raise ImportError(f"none of {', '.join(modules)} is there")


# Python's own, under its name from 3.12 on and the one before; hashlib only where it was built without.
_short = _sha256("_sha2", "_sha256", "hashlib")


def sha256_hex(data: bytes) -> str:
    """The digest in lower-case hex."""
    return (_short if len(data) < _LONG else _sha256("hashlib"))(data).hexdigest()
