import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.commands.export import command
from harness.running import run_selected
from harness.selection import Selection, load_selection
from proxy import vocabulary as v
from proxy.spans import Span, encode_span
from tests.otlp.receiver import Received, grpc_receiver, http_receiver
from tests.otlp.sessions import identity, spans_in, told, trace_text

SCENARIO = """\
id: my.close_ticket
title: A ticket is closed
category: task
input: {user_message: Close the ticket.}
servers:
  ticketing: {fixture: ticketing, trust: internal}
policy:
  rules:
    - {deny: mcp/ticketing/delete_ticket, reason: tickets are never deleted}
agent: {scripted: agent.yaml}
assertions:
  - {type: tool_called, tool: mcp/ticketing/update_ticket}
"""
AGENT = """\
transport: %s
steps:
  - {call: mcp/ticketing/update_ticket, arguments: {ticket_id: 1, status: closed}}
  - {call: mcp/ticketing/update_ticket, arguments: {ticket_id: 999, status: closed}, expect_error: true}
  - {call: mcp/ticketing/delete_ticket, arguments: {ticket_id: 1}, expect_error: true}
  - {say: It is closed.}
"""


def run(folder: Path, transport: str, url: str | None, trials: int = 1) -> Path:
    (folder / "scenario.yaml").write_text(SCENARIO)
    (folder / "agent.yaml").write_text(AGENT % transport)
    selection = Selection((str(folder / "scenario.yaml"),))
    result, made = run_selected(
        load_selection(selection), selection, trials=trials, jobs=2, out=folder / "runs", keep=False, otlp=url
    )
    assert result.exit_code == 0, result
    return made


def spans_of_run(made: Path) -> list[Span]:
    return spans_in(*sorted(made.glob("*/*/spans")))


