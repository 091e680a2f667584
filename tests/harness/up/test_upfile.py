"""The file of `wiretrap up`: what it comes to, and what is said of one that is wrong, before anything is started."""

import json
from pathlib import Path

import pytest

from harness.commands.up import shown
from harness.up.proxies import Shared, arguments
from harness.up.upfile import UpFileError, UpServer, load_up_file
from proxy.spans import JSON

ENVIRONMENT = {"TOKEN": "secret-token"}


def written(folder: Path, text: str) -> Path:
    path = folder / "up.yaml"
    path.write_text(text)
    return path


def wrong(folder: Path, text: str) -> list[str]:
    path = written(folder, text)
    with pytest.raises(UpFileError) as caught:
        load_up_file(path, ENVIRONMENT)
    return [str(problem).removeprefix(f"{path}:") for problem in caught.value.problems]


def test_a_file_has_servers_of_both_kinds_their_policies_and_what_the_environment_fills_in(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("default: deny")
    path = written(
        tmp_path,
        """
spans: spans
health: 8099
policy: {file: policy.yaml}
secrets: [TOKEN]
servers:
  local:
    command: [npx, "${TOKEN}"]
    env: {API_TOKEN: "Bearer ${TOKEN}"}
    trust: internal
    port: 8101
    policy: {rules: [{deny: mcp/local/x}]}
  remote: {url: "https://mcp.example/mcp"}
""",
    )
    file = load_up_file(path, ENVIRONMENT)
    assert (file.spans, file.health, file.secrets) == (str(tmp_path / "spans"), 8099, ("TOKEN",))
    # A command line can be read by others, so nothing is filled in there.
    rules: dict[str, JSON] = {"rules": [{"deny": "mcp/local/x"}]}
    env = {"API_TOKEN": "Bearer secret-token"}
    assert file.servers == {
        "local": UpServer(("npx", "${TOKEN}"), "", env, "internal", 8101, rules),
        "remote": UpServer((), "https://mcp.example/mcp", {}, "third_party", 0, {"default": "deny"}),
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("servers: {}", "1: servers: there is no server to stand in front of"),
        ("spans: x", "1: servers: this field is missing"),
        ("servers: [x]", "1: servers: expected a map from server ids to servers, not a list"),
        ("servers:\n  a: {}", "2: servers.a: a server has exactly one of command and url"),
        ("servers:\n  a: {url: ftp://x}", "2: servers.a.url: 'ftp://x' is no address of a server; it begins with"),
        (
            "servers:\n  a: {url: '${TOKEN}/x'}",
            "2: servers.a.url: '${TOKEN}/x' is no address of a server; it begins with",
        ),
        ("servers:\n  a: {url: 'http://x', env: {A: b}}", "2: servers.a.env: only a command has env"),
        ("servers:\n  a b: {command: [x]}", "2: servers.a b: 'a b' is no server id"),
        ("servers:\n  a: {command: []}", "2: servers.a.command: this may not be empty"),
        ("servers:\n  a: {command: [x], port: 70000}", "2: servers.a.port: "),
        ("servers:\n  a: {command: [x], env: {A: '${NOPE}'}}", "2: servers.a.env.A: the variable 'NOPE' is not set"),
        ("servers:\n  a: {command: [x], policy: {file: no.yaml}}", "2: servers.a.policy.file: there is no file"),
        ("servers:\n  a: {command: [x], policy: {rules: [{deny: x}]}}", "2: servers.a.policy.rules[0].deny: the glob"),
        ("policy: {rulez: []}\nservers: {a: {command: [x]}}", "1: policy.rulez: unknown field"),
        ("otlp: ftp://x\nservers: {a: {command: [x]}}", "1: otlp: 'ftp://x' is no address of a server; it begins"),
        ("secrets: [NOPE]\nservers: {a: {command: [x]}}", "1: secrets[0]: the variable 'NOPE' is not set"),
        ("healthy: 1\nservers: {a: {command: [x]}}", "1: healthy: unknown field"),
        (
            "health: 81\nservers:\n  a: {command: [x], port: 81}",
            "3: servers.a.port: port 81 is that of health already; 0 chooses a free one",
        ),
    ],
)
def test_what_is_wrong_is_said_with_line_and_field(text: str, said: str, tmp_path: Path) -> None:
    problems = wrong(tmp_path, text)
    assert len(problems) == 1
    assert problems[0].startswith(said)


def test_the_policy_of_a_file_is_wrong_at_its_own_line_and_named_once(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("rules:\n  - {deny: nope}")
    path = written(tmp_path, "policy: {file: p.yaml}\nservers: {a: {command: [x]}, b: {command: [y]}}")
    with pytest.raises(UpFileError) as caught:
        load_up_file(path, {})
    [problem] = caught.value.problems
    assert (problem.file, problem.line, problem.field) == (str(tmp_path / "p.yaml"), 2, "rules[0].deny")


def test_grants_and_a_desk_are_found_from_the_files_own_folder_and_grants_that_are_none_stop_the_start(
    tmp_path: Path,
) -> None:
    text = "grants: g.yaml\napprovals: desk\nservers: {a: {command: [x]}}"
    path = written(tmp_path, text)
    with pytest.raises(UpFileError, match=r"g\.yaml: the grants cannot be read"):
        load_up_file(path, {})
    (tmp_path / "g.yaml").write_text("[]")
    file = load_up_file(path, {})
    assert (file.grants, file.approvals) == (str(tmp_path / "g.yaml"), str(tmp_path / "desk"))
    words = arguments(Shared(file, tmp_path, tmp_path / "context"), "a", file.servers["a"], None)
    assert words[-6:] == ("--grants", file.grants, "--approvals", file.approvals, "--", "x")


def test_a_client_gets_its_configuration_ready_made() -> None:
    urls = {"a": "http://127.0.0.1:1/mcp"}
    server = {"type": "http", "url": "http://127.0.0.1:1/mcp"}
    assert json.loads(shown(urls, "claude")) == {"mcpServers": {"a": server}}
    assert '"type"' not in shown(urls, "json")
