import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.glob import check_server_id
from proxy.policy import NO_POLICY, PolicyError, Rule, deny_policy, load_policy, parse_policy
from proxy.spans import JSON
from proxy.yamlfile import load_document
from tests.proxy.policies import policy, problems


def test_the_first_rule_that_holds_decides() -> None:
    some = policy("rules: [{allow: mcp/x/get}, {deny: 'mcp/x/*', reason: no more}, {allow: 'mcp/*/*'}]\ndefault: deny")
    assert some.judge("mcp/x/get", "trusted", {}).verdict == "allow"
    denied = some.judge("mcp/x/put", "trusted", {})
    assert (denied.verdict, denied.rule, denied.reason) == ("deny", "deny mcp/x/*", "no more")
    assert some.judge("mcp/y/put", "trusted", {}).verdict == "allow"


@pytest.mark.parametrize("verdict", ["allow", "deny"])
def test_the_default_decides_what_no_rule_does(verdict: str) -> None:
    decision = policy(f"default: {verdict}\nrules: [{{deny: mcp/x/evil}}]").judge("mcp/x/other", "trusted", {})
    assert (decision.verdict, decision.rule) == (verdict, f"default {verdict}")


def test_an_empty_map_allows_and_is_in_force() -> None:
    decision = policy("{}").judge("mcp/x/a", "untrusted", {})
    assert (decision.verdict, decision.enforced) == ("allow", True)


def test_a_trailing_blank_makes_another_tool() -> None:
    name = "mcp/x/evil "
    assert policy("rules: [{deny: mcp/x/evil}]").judge(name, "trusted", {}).verdict == "allow"
    assert policy("default: deny\nrules: [{allow: mcp/x/evil}]").judge(name, "trusted", {}).verdict == "deny"


def test_observing_says_deny_and_enforces_nothing() -> None:
    some = policy("mode: observe\nrules: [{deny: mcp/x/a, as: hidden}]\nclient_requests: {roots: deny}")
    decision = some.judge("mcp/x/a", "trusted", {})
    assert (decision.verdict, decision.enforced) == ("deny", False)
    assert not some.in_force
    assert not some.hides
    assert not some.hides_tool("mcp/x/a", "trusted")
    request = some.judge_client_request("roots/list")
    assert (request.verdict, request.enforced) == ("deny", False)


def test_a_rule_with_labels_speaks_of_those_servers_only() -> None:
    some = policy("rules: [{deny: 'mcp/*/*', trust: [untrusted, third_party]}]")
    assert [
        some.judge("mcp/x/a", trust, {}).verdict for trust in ("trusted", "internal", "third_party", "untrusted")
    ] == [
        "allow",
        "allow",
        "deny",
        "deny",
    ]


