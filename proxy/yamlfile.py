"""Strict YAML: what a person wrote means what it looks like, and every value knows its line.

Refuses to know what the values are for. The rules (verdicts.md section 1) are narrower than those of YAML 1.1 and 1.2.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

from proxy.problem import Path, Problem, ProblemError, field_name
from proxy.spans import JSON

MAX_DEPTH = 64
"""Maps and lists inside each other; what reads the document afterwards may recurse."""

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}


class YamlError(ProblemError):
    """A document that is not strict YAML. It has one problem: the first."""


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document: its value, and the line (from 1) on which each part of it begins."""

    name: str
    data: JSON
    lines: dict[Path, int]

    def line(self, path: Path) -> int:
        """The line of the value at `path`, or of the deepest part of the path that the document has."""
        for length in range(len(path), 0, -1):
            found = self.lines.get(path[:length])
            if found is not None:
                return found
        return self.lines.get((), 1)


@dataclass(slots=True)
class _Open:
    """A map or list that is being read. `key` is the key whose value comes next, None where a key comes next."""

    path: Path
    value: "dict[str, JSON] | list[JSON]"
    key: str | None = None


@dataclass(slots=True)
class _Reader:
    name: str
    lines: dict[Path, int] = field(default_factory=dict)
    stack: list[_Open] = field(default_factory=list)
    data: JSON = None
    documents: int = 0
    last: int = 1

    def error(self, event: yaml.Event, message: str) -> YamlError:
        return YamlError([Problem(self.name, _line(event), field_name(self.here()), message)])

    def here(self) -> Path:
        """Path of the value that comes next; of the map itself where a key comes next."""
        if not self.stack:
            return ()
        top = self.stack[-1]
        if isinstance(top.value, list):
            return (*top.path, len(top.value))
        return top.path if top.key is None else (*top.path, top.key)

    def wants_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1].value, dict) and self.stack[-1].key is None

    def place(self, value: JSON) -> None:
        """Put a value where it belongs."""
        if not self.stack:
            self.data = value
            return
        top = self.stack[-1]
        if isinstance(top.value, list):
            top.value.append(value)
        elif top.key is not None:
            top.value[top.key] = value
            top.key = None

    def begin(self, event: yaml.CollectionStartEvent, value: "dict[str, JSON] | list[JSON]") -> None:
        if self.wants_key():
            raise self.error(event, "a key must be text, not a map or a list")
        if len(self.stack) == MAX_DEPTH:
            raise self.error(event, f"more than {MAX_DEPTH} maps and lists inside each other")
        path = self.here()
        self.lines.setdefault(path, _line(event))
        self.place(value)
        self.stack.append(_Open(path, value))

    def scalar(self, event: yaml.ScalarEvent) -> None:
        value: JSON = self.text(event) if event.style is not None else self.plain(event)
        if not self.wants_key():
            self.lines.setdefault(self.here(), _line(event))
            self.place(value)
            return
        if not isinstance(value, str):
            raise self.error(event, f"the key {event.value!r} is not text; put it in quotes")
        if value == "<<" and event.style is None:
            raise self.error(event, "merge keys (<<) are not read; write the fields out")
        top = self.stack[-1]
        if isinstance(top.value, dict) and value in top.value:
            first = self.lines.get((*top.path, value))
            raise self.error(event, f"the key {value!r} is repeated; it stands on line {first} already")
        top.key = value
        self.lines[self.here()] = _line(event)

    def text(self, event: yaml.ScalarEvent) -> str:
        """A scalar's text. Escaped surrogate pairs, as JSON writes them, become one character."""
        text: str = event.value
        try:
            text.encode()
        except UnicodeEncodeError:
            try:
                return text.encode("utf-16", "surrogatepass").decode("utf-16")
            except UnicodeDecodeError:
                raise self.error(event, "half of a surrogate pair (\\uD800 to \\uDFFF) is no text") from None
        return text

    def plain(self, event: yaml.ScalarEvent) -> JSON:
        text = self.text(event)
        if text in _WORDS:
            return _WORDS[text]
        number = _NUMBER.fullmatch(text)
        if number is None:
            return text
        try:
            value = int(text) if number[1] is None and number[2] is None else float(text)
        except ValueError:
            raise self.error(event, f"a number of {len(text)} digits is too long; put it in quotes") from None
        if value in (float("inf"), float("-inf")):
            raise self.error(event, f"the number {text[:40]} is out of range; put it in quotes")
        return value

    def read(self, event: yaml.Event) -> None:
        self.last = _line(event)
        if isinstance(event, yaml.AliasEvent) or (isinstance(event, yaml.NodeEvent) and event.anchor is not None):
            raise self.error(
                event, f"anchors and aliases (&{event.anchor}, *{event.anchor}) are not read; write it out"
            )
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag is not None:
            raise self.error(event, f"the tag {event.tag!r} is not read; a document has text, numbers, lists and maps")
        match event:
            case yaml.DocumentStartEvent():
                self.documents += 1
                if self.documents > 1:
                    raise self.error(event, "more than one document in a file; take the --- out")
            case yaml.MappingStartEvent():
                self.begin(event, {})
            case yaml.SequenceStartEvent():
                self.begin(event, [])
            case yaml.ScalarEvent():
                self.scalar(event)
            case yaml.CollectionEndEvent():
                self.stack.pop()
            case _:
                pass


