"""How the proxy over stdio starts: its options, context, environment and folders."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from proxy import vocabulary as v
from tests.proxy.stdiowire import DEADLINE, WIRETRAP, Wire, call, finish, read_line

pytestmark = pytest.mark.measured


def test_a_command_that_is_not_there_exits_with_127(wire: Wire) -> None:
    process = wire.start(command=("no-such-command",))
    out, err = finish(process)
    assert (process.returncode, out) == (127, b"")
    assert b"cannot start 'no-such-command'" in err
    assert b"Traceback" not in err


def test_a_file_that_is_no_program_exits_with_126(wire: Wire, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no program")
    process = wire.start(command=(str(tmp_path / "data"),))
    finish(process)
    assert process.returncode == 126


@pytest.mark.parametrize("dashes", [(), ("--",)], ids=["bare", "with dashes"])
def test_options_behind_the_command_are_the_commands(wire: Wire, dashes: tuple[str, ...]) -> None:
    script = "import sys; sys.stdout.write(repr(sys.argv[1:]))"
    words = ("--spans", "--help", "-q", "--", "--deny", "x", "--")
    out, _ = finish(wire.start(options=dashes, command=(sys.executable, "-S", "-c", script, *words)))
    assert out.decode() == repr(list(words))


@pytest.mark.parametrize(
    "options",
    [
        ("--spam", "x"),
        ("--trust", "friend"),
        ("--deny", "evil"),
        ("--deny", "mcp/y/evil"),
        ("--deny", "mcp/x"),
        ("--policy", "no-such-file"),
        ("--context", "no-such-file"),
        ("--server", "a b"),
    ],
)
def test_a_mistake_in_our_options_stops_the_start(wire: Wire, options: tuple[str, ...]) -> None:
    process = wire.start("answer", options=options)
    out, err = finish(process, call(1))
    assert (process.returncode, out) == (2, b"")
    assert err
    assert b"Traceback" not in err
    assert wire.logged() == b""


def test_a_span_folder_that_cannot_be_written_stops_the_start(wire: Wire, tmp_path: Path) -> None:
    (tmp_path / "spans").write_text("a file stands here")
    process = wire.start("answer")
    out, err = finish(process, call(1))
    assert (process.returncode, out) == (2, b"")
    assert b"spans" in err
    assert wire.logged() == b""


def test_the_server_has_our_environment_without_what_is_meant_for_us(wire: Wire) -> None:
    process = wire.start("environment", WIRETRAP_SECRET="s", SEEN="yes")
    told = json.loads(read_line(process))
    finish(process)
    assert told["environment"]["SEEN"] == "yes"
    ours = {name: value for name, value in told["environment"].items() if name.startswith("WIRETRAP_")}
    (closed,) = wire.spans("connection_closed")
    assert ours == {"WIRETRAP_CONNECTION": closed.attributes[v.CONNECTION]}
    assert (told["group"], told["parent"]) == (process.pid, process.pid)


def test_stderr_is_the_servers_and_one_line_of_ours(wire: Wire) -> None:
    loud = ("sh", "-c", "printf 'from the server' >&2")
    _, err = finish(wire.start(command=loud))
    first, _, rest = err.partition(b"\n")
    assert first.startswith(b"wiretrap: server x, spans ")
    assert rest == b"from the server"
    _, err = finish(wire.start(command=loud, options=("--quiet",)))
    assert err == b"from the server"


def test_a_policy_that_speaks_of_other_servers_only_is_told(wire: Wire, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("rules: [{deny: mcp/y/evil}]")
    _, err = finish(wire.start("silent", options=("--policy", str(tmp_path / "policy.yaml"))))
    assert b"no rule of the policy speaks of the server x" in err
    # The servers of a trial have one policy, which was checked with all of them.
    (tmp_path / "context.json").write_text('{"scenario_id": "s"}')
    options = ("--policy", str(tmp_path / "policy.yaml"), "--context", str(tmp_path / "context.json"))
    _, err = finish(wire.start("silent", options=options))
    assert b"speaks of" not in err


def test_nothing_that_we_say_steers_a_terminal(wire: Wire) -> None:
    wire.spans_folder = wire.spans_folder.with_name("spans\x1b[31m")
    _, err = finish(wire.start("silent"))
    assert b"\x1b" not in err
    assert b"spans\\x1b[31m" in err


def test_span_files_are_private(wire: Wire) -> None:
    finish(wire.start("silent"), call(1))
    assert stat.S_IMODE(wire.spans_folder.stat().st_mode) == 0o700
    (file,) = wire.spans_folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.name.startswith("x.")
    assert file.name.endswith(".jsonl")


def test_without_a_folder_spans_go_to_the_state_home_and_the_path_is_said(tmp_path: Path) -> None:
    done = subprocess.run(
        [WIRETRAP, "proxy", "stdio", "--server", "x", "true"],
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=DEADLINE,
        check=True,
    )
    (file,) = (tmp_path / "wiretrap" / "spans").glob("*/*.jsonl")
    assert str(file.parent).encode() in done.stderr


def test_a_context_file_says_whose_connection_it_is_and_flags_win(wire: Wire, tmp_path: Path) -> None:
    context = {
        "run_id": "r1",
        "scenario_id": "s.1",
        "trial": 3,
        "agent_id": "a",
        "traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01",
        "spans": str(tmp_path / "elsewhere"),
    }
    (tmp_path / "context.json").write_text(json.dumps(context))
    finish(wire.start("answer", options=("--context", str(tmp_path / "context.json"))), call(1))
    (request,) = wire.spans("request")
    assert not (tmp_path / "elsewhere").exists()
    whose = [request.attributes[key] for key in (v.RUN_ID, v.SCENARIO_ID, v.TRIAL, v.AGENT_ID)]
    assert whose == ["r1", "s.1", 3, "a"]
    assert (request.trace_id, request.parent_id) == ("ab" * 16, "cd" * 8)


@pytest.mark.parametrize("text", ["[]", "{", '{"trial": "1"}', '{"who": "a"}', '{"run_id": 1}', '{"traceparent": "x"}'])
def test_a_context_that_cannot_be_used_stops_the_start(wire: Wire, tmp_path: Path, text: str) -> None:
    (tmp_path / "context.json").write_text(text)
    process = wire.start("answer", options=("--context", str(tmp_path / "context.json")))
    _, err = finish(process, call(1))
    assert process.returncode == 2
    assert b"context.json" in err
    assert wire.logged() == b""
