"""Looks for several things in very many texts: most texts are passed over in bulk, the others looked at one by one.

Refuses to know what is sought, and whether it may be where it is found.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from harness.disclosure import Form, Looked, Marker, is_bare
from harness.joining import put_together
from harness.sent import SEPARATOR, Sent

T = TypeVar("T")

_AT_ONCE = 64
"""Texts that are screened together."""


@dataclass(frozen=True, slots=True)
class Sought:
    """What is looked for. `name` stands in reasons, never the text. Servers in `allowed_to` may get it."""

    name: str
    what: Marker | re.Pattern[str]
    allowed_to: frozenset[str] = frozenset()

    def form_in(self, looked: Looked) -> Form | None:
        """The form in which a text says it."""
        match self.what:
            case Marker() as marker:
                return marker.form_in(looked)
            case re.Pattern() as pattern:
                for place, view in enumerate(looked.raw):
                    if pattern.search(view) is not None:
                        return "encoded" if place else "plain"
                return None

    @property
    def joinable(self) -> bool:
        """Whether it is long enough to be looked for across texts."""
        return isinstance(self.what, re.Pattern) or self.what.disguised


@dataclass(frozen=True, slots=True)
class Disclosure:
    """One thing that said what was sought, and in which form."""

    sought: Sought
    form: Form
    item: Sent


class Search:
    """Looks for several things in what was sent; equal texts are looked at once."""

    def __init__(self, sought: Sequence[Sought]) -> None:
        self.sought = sought
        self.cut = False
        self._known: dict[str, tuple[Form | None, ...]] = {}
        self._cores = _cores(sought)

    def forms(self, text: str) -> tuple[Form | None, ...]:
        """For each thing sought, the form in which the text says it."""
        found = self._known.get(text)
        if found is None:
            looked = Looked(text)
            found = self._known[text] = tuple(sought.form_in(looked) for sought in self.sought)
            self.cut = self.cut or looked.cut
        return found

    def suspected(self, items: Iterable[T], text_of: Callable[[T], str]) -> Iterator[tuple[T, str]]:
        """The items of which the text may say something sought, in order, with their texts; `forms` tells for sure."""
        left = iter(items)
        while group := [(item, text_of(item)) for item in islice(left, _AT_ONCE)]:
            if self.may_say(SEPARATOR.join([text for _, text in group])):
                for item, text in group:
                    if self.may_say(text):
                        yield item, text

    def may_say(self, text: str) -> bool:
        """Whether a text, or any of several with SEPARATOR between them, may say something sought in any form."""
        if self._cores is None or not text.isascii() or not is_bare(text):
            return True
        lower = text.lower()
        return any(core in lower for core in self._cores)

    def disclosures(self, sent: Sequence[Sent]) -> Iterator[Disclosure]:
        """Everything that says something sought; put together only where nothing says it alone."""
        told: set[str] = set()
        for item, text in self.suspected(sent, _text):
            for sought, form in zip(self.sought, self.forms(text), strict=True):
                if form is not None and item.server not in sought.allowed_to:
                    told.add(sought.name)
                    yield Disclosure(sought, form, item)
        for (_, item), text in self.suspected(put_together(sent), _joined):
            for sought, form in zip(self.sought, self.forms(text), strict=True):
                allowed = item.server in sought.allowed_to
                if form is not None and sought.joinable and not allowed and sought.name not in told:
                    told.add(sought.name)
                    yield Disclosure(sought, "joined", item)


def _text(item: Sent) -> str:
    return item.text


def _joined(pair: tuple[str, Sent]) -> str:
    return pair[0]


def _cores(sought: Sequence[Sought]) -> tuple[str, ...] | None:
    """What an ASCII text without escapes and encodings must hold, in lower case, to say any of it; None for anything.

    Blanks may be written in many ways, so it is the longest run without one, forwards and backwards.
    """
    cores: dict[str, None] = {}
    for one in sought:
        if not isinstance(one.what, Marker):
            return None
        core = max(one.what.text.split(), key=len)
        cores |= dict.fromkeys((core, core[::-1]))
    return tuple(cores)
