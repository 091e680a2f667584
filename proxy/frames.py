"""One line of the wire read as JSON-RPC: strictly where policy judges it, loosely where it is only looked at.

Refuses to know directions, sessions and policy.
"""

import json
import re
from json import JSONDecoder
from typing import NamedTuple

from proxy.ids import IdKey, id_key
from proxy.keys import ENVELOPE_NAMES, PARAMS_NAMES, envelope_problem, params_problem, shown
from proxy.members import BLANK, LOOSE, LOOSER, STRICT, FrameError, Member, repeated, scan_members, scanner, skip
from proxy.spans import JSON

CAP = 16 * 1024 * 1024
"""Bytes of one line that are looked at (wire rule 2)."""

_COLON = re.compile(r"[ \t\n\r]*:[ \t\n\r]*")
QUICK = 16384
"""Characters up to which decoding a value a second time costs less than finding the place of each member."""


class Message:
    """One JSON object of a line: the line's `text`, the object at `start:end`, and what its members are.

    `fields` and `given` are the decoded members of the object and of its `params`, `members` and `params` the same with
    their places. Of repeated keys the last one counts, as in most readers; a strict read has none. `method` is None
    where it is absent or no text, `id_text` the id as it crossed the wire, and `id_key` the id to correlate by, None
    where it is absent or neither a string nor a number.
    """

    __slots__ = ("_decoder", "_places", "end", "fields", "given", "id_key", "id_text", "method", "start", "text")

    def __init__(
        self,
        text: str,
        span: tuple[int, int],
        fields: dict[str, JSON],
        identity: tuple[str | None, IdKey | None],
        decoder: JSONDecoder,
        places: tuple[dict[str, Member], dict[str, Member]] | None = None,
    ) -> None:
        """`places` are the members and those of `params`; without them `text` is the message, and they are told apart
        once they are asked for. `identity` is the id's text and key.
        """
        self.text = text
        self.start, self.end = span
        self.fields = fields
        params, method = fields.get("params"), fields.get("method")
        self.given: dict[str, JSON] = params if isinstance(params, dict) else {}
        self.method = method if isinstance(method, str) else None
        self.id_text, self.id_key = identity
        self._decoder = decoder
        self._places = places

    @property
    def members(self) -> dict[str, Member]:
        """The members with their places."""
        return self._placed()[0]

    @property
    def params(self) -> dict[str, Member]:
        """The members of `params` with their places; empty where that is no object."""
        return self._placed()[1]

    def _placed(self) -> tuple[dict[str, Member], dict[str, Member]]:
        if self._places is None:
            found = scan_members(self.text, self.start, self._decoder, "params")
            self._places = ({one.key: one for one in found.members}, {one.key: one for one in found.params})
        return self._places

    @property
    def source(self) -> str:
        """The object's own text."""
        return self.text[self.start : self.end]

    @property
    def is_answer(self) -> bool:
        """Whether this is a result or an error and no request."""
        fields = self.fields
        return "method" not in fields and ("result" in fields or "error" in fields)

    def text_of(self, member: Member) -> str:
        """A member's value as it crossed the wire."""
        return self.text[member.start : member.end]

    def field_text(self, name: str) -> str | None:
        """The text of one of `fields` as it crossed the wire, None without it."""
        if name not in self.fields:
            return None
        text = self._only(name) if self._places is None else None
        return self.text_of(self.members[name]) if text is None else text

    def given_text(self, name: str) -> str | None:
        """The text of one of `given` as it crossed the wire, None without it."""
        if name not in self.given:
            return None
        text = self._only(name) if self._places is None else None
        return self.text_of(self.params[name]) if text is None else text

    def _only(self, name: str) -> str | None:
        """The text of a member that is there, found by its key alone; None where something else may look like it.

        A key is spelled plainly where no escape can spell a letter, and stands in quotes where it is found but once.
        """
        text, key = self.text, f'"{name}"'
        at = text.find(key)
        if at < 0 or text.find(key, at + 1) >= 0 or "\\u" in text:
            return None
        colon = _COLON.match(text, at + len(key))
        if colon is None:
            return None
        begin = colon.end()
        return text[begin : _scan_loosely(text, begin)[1]]


_scan_loosely, _scan_strictly = scanner(LOOSE), scanner(STRICT)


class Line(NamedTuple):
    """What a line holds: one message, or with `batch` the messages of an array."""

    messages: tuple[Message, ...]
    batch: bool


