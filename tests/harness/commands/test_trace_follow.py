"""`wiretrap trace --follow` shows what is done while it is done."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from proxy.spanfile import SpanFile
from proxy.spans import encode_span
from tests.harness.commands.spanfolders import run_folder, write
from tests.harness.wire import Wire


@contextmanager
def following(folder: Path, *options: str) -> Iterator["subprocess.Popen[str]"]:
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from harness.commands.trace import command; command.main(sys.argv[1:])"
    )
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", program, str(folder), "--follow", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line_of(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_follow_prints_each_call_once_when_it_ends_until_ctrl_c(tmp_path: Path) -> None:
    wire = Wire(agent="a").opened().initialize()
    wire.call("first").call("evil", outcome="denied", decision="deny", ours=True)
    wire.unread('{"method":"tools/call","params":{"name":"x","name":"y"}}').call("last")
    *spans, end = wire.spans
    with following(tmp_path, "--text") as process:
        file = SpanFile.create(tmp_path, "crm")
        for span in spans:
            file.append(encode_span(span, "0"))
        shown = [line_of(process).split()[2] for _ in range(4)]
        assert sorted(shown) == ["mcp/crm/evil", "mcp/crm/first", "mcp/crm/x", "mcp/crm/y"]
        file.append(encode_span(end, "0"))
        assert line_of(process).split()[2:5:2] == ["mcp/crm/last", "ok"]
        file.close()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (out, err, process.returncode) == ("", "", 130)


def error_of(process: "subprocess.Popen[str]") -> str:
    assert process.stderr is not None
    return process.stderr.readline().strip().removeprefix("wiretrap trace: ")


def test_follow_waits_for_a_folder_that_is_not_there_yet_and_says_so(tmp_path: Path) -> None:
    with following(tmp_path / "later", "--text") as process:
        assert error_of(process) == f"{tmp_path}/later: is not there yet; waiting for it"
        write(tmp_path / "later" / "s.jsonl", Wire().call("first").spans)
        assert line_of(process).split()[2] == "mcp/crm/first"


def test_follow_takes_the_newest_run_that_appears_and_goes_on_with_the_next(tmp_path: Path) -> None:
    run_folder(tmp_path / "runs")
    with following(tmp_path / "runs") as process:
        assert error_of(process).startswith(f"{tmp_path}/runs: waiting for a new run in it")
        for name in ("one", "two"):
            write(tmp_path / "runs" / name / "c" / "1" / "spans" / "s.jsonl", Wire(connection=name).call(name).spans)
            call = json.loads(line_of(process))
            assert call["mcp_tool_name"] == name
            assert not {"seq", "result_seq"} & set(call)
            assert error_of(process) == f"following {tmp_path}/runs/{name}"
            assert error_of(process) == f"following {tmp_path}/runs/{name}/c/1"


def test_follow_takes_a_run_that_is_under_way_and_only_the_trial_that_is_chosen(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "runs")
    (folder / "manifest.json").write_text('{"ended_at": null}')
    with following(tmp_path / "runs", "--scenario", "a", "--trial", "2") as process:
        assert json.loads(line_of(process))["mcp_tool_name"] == "a2"


def test_follow_gives_json_lines_and_says_what_is_open_at_the_end(tmp_path: Path) -> None:
    wire = Wire().call("done").call("open", written=False)
    path = write(tmp_path / "s.jsonl", wire.spans)
    with path.open("a") as stream:
        stream.write('{"resourceSpans"')
    with following(tmp_path) as process:
        assert json.loads(line_of(process))["mcp_tool_name"] == "done"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (out, process.returncode) == ("", 130)
    assert "the last line is not whole" in err
    assert "1 calls have no answer yet" in err
