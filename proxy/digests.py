"""Digests of what a connection was made of: its server's command and its policy, so that the harness knows its own.

Refuses to know files and spans. Both may hold secrets, so the digests are keyed with the run's key: without it nobody
can try out what they were made of.
"""

import json
from collections.abc import Sequence
from hmac import digest

from proxy.held import Grant
from proxy.policy import Policy


def command_digest(key: bytes, command: Sequence[str]) -> str:
    """HMAC-SHA256 of a server's command, in hex."""
    return _digest(key, json.dumps(list(command)))


def policy_digest(key: bytes, policy: Policy | None, grants: Sequence[Grant] = ()) -> str:
    """HMAC-SHA256 of what a policy says and what is granted, in hex: spelling, comments and file apart.

    Of no policy and no grants it is "".
    """
    said = "" if policy is None else repr(policy)
    return _digest(key, f"{said}{tuple(grants)!r}" if grants else said) if said or grants else ""


def _digest(key: bytes, text: str) -> str:
    return digest(key, text.encode("utf-8", "surrogatepass"), "sha256").hex()
