"""Canaries: text that nobody can guess, planted in the data of a server, so that its way can be followed.

Refuses to know files, servers and where the random letters come from. A seed plants one as `{canary:NAME}`.
"""

import re
from collections.abc import Callable, Iterator, Mapping

from proxy.spans import JSON

ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
LENGTH = 16
"""Letters of a canary (verdicts.md section 4)."""

PLACE = re.compile(r"\{canary:([A-Za-z0-9._-]+)\}")


def canary_names(rows: JSON) -> Iterator[str]:
    """The names that a seed's rows plant, in order, repeated ones too."""
    match rows:
        case str():
            yield from PLACE.findall(rows)
        case list():
            for item in rows:
                yield from canary_names(item)
        case dict():
            for item in rows.values():
                yield from canary_names(item)
        case _:
            pass


def draw(names: Iterator[str], letter: Callable[[str], str]) -> dict[str, str]:
    """A new canary for each name; `letter` chooses one of the letters that it is given."""
    return {name: "".join(letter(ALPHABET) for _ in range(LENGTH)) for name in dict.fromkeys(names)}


def plant(rows: JSON, canaries: Mapping[str, str]) -> JSON:
    """The rows with each `{canary:NAME}` replaced; a name without a canary stays as it is written."""
    match rows:
        case str():
            return PLACE.sub(lambda place: canaries.get(place[1], place[0]), rows)
        case list():
            return [plant(item, canaries) for item in rows]
        case dict():
            return {key: plant(item, canaries) for key, item in rows.items()}
        case _:
            return rows
