"""The evidence of one trial put together: a trace, what is known of the databases, and what the scenario says of it.

Refuses to know files and how a trial was run.
"""

from collections.abc import Mapping
from dataclasses import replace

from harness.evidence import Evidence, ServerState
from harness.hiding import Hiding
from harness.redacted import recorded_expected
from harness.scenario import Scenario
from harness.trace import Trace
from proxy.spans import JSON

NOTHING_HIDDEN = Hiding(b"")
"""For a record from which nothing was taken out."""


def evidence_of(
    scenario: Scenario,
    trace: Trace,
    *,
    completed: bool,
    state: Mapping[str, ServerState],
    environment: Mapping[str, str],
    canaries: Mapping[str, str],
    hiding: Hiding = NOTHING_HIDDEN,
    recorded: bool | None = None,
    doubts: tuple[str, ...] = (),
    live: bool = False,
) -> Evidence:
    """The evidence of a trial. Where `recorded` does not say whether the trace was made elsewhere, it counts as such
    unless a connection of it crossed our wire; `doubts` say why the record may not be of the agent's real connections.

    Of `environment` only the variables that `expected.secrets` name are kept. The trace is made of the record, so what
    it is compared with has the record's marks, by `hiding`; what secrets really are stands beside it.
    """
    if state and trace.coverage.state == "none":
        trace = replace(trace, coverage=replace(trace.coverage, state="reported"))
    named = secret_variables(scenario.expected)
    variables = {name: environment[name] for name in named if name in environment}
    if recorded is None:
        recorded = "wire" not in (trace.coverage.tool_calls, trace.coverage.events, trace.coverage.messages)
    return Evidence(
        trace=trace,
        completed=completed,
        servers=tuple(scenario.servers),
        initialised=initialised(trace),
        recorded=recorded,
        live=live,
        state=state,
        expected=recorded_expected(hiding, scenario.expected),
        user_message=hiding.text(scenario.user_message),
        environment={name: hiding.text(text) for name, text in variables.items()},
        secrets=_secret_values(scenario.expected, variables),
        canaries=canaries,
        hidden=scenario.hidden,
        doubts=doubts,
    )


def initialised(trace: Trace) -> frozenset[str]:
    """The servers that were negotiated with through us (verdicts.md section 3)."""
    found = [
        event.fields.get("server_id")
        for event in trace.events
        if event.type == "mcp_connection_initialized" and not event.reported
    ]
    return frozenset(server for server in found if isinstance(server, str))


def secret_variables(expected: Mapping[str, JSON]) -> list[str]:
    """The variables that `expected.secrets` names."""
    listed = expected.get("secrets")
    secrets = listed if isinstance(listed, list) else []
    names = [secret.get("env") for secret in secrets if isinstance(secret, dict)]
    return [name for name in names if isinstance(name, str)]


def _secret_values(expected: Mapping[str, JSON], variables: Mapping[str, str]) -> dict[str, str]:
    """What each named secret is, as far as it is known."""
    listed = expected.get("secrets")
    found: dict[str, str] = {}
    for secret in listed if isinstance(listed, list) else []:
        match secret:
            case {"name": str() as name, "value": str() as value}:
                found[name] = value
            case {"name": str() as name, "env": str() as variable} if variable in variables:
                found[name] = variables[variable]
            case _:
                pass
    return found