@pytest.mark.parametrize(
    ("text", "line", "field", "says"),
    [
        ("[]", 1, "", "expected a map"),
        ("", 1, "", "expected a map"),
        ("policy:\n  rules: []", 1, "policy", "take the key policy out"),
        ("rule: []", 1, "rule", "unknown field"),
        ("mode: on", 1, "mode", "expected enforce or observe, not the text 'on'"),
        ("mode: null", 1, "mode", "nothing"),
        ("default: true", 1, "default", "truth value"),
        ("default: [deny]", 1, "default", "a list"),
        ("rules: {}", 1, "rules", "expected a list"),
        ("rules:\n- mcp/x/a", 2, "rules[0]", "expected a map"),
        ("rules:\n- {}", 2, "rules[0]", "exactly one"),
        ("rules:\n- deny: mcp/x/a\n  allow: mcp/x/b", 2, "rules[0]", "has allow and deny"),
        ("rules:\n- deny: 12", 2, "rules[0].deny", "the number 12"),
        ("rules:\n- deny: mcp/x", 2, "rules[0].deny", "no name part"),
        ("rules:\n- approve: mcp/x/a\n  wait: 60", 3, "rules[0].wait", "a duration such as"),
        ("rules:\n- approve: mcp/x/a\n  grant_lasts: 0s", 3, "rules[0].grant_lasts", "a duration such as"),
        ("rules:\n- approve: mcp/x/a\n  wait: 169h", 3, "rules[0].wait", "a week at most"),
        ("rules:\n- approve: mcp/x/a\n  as: hidden", 3, "rules[0].as", "hidden does not go with approve"),
        ("rules:\n- deny: mcp/x/a\n  wait: 60s", 3, "rules[0].wait", "only an approve"),
        ("rules:\n- deny: mcp/x/a\n  when: now", 3, "rules[0].when", "unknown field"),
        ("rules:\n- deny: mcp/x/a\n  reason: 12", 3, "rules[0].reason", "in quotes"),
        ("rules:\n- deny: mcp/x/a\n  as: gone", 3, "rules[0].as", "expected tool_error"),
        ("rules:\n- allow: mcp/x/a\n  as: error", 3, "rules[0].as", "only a deny"),
        ("rules:\n- deny: mcp/x/a\n  as: hidden\n  arguments: {}", 3, "rules[0].as", "hidden"),
        ("rules:\n- deny: mcp/x/a\n  trust: untrusted", 3, "rules[0].trust", "a list of labels"),
        ("rules:\n- deny: mcp/x/a\n  trust: []", 3, "rules[0].trust", "a list of labels"),
        ("rules:\n- deny: mcp/x/a\n  trust:\n  - low", 4, "rules[0].trust[0]", "'low'"),
        ("client_requests: deny", 1, "client_requests", "a map"),
        ("client_requests: {sampling: no}", 1, "client_requests.sampling", "allow or deny"),
        ("client_requests: {tools: deny}", 1, "client_requests.tools", "unknown field"),
    ],
)
def test_a_policy_that_is_wrong_names_file_line_and_field(text: str, line: int, field: str, says: str) -> None:
    (problem,) = problems(text)
    assert problem.startswith(f"p.yaml:{line}: {field}: " if field else f"p.yaml:{line}: ")
    assert says in problem


def test_everything_that_is_wrong_is_said_at_once() -> None:
    assert len(problems("mode: x\nrules: [{deny: a}, {}]\nclient_requests: {roots: 1}")) == 4


def test_a_policy_inside_another_file_names_the_whole_way() -> None:
    document = load_document("id: a\npolicy:\n  rules:\n  - deny: x", "s.yaml")
    assert isinstance(document.data, dict)
    with pytest.raises(PolicyError, match=r"^s\.yaml:4: policy\.rules\[0\]\.deny: "):
        parse_policy(document.data["policy"], "s.yaml", document.line, ("policy",))


@pytest.mark.parametrize(
    ("rules", "hidden"),
    [
        ("{deny: mcp/x/a, as: hidden}", True),
        ("{deny: mcp/x/a, as: error}", False),
        ("{deny: mcp/y/a, as: hidden}", False),
        ("{allow: mcp/x/a}, {deny: mcp/x/a, as: hidden}", False),
        ("{deny: mcp/x/a}, {deny: mcp/x/a, as: hidden}", False),
        ("{allow: mcp/x/a, arguments: {}}, {deny: mcp/x/a, as: hidden}", False),
        ("{deny: mcp/x/a, arguments: {required: [n]}}, {deny: mcp/x/a, as: hidden}", True),
        ("{allow: mcp/x/a, trust: [trusted]}, {deny: mcp/x/a, as: hidden}", True),
        ("{deny: mcp/x/a, as: hidden, trust: [trusted]}", False),
    ],
)
def test_a_tool_is_hidden_when_nothing_before_can_allow_it(rules: str, hidden: bool) -> None:
    assert policy(f"rules: [{rules}]").hides_tool("mcp/x/a", "untrusted") is hidden


