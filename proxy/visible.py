"""Makes text that comes from an agent, a server or a file name safe to show: what has no shape of its own is escaped.

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


def escape_where(text: str, hidden: Callable[[str], bool]) -> str:
    """The text with every character escaped that `hidden` names."""
    return "".join([escape(character) if hidden(character) else character for character in text])


def visible(text: str) -> str:
    """The text on one line for a terminal: controls, format characters, line ends and lone surrogates escaped."""
    if text.isascii() and text.isprintable():
        return text
    return escape_where(text, lambda character: unicodedata.category(character) in _HIDDEN)
