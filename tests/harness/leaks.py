"""Secrets in the forms in which agents use them, and the files in which one of them stands."""

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

from proxy.spans import JSON

TOKEN = 'env/"quoted"\\secret é😀'
"""The value of a variable whose name gives it away."""
VALUE = "Correct-Horse-77"
"""A value that the scenario names."""
NAMED = "two lines\nof a secret?"
"""The value of a variable that the scenario names."""
SERVED = "served+to/one=server"
"""A variable that one server gets."""
SECRETS = (TOKEN, VALUE, NAMED, SERVED)
MARK = re.compile(r"\[redacted:[0-9a-f]{16}\]")


def said(secret: str) -> list[str]:
    """The forms in which the agents of these tests use a secret."""
    forms = [secret, quote(secret, safe=""), lower(quote(secret, safe=""))]
    forms += [json.dumps({"in": secret}, ensure_ascii=ascii_only) for ascii_only in (True, False)]
    for shift in range(3):
        for encode in (b64encode, urlsafe_b64encode):
            forms.append(encode(b"x" * shift + secret.encode() + b"y" * 3).decode())
    return forms


def lower(text: str) -> str:
    """Percent-encoded text with its hexadecimal digits in lower case."""
    return re.sub("%..", lambda found: found[0].lower(), text)


def looked_for(secret: str) -> list[str]:
    """What may stand in no file: the forms, and of base64 the digits that the secret alone decides."""
    raw = secret.encode()
    forms = [secret, quote(secret, safe=""), lower(quote(secret, safe="")), quote(secret)]
    for ascii_only in (True, False):
        text = secret
        for _ in range(4):
            text = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
            forms.append(text)
    for shift in range(3):
        first, last = -(-8 * shift // 6), 8 * (shift + len(raw)) // 6
        for encode in (b64encode, urlsafe_b64encode):
            forms.append(encode(b"x" * shift + raw + b"y" * 3).decode()[first:last])
    return forms


def texts(data: bytes) -> Iterator[str]:
    """The text of a file, and every text that is inside of it when it is read as JSON, JSON lines or XML."""
    text = data.decode("utf-8", "surrogateescape")
    yield text
    for piece in (text, *text.splitlines()):
        try:
            yield from strings(json.loads(piece))
        except ValueError:
            continue
    if text.startswith("<?xml"):
        for element in ElementTree.fromstring(text).iter():
            yield from (element.text or "", *element.attrib.values())


def strings(value: JSON) -> Iterator[str]:
    match value:
        case str():
            yield value
            try:
                yield from strings(json.loads(value))
            except ValueError:
                return
        case list():
            for item in value:
                yield from strings(item)
        case dict():
            for key, item in value.items():
                yield key
                yield from strings(item)
        case _:
            yield str(value)


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def leaks(folder: Path, secrets: tuple[str, ...] = SECRETS) -> list[str]:
    found = []
    for path in files(folder):
        joined = "\n".join(texts(path.read_bytes()))
        for secret in secrets:
            found += [f"{path.name}: {form!r}" for form in looked_for(secret) if form in joined]
    return found


def digests(folder: Path) -> set[str]:
    return {found for path in files(folder) for found in re.findall(r"[0-9a-f]{64}", path.read_text())}
