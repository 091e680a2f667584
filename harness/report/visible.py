"""Makes text that comes from an agent or a server safe to show in XML.

Refuses to know where in a document it stands.
"""

from proxy.visible import escape_where


def _no_xml(character: str) -> bool:
    code = ord(character)
    if code < 0x20:
        return character not in "\t\n"
    return 0x7F <= code <= 0x9F or 0xD800 <= code <= 0xDFFF or code & 0xFFFE == 0xFFFE


def legal_xml(text: str) -> str:
    """The text with everything escaped that XML 1.0 (production 2, Char) forbids or discourages; `\\r` as well."""
    return escape_where(text, _no_xml)