def _line(event: yaml.Event) -> int:
    return int(event.start_mark.line) + 1 if event.start_mark is not None else 1


def _events(text: str) -> Iterator[yaml.Event]:
    yield from yaml.parse(text, Loader=yaml.SafeLoader)


_SENTENCES = {
    "expected <block end>, but found": "this does not go on from what stands above; mind the indentation, and put "
    "nothing below a value that is whole already, such as []",
    "mapping values are not allowed here": "a ':' may not stand here; put text with a ':' in it in quotes, and mind "
    "the indentation",
    "cannot start any token": "this character may not begin a value; indent with blanks, not tabs, and put text that "
    "begins with a sign in quotes",
    "expected ',' or ']'": "a list that began with [ does not go on here; a ',' or its ] is missing",
    "expected ',' or '}'": "a map that began with { does not go on here; a ',' or its } is missing",
    "could not find expected ':'": "a key without its ':'",
    "unexpected end of stream": "a text in quotes has no end",
}
"""What PyYAML says of the usual slips, and what to do about them."""


def _what(error: yaml.MarkedYAMLError) -> str:
    said = " ".join(part for part in (error.context, error.problem) if part)
    return next((sentence for words, sentence in _SENTENCES.items() if words in said), said)


def load_document(text: str | bytes, name: str) -> Document:
    """Read one YAML document; `name` is the file's, for errors. An empty document is null.

    Only true, false, null, ~, nothing, and numbers as JSON spells them are anything but text. Raises YamlError.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            raise YamlError([Problem(name, line, "", f"not UTF-8 (byte {error.start + 1})")]) from None
    reader = _Reader(name)
    try:
        for event in _events(text):
            reader.read(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = mark.line + 1 if mark is not None else None
        raise YamlError([Problem(name, place, field_name(reader.here()), f"not YAML: {_what(error)}")]) from None
    except yaml.reader.ReaderError as error:
        position = int(error.position)
        line = text.count("\n", 0, position) + 1
        raise YamlError(
            [Problem(name, line, "", f"the character U+{ord(text[position]):04X} may not stand here")]
        ) from None
    except ProblemError:
        raise
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        # PyYAML lets a few of its own through, for one an escape past U+10FFFF.
        raise YamlError(
            [Problem(name, reader.last, field_name(reader.here()), f"not YAML from here on: {error}")]
        ) from None
    return Document(name, reader.data, reader.lines)
