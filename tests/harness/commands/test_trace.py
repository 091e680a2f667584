import json
import os
from pathlib import Path

import pytest

from harness.convert import convert
from harness.trace import Coverage, Event, ToolCall, Trace
from harness.tracefile import trace_from_json, trace_text
from proxy import vocabulary as v
from proxy.spans import encode_span
from tests.harness.commands.spanfolders import run, run_folder, tools, write
from tests.harness.wire import Wire, two_processes


def test_a_folder_of_spans_is_shown_as_its_trace(tmp_path: Path) -> None:
    spans = two_processes()
    write(tmp_path / "a.jsonl", spans[::2])
    write(tmp_path / "b.jsonl", spans[1::2])
    result = run(tmp_path)
    assert result.exit_code == 0
    assert result.stdout == trace_text(convert(spans))
    assert trace_from_json(json.loads(result.stdout), "stdout") == convert(spans)
    assert (
        result.stderr
        == "wiretrap trace: a connection to crm was lost: its end was never written; or it is still under way\n"
    )


def test_a_file_a_document_and_a_jaeger_answer_give_the_same_trace(tmp_path: Path) -> None:
    spans = two_processes()
    lines = [json.loads(encode_span(span, "0")) for span in spans]
    document = {"resourceSpans": [line["resourceSpans"][0] for line in lines]}
    (tmp_path / "document.json").write_text(json.dumps(document, indent=1))
    (tmp_path / "jaeger.json").write_text(json.dumps({"result": document}))
    write(tmp_path / "lines.json", spans)
    shown = {run(tmp_path / name).stdout for name in ("document.json", "jaeger.json", "lines.json")}
    assert shown == {trace_text(convert(spans))}


