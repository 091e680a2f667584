"""One server of a client's configuration, and the edits that put our proxy in front of it.

Refuses to know files, and where in a configuration servers stand.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath
from typing import NamedTuple
from urllib.parse import urlsplit

from harness.wrapping.located import Located, without
from proxy.jsonedit import Edit
from proxy.problem import Path
from proxy.spans import JSON

MODULE = ("-P", "-m", "harness.cli")
"""How `wiretrap` is started where there is no script."""
HEADER = "WIRETRAP_HEADER_"
"""How the variables begin that hold what a header was: so it stands on no command line."""
_SIGNS_IN = ("oauth", "auth", "authProviderType", "headersHelper", "http_headers_helper", "scopes", "oauth_resource")
"""Fields by which a client gets credentials itself, which a server over stdio has no use for."""
LONGEST_ID = 100
"""Characters of an id: it begins the names of span files."""
_BASE = re.compile(r"^\$(?:\{[^}]*\}|\w+)")
_OWN = ("--header-env", "--bearer-env", "--")
"""The words that wrapping adds behind those that a person asked for."""
_URLS = ("httpUrl", "url")
_TYPES = ("http", "streamable-http", "streamableHttp", "streamable_http")


class LeftError(ValueError):
    """A server that is left as it is; the message says why."""


@dataclass(frozen=True, slots=True)
class Wrapping:
    """How our proxy is started: `program` are the words of `wiretrap`, `options` those behind `--server ID`.

    `sse`: a `url` without a type is the older transport with an event stream, as Gemini CLI has it.
    """

    program: tuple[str, ...]
    options: tuple[str, ...] = ()
    sse: bool = False


class Wrapped(NamedTuple):
    """The edits, and what the server's map then says; `open` is one over HTTP that no credentials are known of."""

    edits: list[Edit]
    entry: dict[str, JSON]
    open: bool = False


def our_words(entry: Mapping[str, JSON]) -> list[JSON] | None:
    """The words behind `wiretrap` where a server is started through it already, None where it is not."""
    command, words = entry.get("command"), entry.get("args")
    if not isinstance(command, str) or not isinstance(words, list):
        return None
    if tuple(words[: len(MODULE)]) == MODULE:
        words = words[len(MODULE) :]
    elif PurePath(command).name != "wiretrap":
        return None
    return words if words[:1] == ["proxy"] else None


def wrapped_id(words: Sequence[JSON]) -> str | None:
    """The server id among the words behind `wiretrap`."""
    for word, following in pairwise(words):
        if word == "--server" and isinstance(following, str):
            return following
    return None


def wrapping_of(entry: Mapping[str, JSON], words: Sequence[JSON]) -> Wrapping:
    """How a server that is started through us was wrapped; `words` are those of `our_words`."""
    texts = [str(word) for word in words]
    ended = next((place for place, word in enumerate(texts) if word in _OWN), len(texts))
    given = entry.get("args")
    module = MODULE if isinstance(given, list) and len(given) > len(words) else ()
    return Wrapping((str(entry["command"]), *module), tuple(texts[4:ended]))


def free_id(name: str, taken: Iterable[str]) -> str:
    """A server id made of a client's name for it; one that is taken, in any case of letters, gets a number."""
    wanted = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:LONGEST_ID]
    wanted = wanted if wanted.strip(".-") else "server"
    used = {one.casefold() for one in taken}
    found, number = wanted, 1
    while found.casefold() in used:
        number += 1
        found = f"{wanted}-{number}"
    return found


def wrap_entry(located: Located, path: Path, entry: Mapping[str, JSON], server_id: str, how: Wrapping) -> Wrapped:
    """Put the proxy in front of the server at `path`. Raises LeftError where that cannot be done."""
    if any(place[: len(path)] == path for place in located.twice):
        raise LeftError("a key stands in it twice, and clients differ in which of them they read")
    urls = [key for key in _URLS if isinstance(entry.get(key), str)]
    if isinstance(entry.get("command"), str) and not urls:
        return _stdio(located, path, entry, server_id, how)
    if len(urls) == 1 and "command" not in entry:
        return _url(located, path, entry, server_id, how, urls[0])
    raise LeftError("it has not one of a command and a URL")


def _words(how: Wrapping, kind: str, server_id: str, more: Sequence[str] = ()) -> list[str]:
    return [*how.program[1:], "proxy", kind, "--server", server_id, *how.options, *more, "--"]


def _stdio(located: Located, path: Path, entry: Mapping[str, JSON], server_id: str, how: Wrapping) -> Wrapped:
    kind = entry.get("type", "stdio")
    if kind != "stdio":
        raise LeftError(f"it has a command, and its type is {kind!r}")
    given = entry.get("args")
    arguments: list[JSON] = given if isinstance(given, list) else []
    if not isinstance(given, list | None) or not all(isinstance(word, str) for word in arguments):
        raise LeftError("its args are no list of texts")
    words = _words(how, "stdio", server_id)
    command, args = (*path, "command"), (*path, "args")
    quoted = [*map(located.quote, words), located.source(command)]
    edits = [located.replaced(command, located.quote(how.program[0]))]
    if isinstance(given, list):
        edits.append(located.before_items(args, quoted))
    elif "args" in entry:
        edits.append(located.replaced(args, f"[{', '.join(quoted)}]"))
    else:
        edits.append(located.inserts[command]("args", f"[{', '.join(quoted)}]"))
    made: dict[str, JSON] = {**entry, "command": how.program[0], "args": [*words, entry["command"], *arguments]}
    return Wrapped(edits, made)


