"""Verdicts: what one assertion found, and how findings and a trial's status become a verdict.

Refuses to know the assertions themselves.
"""

from dataclasses import dataclass
from typing import Literal

from harness.opinion import Opinion

Result = Literal["pass", "fail", "not_run", "error"]
"""Order from worst: error, fail, not_run, pass. Anything but pass fails the gate."""

Status = Literal["completed", "agent_timeout", "agent_crash", "limit", "infra_error", "harness_error", "cancelled"]
"""How a trial ended, exactly one."""

Rests = Literal["wire", "state", "reported", "opinion", "none"]
"""What a finding rests on, from the weakest part it used: seen by us, a database, the target's word, what a model that
judges thinks of it, nothing."""


FailureCategory = Literal[
    "incomplete",
    "policy_violation",
    "pass",
    "unsupported_claim",
    "coordination_failure",
    "tool_error_unrecovered",
    "task_failure",
]
"""Why a trial failed; of several that hold, the first of this order."""

Mode = Literal[
    "request_loss", "handoff_data_loss", "worker_summary_loss", "critic_missed_error", "machinery_never_fired"
]
"""How a fact was lost between agents: nobody asked for it, a hand-over or a summary left it out, a critic that was
shown it accepted a draft without it, or no agent told another anything."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one assertion found. `reason` names the call, row and column, or the part of the evidence that is missing.

    `id` is the assertion's own `id`, or its type; the second of a type without one is `TYPE#2`. `attempted`, `blocked`
    and `executed` count calls where the assertion is about calls. `measures` are numbers that it took; None among them
    is not observable. `opinion` is a judge's: such a finding stands beside the verdict, and no verdict hangs on it.
    """

    id: str
    result: Result
    reason: str
    rests: Rests = "none"
    attempted: int | None = None
    blocked: int | None = None
    executed: int | None = None
    measures: dict[str, int | float | None] | None = None
    opinion: Opinion | None = None


@dataclass(frozen=True, slots=True)
class FaultCount:
    """Injected faults: how many calls one fell on, how many of those lost their answer by it, or part of it, and how
    many of the latter were made good by a later call of the same tool."""

    met: int
    spoilt: int
    recovered: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of one trial: the worst of its findings, or what its status makes of it.

    `category` says why it failed (`pass` when it did not), None where it says nothing of the agent; `also` are the
    other categories that hold. `coordination` is how a fact was lost between agents, None where nobody can tell.
    `faults` is None where the scenario has none. `unjudged` is true where a pass hung on an opinion alone that a judge
    failed to give (judge_failed): such a trial is in no rate.
    """

    result: Result
    status: Status
    reason: str
    findings: tuple[Finding, ...] = ()
    category: FailureCategory | None = None
    also: tuple[FailureCategory, ...] = ()
    coordination: Mode | None = None
    faults: FaultCount | None = None
    unjudged: bool = False
