"""What a line may mean to some reader: every method and name that any reading of it gives.

Readers differ in which of two repeated keys they take, whether they fold case, what they do with a byte order mark, and
where a line ends. Refuses to know policy and sessions; a line that no reader makes sense of has no reading.
"""

import json
from collections.abc import Iterator
from typing import NamedTuple

from proxy.frames import CAP
from proxy.keys import PROTOTYPE, fold
from proxy.scan import EnvelopeScanner
from proxy.spans import JSON

_MOST = 256
"""Readings of one line that are told apart; past it the rest are the same attack again."""
SHORTEST_BUFFER = 255
"""Bytes of a line that any reader holds; one with a smaller buffer than the line may begin to read inside of it."""
_BETWEEN = " \t\n\r\v\f\0\x1e,\ufeff"
"""What some reader skips between two messages: blanks, the mark of RFC 7464, a comma, a byte order mark."""


class Reading(NamedTuple):
    """One reading: a method, the tool's or prompt's name or the resource's uri (None without), and the arguments."""

    method: str
    name: str | None
    arguments: JSON


class Pairs(list[tuple[str, JSON]]):
    """An object with its repeated keys."""


def _texts(raw: bytes) -> Iterator[str]:
    """The line as text, in each encoding that a JSON reader may guess (RFC 4627 section 3)."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in raw[:4]:
        # A line feed of more than one byte is cut in the middle, so the last character may be half.
        for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"):
            yield raw.decode(encoding, "replace").rstrip("\ufffd").removeprefix("\ufeff")
    yield raw.decode("utf-8", "surrogateescape").removeprefix("\ufeff")


def _integer(digits: str) -> JSON:
    return int(digits) if len(digits) < 4000 else float(digits)


_DECODER = json.JSONDecoder(object_pairs_hook=Pairs, strict=False, parse_int=_integer)


def values(pairs: Pairs, name: str) -> list[JSON]:
    """The values under a key, folded; also those that the object inherits, once JavaScript has copied it."""
    found: list[JSON] = []
    for key, value in pairs:
        if fold(key) == name:
            found.append(value)
        elif key == PROTOTYPE and isinstance(value, Pairs):
            found += values(value, name)
    return found


def _plain(value: JSON) -> JSON:
    match value:
        case Pairs():
            return {key: _plain(inner) for key, inner in value}
        case list():
            return [_plain(inner) for inner in value]
        case _:
            return value


def _of_value(value: JSON) -> Iterator[Reading]:
    """The readings of a message, or of an array of them, in another array too."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Pairs):
            yield from _of_object(one)
        elif isinstance(one, list):
            waiting += reversed(one)


def _of_object(pairs: Pairs) -> Iterator[Reading]:
    methods = dict.fromkeys(method for method in map(reader_text, values(pairs, "method")) if method is not None)
    if not methods:
        return
    targets: dict[str | None, JSON] = {}
    for params in values(pairs, "params"):
        if isinstance(params, Pairs):
            arguments = values(params, "arguments")
            plain = _plain(arguments[-1]) if arguments else None
            for key in ("name", "uri"):
                targets.update((name, plain) for name in values(params, key) if isinstance(name, str))
    for method in methods:
        yield from (Reading(method, name, value) for name, value in (targets or {None: None}).items())


def reader_text(value: JSON) -> str | None:
    """A method as a reader has it that makes text of any value, as JavaScript does of an array when it looks one up."""
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, str) else None


def _of_scan(text: str) -> Iterator[Reading]:
    """The readings of what is cut, or nested past what a parser takes."""
    scanner = EnvelopeScanner()
    scanner.feed(text.encode("utf-8", "surrogateescape"))
    for envelope in scanner.envelopes:
        method = envelope.text("method")
        if method is not None:
            yield Reading(method, envelope.target, None)


def _of_text(text: str) -> Iterator[Reading]:
    """The readings of all messages that stand in a text, one behind the other."""
    at = 0
    while at < len(text):
        if text[at] in _BETWEEN:
            at += 1
            continue
        try:
            value, at = _DECODER.raw_decode(text, at)
            yield from _of_value(value)
        except (ValueError, RecursionError):
            yield from _of_scan(text[at:])
            return


