"""What a server asks of its client inside of answers and notifications, to whichever reader: never as a request.

Since 2026-07-28 in `inputRequests` of a result, and of a task's state in results and notifications (MCP 2026-07-28,
multi round-trip requests and the extension io.modelcontextprotocol/tasks); in 2025-11-25 in `elicitations` of an
error's data (elicitation by URL, code -32042). Refuses to know what policy says of it, and what becomes of it.
"""

from collections.abc import Iterator

from proxy.keys import fold
from proxy.policy import CLIENT_REQUESTS
from proxy.readings import Pairs, parsed, reader_text, values
from proxy.spans import JSON

ELICITATION = "elicitation/create"
_BEARERS = frozenset({"result", "params", "error", "task"})
"""Members of a message, and of each other, that may ask something; a task's state holds its result or error."""
_WIDE = (b"\xff\xfe", b"\xfe\xff")


def asked_inside(raw: bytes) -> tuple[str, ...]:
    """The methods of all that some reader finds asked inside of the messages of a line, each once.

    Where nobody knows what a reader would find, since it is nested deeper than we read: whatever can be asked.
    """
    if not _may_ask(raw):
        return ()
    found: dict[str, None] = {}
    try:
        for value in parsed(raw):
            found.update(dict.fromkeys(_in_message(value)))
    except RecursionError:
        return tuple(CLIENT_REQUESTS)
    return tuple(found)


def _may_ask(raw: bytes) -> bool:
    """A cheap look for words of one spelling but for their case, where no escape and no wide letters hide them."""
    if b"\\u" in raw or b"\0" in raw[:4] or raw.startswith(_WIDE):
        return True
    lower = raw.lower()
    return b"nput" in lower or (b"error" in lower and b"tat" in lower)


def _in_message(value: JSON) -> Iterator[str]:
    waiting: list[tuple[str, JSON]] = [("", value)]
    while waiting:
        where, one = waiting.pop()
        if isinstance(one, Pairs):
            waiting += [(fold(key), inner) for key, inner in one if fold(key) in _BEARERS]
            for requests in values(one, "inputrequests"):
                yield from _methods(requests)
            told = [data for data in values(one, "data") if isinstance(data, Pairs)] if where == "error" else []
            if any(any(values(data, "elicitations")) for data in told):
                yield ELICITATION
        elif isinstance(one, list):
            waiting += [(where, inner) for inner in one]


def _methods(requests: JSON) -> Iterator[str]:
    if isinstance(requests, Pairs):
        asked: list[JSON] = [one for _, one in requests]
    else:
        asked = requests if isinstance(requests, list) else []
    for request in asked:
        if isinstance(request, Pairs):
            methods = map(reader_text, values(request, "method"))
            yield from (method for method in methods if method is not None)
