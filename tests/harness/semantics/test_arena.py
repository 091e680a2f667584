import json

import pytest

from harness.arenafile import ArenaError, calls_of, end_state, read_events, tokens
from harness.semantics.arena import TASKS, grade_run
from proxy.spans import JSON
from tests.harness.shared_data import shared_data


def test_all_graded_runs_get_the_grade_score_and_metrics_of_agent_arena() -> None:
    root = shared_data("arena")
    runs = json.loads((root / "expected.json").read_text())["runs"]
    assert len(runs) == 15
    for run in runs:
        events = read_events((root / run["trace_file"]).read_text(), run["trace_file"])
        told = grade_run(events)
        assert (told.task, told.architecture) == (run["task"], run["architecture"])
        found = (told.passed, told.score, told.failure_category, told.metrics)
        assert found == (run["passed"], run["score"], run["failure_category"], run["metrics"]), run["trace_file"]


def test_all_quirks_get_the_grade_of_agent_arena_and_their_end_state() -> None:
    quirks = json.loads(shared_data("arena", "quirks.json").read_text())
    assert len(quirks) == 18
    customers = {task: customer for customer, task in TASKS.items()}
    for quirk in quirks:
        text = "\n".join(json.dumps(event) for event in quirk["events"])
        events, customer = read_events(text, "quirk"), customers[quirk["task"]]
        told = grade_run(events, customer)
        found = (told.passed, told.score, told.failure_category, told.metrics)
        wanted = (quirk["passed"], quirk["score"], quirk["failure_category"], quirk["metrics"])
        assert found == wanted, quirk["case"]
        assert end_state(calls_of(events), customer) == quirk["end_state"], quirk["case"]


def test_the_single_agent_runs_of_task_01_took_2504_tokens_in_and_105_out() -> None:
    paths = sorted(shared_data("arena").glob("trace_single_agent_*task_01*.jsonl"))
    assert len(paths) == 2
    assert [tokens(read_events(path.read_text(), path.name)) for path in paths] == [(2504, 105)] * 2


def test_a_run_whose_model_calls_end_in_errors_is_a_task_failure_to_agent_arena() -> None:
    path = shared_data("arena", "trace_peer_to_peer_model_errors.jsonl")
    assert grade_run(read_events(path.read_text(), path.name)).failure_category == "task_failure"


@pytest.mark.parametrize("text", ["", "\n", "{", "[]", '{"event_type": "x"}', '{"event_type": 1, "payload": {}}'])
def test_what_is_no_run_is_refused(text: str) -> None:
    with pytest.raises(ArenaError, match=r"run\.jsonl"):
        read_events(text, "run.jsonl")


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\u0085", "\x0b"])
def test_only_a_line_feed_ends_a_line(end: str) -> None:
    event: dict[str, JSON] = {"event_type": "x", "payload": {"text": f"a{end}b"}}
    text = json.dumps(event, ensure_ascii=False).replace("\\u000b", end if end < " " else "") + "\r\n"
    if end < " ":
        with pytest.raises(ArenaError, match="x:1: is no JSON"):
            read_events(text, "x")
    else:
        [found] = read_events(text, "x")
        assert found.text("text") == f"a{end}b"


def test_a_task_that_names_neither_customer_has_no_grader() -> None:
    event: dict[str, JSON] = {"event_type": "run_start", "payload": {"task_prompt": "CUST-001"}}
    with pytest.raises(ArenaError, match="CUST-003"):
        grade_run(read_events(json.dumps(event), "x"))
