"""Makes text that comes from an agent or a server safe to show in XML, Markdown and SARIF, and short enough.

Refuses to know where in a document it stands.
"""

import re
from string import punctuation

from proxy.visible import escape_where, visible

_PLAIN = frozenset("-,/()'\"?;%")
"""Punctuation that stands as it is in Markdown, in the middle of a line."""
_BETWEEN = frozenset("._=")
"""Punctuation that means nothing in Markdown between two letters or digits."""
_WWW = re.compile(r"(?i)www\.")


def _no_xml(character: str) -> bool:
    code = ord(character)
    if code < 0x20:
        return character not in "\t\n"
    return 0x7F <= code <= 0x9F or 0xD800 <= code <= 0xDFFF or code & 0xFFFE == 0xFFFE


def legal_xml(text: str) -> str:
    """The text with everything escaped that XML 1.0 (production 2, Char) forbids or discourages; `\\r` as well."""
    return escape_where(text, _no_xml)


def markdown(text: str) -> str:
    """The text on one line for the middle of a line of GitHub's Markdown, or a cell of a table: nothing is markup.

    References to characters are never markup (CommonMark 0.31, section 2.5). GitHub also makes links of addresses and
    of names and numbers behind @ and #, so those two stand alone in an element. Words with `_` and `.` between stay.
    """
    shown = visible(text)
    parts: list[str] = []
    for place, sign in enumerate(shown):
        inside = 0 < place < len(shown) - 1 and shown[place - 1].isalnum() and shown[place + 1].isalnum()
        # Before a blank a colon begins neither an emoji nor the rest of an address.
        ends = sign == ":" and shown[place + 1 : place + 2] in ("", " ")
        kept = sign not in punctuation or sign in _PLAIN or (sign in _BETWEEN and inside) or ends
        parts.append(sign if kept else f"<span>{sign}</span>" if sign in "@#" else f"&#{ord(sign)};")
    return _WWW.sub("www&#46;", "".join(parts))


def sarif_message(text: str) -> str:
    """The text on one line as a plain SARIF message: no placeholder and no link (SARIF 2.1.0, 3.11.5 and 3.11.6)."""
    return visible(text).replace("{", "{{").replace("}", "}}").replace("](", "] (")


def shortened(text: str, most: int) -> str:
    """The first `most` characters; behind a text that has more it says how many are left out."""
    left = len(text) - most
    return text if left <= 0 else f"{text[:most]}… ({left} more characters; report.json has them)"