def read_quickly(text: str, decoder: JSONDecoder) -> Message | None:
    """The message of a text that is nothing else, read by the C scanner alone; None where a careful look is needed.

    It takes only what the careful reading takes, and gives the same.
    """
    if not text.startswith("{") or len(text) > QUICK:
        return None
    strict = decoder is STRICT
    try:
        fields, end = (_scan_strictly if strict else _scan_loosely)(text, 0)
    except (StopIteration, ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or text[end:] not in ("\n", ""):
        return None
    number = fields.get("id")
    identity: tuple[str | None, IdKey | None]
    if type(number) is int and number:  # 0 may be spelled -0
        identity = str(number), ("n", number)
    elif isinstance(number, str) and "\\" not in text:
        identity = f'"{number}"', ("s", number)
    elif "id" not in fields:
        identity = None, None
    else:
        return None
    message = Message(text, (0, end), fields, identity, decoder)
    if strict and not (
        fields.keys() <= ENVELOPE_NAMES
        and message.given.keys() <= PARAMS_NAMES
        and (message.method is not None or "method" not in fields)
    ):
        return None
    return message


def _object(text: str, start: int, decoder: JSONDecoder) -> Message:
    members, end, inner = scan_members(text, start, decoder, "params")
    table = {member.key: member for member in members}
    params = {member.key: member for member in inner}
    if decoder is STRICT:
        if len(table) != len(members):
            raise FrameError(f"the key {shown(repeated(member.key for member in members))} is repeated")
        if len(params) != len(inner):
            raise FrameError(f"the key {shown(repeated(member.key for member in inner))} is repeated")
        method = table.get("method")
        if method is not None and not isinstance(method.value, str):
            raise FrameError("its method is no text, and some readers make text of it")
        problem = None if table.keys() <= ENVELOPE_NAMES else envelope_problem(table)
        if problem is None and not params.keys() <= PARAMS_NAMES:
            problem = params_problem(params)
        if problem is not None:
            raise FrameError(problem)
    fields = {member.key: member.value for member in members}
    named = table.get("id")
    id_text = None if named is None else text[named.start : named.end]
    identity = (id_text, None if named is None or id_text is None else id_key(named.value, id_text))
    return Message(text, (start, end), fields, identity, decoder, (table, params))


def _batch(text: str, at: int, decoder: JSONDecoder) -> tuple[list[Message], int]:
    """The elements of the array at `text[at]`, each of which must be an object, and where it ends."""
    found: list[Message] = []
    at = skip(text, at + 1)
    if text[at] == "]":
        raise FrameError("it is an empty array")
    while True:
        if text[at] != "{":
            raise FrameError("an element of the array is no object")
        found.append(_object(text, at, decoder))
        at = skip(text, found[-1].end)
        if text[at] == "]":
            return found, at + 1
        if text[at] != ",":
            raise FrameError(f"a comma is missing at character {at}")
        at = skip(text, at + 1)


def _read(text: str, decoder: JSONDecoder) -> Line:
    quick = read_quickly(text, decoder)
    return read_carefully(text, decoder) if quick is None else Line((quick,), batch=False)


def read_carefully(text: str, decoder: JSONDecoder) -> Line:
    """What a text holds, member by member; FrameError says why it is no message, and no array of such."""
    padded = text + "\n"  # so that a skip over blanks always ends inside the text
    try:
        at = skip(padded, 0)
        if padded[at] == "{":
            message = _object(padded, at, decoder)
            end = message.end
            line = Line((message,), batch=False)
        elif padded[at] == "[":
            elements, end = _batch(padded, at, decoder)
            line = Line(tuple(elements), batch=True)
        else:
            raise FrameError("it is not a JSON object")
    except IndexError:
        raise FrameError("it is not JSON, or not whole") from None
    except RecursionError:
        raise FrameError("it is nested too deeply to be read") from None
    except FrameError:
        raise
    except ValueError as error:
        raise FrameError(f"it is not JSON: {str(error).split(':')[0]}") from None
    if padded[end:].strip(BLANK):
        raise FrameError("something follows the message on its line")
    return line


def read_strict(line: bytes) -> Line:
    """The line as one strict RFC 8259 object, or an array of such; FrameError says why it is not (wire rule 7)."""
    if line.startswith(b"\xef\xbb\xbf"):
        raise FrameError("it begins with a byte order mark")
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FrameError(f"it is not UTF-8 at byte {error.start}") from None
    read = _read(text, STRICT)
    # Only an escape can bring in half a surrogate pair: raw ones are not UTF-8.
    if "\\u" in text and ("\\ud" in text or "\\uD" in text):
        for message in read.messages:
            _refuse_surrogates(message)
    return read


def _refuse_surrogates(message: Message) -> None:
    try:
        for member in message.members.values():
            member.key.encode()
            json.dumps(member.value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise FrameError("it holds half of a surrogate pair") from None
    except RecursionError:
        raise FrameError("it is nested too deeply to be read") from None


def read_loose(line: bytes) -> Line:
    """The line as a lenient reader has it: last of repeated keys, NaN, control characters, any bytes in text."""
    text = line.decode("utf-8", "surrogateescape")
    try:
        return _read(text, LOOSE)
    except FrameError:
        return read_carefully(text.removeprefix("\ufeff"), LOOSER)