def export(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(command, list(words))
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def _time_to_send(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every process that is started has as long as it takes to send on the last, and not 1.4 s on a busy machine."""
    folder = tmp_path_factory.mktemp("patient")
    (folder / "sitecustomize.py").write_text("import proxy.otlp\nproxy.otlp.FLUSH = 600.0\n")
    monkeypatch.setenv("PYTHONPATH", str(folder))


@pytest.mark.usefixtures("_time_to_send")
@pytest.mark.parametrize("transport", ["stdio", "in_process"])
def test_a_run_sends_on_its_own_spans_and_those_of_every_proxy(transport: str, tmp_path: Path) -> None:
    received = Received()
    with http_receiver(received) as url:
        made = run(tmp_path, transport, url, trials=2)
    assert told(received.spans) == told(spans_of_run(made))
    for trial in (1, 2):
        recorded = spans_in(made / "my.close_ticket" / str(trial) / "spans")
        assert "".join(trace_text(recorded)) == trace_text(
            span for span in received.spans if span.attributes[v.TRIAL] == trial
        )


@pytest.mark.usefixtures("_time_to_send")
def test_a_trial_is_one_tree_with_its_errors_in_red(tmp_path: Path) -> None:
    received = Received()
    with http_receiver(received) as url:
        run(tmp_path, "stdio", url)
    spans = {identity(span): span for span in received.spans}
    (root,) = [span for span in spans.values() if not span.parent_id]
    assert (root.name, root.service) == ("invoke_agent agent", "wiretrap")
    missing = [span.name for span in spans.values() if span.parent_id and (span.trace_id, span.parent_id) not in spans]
    assert missing == []
    assert {span.trace_id for span in spans.values()} == {root.trace_id}
    assert {span.service for span in spans.values()} == {"wiretrap", "wiretrap/ticketing"}
    calls = [span for span in spans.values() if span.name.startswith("tools/call ")]
    assert [
        (call.name, call.kind, call.status, call.parent_id) for call in sorted(calls, key=lambda call: call.start_ns)
    ] == [
        ("tools/call update_ticket", 2, 0, root.span_id),
        ("tools/call update_ticket", 2, 2, root.span_id),
        ("tools/call delete_ticket", 2, 2, root.span_id),
    ]
    decisions = [span for span in spans.values() if span.name == "decision tools/call"]
    assert {span.parent_id for span in decisions} == {call.span_id for call in calls}
    assert all(call.message for call in calls if call.status == 2)


def test_a_run_without_a_receiver_is_judged_the_same_and_says_what_did_not_arrive(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made = run(tmp_path, "in_process", "http://127.0.0.1:9")
    count = len(spans_of_run(made))
    assert (
        f"export: {count} of {count} spans are not known to have arrived at http://127.0.0.1:9"
        in capfd.readouterr().err
    )
    received = Received()
    with http_receiver(received) as url:
        assert export(str(made), "--otlp", url) == (0, f"{count} of {count} spans accepted by {url}\n", "")
    assert told(received.spans) == told(spans_of_run(made))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("run"), "in_process", None, trials=2)


@pytest.mark.parametrize("serve", [http_receiver, grpc_receiver], ids=["http", "grpc"])
@pytest.mark.parametrize("what", ["run", "scenario", "trial", "spans", "files"])
def test_whatever_holds_spans_can_be_exported(what: str, serve: type, made: Path, tmp_path: Path) -> None:
    scenario = made / "my.close_ticket"
    paths = {
        "run": [made],
        "scenario": [scenario],
        "trial": [scenario / "1"],
        "spans": [scenario / "1" / "spans", scenario / "2" / "spans"],
        "files": sorted(made.glob("*/2/spans/*.jsonl")),
    }[what]
    expected = spans_in(*sorted(made.glob({"trial": "*/1/spans", "files": "*/2/spans"}.get(what, "*/*/spans"))))
    received = Received()
    with serve(received) as url:
        code, out, err = export(*map(str, paths), "--otlp", url)
    assert (code, out, err) == (0, f"{len(expected)} of {len(expected)} spans accepted by {url}\n", "")
    assert told(received.spans) == told(expected)


def test_what_arrived_can_be_exported_again_and_is_still_the_same_trace(made: Path, tmp_path: Path) -> None:
    first, second = Received(), Received()
    trial = made / "my.close_ticket" / "1"
    with http_receiver(first) as url:
        assert export(str(trial), "--otlp", url)[0] == 0
    answer = tmp_path / "jaeger.json"
    answer.write_text(json.dumps(first.jaeger))
    with grpc_receiver(second) as url:
        assert export(str(answer), "--otlp", url)[0] == 0
    assert told(second.spans) == told(first.spans) == told(spans_in(trial / "spans"))


def test_a_receiver_that_takes_nothing_makes_exit_code_1_with_counts(made: Path) -> None:
    with http_receiver(Received(413)) as url:
        code, out, err = export(str(made), "--otlp", url)
    assert code == 1
    assert out == f"0 of {len(spans_of_run(made))} spans accepted by {url}\n"
    assert f"spans were not accepted by {url}: Failed to export spans batch code: 413" in err


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_a_receiver_that_is_not_there_is_said_once_in_our_words(
    scheme: str, made: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    url = f"{scheme}://127.0.0.1:9"
    count = len(spans_of_run(made))
    code, out, err = export(str(made), "--otlp", url)
    assert (code, out) == (1, f"0 of {count} spans accepted by {url}\n")
    assert err == (
        f"wiretrap export: {count} of {count} spans were not accepted by {url}: "
        "nobody answered there; start the receiver, or give --otlp the URL of one that runs\n"
    )
    assert capfd.readouterr().err == ""


def test_after_three_batches_in_a_row_the_rest_is_not_tried(tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    spans = [Span("a" * 32, f"{n:016x}", "", "x", 1, 1, 2, {v.SPAN_KIND: "event"}) for n in range(1, 401)]
    file.write_text("".join(encode_span(span, "1") + "\n" for span in spans))
    received = Received(413)
    with http_receiver(received) as url:
        code, out, err = export(str(file), "--otlp", url)
    assert (code, out) == (1, f"0 of 400 spans accepted by {url}\n")
    assert err.endswith("the rest is not tried\n")
    assert err.count("413") == 1
    assert len(received.sizes) == 3


def test_spans_of_others_and_a_torn_line_are_left_out_and_said(tmp_path: Path) -> None:
    file = tmp_path / "mixed.jsonl"
    ours = Span("a" * 32, "b" * 16, "", "x", 1, 1, 2, {v.SPAN_KIND: "event"})
    other = Span("a" * 32, "c" * 16, "", "x", 1, 1, 2, {}, scope="somebody")
    file.write_text(f"{encode_span(ours, '1')}\n{encode_span(other, '1')}\n{encode_span(ours, '1')[:40]}")
    received = Received()
    with http_receiver(received) as url:
        code, out, err = export(str(file), "--otlp", url)
    assert (code, out) == (0, f"1 of 1 spans accepted by {url}\n")
    assert "torn" in err
    assert "1 spans of other instrumentations were left out" in err
    assert told(received.spans) == [ours]


@pytest.mark.parametrize("what", ["absent", "empty", "trace", "broken", "foreign"])
def test_what_holds_no_spans_of_ours_is_a_mistake_in_usage(what: str, tmp_path: Path) -> None:
    path = tmp_path / what
    match what:
        case "empty":
            path.mkdir()
        case "trace":
            path = tmp_path / "trace.json"
            path.write_text('{"schema_version": 1, "messages": [], "tool_calls": [], "events": []}')
        case "broken":
            path = tmp_path / "broken.jsonl"
            path.write_text("{}\nno json\n{}\n")
        case "foreign":
            path = tmp_path / "foreign.jsonl"
            path.write_text(encode_span(Span("a" * 32, "c" * 16, "", "x", 1, 1, 2, {}, scope="other"), "1") + "\n")
        case _:
            pass
    code, out, err = export(str(path), "--otlp", "http://127.0.0.1:9")
    assert (code, out) == (2, "")
    assert err.startswith("wiretrap export: ")


@pytest.mark.parametrize("words", [[], ["x", "--otlp", "ftp://x"], ["x"], ["--otlp", "http://x"]])
def test_a_wrong_command_line_is_exit_code_2(words: list[str], made: Path) -> None:
    assert export(*(str(made) if word == "x" else word for word in words))[0] == 2