def _all(raw: bytes) -> Iterator[Reading]:
    for text in _texts(raw):
        yield from _of_text(text)
        yield from _of_parts(text)
    if len(raw) > SHORTEST_BUFFER:
        yield from nested_readings(raw, 0)


def _of_parts(text: str) -> Iterator[Reading]:
    """The readings that a reader has more which ends a line at a carriage return, as one in text mode does."""
    for value in _part_values(text):
        yield from _of_value(value)


def _part_values(text: str) -> Iterator[JSON]:
    whole = text.strip()
    if "\r" not in whole:
        return
    for part in whole.split("\r"):
        begin = part.lstrip()
        if begin.startswith(("{", "[")):
            try:
                value, _ = _DECODER.raw_decode(begin)
            except (ValueError, RecursionError):
                continue
            yield value


def hidden_readings(raw: bytes) -> tuple[Reading, ...]:
    """The readings of a strictly read line that only a reader has which ends a line at a carriage return."""
    if b"\r" not in raw.strip():
        return ()
    return _distinct(_of_parts(raw.decode("utf-8", "surrogateescape")))


def nested_readings(raw: bytes, own: int) -> tuple[Reading, ...]:
    """The messages that stand inside the messages of a strictly read line, of which `own` have a method themselves.

    To a reader that cuts lines elsewhere than at the line feed, as one with a buffer too small, each may be a message.
    """
    if raw.lower().count(b"method") <= own and b"\\u" not in raw:
        return ()
    try:
        value, _ = _DECODER.raw_decode(raw.decode("utf-8", "surrogateescape").lstrip(_BETWEEN))
    except (ValueError, RecursionError):
        return ()
    return _distinct(_inner(value))


def _inner(value: JSON) -> Iterator[Reading]:
    """The readings of all objects below a message, or below those of an array."""
    messages: list[object] = list(value) if isinstance(value, list) and not isinstance(value, Pairs) else [value]
    waiting: list[object] = [inner for one in messages if isinstance(one, Pairs) for _, inner in one]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Pairs):
            yield from _of_object(one)
            waiting += [inner for _, inner in one]
        elif isinstance(one, list):
            waiting += one


def readings(raw: bytes) -> tuple[Reading, ...]:
    """Every reading of a line, each once, in the order in which they are found; at most 256 of them."""
    return _distinct(_all(raw[:CAP]))


def _distinct(found: Iterator[Reading]) -> tuple[Reading, ...]:
    table: dict[tuple[str, str | None], Reading] = {}
    for reading in found:
        table.setdefault((reading.method, reading.name), reading)
        if len(table) == _MOST:
            break
    return tuple(table.values())


def answerable_ids(raw: bytes) -> tuple[list[str], bool]:
    """The texts of the ids that requests of an unreadable line can be answered under, and whether it is an array.

    A message whose id has two readings has none, and neither has an answer.
    """
    for text in _texts(raw[:CAP]):
        scanner = EnvelopeScanner()
        scanner.feed(text.encode("utf-8", "surrogateescape"))
        if found := ids_of(scanner):
            return found, scanner.array
    return [], False


def ids_of(scanner: EnvelopeScanner) -> list[str]:
    """The texts of the ids that the requests which were scanned can be answered under."""
    asks = [envelope for envelope in scanner.envelopes if "method" in envelope.found or "method" in envelope.repeated]
    return [envelope.id_text for envelope in asks if envelope.id_text is not None]


def asks_nothing(raw: bytes) -> bool:
    """Whether a line is sure to be no request, and no answer that asks something, so that nothing waits for its record.

    Without an escape of letters all have their words in them; a line that has them need not be one.
    """
    return b"method" not in raw and b"input_required" not in raw and b"elicitations" not in raw and b"\\u" not in raw


def parsed(raw: bytes) -> Iterator[JSON]:
    """Every value that some reader finds in a line, with the repeated keys of its objects. Raises RecursionError."""
    for text in _texts(raw[:CAP]):
        at = 0
        while at < len(text):
            if text[at] in _BETWEEN:
                at += 1
                continue
            try:
                value, at = _DECODER.raw_decode(text, at)
            except ValueError:
                break
            yield value
        yield from _part_values(text)
