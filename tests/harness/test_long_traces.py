"""That a trace twice as long takes twice the work, by counting calls of functions, which no other load can change."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from harness.casefile import evidence_of
from harness.convert import convert
from harness.judge import judge
from harness.scenario import load_scenario
from harness.verdict import Verdict
from proxy.spanread import read_spans
from tests.bench.contestants import ALLOW, RULES
from tests.bench.judged import CANARIES, SCENARIO, SPANS_A_CALL, make_spans, state


@contextmanager
def counted(counts: list[int]) -> Iterator[None]:
    """Appends how many functions, of Python and of C, were called inside."""
    calls = 0

    def count(_frame: FrameType, event: str, _what: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(before)
        counts.append(calls)


def judged(folder: Path, spans: int, counts: list[int]) -> Verdict:
    """Record a trial of as many spans, and count what it takes to make a trace of them and to judge it."""
    folder.mkdir()
    (folder / "policy.yaml").write_text(RULES + ALLOW)
    (folder / "scenario.yaml").write_text(SCENARIO)
    make_spans(folder / "spans", spans, folder / "policy.yaml")
    scenario = load_scenario(folder / "scenario.yaml")
    held = state(spans // SPANS_A_CALL)
    with counted(counts):
        trace = convert(read_spans([folder / "spans"], pytest.fail))
        evidence = evidence_of(scenario, trace, completed=True, state=held, environment={}, canaries=CANARIES)
        return judge(scenario.assertions, evidence, "completed")


def test_a_trace_twice_as_long_takes_no_more_than_twice_the_work(tmp_path: Path) -> None:
    counts: list[int] = []
    for name, spans in (("warm", 100), ("short", 1000), ("long", 2000)):
        verdict = judged(tmp_path / name, spans, counts)
        assert (verdict.result, verdict.reason) == ("pass", "19 of 19 findings pass")
    _, short, long = counts
    assert short > 1000
    assert long < 2.1 * short
    # What a span takes, most of it looking into a dictionary: a pass more over every attribute would show.
    assert long - short < 450 * 1000
