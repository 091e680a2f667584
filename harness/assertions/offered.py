"""Which tools servers were seen to offer in a trial, and whether a name of what must not happen names one of them.

That a tool which nobody offers was not called says nothing. Refuses to know calls.
"""

from collections.abc import Iterable, Iterator

from harness.assertions.names import is_meant, read_name
from harness.evidence import Evidence
from harness.offer import missing_tool
from harness.trace import Event
from proxy.glob import compile_glob, encode_tool_name
from proxy.spans import JSON


def offers(evidence: Evidence) -> dict[str, set[str]]:
    """For each server whose tools we saw listed in the trial, their names."""
    found: dict[str, set[str]] = {}
    for server, event in _listings(evidence):
        names = [tool.get("name") if isinstance(tool, dict) else tool for tool in _tools(event)]
        found.setdefault(server, set()).update(name for name in names if isinstance(name, str))
    return found


def not_offered(entry: str, evidence: Evidence) -> str | None:
    """The sentence that no server offers what `entry` names, None where one does or it cannot be told.

    It can be told where the server (of a bare name every server) was seen to list its tools to the end. What the
    policy hides is not in those lists. Case and blanks around the entry do not count.
    """
    whole = {server for server, event in _listings(evidence) if event.fields.get("more") is not True}
    seen = {server: sorted(tools) for server, tools in offers(evidence).items() if server in whole}
    named = read_name(entry.strip().casefold())
    if named.server is None:
        servers = sorted({*evidence.servers, *evidence.initialised})
    else:
        servers = [server for server in seen if server.casefold() == named.server]
    if any(_is_hidden(server, named.tool, evidence) for server in servers):
        return None
    known = {server: seen.get(server) for server in servers}
    match servers:
        case [only]:
            return missing_tool(only, named.tool, known, fold=True)
        case _:
            return missing_tool(None, named.tool, known, fold=True)


def none_of_offered(entries: Iterable[str], evidence: Evidence) -> str | None:
    """The same for the first entry of a list that names no tool which was called; None where each may."""
    calls = evidence.trace.tool_calls
    unmet = (entry for entry in entries if not any(is_meant(entry, call) for call in calls))
    return next((said for entry in unmet if (said := not_offered(entry, evidence)) is not None), None)


def _listings(evidence: Evidence) -> Iterator[tuple[str, Event]]:
    for event in evidence.trace.events:
        server = event.fields.get("server_id")
        listed = event.type == "mcp_tools_discovered" and not event.reported
        if listed and isinstance(server, str) and isinstance(event.fields.get("tools"), list):
            yield server, event


def _tools(event: Event) -> list[JSON]:
    tools = event.fields.get("tools")
    return tools if isinstance(tools, list) else []


def _is_hidden(server: str, tool: str, evidence: Evidence) -> bool:
    canonical = f"mcp/{server}/{encode_tool_name(tool)}".casefold()
    return any(compile_glob(glob.casefold()).fullmatch(canonical) for glob in evidence.hidden)
