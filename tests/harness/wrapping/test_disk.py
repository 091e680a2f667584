"""A configuration on the disk: links, permissions, backups, and what is said where something is in the way."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.commands.wrap import command
from harness.wrapping.clientdisk import ClientFileError, read_client_file
from proxy import vocabulary as v
from proxy.spanread import read_spans
from proxy.spans import JSON
from tests.proxy.httpupstream import Request, Upstream

SMALL = str(Path(__file__).parent.parent / "small_server.py")
TEXT = '{\n  "mcpServers": {"x": {"command": "x"}}\n}\n'
OPENING: JSON = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}


def written(folder: Path, text: str = TEXT, mode: int = 0o640) -> Path:
    path = folder / "mcp.json"
    path.write_text(text)
    path.chmod(mode)
    return path


def wrap(*words: str | Path) -> Result:
    return CliRunner().invoke(command, [str(word) for word in words], standalone_mode=False, catch_exceptions=False)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_link_stays_a_link_permissions_stay_and_the_backup_is_private(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    path = written(tmp_path / "real")
    link = tmp_path / "link.json"
    link.symlink_to(path)
    assert wrap(link).return_value == 0
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    [backup] = [one for one in (tmp_path / "real").iterdir() if one != path]
    assert (backup.read_text(), backup.stat().st_mode & 0o777) == (TEXT, 0o600)
    assert wrap(link).output.endswith("nothing to do\n")
    assert len(names(tmp_path / "real")) == 2
    assert wrap("--undo", link).return_value == 0
    assert (path.read_text(), names(tmp_path / "real")) == (TEXT, ["mcp.json"])
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_file_with_two_names_is_left_alone(tmp_path: Path) -> None:
    path = written(tmp_path)
    (tmp_path / "other.json").hardlink_to(path)
    done = wrap(path)
    assert done.return_value == 2
    assert "2 names (hard links)" in done.stderr
    assert (path.read_text(), names(tmp_path)) == (TEXT, ["mcp.json", "other.json"])


def test_undo_goes_back_step_by_step_and_names_the_backup_of_a_file_that_is_gone(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert wrap(path).return_value == 0
    first = path.read_text()
    path.write_text(first.replace('{\n  "mcpServers": {', '{\n  "mcpServers": {"y": {"command": "y"}, '))
    second = path.read_text()
    assert wrap(path).return_value == 0
    done = wrap("--undo", path)
    assert (path.read_text(), done.return_value) == (second, 0)
    assert "--undo again goes back further" in done.output
    path.unlink()
    assert "there is a backup of what it was: mcp.json.wiretrap-" in wrap("--undo", path).stderr


def test_print_shows_the_result_and_writes_nothing(tmp_path: Path) -> None:
    path = written(tmp_path)
    done = wrap("--print", path)
    assert json.loads(done.stdout)["mcpServers"]["x"]["args"][-1] == "x"
    assert done.stderr == "x: goes through the proxy as mcp/x/...\n"
    assert (path.read_text(), names(tmp_path)) == (TEXT, ["mcp.json"])


def test_a_server_that_is_left_makes_the_exit_code_one(tmp_path: Path) -> None:
    path = written(tmp_path, '{"mcpServers": {"x": {"command": "x"}, "y": {}}}')
    done = wrap(path)
    assert done.return_value == 1
    assert "y: left as it is: it has not one of a command and a URL\n" in done.output
    assert json.loads(path.read_text())["mcpServers"]["x"]["args"][0] == "proxy"


def test_undo_after_a_change_puts_back_the_servers_and_keeps_the_change(tmp_path: Path) -> None:
    path = written(tmp_path)
    wrap(path)
    path.write_text(path.read_text().replace("{\n", '{\n  "more": 1,\n', 1))
    done = wrap("--undo", path)
    assert done.return_value == 0
    assert path.read_text() == TEXT.replace("{\n", '{\n  "more": 1,\n', 1)
    assert len(names(tmp_path)) == 2
    path.write_text(path.read_text().replace('"x"', '"other"'))
    wrap(path)
    path.write_text(path.read_text().replace('"other"]', '"another"]'))
    done = wrap("--undo", path)
    assert done.return_value == 1
    assert "other: left as it is: it was changed since it was rewritten" in done.output


def test_undo_of_toml_that_was_changed_since_is_refused_with_the_backups_name(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[mcp_servers.x]\ncommand = "x"\n')
    assert wrap(path).return_value == 0
    path.write_text(path.read_text() + "a = 1\n")
    changed = path.read_text()
    done = wrap("--undo", path)
    assert done.return_value == 2
    assert "it was changed since it was rewritten, so nothing is undone; see config.toml.wiretrap-" in done.stderr
    assert path.read_text() == changed


@pytest.mark.parametrize(
    ("data", "options", "said"),
    [
        (None, [], "the file cannot be read: No such file or directory"),
        (
            b'{"mcpServers": {"x": {"command": "x"}}}',
            ["--undo"],
            "there is no backup of it, so there is nothing to undo",
        ),
        ('{"mcpServers": {}}'.encode("utf-16"), [], "the file is UTF-16; save it as UTF-8"),
        (b'{"a": "\xff"}', [], "the file is not UTF-8 (byte 8)"),
        (b'{"a": 1}', [], "it names no servers"),
        (b'{"mcpServers": {"x": {"command": "x"}}}', ["--policy", "no.yaml"], "no.yaml: the policy cannot be read"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(
    data: bytes | None, options: list[str], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "mcp.json"
    if data is not None:
        path.write_bytes(data)
    done = wrap(*options, path)
    assert done.return_value == 2
    assert said in done.stderr
    assert done.output.count("\n") == 1
    assert names(tmp_path) == ([] if data is None else ["mcp.json"])


def test_a_folder_a_pipe_and_a_circle_of_links_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to("circle")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "circle"):
        with pytest.raises(ClientFileError, match="cannot be read"):
            read_client_file(path)


def test_a_file_that_changes_while_it_is_rewritten_is_left_alone(tmp_path: Path) -> None:
    path = written(tmp_path)
    file = read_client_file(path)
    path.write_text("other")
    with pytest.raises(ClientFileError, match="changed just now"):
        file.replace(b"mine")
    assert (path.read_text(), names(tmp_path)) == ("other", ["mcp.json"])


def test_a_wrapped_server_answers_as_before_and_is_recorded(tmp_path: Path) -> None:
    server = {"command": sys.executable, "args": ["-P", SMALL], "env": {}}
    path = written(tmp_path, json.dumps({"mcpServers": {"my server": server}}))
    (tmp_path / "policy.yaml").write_text("rules: [{deny: 'mcp/my-server/evil'}]")
    assert wrap(path, "--policy", tmp_path / "policy.yaml", "--spans", tmp_path / "spans").return_value == 0
    entry = json.loads(path.read_text())["mcpServers"]["my server"]
    asked: list[JSON] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": OPENING},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo", "arguments": {"a": 1}}},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "evil", "arguments": {}}},
    ]
    lines = "".join(f"{json.dumps(one)}\n" for one in asked)
    ran = subprocess.run(
        [entry["command"], *entry["args"]], input=lines, capture_output=True, text=True, timeout=60, check=True
    )
    answers = {one["id"]: one["result"] for one in map(json.loads, ran.stdout.splitlines())}
    assert answers[2]["content"][0]["text"] == '{"a": 1}'
    assert answers[3]["isError"] is True
    spans = list(read_spans(sorted(str(one) for one in (tmp_path / "spans").iterdir()), lambda _: None))
    assert [s.attributes[v.OUTCOME] for s in spans if s.name.startswith("tools/call")] == ["denied", "ok"]


def test_a_wrapped_server_over_http_gets_its_headers_and_the_record_none(tmp_path: Path) -> None:
    def answer(request: Request) -> None:
        message = json.loads(request.body)
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        request.answer(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())

    upstream = Upstream(answer)
    try:
        server: JSON = {
            "url": f"http://127.0.0.1:{upstream.port}/mcp",
            "headers": {"Authorization": "Bearer s3cr3t-of-mine"},
        }
        path = written(tmp_path, json.dumps({"mcpServers": {"x": server}}))
        assert wrap(path, "--spans", tmp_path / "spans").return_value == 0
        entry = json.loads(path.read_text())["mcpServers"]["x"]
        asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": OPENING}
        environment = {**os.environ, **entry["env"]}
        ran = subprocess.run(
            [entry["command"], *entry["args"]],
            input=f"{json.dumps(asked)}\n",
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert json.loads(ran.stdout)["result"]["serverInfo"]["name"] == "s"
        assert upstream.requests[0].values("authorization") == ["Bearer s3cr3t-of-mine"]
    finally:
        upstream.close()
    recorded = "".join(one.read_text() for one in (tmp_path / "spans").iterdir())
    assert "initialize" in recorded
    assert "s3cr3t-of-mine" not in recorded + ran.stderr


def test_a_server_that_was_wrapped_without_the_policy_that_is_asked_for_is_left_and_told(tmp_path: Path) -> None:
    path, policy = written(tmp_path), tmp_path / "policy.yaml"
    policy.write_text("rules: [{deny: mcp/x/evil}]")
    assert wrap(path).return_value == 0
    before = path.read_text()
    done = wrap(path, "--policy", policy)
    assert (done.return_value, path.read_text()) == (1, before)
    assert "x: left as it is: it goes through the proxy already, with other options than these; " in done.output
    assert wrap("--undo", path).return_value == 0
    for _ in range(2):
        assert wrap(path, "--policy", policy).return_value == 0
    assert wrap(path).return_value == 0
    assert str(policy) in path.read_text()


def test_of_a_server_over_http_without_credentials_a_note_says_that_nobody_can_sign_in(tmp_path: Path) -> None:
    entry: dict[str, JSON] = {"type": "http", "url": "https://mcp.example/mcp"}
    servers: JSON = {"open": entry, "known": {**entry, "headers": {"Authorization": "Bearer x"}}}
    done = wrap(written(tmp_path, json.dumps({"mcpServers": servers})))
    first, second, *_ = [line.partition("; ") for line in done.output.splitlines()]
    assert (done.return_value, "sign in" in first[2], second[0][-16:], second[2]) == (0, True, "as mcp/known/...", "")


def test_a_policy_that_speaks_of_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    path, policy = written(tmp_path), tmp_path / "policy.yaml"
    policy.write_text("rules: [{deny: mcp/x/evil}, {deny: mcp/y/evil}, {deny: mcp/*/evil}]")
    done = wrap(path, "--policy", policy)
    assert done.return_value == 0
    assert f"speaks of the server 'y', and those of {path} are: x\n" in done.stderr
    assert done.stderr.count("speaks of") == 1
