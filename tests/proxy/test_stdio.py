"""The proxy over stdio with real processes: what goes in and out, how it starts and how it ends."""

import json
import os
import random
import select
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from proxy import vocabulary as v
from proxy.spanread import read_spans
from proxy.spans import Span
from tests.proxy.test_deny import DENIED_ONES, NESTED, UNREADABLE

pytestmark = pytest.mark.measured

RAW = str(Path(__file__).with_name("raw_server.py"))
WIRETRAP = str(Path(sys.executable).with_name("wiretrap"))
DEADLINE = 60.0


def call(number: int | str, tool: str = "fine") -> bytes:
    return b'{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"%s","arguments":{}}}\n' % (
        json.dumps(number).encode(),
        tool.encode(),
    )


class Wire:
    """A proxy in front of the raw server, as a client has it."""

    def __init__(self, folder: Path) -> None:
        self.spans_folder = folder / "spans"
        self.log = folder / "server.log"
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(
        self, *server: str, options: tuple[str, ...] = (), command: tuple[str, ...] = (), **environment: str
    ) -> subprocess.Popen[bytes]:
        command = command or (sys.executable, "-S", RAW, str(self.log), *server)
        process = subprocess.Popen(
            [WIRETRAP, "proxy", "stdio", "--server", "x", "--spans", str(self.spans_folder), *options, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def spans(self, kind: str = "") -> list[Span]:
        notes: list[str] = []
        found = list(read_spans([str(self.spans_folder)], notes.append))
        return [span for span in found if not kind or span.attributes[v.SPAN_KIND] == kind]

    def logged(self) -> bytes:
        return self.log.read_bytes() if self.log.exists() else b""

    def end(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait(DEADLINE)
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    wire = Wire(tmp_path)
    yield wire
    wire.end()


def read_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    line = b""
    end = monotonic() + DEADLINE
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([process.stdout], [], [], max(end - monotonic(), 0))
        assert ready, f"no line came; so far {line!r}"
        piece = os.read(process.stdout.fileno(), 1)
        if not piece:
            return line
        line += piece
    return line


def finish(process: subprocess.Popen[bytes], data: bytes = b"") -> tuple[bytes, bytes]:
    return process.communicate(data, timeout=DEADLINE)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # gone before it was opened, or while it was read
        return True


def until_gone(pid: int) -> None:
    end = monotonic() + DEADLINE
    while not gone(pid):
        assert monotonic() < end, f"process {pid} is still there"
        select.select([], [], [], 0.01)


ODD_LINES = [
    b'{"jsonrpc":"2.0","id":1,"method":"x/y","params":{"z":1,"a":{"q":1E2,"w":-0.0}},"extra":{"deep":[{"u":null}]}}\n',
    b'{"id":9007199254740993,"method":"x","params":{"n":123456789012345678901234567890},"jsonrpc":"2.0"}\n',
    b'{"jsonrpc":"2.0","id":"","method":"x"}\r\n',
    b"\n",
    b'{"jsonrpc":"2.0","id":"1","method":"x","params":{"t":"\xe2\x80\xa8"}}\n',
    b'{"jsonrpc":"2.0",\r"id":1.0,\r"method":"x"}\n',
    b'{"jsonrpc":"2.0","id":null,"method":"x"}\n',
    b'{"jsonrpc":"2.0","id":0,"method":"x"}',
]


@pytest.mark.parametrize("options", [(), ("--deny", "mcp/x/evil")], ids=["no policy", "a policy that allows"])
def test_what_the_client_sends_is_what_the_server_gets(wire: Wire, options: tuple[str, ...]) -> None:
    finish(wire.start("silent", options=options), b"".join(ODD_LINES))
    assert wire.logged() == b"".join(ODD_LINES)


def test_what_the_server_says_is_what_the_client_gets(wire: Wire, tmp_path: Path) -> None:
    said = b"a banner\n\xff\xfe not text\n" + b"".join(ODD_LINES[:-1])
    said += b'{"big":"' + b"x" * (20 * 1024 * 1024) + b'"}\n' + ODD_LINES[-1]
    (tmp_path / "said").write_bytes(said)
    out, _ = finish(wire.start("say", str(tmp_path / "said")))
    assert out == said


def test_a_line_of_20_mb_reaches_the_server_where_no_policy_is_in_force(wire: Wire) -> None:
    line = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"t":"%s"}}}\n' % (
        b"x" * (20 * 1024 * 1024)
    )
    finish(wire.start("silent"), line)
    assert wire.logged() == line
    (decision,) = wire.spans("decision")
    assert decision.attributes["wiretrap.request.truncated"] is True
    assert decision.attributes[v.METHOD] == "tools/call"


