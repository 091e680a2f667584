"""Keeps the place of every key and value of a TOML text that `tomllib` has read; refuses to know TOML better than that.

What `tomllib` does not take never comes here, so what is looked for is only where things are.
"""

import json
import re
import tomllib

from harness.wrapping.located import ConfigError, Located, Span
from proxy.jsonedit import Edit
from proxy.problem import Path
from proxy.spans import JSON

_BLANK = re.compile(r"[ \t]*+")
_ANY_BLANK = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_KEY = re.compile(r'[A-Za-z0-9_-]++|"(?:[^"\\\n]++|\\.)*+"|\'[^\'\n]*+\'')
_STRING = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+"{3,5}|\'\'\'(?:[^\']++|\'(?!\'\'))*+\'{3,5}|"(?:[^"\\\n]++|\\.)*+"|\'[^\'\n]*+\'',
    re.DOTALL,
)
_BARE = re.compile(r"[^,\]}#\r\n]++")


class _Scanner:
    """`text` is TOML; a walk over it that trusts it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 1 if text.startswith("\ufeff") else 0
        self.found = Located(text, _quote, _quote_key)
        self.counts: dict[Path, int] = {}
        self.eol = "\r\n" if "\r\n" in text else "\n"

    def skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self.text, self.place)
        assert match is not None
        self.place = match.end()

    def key(self, base: Path) -> Path:
        """A dotted key below `base`; each of its parts is noted."""
        while True:
            self.skip(_BLANK)
            match = _KEY.match(self.text, self.place)
            if match is None:
                raise LookupError
            [name] = tomllib.loads(f"{match[0]} = 1")
            base = (*base, name)
            self.found.keys.setdefault(base, []).append(Span(*match.span()))
            self.place = match.end()
            self.skip(_BLANK)
            if self.text[self.place : self.place + 1] != ".":
                return base
            self.place += 1

    def document(self) -> None:
        table: Path = ()
        while True:
            self.skip(_ANY_BLANK)
            if self.place >= len(self.text):
                return
            if self.text[self.place] == "[":
                table = self.header()
                continue
            start = self.place
            path = self.key(table)
            prefix = self.text[start : self.found.keys[path][-1].start]
            self.equals()
            self.value(path)
            end = self.text.find("\n", self.place)
            end = len(self.text) if end < 0 else end - (self.text[end - 1] == "\r")
            indent = self.text[self.text.rfind("\n", 0, start) + 1 : start].replace("\ufeff", "")
            self.found.inserts[path] = _Insert(end, f"{self.eol}{indent}{prefix}", "")

    def header(self) -> Path:
        many = self.text.startswith("[[", self.place)
        self.place += 1 + many
        path = self.key(())
        self.place += 1 + many
        if not many:
            return path
        number = self.counts.get(path, 0)
        self.counts[path] = number + 1
        return (*path, number)

    def equals(self) -> None:
        if self.text[self.place : self.place + 1] != "=":
            raise LookupError
        self.place += 1
        self.skip(_BLANK)

    def value(self, path: Path) -> None:
        start = self.place
        match self.text[start : start + 1]:
            case "[":
                self.list(path)
            case "{":
                self.table(path)
            case '"' | "'":
                self.skip(_STRING)
            case _:
                self.skip(_BARE)
                self.place = start + len(self.text[start : self.place].rstrip(" \t"))
        self.found.values[path] = Span(start, self.place)

    def list(self, path: Path) -> None:
        self.place += 1
        number = 0
        while True:
            self.skip(_ANY_BLANK)
            if self.text[self.place] == "]":
                break
            self.value((*path, number))
            number += 1
            self.skip(_ANY_BLANK)
            if self.text[self.place] == ",":
                self.place += 1
        self.place += 1

    def table(self, base: Path) -> None:
        self.place += 1
        while True:
            self.skip(_ANY_BLANK)
            if self.text[self.place] == "}":
                break
            start = self.place
            path = self.key(base)
            prefix = self.text[start : self.found.keys[path][-1].start]
            self.equals()
            self.value(path)
            self.found.inserts[path] = _Insert(self.place, f", {prefix}", "")
            self.skip(_ANY_BLANK)
            if self.text[self.place] == ",":
                self.place += 1
        self.place += 1


class _Insert:
    def __init__(self, place: int, before: str, after: str) -> None:
        self.place, self.before, self.after = place, before, after

    def __call__(self, key: str, value: str) -> Edit:
        return Edit(self.place, self.place, f"{self.before}{_quote_key(key)} = {value}{self.after}")


def _quote(text: str) -> str:
    # JSON's escapes are TOML's, but that TOML has no surrogates, and escapes U+007F.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def _quote_key(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else _quote(text)


def _plain(value: object) -> JSON:
    match value:
        case dict():
            return {key: _plain(inner) for key, inner in value.items()}
        case list():
            return [_plain(inner) for inner in value]
        case str() | bool() | int() | float():
            return value
        case _:
            return str(value)  # dates, which no client has among its servers


def read_toml(text: str) -> Located:
    """Read one document. Raises ConfigError."""
    try:
        data = tomllib.loads(text.removeprefix("\ufeff"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"not TOML: {error}") from None
    scanner = _Scanner(text)
    try:
        scanner.document()
    except (LookupError, AssertionError, RecursionError):
        raise ConfigError("this TOML is too unusual to be edited; write its servers plainly") from None
    scanner.found.data = _plain(data)
    return scanner.found
