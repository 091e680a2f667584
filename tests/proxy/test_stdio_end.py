"""How the proxy over stdio ends: with its server, its client, a signal, or a record that fails."""

import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic

import pytest

from proxy import vocabulary as v
from tests.proxy.stdiowire import DEADLINE, RAW, WIRETRAP, Wire, call, finish, read_line, until_gone

pytestmark = pytest.mark.measured


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
