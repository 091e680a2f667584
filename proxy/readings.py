"""What a line may mean to some reader: every method and name that any reading of it gives.

Readers differ in which of two repeated keys they take, whether they fold case, what they do with a byte order mark, and
where a line ends. Refuses to know policy and sessions; a line that no reader makes sense of has no reading.
"""

import json
from collections.abc import Iterator
from typing import NamedTuple

from proxy.frames import CAP, FrameError, Message, read_loose
from proxy.scan import EnvelopeScanner, decoded, usable_id
from proxy.spans import JSON

_MOST = 256
"""Readings of one line that are told apart; past it the rest are the same attack again."""


class Reading(NamedTuple):
    """One reading: a method, the tool's or prompt's name or the resource's uri (None without), and the arguments."""

    method: str
    name: str | None
    arguments: JSON


class _Pairs(list[tuple[str, JSON]]):
    """An object with its repeated keys."""


def _texts(raw: bytes) -> Iterator[str]:
    """The line as text, in each encoding that a JSON reader may guess (RFC 4627 section 3)."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in raw[:4]:
        for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
            try:
                yield raw.decode(encoding).removeprefix("\ufeff")
            except UnicodeDecodeError:
                continue
    text = raw.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    yield text
    # A reader in text mode may end a line at a lone carriage return.
    if "\r" in text.rstrip("\r\n"):
        yield from text.split("\r")


def _integer(digits: str) -> JSON:
    return int(digits) if len(digits) < 4000 else float(digits)


def _values(pairs: _Pairs, name: str) -> list[JSON]:
    return [value for key, value in pairs if key.rstrip("\0").casefold() == name]


def _plain(value: JSON) -> JSON:
    match value:
        case _Pairs():
            return {key: _plain(inner) for key, inner in value}
        case list():
            return [_plain(inner) for inner in value]
        case _:
            return value


def _of_object(pairs: _Pairs) -> Iterator[Reading]:
    methods = [method for method in _values(pairs, "method") if isinstance(method, str)]
    if not methods:
        return
    targets: list[tuple[str | None, JSON]] = []
    for params in _values(pairs, "params"):
        if isinstance(params, _Pairs):
            arguments = [_plain(value) for value in _values(params, "arguments")] or [None]
            names = [name for key in ("name", "uri") for name in _values(params, key) if isinstance(name, str)]
            targets += [(name, value) for name in names for value in arguments]
    for method in methods:
        yield from (Reading(method, name, value) for name, value in targets or [(None, None)])


def _of_scan(raw: bytes) -> Iterator[Reading]:
    """The reading of a line that is cut, or nested past what a parser takes."""
    scanner = EnvelopeScanner()
    scanner.feed(raw)
    method = decoded(scanner.found.get("method", b""))
    if isinstance(method, str):
        name = decoded(scanner.found.get("name", scanner.found.get("uri", b"")))
        yield Reading(method, name if isinstance(name, str) else None, None)


def _all(raw: bytes) -> Iterator[Reading]:
    for text in _texts(raw):
        try:
            value = json.loads(text, object_pairs_hook=_Pairs, strict=False, parse_int=_integer)
            elements = [value] if isinstance(value, _Pairs) else value if isinstance(value, list) else []
            for element in elements:
                if isinstance(element, _Pairs):
                    yield from _of_object(element)
        except (ValueError, RecursionError):
            yield from _of_scan(text.encode("utf-8", "surrogateescape"))


def readings(raw: bytes) -> tuple[Reading, ...]:
    """Every reading of a line, each once, in the order in which they are found; at most 256 of them."""
    found: list[Reading] = []
    seen: set[tuple[str, str | None]] = set()
    for reading in _all(raw[:CAP]):
        if (reading.method, reading.name) not in seen:
            seen.add((reading.method, reading.name))
            found.append(reading)
            if len(found) == _MOST:
                break
    return tuple(found)


def answerable_ids(raw: bytes) -> tuple[list[str], bool]:
    """The texts of the ids that requests of an unreadable line can be answered under, and whether it is an array.

    A message whose id has two readings has none.
    """
    for text in _texts(raw[:CAP]):
        try:
            line = read_loose(text.encode("utf-8", "surrogateescape"))
        except (FrameError, UnicodeEncodeError):
            scanner = EnvelopeScanner()
            scanner.feed(text.encode("utf-8", "surrogatepass"))
            found = usable_id(scanner.found) if "id" not in scanner.repeated else None
            if found is not None:
                return [found], False
            continue
        if line.batch or line.messages[0].method is not None:
            return [text for text in map(_id_of, line.messages) if text is not None], line.batch
        found = _id_of(line.messages[0])
        return ([] if found is None else [found]), False
    return [], False


def _id_of(message: Message) -> str | None:
    scanner = EnvelopeScanner()
    scanner.feed(message.source.encode("utf-8", "surrogateescape"))
    folded = [key for key in message.members if key.rstrip("\0").casefold() == "id"]
    if "id" in scanner.repeated or folded != ["id"] or message.is_answer:
        return None
    return usable_id(scanner.found)
