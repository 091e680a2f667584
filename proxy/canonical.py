"""The canonical text of a JSON value after RFC 8785, and its digest.

It differs from the RFC in one thing: an integer past 2^53 keeps all its digits, since two such values are two.
"""

import re
from json.encoder import JSONEncoder, encode_basestring

from proxy.sha import sha256_hex
from proxy.spans import JSON

_encode = JSONEncoder(ensure_ascii=False, check_circular=False, sort_keys=True, separators=(",", ":")).encode
_DOUBLE = re.compile(r"[:,\[](?:-?[0-9]+[.e]|NaN|-?Infinity)")
"""How the standard library's text of any double begins, and what stands before it; a text may hold that too."""
_PAST_SURROGATES = re.compile("[\ud800-\U0010ffff]")
"""Letters that UTF-16 may order otherwise than by their numbers."""


def canonical(value: JSON) -> str:
    """The text that two values share when they differ only in key order, blanks, escapes and number spelling."""
    try:
        text = _encode(value)
    except RecursionError:
        return spelled_out(value)
    is_ordered = text.isascii() or _PAST_SURROGATES.search(text) is None
    return spelled_out(value) if isinstance(value, float) or _DOUBLE.search(text) or not is_ordered else text


def spelled_out(value: JSON) -> str:
    """The same, for any value, rule by rule: the standard library writes doubles and orders keys otherwise."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            # The encoder of the standard library writes strings as section 3.2.2.2 asks for.
            return encode_basestring(value)
        case int():
            return str(value)
        case float():
            return _double(value)
        case list():
            return f"[{','.join([spelled_out(item) for item in value])}]"
        case dict():
            # Section 3.2.3 orders keys by their UTF-16 code units.
            keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
            return f"{{{','.join([f'{encode_basestring(key)}:{spelled_out(value[key])}' for key in keys])}}}"


def digest(value: JSON) -> str:
    """SHA-256 of the canonical text, in hex. Half a surrogate pair counts as its three bytes."""
    return sha256_hex(canonical(value).encode("utf-8", "surrogatepass"))


def _double(value: float) -> str:
    """The number as ECMAScript writes it (section 3.2.2.3); what is no number is its name."""
    if value - value != 0:
        return f'"{value}"'
    if value == 0:
        return "0"
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    sign = "-" if value < 0 else ""
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    power = point - 1
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{rest}e{'+' if power > 0 else '-'}{abs(power)}"
