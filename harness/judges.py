"""Asks a judge for its opinions on a trial: at most twice each, within a time, and never more than that.

Refuses to know what an opinion is worth: that a verdict does not hang on it is `harness.judge`'s affair.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from pydantic import Field

from harness.assertions.assertion import Assertion
from harness.assertions.judged import Judged
from harness.evidence import Evidence
from harness.intake import Entry, Intake, open_document
from harness.opinion import Question, ToolResult
from harness.outcomes import describe, outcome_words
from harness.received import MESSAGE, described, is_offer
from harness.sent import final_message
from harness.trace import Trace
from proxy.problem import Problem, ProblemError
from proxy.spans import JSON

SECONDS = 30.0
"""How long one answer of a judge may take."""
SCRIPTED = "scripted:"
"""How the name of a judge begins whose answers stand in a file."""


class JudgeError(ValueError):
    """A judge that gave no answer; the message says why."""


class JudgeFileError(ProblemError):
    """A judge that cannot be asked at all: a file that is wrong, a key that is missing."""


class Judge(Protocol):
    """A model that judges. `name` stands beside its opinions."""

    @property
    def name(self) -> str:
        """The model's name."""

    async def ask(self, system: str, prompt: str, question: Question, attempt: int) -> str:
        """Its answer to the `attempt`, from 1. Raises JudgeError. `question` is what the prompt was made of."""


class _AnswerEntry(Entry):
    """One answer of a scripted judge: to questions whose final answer holds `when`, or to all."""

    when: str = ""
    say: str | list[str] | None = None
    error: str | None = None
    after: float = Field(default=0.0, ge=0)


class _ScriptEntry(Entry):
    """A scripted judge's file."""

    name: str = "scripted"
    answers: list[_AnswerEntry] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class ScriptedJudge:
    """A judge whose answers stand in a file: the first entry whose `when` stands in the agent's final answer."""

    script: _ScriptEntry

    @property
    def name(self) -> str:
        """As its file says."""
        return self.script.name

    async def ask(self, system: str, prompt: str, question: Question, attempt: int) -> str:
        """The answer for this attempt; of several texts the next one, and the last one again."""
        entry = next((one for one in self.script.answers if one.when in question.answer), None)
        if entry is None:
            raise JudgeError("its file has no answer to this final answer")
        if entry.after:
            from asyncio import sleep  # noqa: PLC0415  (who asks has loaded it)

            await sleep(entry.after)
        if entry.error is not None:
            raise JudgeError(entry.error)
        texts = entry.say if isinstance(entry.say, list) else [entry.say or ""]
        return texts[min(attempt, len(texts)) - 1] if texts else ""


def scripted_judge(path: Path) -> ScriptedJudge:
    """The judge of a file. Raises JudgeFileError."""
    problems: list[Problem] = []
    document = open_document(path, problems)
    script = None
    if document is not None:
        intake = Intake(document)
        script = intake.read(_ScriptEntry, document.data, ())
        problems += intake.problems
    if script is None or problems:
        raise JudgeFileError(problems)
    return ScriptedJudge(script)


def open_judge(spec: str) -> Judge:
    """The judge that `--judge` names. Raises JudgeFileError."""
    if spec.startswith(SCRIPTED):
        return scripted_judge(Path(spec.removeprefix(SCRIPTED)))
    from harness.judgemodel import model_judge  # noqa: PLC0415  (what it needs takes long to load)

    return model_judge(spec)


def with_opinions(
    evidence: Evidence, assertions: Sequence[Assertion], judge: Judge | None, seconds: float = SECONDS
) -> Evidence:
    """The evidence with the judge's opinion on each rubric; as it is without a judge or a rubric.

    Of a trial that did not complete, or of whose messages nothing is known, nothing is asked. Never raises: a judge
    that fails is an opinion too.
    """
    rubrics = tuple(dict.fromkeys(one.rubric for one in assertions if isinstance(one, Judged)))
    if judge is None or not rubrics or not evidence.completed or evidence.trace.coverage.messages == "none":
        return evidence
    answer, results = final_answer(evidence.trace), tool_results(evidence.trace)
    questions = [Question(evidence.user_message, rubric, answer, results) for rubric in rubrics]
    from harness.questioning import ask_all  # noqa: PLC0415  (it loads asyncio, which hardly a trial needs)

    told = ask_all(judge, questions, seconds)
    return replace(evidence, opinions={**evidence.opinions, **dict(zip(rubrics, told, strict=True))})


def final_answer(trace: Trace) -> str:
    """What the agent said last, "" where it said nothing."""
    message = final_message(trace)
    return "" if message is None else _text(message.content)


def tool_results(trace: Trace) -> tuple[ToolResult, ...]:
    """The calls and their answers, and what else servers answered that the agent asked for, in order."""
    found = [
        (call.seq, ToolResult(describe(call), outcome_words(call), "" if call.result is None else _text(call.result)))
        for call in trace.tool_calls
    ]
    for event in trace.events:
        if event.type == MESSAGE and event.fields.get("part") in ("result", "error") and not is_offer(event):
            told = "answered" if event.fields["part"] == "result" else "answered by an error"
            found.append((event.seq, ToolResult(described(event), told, _text(event.fields.get("content")))))
    return tuple(result for _, result in sorted(found, key=lambda pair: pair[0]))


def _text(value: JSON) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        return "(nested or long past what can be shown)"
