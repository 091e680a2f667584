"""A whole configuration of a client: where its servers stand, and its text with a proxy in front of each.

Refuses to know files on a disk. What comes out is read again, and may differ in the servers' commands alone.
"""

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Literal

from harness.wrapping.entries import LeftError, Wrapping, free_id, our_words, wrap_entry, wrapped_id, wrapping_of
from harness.wrapping.jsonc import read_jsonc
from harness.wrapping.located import ConfigError, Located
from harness.wrapping.tomltext import read_toml
from proxy.jsonedit import Edit, applied
from proxy.problem import Path, field_name
from proxy.spans import JSON

Format = Literal["json", "toml"]
OTHERWISE = "it goes through the proxy already, with other options than these; to give it these, use --undo first"
"""Why a server is left that was wrapped before, when a policy or a folder is asked for that it has not."""
NO_SIGN_IN = "its client can no longer sign in to it; should it ask for that, use `wiretrap proxy http` instead"
"""What is said of a server over HTTP whose entry has no credentials."""


@dataclass(frozen=True, slots=True)
class Found:
    """One server of the file: its client's name for it, its id, and what became of it."""

    name: str
    id: str
    what: Literal["wrapped", "already", "left", "undone"]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The new text, and every server in it."""

    text: str
    servers: tuple[Found, ...]


def read_config(text: str, form: Format) -> Located:
    """Read a configuration. Raises ConfigError."""
    return read_toml(text) if form == "toml" else read_jsonc(text)


def server_paths(data: JSON, form: Format) -> Iterator[Path]:
    """Where servers stand: Claude, Cursor and Gemini CLI, VS Code, Codex; also in each project of Claude Code."""
    if not isinstance(data, dict):
        return
    maps: list[Path] = [("mcp_servers",)] if form == "toml" else [("mcpServers",), ("servers",), ("mcp", "servers")]
    projects = data.get("projects")
    if form == "json" and isinstance(projects, dict):
        maps += [("projects", project, "mcpServers") for project in projects]
    for path in maps:
        found: JSON = data
        for part in path:
            found = found.get(str(part)) if isinstance(found, dict) else None
        for name in found if isinstance(found, dict) else ():
            yield (*path, name)


def rewrite(text: str, form: Format, how: Wrapping) -> Rewritten:
    """Put a proxy in front of every server. Raises ConfigError where the text is no configuration of a client."""
    located = read_config(text, form)
    paths = list(server_paths(located.data, form))
    if not paths:
        named = "[mcp_servers.NAME]" if form == "toml" else "mcpServers (or servers, in VS Code)"
        raise ConfigError(f"it names no servers; they stand under {named}")
    # Keys above a server that stand twice make two maps of which a client reads one.
    for place in located.twice:
        if any(path[: len(place)] == place for path in paths):
            raise ConfigError(f"the key {field_name(place)} stands twice, and clients differ in which they read")
    entries = {path: located.at(path) for path in paths}
    ours = {path: words for path, entry in entries.items() if isinstance(entry, dict) and (words := our_words(entry))}
    ids = {path: found for path, words in ours.items() if (found := wrapped_id(words)) is not None}
    edits: list[Edit] = []
    expected = deepcopy(located.data)
    servers: list[Found] = []
    for path in paths:
        name, entry = str(path[-1]), entries[path]
        if path in ours:
            kept = isinstance(entry, dict) and wrapping_of(entry, ours[path]).options != how.options
            if how.options and kept:
                servers.append(Found(name, ids.get(path, name), "left", OTHERWISE))
            else:
                servers.append(Found(name, ids.get(path, name), "already"))
            continue
        server_id = free_id(name, ids.values())
        try:
            if not isinstance(entry, dict):
                raise LeftError("it is no map")
            made = wrap_entry(located, path, entry, server_id, how)
        except LeftError as error:
            servers.append(Found(name, server_id, "left", str(error)))
            continue
        ids[path] = server_id
        edits += made.edits
        _put(expected, path, made.entry)
        servers.append(Found(name, server_id, "wrapped", NO_SIGN_IN if made.open else ""))
    written = applied(text, sorted(edits))
    if edits and _canonical(read_config(written, form).data) != _canonical(expected):
        raise ConfigError("it would not read as it should when it is rewritten; nothing was done")
    return Rewritten(written, tuple(servers))


def _put(data: JSON, path: Path, entry: Mapping[str, JSON]) -> None:
    found = data
    for part in path[:-1]:
        assert isinstance(found, dict)
        found = found[str(part)]
    assert isinstance(found, dict)
    found[str(path[-1])] = dict(entry)


def _canonical(data: JSON) -> str:
    return json.dumps(data, sort_keys=True)
