"""Globs over canonical names, and the encoding that keeps a tool's name from looking like anything else.

Refuses to know rules and decisions.
"""

import re

_SERVER_ID = re.compile(r"[A-Za-z0-9._-]+")
_SERVER_PART = re.compile(r"[A-Za-z0-9._*?-]+")


def compile_glob(glob: str) -> re.Pattern[str]:
    """A pattern for `fullmatch`: `*` is any run of characters, `/` and newlines too, `?` is one, nothing else special.

    Each run between two stars is taken where it comes first and never given back (atomic groups), so the time is
    bounded by the name times the longest run.
    """
    first, *rest = ["".join("." if sign == "?" else re.escape(sign) for sign in part) for part in glob.split("*")]
    middle = "".join(f"(?>.*?{part})" for part in rest[:-1] if part)
    return re.compile(first + middle + (f".*{rest[-1]}" if rest else ""), re.DOTALL)


def check_glob(glob: str) -> str | None:
    """What is wrong with a rule's glob, None when nothing is. One that can match no canonical name is wrong too."""
    room, slash, rest = glob.partition("/")
    server, second, name = rest.partition("/")
    if room != "mcp" or not slash:
        return f"the glob {glob!r} does not start with mcp/; it is mcp/SERVER/TOOL"
    if not server or not second or not name:
        missing = "name" if server else "server"
        return f"the glob {glob!r} has no {missing} part; it is mcp/SERVER/TOOL (all tools of all servers: mcp/*/*)"
    if _SERVER_PART.fullmatch(server) is None:
        return f"the server part {server!r} fits no server id; those are letters, digits, '.', '_' and '-'"
    literal = re.split(r"[*?]", name, maxsplit=1)[0]
    if "*" in server or "?" in server or literal.startswith(("resource:", "prompt:")):
        return None
    half = r"%(?!2F|3A|25)" if literal == name else r"%(?!2F|3A|25).."
    if "/" in literal or ":" in literal or re.search(half, literal, re.DOTALL):
        written = f"mcp/{server}/{encode_tool_name(literal)}{name[len(literal) :]}"
        return f"the glob {glob!r} fits no name: '/', ':' and '%' in a tool's name are encoded; write {written}"
    return None


def check_server_id(server: str) -> str | None:
    """What is wrong with a server id, None when nothing is."""
    if _SERVER_ID.fullmatch(server) is None:
        return f"{server!r} is no server id; it is made of letters, digits, '.', '_' and '-'"
    return None


def glob_server(glob: str) -> str | None:
    """The one server that a (well-formed) glob speaks of, None when its server part has a wildcard."""
    server = glob.split("/")[1]
    return None if "*" in server or "?" in server else server


def encode_tool_name(name: str) -> str:
    """A tool's name as it stands in a canonical name: `/`, `:` and `%` percent-encoded."""
    return name.replace("%", "%25").replace("/", "%2F").replace(":", "%3A")


def decode_tool_name(encoded: str) -> str:
    """A tool's bare name from the last part of its canonical name."""
    return encoded.replace("%2F", "/").replace("%3A", ":").replace("%25", "%")