class _Headers(NamedTuple):
    """What is done about a server's headers: options, edits, and what takes the place of which fields."""

    options: list[str]
    edits: list[Edit]
    gone: tuple[str, ...]
    entry: dict[str, JSON]


def _url(located: Located, path: Path, entry: Mapping[str, JSON], server_id: str, how: Wrapping, key: str) -> Wrapped:
    url, kind = entry[key], entry.get("type")
    assert isinstance(url, str)
    if kind == "sse" or (kind is None and key == "url" and how.sse):
        raise LeftError("it speaks HTTP with SSE, which only `wiretrap proxy http` can stand in front of")
    if kind is not None and kind not in _TYPES:
        raise LeftError(f"its type is {kind!r}, which the proxy does not speak")
    for field in _SIGNS_IN:
        if entry.get(field) not in (None, False):
            raise LeftError(f"its client signs in by itself ({field}); `wiretrap proxy http` can stand in front of it")
    if "args" in entry:
        raise LeftError("it has a URL and args")
    _check_url(url)
    headers = _headers(located, path, entry)
    words = [*_words(how, "connect", server_id, headers.options), url]
    edits = [*located.renamed((*path, key), "command"), *headers.edits]
    edits.append(located.replaced((*path, key), located.quote(how.program[0])))
    edits.append(located.inserts[(*path, key)]("args", located.listed(words)))
    made: dict[str, JSON] = {
        **without(entry, (key, *headers.gone)),
        **headers.entry,
        "command": how.program[0],
        "args": [*words],
    }
    if kind is not None:
        edits.append(located.replaced((*path, "type"), located.quote("stdio")))
        made["type"] = "stdio"
    return Wrapped(edits, made, not headers.options)


def _check_url(url: str) -> None:
    """That nothing in a URL is secret, since it comes to stand on a command line, where others can read it."""
    try:
        parts = urlsplit(url)
        secret = parts.query or parts.fragment or "@" in parts.netloc
    except ValueError as error:
        raise LeftError(f"its URL cannot be read: {error}") from None
    if parts.scheme not in ("http", "https", "") or not (parts.netloc or "$" in url):
        raise LeftError("its URL does not begin with http:// or https://")
    # One that stands for where the server is may be filled in; one behind that is as likely as not a key.
    if "$" in _BASE.sub("", url, 1):
        raise LeftError("its URL has a variable in it, which would be filled in on a command line")
    if secret:
        raise LeftError("its URL has a query or a user in it, which would come to stand on a command line")


def _headers(located: Located, path: Path, entry: Mapping[str, JSON]) -> _Headers:
    """Headers become variables of the proxy: the same text under another key, so that clients fill in what they did."""
    present = [key for key in ("headers", "http_headers") if entry.get(key)]
    empty = [key for key in ("headers", "http_headers") if key in entry and not entry[key]]
    if (present or empty) and "env" in entry:
        raise LeftError("it has a URL and an env")
    if len(present) + len(empty) > 1:
        raise LeftError("it has headers in two places")
    options: list[str] = []
    edits: list[Edit] = []
    made: dict[str, JSON] = {}
    for key in (*present, *empty):
        headers = entry[key]
        if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
            raise LeftError(f"its {key} are no map of texts")
        edits += located.renamed((*path, key), "env")
        variables: dict[str, JSON] = {}
        for name, value in headers.items():
            variable = _variable(name, variables)
            variables[variable] = value
            edits += located.renamed((*path, key, name), variable)
            options += ["--header-env", f"{name}={variable}"]
        made["env"] = variables
    gone = (*present, *empty)
    kept = _from_variables(located, path, entry)
    return _Headers(options + kept.options, edits + kept.edits, gone + kept.gone, {**made, **kept.entry})


def _from_variables(located: Located, path: Path, entry: Mapping[str, JSON]) -> _Headers:
    """What Codex takes from its own environment: it hands those variables to the proxy instead."""
    bearer, named = entry.get("bearer_token_env_var"), entry.get("env_http_headers")
    if bearer is None and named is None:
        return _Headers([], [], (), {})
    if "env_vars" in entry or (bearer is not None and named is not None):
        raise LeftError("it takes headers from variables in more than one way")
    if isinstance(bearer, str):
        key, variables, options = "bearer_token_env_var", [bearer], ["--bearer-env", bearer]
    elif isinstance(named, dict) and all(isinstance(value, str) for value in named.values()):
        key, variables = "env_http_headers", list(dict.fromkeys(str(value) for value in named.values()))
        options = [word for name, value in named.items() for word in ("--header-env", f"{name}={value}")]
    else:
        raise LeftError("its headers from variables are no texts")
    if (*path, key) not in located.values:
        raise LeftError(f"its {key} stand in a table of their own; write them as {{…}} on one line")
    edits = [*located.renamed((*path, key), "env_vars"), located.replaced((*path, key), located.listed(variables))]
    return _Headers(options, edits, (key,), {"env_vars": [*variables]})


def _variable(name: str, taken: Mapping[str, JSON]) -> str:
    wanted = HEADER + re.sub(r"[^A-Z0-9]+", "_", name.upper())
    found, number = wanted, 1
    while found in taken:
        number += 1
        found = f"{wanted}_{number}"
    return found
