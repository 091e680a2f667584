"""Which tool a call names, by every shape that the record gives its name, and whether a scenario's entry means it.

Refuses to know arguments and outcomes. The rules are those of verdicts.md section 4, "Names".
"""

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from harness.trace import ToolCall

_CANONICAL = re.compile(r"mcp/([A-Za-z0-9._-]+)/(.+)", re.DOTALL)
_ENCODED = re.compile("%(2F|3A|25)", re.IGNORECASE)
_DECODED = {"2F": "/", "3A": ":", "25": "%"}


class ToolName(NamedTuple):
    """A tool's bare name, and its server where the text says one."""

    server: str | None
    tool: str


@lru_cache(maxsize=4096)
def read_name(text: str) -> ToolName:
    """A canonical name (`mcp/<server>/<tool>`, `/`, `:` and `%` of the tool percent-encoded), or a bare one."""
    found = _CANONICAL.fullmatch(text)
    if found is None:
        return ToolName(None, text)
    return ToolName(found[1], _ENCODED.sub(lambda code: _DECODED[code[1].upper()], found[2]))


def shapes(call: ToolCall) -> tuple[ToolName, ...]:
    """Every name that the record gives the call, none twice; empty for a call without a name."""
    return _shapes(call.name, call.names, call.mcp_tool_name, call.mcp_server_id)


@lru_cache(maxsize=4096)
def _shapes(name: str | None, names: tuple[str, ...], tool: str | None, server: str | None) -> tuple[ToolName, ...]:
    found = [read_name(text) for text in (name, *names) if text is not None and text.strip()]
    if tool is not None and tool.strip():
        found.append(ToolName(server, tool))
    return tuple(dict.fromkeys(found))


def servers(call: ToolCall, shape: ToolName) -> frozenset[str]:
    """The servers that the call may have gone to, by this shape and by its own field; empty when nothing says."""
    return _servers(call.mcp_server_id, shape)


def _servers(own: str | None, shape: ToolName) -> frozenset[str]:
    return frozenset(server for server in (shape.server, own) if server is not None)


def is_meant(entry: str, call: ToolCall) -> bool:
    """Whether a name of what must not happen means the call: any shape, case-folded, blanks around it taken off.

    A bare entry is that tool on every server; a canonical one only on that server, or in a call without a server.
    """
    return _is_meant(entry, shapes(call), call.mcp_server_id)


@lru_cache(maxsize=4096)
def _is_meant(entry: str, found: tuple[ToolName, ...], own: str | None) -> bool:
    wanted = read_name(_fold(entry))
    for shape in found:
        told = shape if shape.server is not None else read_name(_fold(shape.tool))
        if _fold(told.tool) != wanted.tool:
            continue
        known = {_fold(server) for server in _servers(own, told)}
        if wanted.server is None or not known or wanted.server in known:
            return True
    return False


def is_certain(entry: str, call: ToolCall) -> Literal["yes", "no", "unknown"]:
    """Whether a name of what must happen means the call: every shape, exact case.

    `unknown` when the entry is canonical and nothing says which server the call went to.
    """
    return _is_certain(entry, shapes(call), call.mcp_server_id)


@lru_cache(maxsize=4096)
def _is_certain(entry: str, found: tuple[ToolName, ...], own: str | None) -> Literal["yes", "no", "unknown"]:
    wanted = read_name(entry)
    if not found or any(shape.tool != wanted.tool for shape in found):
        return "no"
    if wanted.server is None:
        return "yes"
    known = frozenset[str]().union(*(_servers(own, shape) for shape in found))
    if not known:
        return "unknown"
    return "yes" if known == {wanted.server} else "no"


def _fold(text: str) -> str:
    return text.strip().casefold()
