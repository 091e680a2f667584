"""A rule may hold for some arguments only: those that fit a JSON Schema."""

import pytest

from proxy.spans import JSON
from tests.proxy.policies import policy, problems


@pytest.mark.parametrize(
    ("arguments", "verdict"),
    [
        ({"tier": "enterprise"}, "deny"),
        ({"tier": "enterprise", "more": 1}, "deny"),
        ({"tier": "Enterprise"}, "allow"),
        ({}, "allow"),
        (None, "allow"),
        ([], "deny"),
        ("enterprise", "deny"),
    ],
)
def test_a_rule_with_arguments_holds_when_they_fit(arguments: JSON, verdict: str) -> None:
    some = policy("rules: [{deny: mcp/x/a, arguments: {required: [tier], properties: {tier: {const: enterprise}}}}]")
    assert some.judge("mcp/x/a", "trusted", arguments).verdict == verdict


@pytest.mark.parametrize("arguments", [[], "x", 1, True])
def test_arguments_that_are_no_object_fit_no_rule_that_allows(arguments: JSON) -> None:
    some = policy("default: deny\nrules: [{allow: mcp/x/a, arguments: {properties: {n: {maximum: 10}}}}]")
    assert some.judge("mcp/x/a", "trusted", arguments).verdict == "deny"
    assert some.judge("mcp/x/a", "trusted", None).verdict == "allow"
    assert some.judge("mcp/x/a", "trusted", {"n": 11}).verdict == "deny"


@pytest.mark.parametrize(
    ("const", "value", "verdict"),
    [
        ("1", 1.0, "deny"),
        ("1.0", 1, "deny"),
        ("1", True, "allow"),
        ("true", 1, "allow"),
        ("[1, {a: 0}]", [1.0, {"a": 0.0}], "deny"),
        ("[1]", [True], "allow"),
        ("{a: false}", {"a": 0}, "allow"),
        ("9007199254740993", 9007199254740992, "allow"),
    ],
)
@pytest.mark.parametrize("keyword", ["const: {}", "enum: [{}]"])
def test_numbers_are_compared_by_value_and_booleans_are_none(
    const: str, value: JSON, verdict: str, keyword: str
) -> None:
    schema = keyword.replace("{}", const)
    some = policy(f"rules: [{{deny: mcp/x/a, arguments: {{properties: {{v: {{{schema}}}}}}}}}]")
    assert some.judge("mcp/x/a", "trusted", {"v": value}).verdict == verdict


def test_references_inside_a_schema_are_followed() -> None:
    some = policy(
        "rules:\n- deny: mcp/x/a\n"
        "  arguments: {$defs: {n: {const: 1}}, required: [v], properties: {v: {$ref: '#/$defs/n'}}}"
    )
    assert some.judge("mcp/x/a", "trusted", {"v": 1}).verdict == "deny"
    assert some.judge("mcp/x/a", "trusted", {"v": 2}).verdict == "allow"


@pytest.mark.parametrize(
    ("schema", "field", "says"),
    [
        ("{$ref: 'https://example.org/s.json'}", ".$ref", "nothing is fetched"),
        ("{properties: {a: {$ref: other.json}}}", ".properties.a.$ref", "nothing is fetched"),
        ("{properties: {const: {$ref: other.json}}}", ".properties.const.$ref", "nothing is fetched"),
        ("{$dynamicRef: 'other#x'}", ".$dynamicRef", "nothing is fetched"),
        ("{$ref: '#/$defs/missing'}", ".$ref", "leads nowhere"),
        ("{$ref: '#'}", "", "circle"),
        ("{type: 3}", ".type", "not a JSON Schema"),
        ("{properties: {a: {pattern: '('}}}", ".properties.a.pattern", "not a JSON Schema"),
        ("{$schema: 'http://json-schema.org/draft-07/schema#'}", ".$schema", "2020-12"),
        ("{properties: {a: {$id: 'x'}}}", ".properties.a.$id", "$defs"),
        ("true", "", "expected a JSON Schema as a map"),
        ("null", "", "expected a JSON Schema as a map"),
    ],
)
def test_a_schema_that_cannot_be_used_stops_the_start(schema: str, field: str, says: str) -> None:
    (problem,) = problems(f"rules:\n- deny: mcp/x/a\n  arguments: {schema}")
    assert problem.startswith(f"p.yaml:3: rules[0].arguments{field}: ")
    assert says in problem


def test_a_value_to_compare_with_may_look_like_a_reference() -> None:
    some = policy("rules: [{deny: mcp/x/a, arguments: {properties: {v: {const: {$ref: 'http://x'}}}, required: [v]}}]")
    assert some.judge("mcp/x/a", "trusted", {"v": {"$ref": "http://x"}}).verdict == "deny"
