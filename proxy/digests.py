"""Digests of what a connection was made of: its server's command and its policy, so that the harness knows its own.

Refuses to know files and spans. Both may hold secrets, so the digests are keyed with the run's key: without it nobody
can try out what they were made of.
"""

import json
from collections.abc import Sequence
from hmac import digest

from proxy.faults import Fault
from proxy.held import Grant
from proxy.policy import Policy


def command_digest(key: bytes, command: Sequence[str]) -> str:
    """HMAC-SHA256 of a server's command, in hex."""
    return _digest(key, json.dumps(list(command)))


def policy_digest(key: bytes, policy: Policy | None, grants: Sequence[Grant] = (), faults: Sequence[Fault] = ()) -> str:
    """HMAC-SHA256 of what a policy says, what is granted and which faults there are: spelling, comments and file apart.

    In hex; of none of them it is "".
    """
    said = "" if policy is None else repr(policy)
    said += "".join(repr(tuple(part)) for part in (grants, faults) if part)
    return _digest(key, said) if said else ""


def _digest(key: bytes, text: str) -> str:
    return digest(key, text.encode("utf-8", "surrogatepass"), "sha256").hex()