def test_a_line_of_20_mb_is_refused_and_answered_where_a_policy_is_in_force(wire: Wire) -> None:
    line = b'{"jsonrpc":"2.0","params":{"name":"a","arguments":{"t":"%s"}},"id":77,"method":"tools/call"}\n' % (
        b"x" * (20 * 1024 * 1024)
    )
    out, _ = finish(wire.start("silent", options=("--deny", "mcp/x/evil")), line)
    assert wire.logged() == b""
    answer = json.loads(out)
    assert (answer["id"], answer["error"]["code"]) == (77, 10002)


def test_a_denied_call_never_reaches_the_server_and_the_agent_goes_on(wire: Wire) -> None:
    process = wire.start("answer", options=("--deny", "mcp/x/evil"))
    assert process.stdin is not None
    process.stdin.write(call(1, "evil"))
    refused = json.loads(read_line(process))
    assert refused["result"]["isError"] is True
    assert refused["result"]["_meta"]["io.wiretrap/refusal"]["code"] == 10001
    process.stdin.write(call(2))
    assert json.loads(read_line(process))["id"] == 2
    finish(process)
    assert wire.logged() == call(2)
    outcomes = [span.attributes[v.OUTCOME] for span in wire.spans("request")]
    assert sorted(map(str, outcomes)) == ["denied", "ok"]


@pytest.mark.parametrize("code", [0, 7, 255])
def test_the_exit_code_is_the_servers(wire: Wire, code: int) -> None:
    process = wire.start(command=("sh", "-c", f"exit {code}"))
    finish(process)
    assert process.returncode == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_a_server_that_dies_of_a_signal_looks_so_to_the_client(wire: Wire, number: signal.Signals) -> None:
    process = wire.start(command=("sh", "-c", f"ulimit -c 0; kill -{int(number)} $$"))
    finish(process)
    assert process.returncode == -number
    assert [span.attributes[v.CLOSE_REASON] for span in wire.spans("connection_closed")]


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


def test_when_the_proxy_is_killed_the_server_goes_and_no_call_it_saw_is_lost(wire: Wire) -> None:
    """Kill it at any moment of a pipelined stream: each call in the server's log has its decision in the span file."""
    moments = random.Random(7)
    for attempt in range(12):
        wire.log.unlink(missing_ok=True)
        process = wire.start("environment")
        server = json.loads(read_line(process))["pid"]
        assert process.stdin is not None
        sent = b"".join(call(f"{attempt}-{number}") for number in range(400))
        cut = moments.randrange(1, len(sent))
        process.stdin.write(sent[:cut])
        process.kill()
        process.wait(DEADLINE)
        until_gone(server)
        seen = {json.loads(line)["id"] for line in wire.logged().splitlines(keepends=True) if line.endswith(b"\n")}
        decided = {json.loads(str(span.attributes[v.ID_TEXT])) for span in wire.spans("decision")}
        assert seen <= decided


def test_when_the_server_is_killed_the_client_sees_the_end_at_once_and_the_call_is_unanswered(wire: Wire) -> None:
    process = wire.start("environment")
    server = json.loads(read_line(process))["pid"]
    assert process.stdin is not None
    process.stdin.write(call(5))
    end = monotonic() + DEADLINE
    while wire.logged() != call(5):
        assert monotonic() < end
        select.select([], [], [], 0.01)
    os.kill(server, signal.SIGKILL)
    assert read_line(process) == b""
    process.wait(DEADLINE)
    assert process.returncode == -signal.SIGKILL
    (request,) = wire.spans("request")
    assert request.attributes[v.OUTCOME] == "unanswered"


