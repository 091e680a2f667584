"""The patterns of a rule's arguments fit what ECMAScript's would, and one that Python reads otherwise is refused."""

import json
import random
import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.assertions.fitting import check_schema
from proxy.ecmapattern import PatternError, python_pattern
from proxy.policy import PolicyError
from proxy.spans import JSON
from tests.proxy.wires import policy_of


def allows(schema: JSON, arguments: JSON) -> bool:
    policy = policy_of(default="deny", rules=[{"allow": "mcp/x/read", "arguments": schema}])
    return policy.judge("mcp/x/read", "third_party", arguments).verdict == "allow"


def path_of(pattern: str) -> JSON:
    return {"required": ["path"], "properties": {"path": {"type": "string", "pattern": pattern}}}


@pytest.mark.parametrize(
    ("pattern", "fits", "not_"),
    [
        ("^/safe/[a-z]+$", "/safe/a", "/safe/a\n"),
        (r"^\d+$", "12", "\u0661"),
        (r"^[\d]+$", "12", "\u0661"),
        (r"^\w+$", "ab_1", "é"),
        (r"^\s$", "\ufeff", "\x1c"),
        (r"^[\s]$", "\u2003", "\x85"),
        (r"^\S$", "\x85", "\ufeff"),
        (r"^.$", "\x85", "\u2028"),
        (r"^(a|b$)", "b", "b\n"),
        (r"^[$]$", "$", "$\n"),
        (r"^\$$", "$", "$\n"),
        (r"^\/a\-b\.c$", "/a-b.c", "/a-bxc"),
        (r"\bcat\b", "a cat", "écatx"),
        (r"^\u0041\x42$", "AB", "ab"),
        (r"^(?!\.\.)[^/]{1,3}?$", "abc", "..x"),
    ],
)
def test_a_pattern_fits_what_it_says(pattern: str, fits: str, not_: str) -> None:
    assert allows(path_of(pattern), {"path": fits})
    assert not allows(path_of(pattern), {"path": not_})


@pytest.mark.parametrize(
    "pattern", [r"\Aa", r"a\Z", r"(?i)a", r"(?P<a>b)", r"(a)\1", r"a++", r"a{,3}+", r"[\B]", r"(?#a)", r"\p", r"\ud800"]
)
def test_one_that_python_reads_otherwise_stops_the_start_and_a_scenario(pattern: str) -> None:
    with pytest.raises(PolicyError):
        allows(path_of(pattern), {})
    with pytest.raises(ValueError, match=r"pattern|JSON Schema"):
        check_schema(path_of(pattern))


def test_patterns_stand_wherever_a_schema_does_and_nowhere_else() -> None:
    inner: JSON = {"pattern": "^a$"}
    assert not allows({"patternProperties": {"^p$": inner}, "additionalProperties": False}, {"p\n": "a"})
    assert not allows({"properties": {"x": {"$ref": "#/$defs/a~1b"}}, "$defs": {"a/b": inner}}, {"x": "a\n"})
    assert not allows({"allOf": [{"additionalProperties": inner}]}, {"x": "a\n"})
    assert not allows({"properties": {"pattern": inner}}, {"pattern": "a\n"})
    assert allows({"properties": {"x": {"const": {"pattern": "^a$"}}}}, {"x": {"pattern": "^a$"}})
    with pytest.raises(PolicyError, match="leads to what no keyword makes a schema"):
        allows({"x-own": inner, "properties": {"x": {"$ref": "#/x-own"}}}, {})


PIECES = [
    *("a", "b", "1", "_", " ", "-", "^", "$", ".", "|", "(a)", "(?:b|1)", "(?=a)", "(?!b)", "[ab]", "[^a]", "[a-c]"),
    *(
        r"\d",
        r"\D",
        r"\w",
        r"\W",
        r"\s",
        r"\S",
        r"\b",
        r"[\d-]",
        r"[\S1]",
        r"[^\W]",
        r"[\D]",
        r"\B",
        r"[\w.]",
        r"[\s]",
        r"\n",
        r"\t",
        r"\u0661",
        r"\/",
        r"\.",
    ),
]
LETTERS = "ab1_ -\n\r\t\x0b\x1c\x85\xa0\ufeff\u0661\u2028\u2003é/."


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node to ask")
def test_javascript_finds_the_same() -> None:
    dice = random.Random(11)
    asked: list[tuple[str, str]] = []
    for _ in range(4000):
        pattern = "".join(
            dice.choice(PIECES) + dice.choice(["", "", "", "*", "+?", "{1,2}"]) for _ in range(dice.randint(1, 4))
        )
        try:
            python_pattern(pattern)
        except PatternError:
            continue
        asked.append((pattern, "".join(dice.choice(LETTERS) for _ in range(dice.randint(0, 4)))))
    code = (
        "const all = JSON.parse(require('fs').readFileSync(0)); console.log(JSON.stringify(all.map(([p, t]) => {"
        "try { return new RegExp(p, 'u').test(t) } catch { return null } })))"
    )
    ran = subprocess.run(["node", "-e", code], input=json.dumps(asked), capture_output=True, text=True, check=True)
    told: list[bool | None] = json.loads(ran.stdout)
    assert sum(one is not None for one in told) > 1000
    for (pattern, text), there in zip(asked, told, strict=True):
        assert there in {None, re.search(python_pattern(pattern), text) is not None}, (pattern, text)


@given(st.text("ab[]()\\-^$.|?*+{},1dswSuxZ<=!", max_size=10))
def test_no_pattern_breaks_it(pattern: str) -> None:
    try:
        found = python_pattern(pattern)
    except PatternError:
        return
    re.compile(found)
