"""`Mcp-Param-*` headers against the arguments that they repeat (MCP 2026-07-28, basic/transports).

Which argument a header repeats stands in the tool's schema. Where no list with it has passed, or it does not name the
header, less is asked: what it says must be somewhere in the arguments. Refuses to know what becomes of a request.
"""

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

from proxy.frames import Message
from proxy.httpwords import Headers, header_text, of_mcp
from proxy.mcpheaders import Mirrors, argument_at, difference
from proxy.spans import JSON

_PREFIX = b"mcp-param-"


def param_disagreement(headers: Headers, message: Message | None, mirrors: Mirrors) -> str | None:
    """How such a header says what the arguments do not, in words; None where none does.

    `message` is the one message of the body, None where there is not one. One that is missing is for the server.
    """
    there = [(key, value) for key, value in of_mcp(headers) if key.startswith(_PREFIX)]
    if not there:
        return None
    arguments = None if message is None or message.method != "tools/call" else message.params.get("arguments")
    named = {} if message is None else {one.header: (path, one.kind) for path, one in mirrors.of(message).items()}
    said = set() if arguments is None else set(_scalars(arguments.value))
    seen: set[bytes] = set()
    for key, value in there:
        shown = key.decode("latin-1").title()
        if key in seen:
            return f"the header {shown} stands more than once"
        seen.add(key)
        if message is not None and key in named:
            path, kind = named[key]
            why = difference([value], argument_at(message, path), kind)
            if why is not None:
                return f"the header {shown} {why}"
            continue
        text = header_text(value)
        if text is None:
            return f"the header {shown} cannot be read"
        if text not in said and _number(text) not in said:
            return f"the header {shown} says {text[:80]!r}, which is none of the arguments"
    return None


def _scalars(value: JSON) -> Iterator[str | Decimal]:
    """All texts, numbers and truths in a value, as a header can say them."""
    waiting: list[JSON] = [value]
    while waiting:
        one = waiting.pop()
        match one:
            case dict():
                waiting += one.values()
            case list():
                waiting += one
            case bool():
                yield "true" if one else "false"
            case int() | float():
                number = _number(repr(one))
                if number is not None:
                    yield number
            case str():
                yield one
            case None:
                continue


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
