"""The headers in which a message of MCP 2026-07-28 says again what its body says: made for a server, checked for one.

It follows basic/transports of that revision. Refuses to know sockets, and what becomes of a request.
"""

import re
from base64 import b64encode
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from proxy.frames import Message
from proxy.httpwords import Headers, disagreement, header_text, values
from proxy.judging import JUDGED, VERSION_KEY, meta_text
from proxy.spans import JSON

VERSION, METHOD, NAME = b"mcp-protocol-version", b"mcp-method", b"mcp-name"
_PARAM = b"mcp-param-"
ANNOTATION = "x-mcp-header"
"""What marks an argument in a schema that a header says again."""
_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?|")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_DECIMAL = re.compile(r"(-?[0-9]+)(?:\.0+)?")

HEADER_MISMATCH = -32020
INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, UNPARSED = -32600, -32601, -32602, -32700
STATUSES: Mapping[int, int] = {
    UNPARSED: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    -32021: 400,
    -32022: 400,
    NO_METHOD: 404,
}
"""The HTTP status of a JSON-RPC error since 2026-07-28; any other code is 200."""

Path: TypeAlias = tuple[str, ...]


class Mirrored(NamedTuple):
    """An argument that a header says again: the header's name in lower case, and the argument's JSON type."""

    header: bytes
    kind: str


class SchemaError(ValueError):
    """An annotation of a schema that no client follows; such a tool has no headers."""


def mirrored(schema: JSON) -> dict[Path, Mirrored]:
    """By its path the arguments of an input schema that headers say again. Raises SchemaError."""
    found: dict[Path, Mirrored] = {}
    _walk(schema, (), found)
    if len({one.header for one in found.values()}) < len(found):
        raise SchemaError("two arguments have one header")
    return found


def _walk(schema: JSON, path: Path, found: dict[Path, Mirrored]) -> None:
    if not isinstance(schema, dict):
        return
    if ANNOTATION in schema:
        name, kind = schema[ANNOTATION], schema.get("type")
        if not path or not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise SchemaError(f"{ANNOTATION} of {'.'.join(path) or 'the schema'} is no name of a header")
        if kind not in ("string", "integer", "boolean"):
            raise SchemaError(f"{'.'.join(path)} is of a type that no header carries")
        found[path] = Mirrored(_PARAM + name.lower().encode(), str(kind))
    properties = schema.get("properties")
    if isinstance(properties, dict):
        for key, inner in properties.items():
            _walk(inner, (*path, key), found)


class Mirrors:
    """Which arguments of which tools headers say again, learnt from the `tools/list` answers that passed."""

    def __init__(self) -> None:
        self._tools: dict[str, dict[Path, Mirrored]] = {}

    def learn(self, answer: Message) -> None:
        """Take the tools of an answer to `tools/list`."""
        result = answer.members.get("result")
        tools = result.value.get("tools") if result is not None and isinstance(result.value, dict) else None
        for tool in tools if isinstance(tools, list) else []:
            name = tool.get("name") if isinstance(tool, dict) else None
            if not isinstance(tool, dict) or not isinstance(name, str):
                continue
            try:
                found = mirrored(tool.get("inputSchema"))
            except (SchemaError, RecursionError):
                found = {}
            self._tools.pop(name, None)
            if found:
                self._tools[name] = found

    def __bool__(self) -> bool:
        return bool(self._tools)

    def of(self, message: Message) -> dict[Path, Mirrored]:
        """What is said again of a call's arguments; nothing of another message."""
        name = message.params.get("name")
        if message.method != "tools/call" or name is None or not isinstance(name.value, str):
            return {}
        return self._tools.get(name.value, {})


def argument_at(message: Message, path: Path) -> JSON:
    """The argument of a call at a path, None without one."""
    member = message.params.get("arguments")
    value = None if member is None else member.value
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _rendered(value: JSON) -> str | None:
    """An argument as its header has it; None for what no header carries."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int() | float():
            try:
                return str(value)
            except ValueError:  # more digits than Python writes
                return None
        case _:
            return None


def header_value(text: str) -> bytes:
    """A text as the value of a header, in base64 where it would not come through as it is."""
    if _PLAIN.fullmatch(text) and not text.lower().startswith("=?base64?"):
        return text.encode()
    return b"=?base64?" + b64encode(text.encode("utf-8", "surrogatepass")) + b"?="


def target_of(message: Message) -> str | None:
    """What `Mcp-Name` says of a message: the tool, the prompt, the resource or the task."""
    method = message.method or ""
    key = JUDGED[method][1] if method in JUDGED else "taskId" if method.startswith("tasks/") else ""
    member = message.params.get(key)
    return member.value if member is not None and isinstance(member.value, str) else None


def made(message: Message, mirrors: Mirrors) -> Headers:
    """The headers that a message of the new era is sent with."""
    found: Headers = [(VERSION, (meta_text(message, VERSION_KEY) or "").encode("ascii", "replace"))]
    found.append((METHOD, header_value(message.method or "")))
    target = target_of(message)
    if target is not None:
        found.append((NAME, header_value(target)))
    for path, one in mirrors.of(message).items():
        text = _rendered(argument_at(message, path))
        if text is not None:
            found.append((one.header, header_value(text)))
    return found


def mismatch(headers: Headers, message: Message, mirrors: Mirrors) -> str | None:
    """How the headers of a message of the new era say something else than its body, or nothing; None where they agree.

    A notification need not be named in the headers, but what they say of it must be true.
    """
    why = disagreement(headers, message)
    if why is not None:
        return why
    needed = [VERSION, METHOD] if "id" in message.members else [VERSION]
    if message.method in JUDGED and target_of(message) is not None:
        needed.append(NAME)
    for name in needed:
        if not values(headers, name):
            return f"the header {name.decode().title()} is missing"
    for path, one in mirrors.of(message).items():
        why = difference(values(headers, one.header), argument_at(message, path), one.kind)
        if why is not None:
            return f"the header {one.header.decode().title()} {why}"
    return None


def difference(there: list[bytes], argument: JSON, kind: str) -> str | None:
    """How the values of a header say something else than the argument that it repeats, in words; None where not."""
    text = _rendered(argument)
    if len(there) > 1:
        return f"stands {len(there)} times"
    if text is None:
        return "is there, and the argument is not" if there else None
    if not there:
        return "is missing, and the argument is there"
    said = header_text(there[0])
    if said is None:
        return "cannot be decoded"
    if said == text:
        return None
    number = _DECIMAL.fullmatch(said) if kind == "integer" and not isinstance(argument, bool) else None
    same = number is not None and len(number[1]) < 1000 and int(number[1]) == argument
    return None if same else "says something else than the argument"
