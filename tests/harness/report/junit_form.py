"""What a JUnit document may hold, after junit-10.xsd of Jenkins' xUnit plugin: the elements and attributes that we use.

Where `make peers` has fetched that XSD, it is asked too.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from xml.etree.ElementTree import Element

from xmlschema import XMLSchema10

from tests.peers.places import JUNIT, is_made, junit_schema


@dataclass(frozen=True)
class Form:
    children: frozenset[str]
    needed: frozenset[str] = frozenset()
    other: frozenset[str] = frozenset()
    text: bool = False


def _form(children: str = "", needed: str = "", other: str = "", *, text: bool = False) -> Form:
    return Form(frozenset(children.split()), frozenset(needed.split()), frozenset(other.split()), text)


FORMS = {
    "testsuites": _form("testsuite", other="name time tests failures errors"),
    "testsuite": _form(
        "testsuite properties testcase system-out system-err",
        "name tests failures errors",
        "group time skipped timestamp hostname id package file log url",
    ),
    "testcase": _form("skipped error failure system-out system-err", "name", "time classname group"),
    "failure": _form(other="type message", text=True),
    "error": _form(other="type message", text=True),
    "system-out": _form(text=True),
}
TIME = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?")
"""Seconds of a suite."""


@cache
def _schema() -> XMLSchema10:
    return XMLSchema10(junit_schema())


def wrongs_by_schema(element: Element) -> Iterator[str]:
    """Everything in the element that the XSD does not allow; nothing where the XSD is not there."""
    if is_made(JUNIT):
        yield from (str(error.reason) for error in _schema().iter_errors(element))


def wrongs(element: Element) -> Iterator[str]:
    """Everything in the document that its form, or the XSD, does not allow."""
    yield from _wrongs(element)
    yield from wrongs_by_schema(element)


def _wrongs(element: Element) -> Iterator[str]:
    form = FORMS.get(element.tag)
    if form is None:
        yield f"{element.tag} is no element that is known here"
        return
    names = set(element.attrib)
    yield from (f"{element.tag} lacks {name}" for name in form.needed - names)
    yield from (f"{element.tag} may have no {name}" for name in names - form.needed - form.other)
    if element.tag != "testcase" and "time" in names and TIME.fullmatch(element.attrib["time"]) is None:
        yield f"{element.tag} has the time {element.attrib['time']!r}"
    if not form.text and (element.text or "").strip():
        yield f"{element.tag} has text"
    for child in element:
        if child.tag not in form.children:
            yield f"{element.tag} may have no {child.tag}"
        yield from _wrongs(child)
