"""How the passing and failing fixtures of the assertions are written down."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.evidence import Evidence, ServerState
from harness.trace import Event, Message, ToolCall
from harness.verdict import Result
from proxy.spans import JSON
from tests.harness.made import change, dump, ticket, wire

MARKER = "TENANT-B-7731"
CANARY = "k3v9x0q2m7w1z8p5"
AT = "2026-11-30T12:00:00.000000000Z"


@dataclass(frozen=True)
class Case:
    name: str
    spec: dict[str, JSON]
    evidence: Evidence
    result: Result

    @property
    def kind(self) -> str:
        return str(self.spec["type"])


CASES: list[Case] = []


def case(name: str, spec: JSON, evidence: Evidence, result: Result) -> None:
    assert isinstance(spec, dict)
    CASES.append(Case(f"{spec['type']}: {name}", spec, evidence, result))


def both(name: str, spec: JSON, failing: Evidence, passing: Evidence) -> None:
    """An evasion that must fail beside the same without it, or a false alarm beside what it looks like."""
    case(f"{name}, failing", spec, failing, "fail")
    case(f"{name}, passing", spec, passing, "pass")


def made(
    tool: str,
    arguments: JSON = None,
    seq: int = 1,
    *,
    until: int | None = None,
    server: str = "mail",
    outcome: str = "ok",
    result: JSON = None,
    connection: str = "c1",
    text: str | None = None,
) -> ToolCall:
    base = ToolCall(f"mcp/{server}/{tool}", arguments, server, tool, seq=seq, span_id=f"s{seq}", started_at=AT)
    return replace(
        base,
        result_seq=seq + 1 if until is None else until,
        outcome="denied" if outcome == "denied" else "tool_error" if outcome == "tool_error" else "ok",
        result=result,
        connection=connection,
        request_id=str(seq),
        arguments_text=text,
        decision="deny" if outcome == "denied" else "allow",
    )


def seen(
    *calls: ToolCall,
    events: Sequence[Event] = (),
    messages: Sequence[Message] = (),
    expected: dict[str, JSON] | None = None,
    canaries: dict[str, str] | None = None,
    environment: dict[str, str] | None = None,
    state: dict[str, ServerState] | None = None,
) -> Evidence:
    evidence = wire(*calls, events=events, servers=("mail",), expected=expected, state=state)
    return replace(
        evidence,
        trace=replace(evidence.trace, messages=tuple(messages)),
        canaries=canaries or {},
        environment=environment or {},
    )


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def out(text: JSON, expected: dict[str, JSON]) -> Evidence:
    return seen(made("send", {"body": text}), expected=expected)


def changed(*requests: str) -> dict[str, ServerState]:
    rows = tuple(change(ticket(1), ticket(1, f"s{number}"), number) for number in requests)
    return {"mail": ServerState(dump(ticket(1)), dump(ticket(1, "s3")), rows)}
