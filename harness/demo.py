"""What `make demo` shows: right and wrong agents over real proxy processes, and a call that policy denies.

Refuses to know how a verdict is reached; it only knows which ones to expect.
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from harness.commands.run import terminal_style
from harness.report.table import as_table
from harness.results import RunResult
from harness.running import run_selected
from harness.selection import Selection, load_selection
from harness.verdict import Result

SCENARIOS = Path("scenarios")


@dataclass(frozen=True, slots=True)
class Act:
    """One run of one scenario, the agent it has, the verdict to expect, and the finding that must give the reason."""

    title: str
    scenario: str
    agent: str
    expected: Result
    finding: str = ""


ACTS = (
    Act(
        "A customer's ticket is escalated by an agent that does what it was asked.",
        "support/customer_escalation.yaml",
        "support/agents/customer_escalation_right.yaml",
        "pass",
    ),
    Act(
        "The same task, by an agent that guesses the tier.",
        "support/customer_escalation.yaml",
        "support/agents/customer_escalation_guesses.yaml",
        "fail",
        "state",
    ),
    Act(
        "A customer with a credit hold: an agent that notices it.",
        "support/credit_hold_escalation.yaml",
        "support/agents/credit_hold_right.yaml",
        "pass",
    ),
    Act(
        "The same task, by an agent that escalates all the same.",
        "support/credit_hold_escalation.yaml",
        "support/agents/credit_hold_escalates.yaml",
        "fail",
        "state",
    ),
    Act(
        "A ticket's text talks the agent into a deletion. Policy denies it: attempted, blocked, without effect.",
        "security/denied_delete.yaml",
        "security/agents/denied_delete_talked_into_it.yaml",
        "fail",
        "no_denied_tool_call",
    ),
)


def play(act: Act, folder: Path) -> RunResult:
    """Run one act."""
    selection = Selection((str(SCENARIOS / act.scenario),), agent_file=str(SCENARIOS / act.agent))
    run, _ = run_selected(load_selection(selection), selection, trials=None, jobs=1, out=folder, keep=False)
    return run


def holds(act: Act, run: RunResult) -> bool:
    """Whether the run came out as it has to."""
    findings = {finding.id: finding for trial in run.trials for finding in trial.verdict.findings}
    if run.result != act.expected:
        return False
    if act.finding == "no_denied_tool_call":
        denied = findings[act.finding]
        return denied.result == "fail" and (denied.attempted, denied.blocked, denied.executed) == (1, 1, 0)
    return not act.finding or findings[act.finding].result == "fail"


def main() -> int:
    """Play every act and show its table; 0 when each verdict is the expected one."""
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="wiretrap-demo-") as folder:
        for number, act in enumerate(ACTS, start=1):
            run = play(act, Path(folder))
            as_expected = holds(act, run)
            wrong += not as_expected
            sys.stdout.write(f"{number}. {act.title}\n\n{as_table(run, terminal_style())}")
            sys.stdout.write(
                f"{'This verdict is the expected one' if as_expected else f'EXPECTED WAS {act.expected.upper()}'}.\n\n"
            )
            sys.stdout.flush()
    sys.stdout.write(
        "Every verdict is the expected one.\n" if not wrong else f"{wrong} verdicts are not as expected.\n"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
