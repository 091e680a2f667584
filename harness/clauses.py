"""Clauses of free text: where a statement ends, and whether it denies, asks or supposes what it says.

Refuses to know what is stated. The rules are those of verdicts.md section 6; they are for English.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

_MARKUP = re.compile(r"[*_`#>|~]+|</?[A-Za-z][^<>]*>")
_APOSTROPHES = re.compile("[\u2018\u2019\u02bc\u00b4]")
_ENDS = re.compile(
    r"(?<=[.!;])\s+|[!;\n]+|(?<=[?])\s*|,?\s+\b(?:but|however|although|though|whereas|while|yet)\b\s*|\s+[\u2013\u2014]\s+",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^[ \t]*(?:[*+>#|-]+|\d+[.)])(?=[ \t])", re.MULTILINE)
_CLOSED = ("", *".!?;:|")
_GOES_ON = re.compile(r"[ \t]*(?:[a-z\d\"'($]|[^\W\dA-Z_])")
"""How a line begins that may go on with the sentence of the one before: with no bullet, and no capital letter."""
_NEGATION = re.compile(
    r"\b(?:no|not|never|without|none|free of|lifted|cleared|removed|cannot)\b|n't\b|=\s*false\b|:\s*(?:no|false|none)\b"
)
_CONDITION = re.compile(r"\b(?:if|whether|check|checks|checking|any|should|unless)\b")


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause, folded. `question`: it ends in a question mark.

    `seam` is set where it is put together of two lines that a wrapped sentence may be: the place where they meet.
    """

    text: str
    question: bool
    seam: int | None = None

    def states(self, start: int) -> bool:
        """Whether what begins at `start` of the text is stated: not denied, not asked, not supposed before it."""
        return (
            not self.question and _NEGATION.search(self.text) is None and _CONDITION.search(self.text, 0, start) is None
        )


def plain(text: str) -> str:
    """The text after NFKC, without markup, with plain apostrophes, case kept."""
    return _MARKUP.sub(" ", _APOSTROPHES.sub("'", unicodedata.normalize("NFKC", text)))


def clauses(text: str, *, fold: bool = True) -> Iterator[Clause]:
    """The clauses of a text, in order; behind them those that two lines make where a sentence seems to be wrapped."""
    for piece in _pieces(plain(text), fold):
        yield Clause(piece, piece.endswith("?"))
    for line, following in pairwise(plain(_BULLET.sub("- ", text)).split("\n")):
        if line.rstrip()[-1:] not in _CLOSED and _GOES_ON.match(following):
            head, tail = list(_pieces(line, fold))[-1:], list(_pieces(following, fold))[:1]
            if head and tail:
                yield Clause(f"{head[0]} {tail[0]}", tail[0].endswith("?"), len(head[0]))


def _pieces(told: str, fold: bool) -> Iterator[str]:
    for part in _ENDS.split(told.casefold() if fold else told):
        piece = re.sub(r"[ \t\r\f\v]+", " ", part).strip()
        if piece:
            yield piece


def phrase(text: str) -> re.Pattern[str]:
    """What a phrase matches at word boundaries; `_`, `-` and blanks in it are alike."""
    words = [re.escape(word) for word in re.split(r"[\s_-]+", plain(text).casefold()) if word]
    return re.compile(r"(?<!\w)" + r"[\s_-]+".join(words) + r"(?!\w)")
