"""Secrets out of texts: every form of every secret becomes `[redacted:<keyed digest>]` (record.md section 4).

Refuses to know where a text comes from and where it goes. docs/redaction.md says what is found and what is not.
"""

import re
from base64 import b64encode
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import NamedTuple

from proxy.disguise import WRAPS, View, is_quoted, views
from proxy.jsonedit import Edit, applied, fitted
from proxy.spans import JSON

SHORTEST = 8
"""Characters that a value must have to be redacted; a shorter one would be found everywhere (record.md section 4)."""

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_MARKER = re.compile(r"\[redacted:[0-9a-f]{16}\]")
_ROUNDS = 5
_CUT = "…"
"""What stands where a value is cut short in words of ours."""
_LEAST = SHORTEST // 2


class _Core(NamedTuple):
    """The base64 digits that a secret alone decides, at one alignment, and what the digits beside them may be.

    `before` and `after` are the digits that hold the rest of its bits together with a neighbour's; "" where none does.
    """

    digits: str
    before: str
    after: str
    rank: int


class Redactor:
    """Takes secrets out of texts. `active` is false where there is nothing to take out: then call nothing else.

    `too_short` has the names (or "secret 2" for the second) of the values that are not redacted, to be warned of.
    """

    __slots__ = (
        *("_blanks", "_cores", "_markers", "_needles", "_plain", "_quoted", "_rounds", "_run"),
        *("active", "margin", "too_short"),
    )

    def __init__(self, secrets: Iterable[str], key: bytes, names: Sequence[str] = ()) -> None:
        """`key` is the run's, 32 bytes; `names`, if given, has a name for each secret.

        White space around a secret is not part of it: files and shells add it.
        """
        values: set[str] = set()
        short: list[str] = []
        for place, secret in enumerate(secrets):
            value = secret.strip()
            if len(value) >= SHORTEST:
                values.add(value)
            elif value:
                short.append(names[place] if place < len(names) else f"secret {place + 1}")
        self.too_short = tuple(short)
        self.active = bool(values)
        # The longest first, so that of two that overlap it is the one that names the place.
        self._plain = sorted(values, key=lambda value: (-len(value), value))
        self._blanks = any(" " in value for value in self._plain)
        self._needles = list(enumerate(self._plain))
        self._quoted = [(rank, value) for rank, value in self._needles if is_quoted(value)]
        self._markers = [f"[redacted:{_keyed(key, value)}]" for value in self._plain]
        self._cores = [core for rank, value in enumerate(self._plain) for core in _cores(value, rank)]
        # A mark beside what was there may make up a secret that looks like a mark's end, or like the quotes around one.
        again = any(value in "[redacted:" or set('[]"') & set(value) for value in self._plain)
        self._rounds = _ROUNDS if again else 1
        shortest = min((len(core.digits) for core in self._cores), default=SHORTEST)
        self._run = re.compile(rf"[A-Za-z0-9+/_-]{{{shortest}}}")
        self.margin = 12 * len(self._plain[0]) if self._plain else 0
        """Characters at the end of a cut text that may hold the beginning of a secret, written out in escapes."""

    @property
    def values(self) -> Sequence[str]:
        """The secrets that are taken out."""
        return self._plain

    def finds(self, text: str) -> bool:
        """Whether any form of a secret is in the text; a quick answer before a text is taken apart."""
        return any(self._hits(view) for view in self._views(text))

    def text(self, text: str) -> tuple[str, int]:
        """The text without any form of any secret, and how many marks stand for them now.

        A text that is JSON stays JSON, and a text without a secret stays itself. A second time changes nothing.
        """
        count = 0
        if not self.active:
            return text, 0
        for _ in range(self._rounds):
            edits = self._found(text)
            if edits:
                edits = fitted(text, edits)
            if not edits:
                break
            text = applied(text, edits)
            count += len(edits)
        return text, count

    def _views(self, text: str) -> Iterable[View]:
        for view in views(text, blanks=self._blanks, quoted=bool(self._quoted)):
            yield view
            if view.thorough and "\n" in view.text and WRAPS.pattern.search(view.text):
                yield view.undone(WRAPS)

    def _hits(self, view: View) -> list[tuple[int, int, int]]:
        """What is found in a view as it stands: start, end, and which secret."""
        found: list[tuple[int, int, int]] = []
        text = view.text
        needles = self._needles if view.thorough else self._quoted
        haystack = text
        if view.formed and self._blanks:
            haystack = text.replace("+", " ")
            needles = [(rank, needle.replace("+", " ")) for rank, needle in needles]
        for rank, needle in needles:
            if needle in haystack:
                found += [(place, place + len(needle), rank) for place in _places(haystack, needle)]
        if view.thorough and _CUT in text:
            found += _beginnings(text, self._needles)
        # In a long text some name or digest is as long as a secret in base64: then the look for one is in vain.
        if view.thorough and (len(text) > 512 or self._run.search(text)):
            digits = text.replace("-", "+").replace("_", "/")
            for core in self._cores:
                if core.digits in digits:
                    found += [_with_edges(digits, place, core) for place in _places(digits, core.digits)]
        return found

    def _found(self, text: str) -> list[Edit]:
        hits: list[tuple[int, int, int]] = []
        for view in self._views(text):
            there = self._hits(view)
            places = view.in_original([(start, end) for start, end, _ in there])
            hits += [(start, end, rank) for (start, end), (_, _, rank) in zip(places, there, strict=True)]
        if not hits:
            return []
        marks = [match.span() for match in _MARKER.finditer(text) if match.group() in self._markers]
        return [Edit(start, end, self._markers[rank]) for start, end, rank in _joined(hits, marks)]


