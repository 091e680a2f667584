"""Makes text that comes from an agent or a server safe to show: what has no shape of its own becomes an escape.

Refuses to know where the text is shown.
"""

import unicodedata
from collections.abc import Callable

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""General categories that a terminal may obey, reorder by, or not show at all."""


def escape(character: str) -> str:
    """One character as `\\xNN`, `\\uNNNN` or `\\UNNNNNNNN`."""
    code = ord(character)
    if code < 0x100:
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escape_where(text: str, hidden: Callable[[str], bool]) -> str:
    return "".join([escape(character) if hidden(character) else character for character in text])


def visible(text: str) -> str:
    """The text on one line for a terminal: controls, format characters, line ends and lone surrogates escaped."""
    if text.isascii() and text.isprintable():
        return text
    return _escape_where(text, lambda character: unicodedata.category(character) in _HIDDEN)


def _no_xml(character: str) -> bool:
    code = ord(character)
    if code < 0x20:
        return character not in "\t\n"
    return 0x7F <= code <= 0x9F or 0xD800 <= code <= 0xDFFF or code & 0xFFFE == 0xFFFE


def legal_xml(text: str) -> str:
    """The text with everything escaped that XML 1.0 (production 2, Char) forbids or discourages; `\\r` as well."""
    return _escape_where(text, _no_xml)
