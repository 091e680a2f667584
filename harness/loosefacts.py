"""What crossed a connection outside of a request and its answer: a notification, a broken line, a stray answer.

Refuses to know spans and events.
"""

import re

from harness.beside import is_telling
from proxy import vocabulary as v

PARAMS_CUT = v.payload_truncated("params")
PAYLOADS = {
    "notification": (v.PARAMS, "params"),
    "malformed": (v.REQUEST, "request"),
    "unmatched": (v.RESULT, "result"),
}
"""For each kind of span that tells of such a thing the attribute that has its text, and the payload's label."""
PARTS = {"notification": "params", "malformed": "frame", "unmatched": "answer"}
"""What its text is a part of, by the same kinds."""

_NUMBER = r"-?[0-9][0-9.eE+-]*"
_COUNT = re.compile(rf'\s*\{{(?:\s*"(?:progressToken|progress|total)"\s*:\s*{_NUMBER}\s*,?)*\s*\}}\s*')


def says_something(text: str | None, *, cut: bool, from_client: bool) -> bool:
    """Whether the thing is worth an event. A server's progress in bare numbers is not: there may be very many."""
    return cut or (is_telling(text) and (from_client or text is None or _COUNT.fullmatch(text) is None))
