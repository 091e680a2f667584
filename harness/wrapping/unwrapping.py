"""Takes the proxy out of a configuration that was changed since it was rewritten: our edits alone, server by server.

Refuses to know files on a disk. Only JSON, where a server is one piece of text.
"""

from collections.abc import Sequence

from harness.wrapping.clientfile import Found, Rewritten, server_paths
from harness.wrapping.entries import LeftError, our_words, wrap_entry, wrapped_id, wrapping_of
from harness.wrapping.jsonc import read_jsonc
from harness.wrapping.located import ConfigError, Located
from proxy.jsonedit import Edit, applied
from proxy.problem import Path
from proxy.spans import JSON


def unwrap(text: str, backups: Sequence[str]) -> Rewritten:
    """Put back each server that is still as wrapping made it out of one in `backups`, the newest first.

    Raises ConfigError where the text cannot be read.
    """
    located = read_jsonc(text)
    kept: list[Located] = []
    for backup in backups:
        try:
            kept.append(read_jsonc(backup))
        except ConfigError:
            continue
    edits: list[Edit] = []
    servers: list[Found] = []
    for path in server_paths(located.data, "json"):
        entry = located.at(path)
        words = our_words(entry) if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or words is None:
            continue
        server_id = wrapped_id(words) or ""
        before = next((one.source(path) for one in kept if _made_of(one, path, entry, words, server_id)), None)
        if before is None:
            why = "it was changed since it was rewritten, or is in no backup"
            servers.append(Found(str(path[-1]), server_id, "left", why))
        else:
            edits.append(located.replaced(path, before))
            servers.append(Found(str(path[-1]), server_id, "undone"))
    return Rewritten(applied(text, sorted(edits)), tuple(servers))


def _made_of(kept: Located, path: Path, entry: dict[str, JSON], words: Sequence[JSON], server_id: str) -> bool:
    """Whether wrapping makes this server of the one in a backup."""
    before = kept.at(path)
    if path not in kept.values or not isinstance(before, dict) or our_words(before) is not None:
        return False
    try:
        return wrap_entry(kept, path, before, server_id, wrapping_of(entry, words)).entry == entry
    except LeftError:
        return False