def test_a_trace_file_is_shown_too(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(trace_text(convert(two_processes())))
    assert run(path).stdout == path.read_text()
    path.write_text(json.dumps({"tool_calls": [{"tool": "send", "arguments": {"to": "x"}}]}))
    assert run(path, "--text").stdout.split() == ["-", "-", "send", '{"to":"x"}', "-", "-", "-"]


def test_text_has_one_line_a_call_in_order_with_aligned_columns(tmp_path: Path) -> None:
    write(tmp_path / "s.jsonl", two_processes())
    lines = run(tmp_path, "--text").stdout.splitlines()
    assert len(lines) == len(convert(two_processes()).tool_calls)
    assert lines[0].split() == ["22:13:20.000", "one", "mcp/crm/read", '{"n":0}', "ok", "allow", "0.0", "ms"]
    assert lines[2].split()[4:6] == ["denied", "deny"]
    starts = {line.index("mcp/") for line in lines}
    assert len(starts) == 1
    assert len({line.index("{") for line in lines if "{" in line}) == 1


def test_text_shows_nothing_that_a_terminal_obeys_and_cuts_long_arguments(tmp_path: Path) -> None:
    hostile = "\x1b[2J\u202e\u2028\ud800" + "語" * 100
    wire = Wire(agent="a\x1b]0;x\x07").call(f"t\x1b[31m{hostile}", json.dumps({"k": hostile}, ensure_ascii=False))
    write(tmp_path / "s.jsonl", wire.spans)
    result = run(tmp_path, "--text")
    assert result.exit_code == 0
    (line,) = result.stdout.splitlines()
    assert not set("\x1b\x07\u202e\u2028\ud800") & set(line)
    assert "\\x1b[31m" in line
    assert "…" in line


def test_a_torn_line_is_said_and_the_rest_is_shown(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", Wire().opened().initialize().call("x").closed().spans)
    path.write_bytes(path.read_bytes()[:-20])
    result = run(tmp_path)
    assert result.exit_code == 0
    assert "s.jsonl: the last line" in result.stderr
    assert "lost" in result.stderr
    assert len(json.loads(result.stdout)["tool_calls"]) == 1


def test_several_starts_of_a_proxy_are_not_called_trials(tmp_path: Path) -> None:
    names = Wire().names
    for run_id in ("r1", "r2"):
        wire = Wire(connection=run_id, names=names)
        wire.extra = {v.RUN_ID: run_id}
        write(tmp_path / f"{run_id}.jsonl", wire.call("x").spans)
    assert "these are the calls of several starts of the proxy: r1, r2\n" in run(tmp_path, "--text").stderr


def test_a_run_folder_asks_which_trial_and_takes_the_answer(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    result = run(folder)
    assert result.exit_code == 2
    assert "a/1, a/2, b/1" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert tools(run(folder, "--scenario", "a", "--trial", "2")) == ["a2"]
    assert tools(run(folder, "--scenario", "b")) == ["b1"]
    assert tools(run(folder / "a", "--trial", "1")) == ["a1"]
    assert tools(run(folder / "b" / "1")) == ["b1"]
    assert tools(run(folder / "b")) == ["b1"]
    nothing = run(folder, "--scenario", "c")
    assert (nothing.exit_code, "no such trial" in nothing.stderr) == (2, True)


def test_the_trace_of_a_trial_folder_knows_that_its_databases_were_read(tmp_path: Path) -> None:
    folder = run_folder(tmp_path) / "b" / "1"
    assert json.loads(run(folder).stdout)["coverage"]["state"] == "none"
    (folder / "state").mkdir()
    (folder / "state" / "crm.after.jsonl").write_text("{}")
    assert json.loads(run(folder).stdout)["coverage"]["state"] == "wire"


def test_a_file_of_several_trials_says_so_and_one_can_be_chosen(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    path = tmp_path / "all.jsonl"
    path.write_text("".join(file.read_text() for file in sorted(folder.rglob("*.jsonl"))))
    result = run(path)
    assert sorted(tools(result)) == ["a1", "a2", "b1"]
    assert "r/a/1, r/a/2, r/b/1" in result.stderr
    assert tools(run(path, "--scenario", "a", "--trial", "2")) == ["a2"]


@pytest.mark.parametrize("content", [None, "", "nope\nnope\n", '{"x": 1}\n{"y": 2}\n', '{"tool_calls": 1}'])
def test_a_path_that_holds_no_spans_exits_2_with_one_line(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "there.json"
    if content is not None:
        path.write_text(content)
    result = run(path)
    if content == "":
        # An empty span file is a proxy that was killed before its first write.
        assert (result.exit_code, result.stderr.count("\n")) == (0, 1)
        return
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert "there.json" in result.stderr


def test_an_empty_folder_and_a_finished_trace_under_follow_exit_2(tmp_path: Path) -> None:
    assert run(tmp_path).exit_code == 2
    path = tmp_path / "trace.json"
    path.write_text(trace_text(convert([])))
    assert run(path, "--follow").exit_code == 2


def home(tmp_path: Path) -> Path:
    """The folder that spans go to when nobody says where."""
    for number, run_id in enumerate(("20261130T100000Z-aaaa", "20261130T110000Z-bbbb"), 1):
        folder = tmp_path / "wiretrap" / "spans" / run_id
        write(folder / "crm.12.abcd.jsonl", Wire(connection=run_id).call(run_id[-4:]).spans)
        os.utime(folder, (number, number))
    return tmp_path / "wiretrap" / "spans"


def test_a_folder_of_folders_is_listed_newest_first_with_how_to_name_one(tmp_path: Path) -> None:
    folder = home(tmp_path)
    for path in (folder, folder.parent):
        result = run(path)
        head, *lines = result.stderr.splitlines()
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"name one, as in `wiretrap trace {folder}/20261130T110000Z-bbbb`" in head
        assert [line.split()[0] for line in lines] == [
            str(folder / "20261130T110000Z-bbbb"), str(folder / "20261130T100000Z-aaaa"),
        ]  # fmt: skip
        assert lines[0].endswith("(servers: crm)")
    assert tools(run(folder / "20261130T110000Z-bbbb")) == ["bbbb"]


def test_a_folder_of_runs_is_listed_with_their_trials(tmp_path: Path) -> None:
    run_folder(tmp_path / "runs")
    (tmp_path / "runs" / "new").mkdir()
    (tmp_path / "runs" / "new" / "manifest.json").write_text("{}")
    (tmp_path / "runs" / "unrelated").mkdir()
    os.utime(tmp_path / "runs" / "run", (1, 1))
    lines = run(tmp_path / "runs").stderr.splitlines()
    assert [line.strip() for line in lines[1:]] == [
        f"{tmp_path}/runs/new  (no trial yet)", f"{tmp_path}/runs/run  (trials: a/1, a/2, b/1)",
    ]  # fmt: skip


def test_a_choice_that_does_not_apply_is_an_error(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    for path in (folder / "b" / "1", folder / "b" / "1" / "spans", folder / "b" / "1" / "spans" / "s.jsonl"):
        assert tools(run(path, "--scenario", "b", "--trial", "1")) == ["b1"]
        result = run(path, "--trial", "2")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "--scenario and --trial leave no span; there are (run/scenario/trial): r/b/1" in result.stderr
    trace = tmp_path / "trace.json"
    trace.write_text(trace_text(convert([])))
    assert "is the trace of one trial" in run(trace, "--trial", "1").stderr


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("b/1/verdict.json", "is a verdict; the trace that it belongs to is {}/b/1/trace.json"),
        ("b/1/agent.err", "is what an agent said; the trace that it belongs to is {}/b/1/trace.json"),
        ("b/1/state/crm.after.jsonl", "is a dump of a database; the trace of its trial is {}/b/1/trace.json"),
        ("manifest.json", "is a report of a run; name the run's folder, {}"),
        ("report.json", "is a report of a run; name the run's folder, {}"),
        ("junit.xml", "is a report of a run; name the run's folder, {}"),
        ("report.sarif", "is a report of a run; name the run's folder, {}"),
    ],
)
def test_another_file_of_a_run_folder_says_what_to_name(tmp_path: Path, name: str, says: str) -> None:
    folder = run_folder(tmp_path)
    (folder / "b/1/trace.json").write_text(trace_text(convert([])))
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("{}")
    result = run(folder / name)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"wiretrap trace: {folder / name}: {says.format(folder)}\n"
    assert json.loads(run(folder / "b/1/trace.json").stdout)["tool_calls"] == []


def test_what_agents_tell_each_other_are_lines_between_their_calls(tmp_path: Path) -> None:
    call = ToolCall("mcp/crm/get", {}, "crm", "get", seq=2, agent="a")
    events = (
        Event("handoff", {"from": "a", "to": "b", "text": "tier: gold"}, 3, reported=True),
        Event("critique", {"accepted": True, "text": "Accept."}, 4),
        Event("model_call", {"in": 1}, 1),
    )
    path = tmp_path / "trace.json"
    coverage = Coverage("none", "wire", "wire", "reported", "none")
    path.write_text(trace_text(Trace(coverage, tool_calls=(call,), events=events)))
    first, handed, judged = [line.split() for line in run(path, "--text").stdout.splitlines()]
    assert first[1:3] == ["a", "mcp/crm/get"]
    assert handed[1:] == ["a", "handoff", "a", "->", "b", "tier:", "gold", "reported", "-", "-"]
    assert judged[2:] == ["critique", "accepted:", "Accept.", "event", "-", "-"]
