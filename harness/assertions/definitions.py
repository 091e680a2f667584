"""Whether the tools that a server offers stayed what they were when the agent first saw them.

Refuses to know what a definition says: it gets digests (RFC 8785) of name, description, schemas and annotations.
"""

from typing import ClassVar, Literal

from pydantic import Field

from harness.assertions.absence import record_doubt
from harness.assertions.spec import AssertionSpec, Part
from harness.evidence import Evidence
from harness.outcomes import listed
from harness.verdict import Finding


class ToolDefinitionsStable(AssertionSpec):
    """No server listed a tool twice by one name with another definition; tools added or gone are notes."""

    needs: ClassVar[tuple[Part, ...]] = ("events",)

    type: Literal["tool_definitions_stable"]
    servers: list[str] | None = Field(default=None, min_length=1)

    def find(self, evidence: Evidence) -> Finding:
        """Fails on another digest of the same server and name within the trial; not_run when no tools were listed."""
        digests: dict[tuple[str, str], dict[str, int]] = {}
        pages: dict[str, list[tuple[int, frozenset[str]]]] = {}
        for event in evidence.trace.events:
            server, tools = event.fields.get("server_id"), event.fields.get("tools")
            if event.type != "mcp_tools_discovered" or event.reported or not isinstance(server, str):
                continue
            if self.servers is not None and server not in self.servers:
                continue
            names: set[str] = set()
            for tool in tools if isinstance(tools, list) else []:
                match tool:
                    case {"name": str() as name, "digest": str() as digest}:
                        names.add(name)
                        digests.setdefault((server, name), {}).setdefault(digest, event.seq)
                    case _:
                        pass
            pages.setdefault(server, []).append((event.seq, frozenset(names)))
        changed = [
            f"mcp/{server}/{name} was defined otherwise at seq {sorted(seen.values())[1]} than at {min(seen.values())}"
            for (server, name), seen in digests.items()
            if len(seen) > 1
        ]
        if changed:
            return Finding(self.name, "fail", listed(changed), evidence.trace.coverage.events)
        if not digests:
            return self.not_run("no server was seen to list its tools")
        doubted = record_doubt(evidence)
        if doubted is not None:
            return self.not_run(f"no definition changed by the record, but that is no evidence: {doubted}")
        notes = [note for server, seen in pages.items() for note in _notes(server, seen)]
        tail = f"; {listed(notes)}" if notes else ""
        reason = f"each of {len(digests)} tools kept its definition{tail}"
        return Finding(self.name, "pass", reason, evidence.trace.coverage.events)


def _notes(server: str, pages: list[tuple[int, frozenset[str]]]) -> list[str]:
    """Tools that came after the first listing, or were missing in the last; pages of one listing look alike to us."""
    first, last = pages[0][1], pages[-1][1]
    if len(pages) == 1 or first.isdisjoint(last):
        return []
    found = [f"mcp/{server}/{name} was added" for name in sorted(last - first)]
    return found + [f"mcp/{server}/{name} is gone" for name in sorted(first - last)]
