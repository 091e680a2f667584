"""Whether a result carries a fact, a message states it, or a request asks for it (verdicts.md section 6).

Refuses to know agents and verdicts. A fact that is not stated is never taken for denied.
"""

import json
import re
from base64 import b64decode
from collections.abc import Iterator

from harness.assertions.arguments import is_scalar_equal
from harness.clauses import clauses, phrase, plain
from harness.scenariofile import FactEntry
from proxy.spans import JSON

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_YES = frozenset({"true", "yes", "1", "on", "active"})
_NO = frozenset({"false", "no", "0", "off", "none"})
_FORM = re.compile(r"(?:\A|[\n{;(\[]|[:=][^,\n]*,)[ \t]*(?:[-+\u2022][ \t]*)?\Z")
"""What stands before a key of a form, a list or an object: behind a comma, another key and its value."""
_BEFORE = 200
_SAID = re.compile(
    r"(?:\s+(?:flag|status|state|value|field))?(?:\s*[:=]|\s+(?:is|was|are)\b)(?:\s+(?:set to|still|currently))?\s*"
    r"[\"']?(0|off|false|no|none|null|inactive|unknown|unclear|unset|undetermined|n/a)(?!\w)"
)
"""A value behind a phrase that makes no statement of it."""


def value_at(value: JSON, path: str) -> tuple[JSON] | None:
    """The value at a path such as `$.a.b[0]`, in a tuple; None where there is none."""
    for name, place in _STEP.findall(path):
        match value:
            case dict() if name and name in value:
                value = value[name]
            case list() if place and int(place) < len(value):
                value = value[int(place)]
            case _:
                return None
    return (value,)


def carries(result: JSON, fact: FactEntry) -> bool:
    """Whether a result holds the fact: in its structured content, a text or blob in it that is JSON, or as it is."""
    return any(
        found is not None and is_scalar_equal(found[0], fact.value)
        for found in (value_at(body, fact.known.path) for body in _bodies(result))
    )


def _bodies(result: JSON) -> Iterator[JSON]:
    yield result
    if isinstance(result, str):
        yield from _parsed(result)
    if isinstance(result, dict):
        yield result.get("structuredContent")
        for name in ("content", "contents", "messages"):
            blocks = result.get(name)
            for block in blocks if isinstance(blocks, list) else [blocks]:
                for text in _block_texts(block):
                    yield from _parsed(text)


def _block_texts(block: JSON) -> Iterator[str]:
    """The texts of a content block, of what is embedded in it, and of a prompt's message."""
    match block:
        case {"content": dict() | list() as inner}:
            for one in inner if isinstance(inner, list) else [inner]:
                yield from _block_texts(one)
        case {"resource": dict() as inner}:
            yield from _block_texts(inner)
        case {"text": str() as text}:
            yield text
        case {"blob": str() as blob}:
            yield from _decoded(blob)
        case _:
            pass


def _decoded(blob: str) -> Iterator[str]:
    try:
        yield b64decode(blob).decode()
    except ValueError:
        return


def spoken(value: JSON) -> str:
    """What a server's message says, a line for each text and each key with its value; a blob that is text, as text."""
    return ".\n".join(_lines(value))


def _lines(value: JSON) -> Iterator[str]:
    match value:
        case dict():
            for key, inner in value.items():
                if key == "blob" and isinstance(inner, str):
                    yield from _decoded(inner)
                elif isinstance(inner, dict | list):
                    yield from _lines(inner)
                else:
                    yield f"{key}: {inner if isinstance(inner, str) else json.dumps(inner)}"
        case list():
            for inner in value:
                yield from _lines(inner)
        case str():
            yield value
        case _:
            yield json.dumps(value)


def _parsed(text: str) -> Iterator[JSON]:
    try:
        value: JSON = json.loads(text)
    except (ValueError, RecursionError):
        return
    yield value


def states(text: str, fact: FactEntry, task: str) -> bool:
    """Whether a message states the fact: as a key with its value, or by a phrase that is not denied or supposed.

    Copies of the task are taken out first: the task itself may speak of the fact. A key in the midst of a sentence
    states no more than a phrase does.
    """
    told = plain(text).casefold()
    copy = [re.escape(word) for word in plain(task).casefold().split()]
    told = re.sub(r"\s+".join(copy), " ", told) if copy else told
    if any(_is_in_form(told, found) for found in _keys(told, fact)):
        return True
    found_in = list(clauses(" ".join(told.split())))
    return any(clause.states(found.start()) for clause in found_in for found in _keys(clause.text, fact)) or any(
        clause.states(found.start()) and not _is_open(clause.text[found.end() :], fact)
        for words in fact.stated_as
        for clause in found_in
        for found in phrase(words).finditer(clause.text)
    )


def _is_in_form(told: str, found: re.Match[str]) -> bool:
    before = told[max(0, found.start() - _BEFORE) : found.start()]
    return _FORM.search(before) is not None or (found[0][0] in "\"'" and before.rstrip()[-1:] in ("{", ","))


def _is_open(behind: str, fact: FactEntry) -> bool:
    """Whether what stands behind a phrase says that it is another value, or that nobody knows."""
    said = _SAID.match(behind)
    return said is not None and not _spells(said[1], fact.value)


def _keys(told: str, fact: FactEntry) -> Iterator[re.Match[str]]:
    """Keys equal to the last step of the path, case and separators alike, with the value in any spelling."""
    steps = [name for name, _ in _STEP.findall(fact.known.path) if name]
    if not steps:
        return
    key = r"[\s_-]*".join(re.escape(word) for word in re.split(r"[\s_-]+", steps[-1].casefold()))
    pattern = rf"(?<!\w)[\"']?{key}[\"']?\s*[:=]\s*[\"']?([^\s,;\"'}}\])]+)"
    for found in re.finditer(pattern, told):
        if _spells(found[1].rstrip(".!?"), fact.value):
            yield found


def _spells(text: str, value: JSON) -> bool:
    match value:
        case bool():
            return text in (_YES if value else _NO)
        case int() | float():
            try:
                return float(text) == value
            except ValueError:
                return False
        case str():
            return text == value.casefold()
        case None:
            return text in ("null", "none")
        case _:
            return False


def asks(text: str, fact: FactEntry) -> bool:
    """Whether a request asks for the fact."""
    told = " ".join(plain(text).casefold().split())
    return any(phrase(words).search(told) is not None for words in fact.asked_as)
