"""Digests of what a connection was made of: its server's command and its policy, so that the harness knows its own.

Refuses to know files and spans. Both may hold secrets, so the digests are keyed with the run's key: without it nobody
can try out what they were made of.
"""

import json
from collections.abc import Sequence
from hmac import digest

from proxy.faults import Fault
from proxy.policy import Policy


def command_digest(key: bytes, command: Sequence[str]) -> str:
    """HMAC-SHA256 of a server's command, in hex."""
    return _digest(key, json.dumps(list(command)))


def policy_digest(key: bytes, policy: Policy | None, faults: Sequence[Fault] = ()) -> str:
    """HMAC-SHA256 of what policy and faults say, in hex: spelling, comments and file apart. Of neither it is ""."""
    if not faults:
        return "" if policy is None else _digest(key, repr(policy))
    return _digest(key, repr((policy, *faults)))


def _digest(key: bytes, text: str) -> str:
    return digest(key, text.encode("utf-8", "surrogatepass"), "sha256").hex()
