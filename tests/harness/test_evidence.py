from dataclasses import replace

from harness.evidence import Evidence
from harness.trace import Coverage, Trace


def test_what_several_assertions_ask_is_worked_out_once_for_one_evidence() -> None:
    asked: list[tuple[Evidence, str]] = []

    def work(evidence: Evidence, server: str) -> list[str]:
        asked.append((evidence, server))
        return [server]

    def other(evidence: Evidence) -> bool:
        return evidence.completed

    evidence = Evidence(Trace(Coverage()), completed=True)
    assert evidence.once(work, "a") is evidence.once(work, "a")
    assert evidence.once(work, "b") == ["b"]
    assert asked == [(evidence, "a"), (evidence, "b")]
    copy = replace(evidence, completed=False)
    assert (evidence.once(other), copy.once(other)) == (True, False)
    assert copy.once(work, "a") == ["a"]
    assert [one.completed for one, _ in asked] == [True, True, False]


def test_what_was_worked_out_goes_when_something_else_is_asked_for() -> None:
    evidence = Evidence(Trace(Coverage()), completed=True)

    def made(_: Evidence) -> object:
        return object()

    first = evidence.once(made)
    assert evidence.once(made) is first
    evidence.once(str)
    assert evidence.once(made) is not first
