"""Model servers: the ways in which readers of JSON lines are known to differ. Each says which calls it sees."""

import json
from collections.abc import Callable, Iterator

from proxy.spans import JSON

Call = tuple[str, str]
Keys = Callable[[list[tuple[str, JSON]]], dict[str, JSON]]


def last(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    return dict(pairs)


def first(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    return dict(reversed(pairs))


def folding(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    return {key.casefold(): value for key, value in pairs}


def folding_first(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    return {key.casefold(): value for key, value in reversed(pairs)}


def upper(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    return {key.upper().lower(): value for key, value in pairs}


def cut_at_nul(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    return {key.split("\0")[0]: value for key, value in pairs}


def cut_at_nul_first(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    return {key.split("\0")[0]: value for key, value in reversed(pairs)}


KEYS: list[Keys] = [last, first, folding, folding_first, upper, cut_at_nul, cut_at_nul_first]


def lines_at_line_feeds(stream: bytes) -> list[bytes]:
    return stream.split(b"\n")


def lines_in_text_mode(stream: bytes) -> list[bytes]:
    return stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")


def texts(line: bytes) -> Iterator[str]:
    yield line.decode("utf-8", "surrogateescape")
    yield line.decode("utf-8", "ignore")
    yield line.decode("utf-8-sig", "replace")
    yield line.decode(json.detect_encoding(line), "ignore")
    if b"\0" in line:
        yield line.replace(b"\0", b"").decode("utf-8", "ignore")
        yield line.strip(b"\0").decode("utf-16", "ignore")


def values(text: str, keys: Keys) -> Iterator[JSON]:
    """All values that stand one behind the other, as a streaming decoder has them."""
    decoder = json.JSONDecoder(object_pairs_hook=keys, strict=False)
    at = 0
    while at < len(text):
        if text[at] in " \t\r\n\f\v\0\x1e\ufeff,":
            at += 1
            continue
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        yield value


def calls_of(value: JSON) -> Iterator[Call]:
    if isinstance(value, list):
        for element in value:
            yield from calls_of(element)
    if isinstance(value, dict):
        method, params = value.get("method"), value.get("params")
        if isinstance(method, str) and isinstance(params, dict):
            name = params.get("name")
            if isinstance(name, str):
                yield method.split("\0")[0].strip().casefold(), name


def calls_seen(stream: bytes) -> set[Call]:
    """Every method and name that any of the model servers reads in a stream."""
    seen: set[Call] = set()
    for split in (lines_at_line_feeds, lines_in_text_mode):
        for line in split(stream):
            for text in set(texts(line)):
                for keys in KEYS:
                    for value in values(text, keys):
                        seen.update(calls_of(value))
    return seen
