"""A process that runs one trial at a time. All that it finds below itself belongs to its trial, and is ended with it.

Refuses to know how trials are handed out, and how results are shown. Speaks JSON lines on its standard streams: first a
Start, then a Job each; it answers with `{"ready": true}` and with one result each. Its one argument is a descriptor
that is readable once the trial is to stop, also because the runner has ended.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

from pydantic import TypeAdapter

from harness.hiding import Hiding, hidden_streams, hide_last_words, traceback_text
from harness.judges import open_judge
from harness.privatefolder import PrivateFolder, hold
from harness.processes import become_subreaper, end_descendants, keep_private
from harness.redacted import hidden_result
from harness.results import Kind, TrialResult
from harness.runjournal import hold_as_worker
from harness.runsecrets import hiding_for
from harness.selection import Selected, Selection, load_selection
from harness.trial import TrialPlan, run_trial
from harness.verdict import Verdict
from proxy.endpoint import parse_endpoint
from proxy.otlp import Exporter
from proxy.saying import say
from proxy.spans import JSON


@dataclass(frozen=True, slots=True)
class Start:
    """What a worker is told once. `digests` are those that the manifest has: file path to SHA-256 in hex.

    `otlp` is where copies of the spans go; `judge` names a judge as `--judge` does.
    """

    parent: int
    run_id: str
    run_folder: str
    redact_key: str
    keep: bool
    selection: Selection
    digests: dict[str, str]
    otlp: str | None = None
    judge: str | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One trial of one scenario. `seconds` are its limit; `private` is the temporary folder that it gets."""

    scenario: str
    trial: int
    kind: Kind
    seconds: float = 60
    private: str | None = None


START: TypeAdapter[Start] = TypeAdapter(Start)
JOB: TypeAdapter[Job] = TypeAdapter(Job)
RESULT: TypeAdapter[TrialResult] = TypeAdapter(TrialResult)


def encode(message: Start | Job | TrialResult) -> bytes:
    """The message as one line of ASCII; lone surrogates survive as escapes."""
    return json.dumps(asdict(message)).encode() + b"\n"


def failed(job: Job, reason: str, seconds: float = 0.0) -> TrialResult:
    """The result of a trial that broke through a fault of ours."""
    return TrialResult(
        job.scenario, job.trial, Verdict("error", "harness_error", reason), seconds=seconds, kind=job.kind
    )


def main() -> None:
    """Work until the standard input ends, or nobody hears the results any more."""
    # What a library prints must not get between the results.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def reply(line: bytes) -> None:
        replies.write(line)
        replies.flush()

    with suppress(BrokenPipeError), replies:
        _work(reply)


def _work(reply: Callable[[bytes], None]) -> None:
    keep_private()
    # A pipe that only the runner writes to: a signal could come from the agent.
    cancel = int(sys.argv[1])
    os.set_inheritable(cancel, False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # Not SIG_IGN, which whatever we start would inherit.
        signal.signal(number, _heed_not)
    become_subreaper()
    start = START.validate_python(json.loads(sys.stdin.buffer.readline()))
    hide_last_words(hiding_for((), os.environ, start.redact_key, (), start.otlp))
    if not hold_as_worker(Path(start.run_folder)):
        gone: JSON = {"ready": False, "problem": "the run is gone on with by another process"}
        reply(json.dumps(gone).encode() + b"\n")
        return
    scenarios = load_selection(start.selection)
    changed = [path for path, digest in scenarios.digests().items() if start.digests.get(path) != digest]
    if changed:
        problem: JSON = {"ready": False, "problem": f"{changed[0]} changed while the run was under way"}
        reply(json.dumps(problem).encode() + b"\n")
        return
    hiding = hiding_for(scenarios.by_id.values(), os.environ, start.redact_key, scenarios.agents.values(), start.otlp)
    hide_last_words(hiding)
    reply(b'{"ready": true}\n')
    exporter = None if start.otlp is None else Exporter(parse_endpoint(start.otlp))
    if exporter is not None:
        exporter.start()
    with hidden_streams(hiding):
        _try_jobs(start, scenarios, hiding, cancel, reply, exporter)
        if exporter is not None:
            say(exporter.wind_up(start.run_folder))


def _heed_not(_signal: int, _frame: FrameType | None) -> None:
    """What a signal does that is none of ours."""


def _try_jobs(
    start: Start,
    scenarios: Selected,
    hiding: Hiding,
    cancel: int,
    reply: Callable[[bytes], None],
    exporter: Exporter | None,
) -> None:
    judge = None if start.judge is None else open_judge(start.judge)
    for line in sys.stdin.buffer:
        job = JOB.validate_python(json.loads(line))
        private = _hold(job, hiding if start.keep else None)
        plan = TrialPlan(
            run_id=start.run_id,
            run_folder=Path(start.run_folder),
            hiding=hiding,
            keep=start.keep,
            scenario=scenarios.by_id[job.scenario],
            agent=scenarios.agents[job.scenario],
            loose=scenarios.loose.get(job.scenario),
            trial=job.trial,
            cancel=cancel,
            otlp=start.otlp,
            exporter=exporter,
            judge=judge,
            private=private.path,
        )
        try:
            result = run_trial(plan)
            end_descendants(os.getpid())
        except Exception as error:  # the runner waits for a result, whatever broke; a silent worker costs the run
            sys.stderr.write(traceback_text(hiding, error))
            result = hidden_result(hiding, failed(job, f"{type(error).__name__}: {error}"))
        # The runner needs nothing of it, and may have been killed: then nobody else would take it away.
        private.remove()
        reply(encode(result))


def _hold(job: Job, keep: Hiding | None) -> PrivateFolder:
    """The job's private folder, held for as long as the trial runs, also when the runner is killed."""
    assert job.private is not None
    path = Path(job.private)
    return PrivateFolder(path, hold(path), keep)


if __name__ == "__main__":
    main()