def redact_json(redactor: Redactor, value: JSON) -> tuple[JSON, int]:
    """The value with its strings, its keys and its numbers redacted, and how many marks it has got.

    A number that is a secret becomes a string. Of keys that become equal the later ones get a number, so none is lost.
    """
    match value:
        case str():
            return redactor.text(value)
        case list():
            items: list[JSON] = []
            total = 0
            for item in value:
                redacted, count = redact_json(redactor, item)
                items.append(redacted)
                total += count
            return items, total
        case dict():
            result: dict[str, JSON] = {}
            marks = 0
            for key, inner in value.items():
                name, in_key = redactor.text(key)
                if in_key:
                    name = _unused(name, result, value)
                result[name], in_value = redact_json(redactor, inner)
                marks += in_key + in_value
            return result, marks
        case bool() | None:
            return value, 0
        case int() | float():
            said, count = redactor.text(repr(value))
            return (said.strip('"'), count) if count else (value, 0)


def _unused(name: str, *taken: Mapping[str, JSON]) -> str:
    wanted, number = name, 1
    while any(wanted in names for names in taken):
        number += 1
        wanted = f"{name} {number}"
    return wanted


def _keyed(key: bytes, value: str) -> str:
    from hmac import digest  # noqa: PLC0415  (loads OpenSSL, which a run without secrets can do without)

    return digest(key, _raw(value), "sha256").hex()[:16]


def _raw(value: str) -> bytes:
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")


def _cores(value: str, rank: int) -> Iterable[_Core]:
    """The secret in base64 at the three alignments, as it is and as it stands in JSON inside of the base64."""
    for form in {value, encode_basestring(value)[1:-1], encode_basestring_ascii(value)[1:-1]}:
        raw = _raw(form)
        for shift in range(3):
            digits = b64encode(b"\0" * shift + raw + b"\0\0").decode()
            first, last = -(-8 * shift // 6), 8 * (shift + len(raw)) // 6
            before = after = ""
            left, right = 6 * first - 8 * shift, 8 * (shift + len(raw)) - 6 * last
            if left:
                low = _ALPHABET.index(digits[first - 1])
                before = "".join(_ALPHABET[number] for number in range(low, 64, 1 << left))
            if right:
                high = _ALPHABET.index(digits[last])
                after = _ALPHABET[high : high + (1 << (6 - right))]
            yield _Core(digits[first:last], before, after, rank)


def _with_edges(digits: str, start: int, core: _Core) -> tuple[int, int, int]:
    end = start + len(core.digits)
    if start and digits[start - 1] in core.before:
        start -= 1
    if end < len(digits) and digits[end] in core.after:
        end += 1
    return start, end, core.rank


def _beginnings(text: str, needles: Sequence[tuple[int, str]]) -> Iterable[tuple[int, int, int]]:
    """Where a text was cut short, in quotes or not, within a secret: what of it is left, from 4 characters on."""
    for place in _places(text, _CUT):
        end = place - 1 if text[place - 1 : place] in ("'", '"') else place
        for rank, needle in needles:
            for length in range(min(len(needle) - 1, end), _LEAST - 1, -1):
                if text.startswith(needle[:length], end - length):
                    yield end - length, end, rank
                    break


def _places(text: str, needle: str) -> Iterable[int]:
    place = text.find(needle)
    while place >= 0:
        yield place
        place = text.find(needle, place + len(needle))


def _joined(hits: list[tuple[int, int, int]], marks: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Hits in order, those that overlap as one of the longest secret; a mark is not cut, and inside one is no hit."""
    found: list[tuple[int, int, int]] = []
    for start, end, rank in sorted(hits):
        if found and start < found[-1][1]:
            before = found[-1]
            found[-1] = (before[0], max(before[1], end), min(before[2], rank))
        else:
            found.append((start, end, rank))
    if not marks:
        return found
    whole: list[tuple[int, int, int]] = []
    for start, end, rank in found:
        first, last = _around(marks, start), _around(marks, end - 1)
        if first is not None and first == last:
            continue
        low, high = start if first is None else first[0], end if last is None else last[1]
        if whole and low < whole[-1][1]:
            before = whole[-1]
            whole[-1] = (before[0], max(before[1], high), min(before[2], rank))
        else:
            whole.append((low, high, rank))
    return whole


def _start(mark: tuple[int, int]) -> int:
    return mark[0]


def _around(marks: list[tuple[int, int]], place: int) -> tuple[int, int] | None:
    """The mark that the character at `place` belongs to."""
    index = bisect_right(marks, place, key=_start) - 1
    return marks[index] if index >= 0 and place < marks[index][1] else None
