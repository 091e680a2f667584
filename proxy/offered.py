"""Deny rules that name a tool which the server does not list: they guard nothing, and that is said, once.

Refuses to know where it is said, and what becomes of the list.
"""

import json
from collections.abc import Callable, Iterable

from proxy.policy import Policy, canonical_name


class Offered:
    """What a server says that it offers, over all connections of one proxy, against the rules that name one tool."""

    def __init__(self, server: str, globs: Iterable[str], tell: Callable[[str], None]) -> None:
        """`globs` are those of deny rules; those with a wildcard may match what comes later, and are left out."""
        self._server = server
        self._tell = tell
        self.adopt(globs)

    def adopt(self, globs: Iterable[str]) -> None:
        """Look out for the tools of these rules from the next list on."""
        begin = f"mcp/{self._server}/"
        kinds = (f"{begin}resource:", f"{begin}prompt:")
        plain = [one for one in globs if one.startswith(begin) and not set(one) & set("*?")]
        self._awaited = {one: None for one in plain if not one.startswith(kinds)}

    def take(self, source: str) -> None:
        """An answer to tools/list; its last page tells."""
        if not self._awaited:
            return
        try:
            result = json.loads(source).get("result")
        except (ValueError, AttributeError, RecursionError):
            return
        tools = result.get("tools") if isinstance(result, dict) else None
        if not isinstance(result, dict) or not isinstance(tools, list):
            return
        for tool in tools:
            if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                self._awaited.pop(canonical_name(self._server, "tool", tool["name"]), None)
        if self._awaited and not result.get("nextCursor"):
            self._tell(f"the server {self._server} lists no tool that these rules deny: {', '.join(self._awaited)}")
            self._awaited = {}


def offered_to(server: str, policy: Policy | None, tell: Callable[[str], None]) -> Offered:
    """The same of a policy's rules."""
    return Offered(server, denied_by(policy), tell)


def denied_by(policy: Policy | None) -> list[str]:
    """The globs of deny rules, but for those that hide a tool: that is out of the list that is looked at."""
    rules = () if policy is None else policy.rules
    return [one.glob for one in rules if one.action == "deny" and one.form != "hidden"]
