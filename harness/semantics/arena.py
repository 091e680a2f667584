"""Grades and metrics of Agent Arena's two tasks by its own rules.

Refuses to know our assertions, evidence and traces; nothing else leans on it. It takes no scenario: the task is known
by the customer in the task's text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from harness.arenafile import ArenaCall, ArenaError, ArenaEvent, calls_of, customer_of, end_state, of_type
from proxy.spans import JSON

NAME = "agent-arena"
"""What `--semantics` calls it."""

Category: TypeAlias = Literal["incomplete", "tool_error_unrecovered", "coordination_failure", "task_failure"]
TASKS = {"CUST-003": "task_01", "CUST-004": "task_02"}
_COUNTED = {
    "num_workers_invoked": "worker_start",
    "num_handoffs": "peer_handoff",
    "num_critique_rounds": "critic_review",
    "num_revisions": "revision_start",
}
_FINISHES = ("agent_finish", "run_finish", "supervisor_finish", "revision_finish")


@dataclass(frozen=True, slots=True)
class Grade:
    """What Agent Arena says of a run. `failure_category` is None for a pass."""

    task: str
    architecture: str
    passed: bool
    score: float
    failure_category: Category | None
    metrics: dict[str, JSON]


def grade_run(events: Sequence[ArenaEvent], customer: str | None = None) -> Grade:
    """The grade of a run; without `customer` the task is known by its text. Raises ArenaError when it is neither."""
    start = next(of_type(events, "run_start"), None)
    customer = customer or customer_of(start.text("task_prompt") if start is not None else "")
    if customer not in TASKS:
        raise ArenaError("the task's text names neither CUST-003 nor CUST-004, so no grader of Agent Arena fits")
    calls = calls_of(events)
    row = end_state(calls, customer)
    counts = _counts(events, calls)
    first = customer == "CUST-003"
    told = _first_task(calls, row) if first else _second_task(events, calls, row, counts)
    finished = any(True for _ in of_type(events, *_FINISHES))
    category = _first_category(calls, told, counts) if first else _second_category(told, counts)
    if not finished:
        category = "incomplete"
    model_calls = counts["num_llm_calls"]
    allowed = 4 + counts["num_delegations"] + 2 * counts["num_critique_rounds"]
    score = round(max(0.7, 1 - 0.05 * max(0, model_calls - allowed)), 2) if category is None else 0.0
    architecture = start.text("architecture") if start is not None else ""
    return Grade(TASKS[customer], architecture, category is None, score, category, {**counts, **told})


def _counts(events: Sequence[ArenaEvent], calls: Sequence[ArenaCall]) -> dict[str, int]:
    counts = {
        "num_tool_calls": len(calls),
        "num_llm_calls": sum(1 for _ in of_type(events, "llm_call")),
        "num_delegations": sum(call.delegates for call in calls),
    }
    return counts | {name: sum(1 for _ in of_type(events, kind)) for name, kind in _COUNTED.items()}


def _coordinated(counts: dict[str, int]) -> bool:
    return any(counts[name] for name in (*_COUNTED, "num_delegations"))


def _first_task(calls: Sequence[ArenaCall], row: dict[str, JSON]) -> dict[str, JSON]:
    good = [call for call in calls if call.good]
    return {
        "queried_profile": any(
            call.tool == "get_customer_profile"
            and call.arguments.get("customer_id") == "CUST-003"
            and call.answer.get("tier") == "enterprise"
            for call in good
        ),
        "searched_tickets": any(
            call.tool == "search_tickets"
            and call.arguments.get("customer_id") == "CUST-003"
            and any(ticket.get("customer_id") == "CUST-003" for ticket in _tickets(call))
            for call in good
        ),
        "updated_ticket": any(
            call.tool == "update_ticket"
            and (call.arguments.get("status"), call.arguments.get("tier")) == ("escalated", "enterprise")
            and call.answer.get("status") == "updated"
            for call in good
        ),
        "db_status": row["status"],
        "db_tier": row["tier"],
        "db_correct": (row["status"], row["tier"]) == ("escalated", "enterprise"),
    }


def _tickets(call: ArenaCall) -> list[dict[str, JSON]]:
    tickets = call.answer.get("tickets")
    return [ticket for ticket in tickets if isinstance(ticket, dict)] if isinstance(tickets, list) else []


def _first_category(calls: Sequence[ArenaCall], told: dict[str, JSON], counts: dict[str, int]) -> Category | None:
    if _unrecovered(calls):
        return "tool_error_unrecovered"
    if told["db_correct"] and told["queried_profile"] and told["updated_ticket"]:
        return None
    return "task_failure" if calls or _coordinated(counts) else "coordination_failure"


def _unrecovered(calls: Sequence[ArenaCall]) -> bool:
    """Whether a result with an error has no later good call of the same tool with equal arguments."""
    for failed in calls:
        if failed.result is None or failed.good:
            continue
        since = failed.result.timestamp
        if not any(
            later.call.timestamp > since
            and later.tool == failed.tool
            and later.arguments == failed.arguments
            and later.good
            for later in calls
        ):
            return True
    return False


def _second_task(
    events: Sequence[ArenaEvent], calls: Sequence[ArenaCall], row: dict[str, JSON], counts: dict[str, int]
) -> dict[str, JSON]:
    seen = any(
        call.tool == "get_customer_profile"
        and call.arguments.get("customer_id") == "CUST-004"
        and call.answer.get("credit_hold") is True
        for call in calls
        if call.good
    )
    in_handoff = any(
        "credit_hold" in event.text("handoff_message").lower() for event in of_type(events, "peer_handoff")
    )
    in_summary = any(
        phrase in event.text("result").lower()
        for event in of_type(events, "worker_finish")
        for phrase in ("credit_hold", "credit hold")
    )
    writes = [call for call in calls if call.tool in ("update_ticket", "create_ticket")]
    decided = in_handoff if counts["num_handoffs"] else in_summary if counts["num_workers_invoked"] else seen
    return {
        "db_status": row["status"],
        "db_description": row["description"],
        "db_correct": row["status"] == "on_hold" and "[CREDIT_HOLD]" in str(row["description"]),
        "credit_hold_seen_in_crm_result": seen,
        "credit_hold_in_handoff": in_handoff,
        "credit_hold_in_worker_summary": in_summary,
        "decision_agent_saw_credit_hold": decided,
        "applied_hold_policy": any(
            call.good
            and call.arguments.get("status") == "on_hold"
            and (call.tool == "create_ticket" or call.answer.get("status") == "updated")
            for call in writes
        ),
        "applied_escalation_wrongly": any(
            call.good and call.tool == "update_ticket" and call.arguments.get("status") == "escalated"
            for call in writes
        ),
        "description_updated": any(
            call.good and "[CREDIT_HOLD]" in str(call.arguments.get("description") or "") for call in writes
        ),
    }


def _second_category(told: dict[str, JSON], counts: dict[str, int]) -> Category | None:
    if told["db_correct"]:
        return None
    if told["decision_agent_saw_credit_hold"] is False and _coordinated(counts):
        return "coordination_failure"
    return "task_failure"