@given(st.lists(st.sampled_from(["allow a", "deny a", "hidden a", "allow *", "hidden *", "args a"]), max_size=4))
def test_no_call_of_a_hidden_tool_is_ever_allowed(rules: list[str]) -> None:
    forms = {
        "allow": "{{allow: 'mcp/x/{}'}}",
        "deny": "{{deny: 'mcp/x/{}'}}",
        "hidden": "{{deny: 'mcp/x/{}', as: hidden}}",
        "args": "{{allow: 'mcp/x/{}', arguments: {{required: [n]}}}}",
    }
    some = policy(f"rules: [{', '.join(forms[rule.split()[0]].format(rule.split()[1]) for rule in rules)}]")
    if some.hides_tool("mcp/x/a", "trusted"):
        assert some.hides
        calls: list[JSON] = [{}, {"n": 1}, None, []]
        assert all(some.judge("mcp/x/a", "trusted", call).verdict == "deny" for call in calls)


def test_client_requests_are_allowed_unless_the_policy_says_otherwise() -> None:
    some = policy("client_requests: {sampling: deny, elicitation: allow}")
    said = {
        method: some.judge_client_request(method).verdict
        for method in ("sampling/createMessage", "elicitation/create", "roots/list", "ping")
    }
    assert said == {
        "sampling/createMessage": "deny",
        "elicitation/create": "allow",
        "roots/list": "allow",
        "ping": "allow",
    }
    assert some.judge_client_request("sampling/createMessage").rule == "client_requests sampling: deny"


def test_deny_globs_come_before_the_rules_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("rules: [{allow: 'mcp/x/*'}]")
    assert load_policy(str(file)).judge("mcp/x/evil", "trusted", {}).verdict == "allow"
    denied = load_policy(str(file), ["mcp/x/evil"]).judge("mcp/x/evil", "trusted", {})
    assert (denied.verdict, denied.rule, denied.form) == ("deny", "deny mcp/x/evil", "tool_error")


def test_deny_globs_alone_are_a_policy_in_force() -> None:
    some = deny_policy(["mcp/x/evil"])
    assert some.in_force
    assert some.judge("mcp/x/evil", "trusted", {}).enforced
    assert some.judge("mcp/x/good", "trusted", {}).verdict == "allow"


def test_a_malformed_deny_glob_stops_the_start() -> None:
    with pytest.raises(PolicyError, match="--deny: the glob 'evil' does not start with mcp/"):
        deny_policy(["mcp/x/evil", "evil"])


def test_a_policy_that_cannot_be_read_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="cannot be read: No such file"):
        load_policy(str(tmp_path / "none.yaml"))
    with pytest.raises(PolicyError, match="cannot be read"):
        load_policy(str(tmp_path))
    broken = tmp_path / "broken.yaml"
    broken.write_bytes(b"rules: [\xff]")
    with pytest.raises(PolicyError, match="not UTF-8"):
        load_policy(str(broken))
    broken.write_text("rules: []\nrules: []")
    with pytest.raises(PolicyError, match=r":2: the key 'rules' is repeated"):
        load_policy(str(broken))


def test_what_is_said_where_there_is_no_policy() -> None:
    assert (NO_POLICY.verdict, NO_POLICY.rule, NO_POLICY.enforced) == ("allow", "no policy", False)


@pytest.mark.parametrize(
    ("server", "right"), [("crm", True), ("a.B-1_", True), ("", False), ("a b", False), ("a/b", False)]
)
def test_a_server_id_is_of_plain_signs(server: str, right: bool) -> None:
    assert (check_server_id(server) is None) is right


def test_two_rules_of_equal_words_are_equal() -> None:
    assert Rule("deny", "mcp/x/a") == Rule("deny", "mcp/x/a")


def test_a_policy_costs_no_import_before_it_is_needed() -> None:
    script = (
        "import sys, proxy.policy as p; p.deny_policy(['mcp/x/a']).judge('mcp/x/a', 'trusted', {});"
        "print([m for m in ('yaml', 'jsonschema', 'pydantic', 'click', 'mcp') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
