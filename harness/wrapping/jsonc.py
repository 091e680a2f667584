"""Reads JSON as clients write it, with comments and trailing commas, and keeps the place of everything.

Refuses to know what the values are for.
"""

import json
import re

from harness.wrapping.located import ConfigError, Located, Span, line_of
from proxy.jsonedit import Edit
from proxy.problem import Path
from proxy.spans import JSON

DEEPEST = 200
"""Maps and lists inside each other."""
_BLANK = re.compile(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*.*?\*/)*+", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\.)*+"')
_BARE = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.])|(?:true|false|null)(?!\w)")


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 1 if text.startswith("\ufeff") else 0
        self.found = Located(text, _quote, _quote)

    def wrong(self, what: str, place: int | None = None) -> ConfigError:
        return ConfigError(f"line {line_of(self.text, self.place if place is None else place)}: {what}")

    def next(self) -> str:
        """The next character that is neither blank nor comment, "" at the end."""
        blank = _BLANK.match(self.text, self.place)
        assert blank is not None
        self.place = blank.end()
        if self.text.startswith("/*", self.place):
            raise self.wrong("a comment that begins with /* has no end")
        return self.text[self.place : self.place + 1]

    def string(self) -> tuple[str, Span]:
        match = _STRING.match(self.text, self.place)
        if match is None:
            raise self.wrong("a text in quotes was expected here")
        try:
            value = json.loads(match[0])
        except ValueError:
            raise self.wrong("this text has an escape that JSON does not know") from None
        self.place = match.end()
        return value, Span(*match.span())

    def value(self, path: Path) -> JSON:
        begun = self.next()
        start = self.place
        if len(path) > DEEPEST:
            raise self.wrong(f"more than {DEEPEST} maps and lists inside each other")
        match begun:
            case "{":
                value: JSON = self.map(path)
            case "[":
                value = self.list(path)
            case '"':
                value, _ = self.string()
            case _:
                match = _BARE.match(self.text, self.place)
                if match is None:
                    raise self.wrong(f"{begun!r} begins no value" if begun else "a value is missing")
                try:
                    value = json.loads(match[0])
                except ValueError:
                    raise self.wrong("this number is too long") from None
                self.place = match.end()
        self.found.values[path] = Span(start, self.place)
        return value

    def map(self, path: Path) -> dict[str, JSON]:
        value: dict[str, JSON] = {}
        begun = self.place
        self.place += 1
        while self.next() != "}":
            before = self.place
            key, span = self.string()
            inner = (*path, key)
            if key in value:
                self.found.twice.append(inner)
            gap = self._gap(before)
            if self.next() != ":":
                raise self.wrong("a ':' is missing behind a key")
            colon = self.text[span.end : self.place]
            self.place += 1
            value[key] = self.value(inner)
            self.found.keys[inner] = [span]
            self.found.inserts[inner] = self._insert(self.place, gap, colon)
            if self.next() == ",":
                self.place += 1
            elif self.next() != "}":
                raise self.wrong(f"a ',' or the }} of line {line_of(self.text, begun)} is missing")
        self.place += 1
        return value

    def list(self, path: Path) -> list[JSON]:
        value: list[JSON] = []
        begun = self.place
        self.place += 1
        while self.next() != "]":
            value.append(self.value((*path, len(value))))
            if self.next() == ",":
                self.place += 1
            elif self.next() != "]":
                raise self.wrong(f"a ',' or the ] of line {line_of(self.text, begun)} is missing")
        self.place += 1
        return value

    def _gap(self, key: int) -> str:
        """The blanks before a key, to have the next one stand the same."""
        start = key
        while start and self.text[start - 1] in " \t\r\n":
            start -= 1
        gap = self.text[start:key]
        return gap if gap and self.text[start - 1] in "{," else " "

    @staticmethod
    def _insert(place: int, gap: str, colon: str) -> "_Insert":
        return _Insert(place, gap, colon if colon.strip() == "" else "")


class _Insert:
    def __init__(self, place: int, gap: str, colon: str) -> None:
        self.place, self.gap, self.colon = place, gap, colon

    def __call__(self, key: str, value: str) -> Edit:
        return Edit(self.place, self.place, f",{self.gap}{_quote(key)}{self.colon}: {value}")


def _quote(text: str) -> str:
    return json.dumps(text)


def read_jsonc(text: str) -> Located:
    """Read one document. Raises ConfigError."""
    reader = _Reader(text)
    reader.found.data = reader.value(())
    if reader.next():
        raise reader.wrong("something stands behind the end of the document")
    return reader.found
