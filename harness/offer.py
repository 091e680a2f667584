"""What servers offer, where that is known before they run: names of tools, and the schema of a database.

Refuses to know where the knowledge comes from; `harness.targets.fixtures` has it of the fixtures.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeAlias

from proxy.glob import compile_glob, decode_tool_name, encode_tool_name

Tools: TypeAlias = Mapping[str, Collection[str] | None]
"""Of each server of a scenario the bare names of its tools; None where only the running server knows."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a fixture offers: the bare names of its tools, and the CREATE statements of what it works on."""

    tools: tuple[str, ...]
    schema: tuple[str, ...]


Offers: TypeAlias = Mapping[str, Offer]
"""What each fixture offers, by its name."""


def did_you_mean(name: str, known: Collection[str]) -> str:
    """`; did you mean X?` where one of the known names is near, else the names there are."""
    near = get_close_matches(name.casefold(), {one.casefold(): one for one in known}, n=1)
    meant = [one for one in known if one.casefold() in near]
    return f"; did you mean {meant[0]}?" if meant else f"; there are: {', '.join(sorted(known)) or 'none'}"


def missing_tool(server: str | None, tool: str, tools: Tools, *, fold: bool = False) -> str | None:
    """What is wrong with naming `tool` on `server`, None when it is there or nobody can tell.

    Without a server it is that tool on any. `fold`: case does not count.
    """
    if server is None:
        known = [name for offered in tools.values() if offered is not None for name in offered]
        if not tools or None in tools.values() or _has(known, tool, fold=fold):
            return None
        return f"no server of the scenario offers a tool {tool!r}{did_you_mean(tool, sorted(set(known)))}"
    offered = tools.get(server)
    if offered is None or _has(offered, tool, fold=fold):
        return None
    return f"the server {server!r} offers no tool {tool!r}{did_you_mean(tool, offered)}"


def missing_tool_of_glob(glob: str, tools: Tools) -> str | None:
    """The same of a (well-formed) glob whose tool part has no wildcard; resources and prompts are no tools."""
    _, server, name = glob.split("/", 2)
    if any(sign in name for sign in "*?") or name.startswith(("resource:", "prompt:")):
        return None
    spoken_of = {one: tools[one] for one in tools if compile_glob(server).fullmatch(one)}
    tool = decode_tool_name(name)
    match list(spoken_of):
        case [only]:
            return missing_tool(only, tool, spoken_of)
        case _:
            return missing_tool(None, tool, spoken_of)


def idle_glob(glob: str, tools: Tools, idles: str) -> str | None:
    """That a (well-formed) glob with a wildcard in its tool part fits no tool; None when one fits or nobody can tell.

    `idles` says what it therefore does not do.
    It is no error: a list of rules may be meant for more servers than these, or for tools that are still to come.
    """
    _, server, name = glob.split("/", 2)
    if not any(sign in name for sign in "*?") or name.startswith(("resource:", "prompt:")):
        return None
    spoken_of = {one: offered for one, offered in tools.items() if compile_glob(server).fullmatch(one)}
    offers = {one: offered for one, offered in spoken_of.items() if offered is not None}
    pattern = compile_glob(glob)
    names = (f"mcp/{one}/{encode_tool_name(tool)}" for one, offered in offers.items() for tool in offered)
    if not spoken_of or len(offers) < len(spoken_of) or any(map(pattern.fullmatch, names)):
        return None
    known = "; ".join(f"{one} offers {', '.join(sorted(offered)) or 'none'}" for one, offered in offers.items())
    return f"{glob!r} fits no tool, so it {idles}: {known}"


def _has(names: Collection[str], name: str, *, fold: bool) -> bool:
    return name.strip().casefold() in {one.casefold() for one in names} if fold else name in names
