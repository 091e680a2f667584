"""JSON text read without losing anything unsaid: exact integers, and a word on whether the value tells all of it.

Refuses to know what the text was for.
"""

from json import JSONDecoder, loads

from proxy.spans import JSON

DEEPEST = 300
"""Levels of nesting that a value may have; past it, it could not be written again on a deep stack."""

_TOO_DEEP = f"more than {DEEPEST} maps and lists inside each other"


class JsonReader:
    """Reads one text after another. After `read`, `lost` says whether the value is less than its text.

    Repeated keys (the last one stays), a number whose spelling is not the shortest, NaN and numbers past a double
    (kept as text) lose something; blanks, escapes and key order do not. `readable` is false for what is no JSON, or is
    nested past DEEPEST: then the value is None. `repeated` is true where a key stands twice.
    """

    __slots__ = ("_decoder", "_keys", "lost", "readable", "repeated")

    def __init__(self) -> None:
        self.lost = False
        self.repeated = False
        self.readable = True
        self._keys: dict[str, str] = {}
        # Lenient about control characters: without a policy in force such a text reached the server too.
        self._decoder = JSONDecoder(
            strict=False,
            object_pairs_hook=self._object,
            parse_float=self._float,
            parse_int=self._int,
            parse_constant=self._constant,
        )

    def read(self, text: str) -> JSON:
        """The value of `text`."""
        self.lost = self.repeated = False
        self.readable = True
        try:
            value: JSON = self._decoder.decode(text)
            if text.count("[") + text.count("{") <= DEEPEST or depth(value) <= DEEPEST:
                return value
        except (ValueError, RecursionError):
            pass
        self.lost = True
        self.readable = False
        return None

    def read_whole(self, text: str) -> JSON:
        """The value of `text`, and the text itself where a value would leave out something that was said in it."""
        value = self.read(text)
        return value if self.readable and not self.repeated else text

    def _object(self, pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
        # Keys repeat from text to text; one copy of each is enough.
        share = self._keys.setdefault
        table = {share(key, key): value for key, value in pairs}
        if len(self._keys) > 10_000:
            self._keys.clear()
        if len(table) != len(pairs):
            self.lost = self.repeated = True
        return table

    def _float(self, text: str) -> JSON:
        value = float(text)
        if repr(value) != text:
            self.lost = True
            if value - value != 0:
                return text
        return value

    def _int(self, text: str) -> JSON:
        if text == "-0" or len(text) > 4000:
            self.lost = True
            # int() refuses more than 4300 digits.
            return 0 if text == "-0" else text
        return int(text)

    def _constant(self, text: str) -> JSON:
        self.lost = True
        return text


def load_json(text: str | bytes) -> JSON:
    """The value of a JSON text as the standard library reads it. Raises ValueError, also past DEEPEST."""
    try:
        value: JSON = loads(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    opened = text.count(b"[") + text.count(b"{") if isinstance(text, bytes) else text.count("[") + text.count("{")
    if opened > DEEPEST and depth(value) > DEEPEST:
        raise ValueError(_TOO_DEEP)
    return value


def depth(value: JSON) -> int:
    """How many lists and objects stand inside each other, found without recursion."""
    deepest = 0
    pending: list[tuple[JSON, int]] = [(value, 1)]
    while pending:
        item, level = pending.pop()
        match item:
            case dict():
                deepest = max(deepest, level)
                pending += [(inner, level + 1) for inner in item.values()]
            case list():
                deepest = max(deepest, level)
                pending += [(inner, level + 1) for inner in item]
            case _:
                pass
    return deepest