def test_a_server_that_closes_its_output_ends_the_session_for_the_client(wire: Wire) -> None:
    process = wire.start("close")
    assert read_line(process) == b""
    finish(process)
    assert process.returncode == 0


def test_a_client_that_stops_reading_for_good_ends_the_server(wire: Wire) -> None:
    process = wire.start(command=("sh", "-c", "while echo '{}' 2>/dev/null; do :; done"))
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    process.wait(DEADLINE)
    assert wire.spans("connection_closed")


def test_a_record_that_cannot_be_written_refuses_the_call_and_says_so(wire: Wire, tmp_path: Path) -> None:
    script = f"ulimit -f 4; exec {sys.executable} -S {RAW} /dev/null answer"
    limited = f"ulimit -f 4; exec {WIRETRAP} proxy stdio --server x --spans {wire.spans_folder} sh -c '{script}'"
    process = subprocess.Popen(
        ["sh", "-c", limited], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )
    wire.processes.append(process)
    out, err = finish(process, b"".join(call(number) for number in range(20)))
    answers = [json.loads(line) for line in out.splitlines()]
    assert [answer["id"] for answer in sorted(answers, key=lambda answer: answer["id"])] == list(range(20))
    refused = [answer["id"] for answer in answers if answer["result"]["isError"]]
    assert refused
    assert all(
        answer["result"]["_meta"]["io.wiretrap/refusal"]["code"] == 10004
        for answer in answers
        if answer["result"]["isError"]
    )
    assert b"the record is not whole" in err
    assert process.returncode == 74


@pytest.mark.parametrize("removed", ["folder", "file"])
def test_a_record_that_is_taken_away_refuses_the_next_call_and_says_so(wire: Wire, removed: str) -> None:
    process = wire.start("answer")
    assert process.stdin is not None
    process.stdin.write(call(1))
    assert json.loads(read_line(process))["id"] == 1
    if removed == "folder":
        shutil.rmtree(wire.spans_folder)
    else:
        for file in wire.spans_folder.iterdir():
            file.unlink()
    process.stdin.write(call(2))
    refused = json.loads(read_line(process))
    assert refused["result"]["_meta"]["io.wiretrap/refusal"]["code"] == 10004
    _, err = finish(process)
    assert wire.logged() == call(1)
    assert b"the record is not whole" in err
    assert process.returncode == 74


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_proxy_alone_reaches_the_server(wire: Wire, number: signal.Signals) -> None:
    script = (
        "import signal, sys, os\n"
        "def told(number, frame):\n    os.write(1, b'%d\\n' % number)\n    os._exit(3)\n"
        "woken, wake = os.pipe()\nos.set_blocking(wake, False)\nsignal.set_wakeup_fd(wake)\n"
        "for number in (15, 2, 1): signal.signal(number, told)\n"
        "os.write(1, b'ready\\n')\nwhile True: os.read(woken, 1)\n"
    )
    process = wire.start(command=(sys.executable, "-S", "-c", script))
    assert read_line(process) == b"ready\n"
    process.send_signal(number)
    assert read_line(process) == b"%d\n" % number
    process.wait(DEADLINE)
    assert process.returncode == 3
    (closed,) = wire.spans("connection_closed")
    assert closed.attributes[v.CLOSE_REASON] == number.name


def test_what_a_server_leaves_in_the_group_is_ended(wire: Wire) -> None:
    process = wire.start(command=("sh", "-c", "sleep 300 >/dev/null 2>&1 </dev/null & echo $!"))
    left = int(read_line(process))
    finish(process)
    until_gone(left)


def test_no_spelling_of_a_denied_call_reaches_a_real_server(wire: Wire) -> None:
    lines = [text.encode() for text, _ in DENIED_ONES.values()]
    lines += [line for line, _ in (*UNREADABLE.values(), *NESTED.values())]
    finish(wire.start("silent", options=("--deny", "mcp/x/evil")), b"".join(line + b"\n" for line in lines) + call(1))
    assert wire.logged() == call(1)
    denied = [span for span in wire.spans("decision") if span.attributes[v.DECISION] == "deny"]
    assert len(denied) >= len(lines)
