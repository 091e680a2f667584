"""The policy of a scenario, inline or in a file of its own, and its faults, and whether they speak of servers and tools
there are. Refuses to know what a policy or a fault does.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from harness.intake import Intake, open_document
from harness.offer import Tools, idle_glob, missing_tool_of_glob
from harness.scenariofile import PolicyFileEntry
from proxy.faults import Fault, FaultError, parse_faults
from proxy.fieldreading import FieldReading
from proxy.glob import glob_server
from proxy.grants import parse_grants
from proxy.policy import Policy, PolicyError, parse_policy
from proxy.problem import Path as FieldPath
from proxy.problem import Problem, field_name
from proxy.spans import JSON

_IDLES = {"deny": "denies none", "approve": "holds none"}


def read_policy(
    intake: Intake,
    scenario: Mapping[str, JSON],
    tools: Tools | None,
    elsewhere: list[Problem],
    find: Callable[[str, FieldPath], Path | None],
    at: FieldPath = (),
) -> tuple[Policy | None, dict[str, JSON] | None]:
    """The policy of a scenario's map, and its own map; None (and the problems noted) where there is none to use.

    `at` leads to that map, from the top of the file.

    A wildcard rule that denies or holds, and fits no tool, is noted. `tools` are those of the scenario's servers, None
    where it names none. `find` gives the file that a field names; what is wrong in a file is added to `elsewhere`.
    """
    if "policy" not in scenario:
        return None, None
    document, problems, data = intake.document, intake.problems, scenario["policy"]
    prefix: FieldPath = (*at, "policy")
    if isinstance(data, dict) and "file" in data:
        entry = intake.read(PolicyFileEntry, data, prefix)
        file = None if entry is None else find(entry.file, (*prefix, "file"))
        found = None if file is None else open_document(file, elsewhere)
        if found is None:
            return None, None
        document, data, prefix, problems = found, found.data, (), elsewhere
    try:
        policy = parse_policy(data, document.name, document.line, prefix)
    except PolicyError as error:
        problems.extend(error.problems)
        return None, None
    # A reading leaves out no rule unless it fails, so places are those of the file.
    for place, rule in enumerate(policy.rules):
        wrong = None if tools is None else _misnamed(rule.glob, tools)
        if wrong is not None:
            path = (*prefix, "rules", place, rule.action)
            problems.append(Problem(document.name, document.line(path), field_name(path), wrong))
        idles = _IDLES.get(rule.action)
        idle = idle_glob(rule.glob, tools, idles) if tools is not None and idles is not None else None
        if idle is not None:
            path = (*prefix, "rules", place, rule.action)
            intake.notes.append(Problem(document.name, document.line(path), field_name(path), f"note: {idle}"))
    return policy, data if isinstance(data, dict) else None


def read_faults(
    intake: Intake, scenario: Mapping[str, JSON], tools: Tools | None
) -> tuple[tuple[Fault, ...], tuple[JSON, ...]]:
    """The faults of a scenario's map, and their own maps; none (and the problems noted) where they cannot be used."""
    data, document = scenario.get("faults"), intake.document
    if "faults" not in scenario:
        return (), ()
    try:
        faults = parse_faults(data, document.name, document.line, ("faults",))
    except FaultError as error:
        intake.problems.extend(error.problems)
        return (), ()
    for place, fault in enumerate(faults):
        wrong = None if tools is None else _misnamed(fault.glob, tools)
        if wrong is not None:
            intake.wrong(("faults", place, "tool"), wrong)
        idle = None if tools is None else idle_glob(fault.glob, tools, "spoils nothing")
        if idle is not None:
            intake.note(("faults", place, "tool"), idle)
    return faults, tuple(data) if isinstance(data, list) else ()


def read_grants(
    intake: Intake, scenario: Mapping[str, JSON], tools: Tools | None, policy: Policy | None
) -> tuple[JSON, ...]:
    """The grants of a scenario's map, as written; what is wrong with them is noted."""
    written = scenario.get("grants")
    if written is None:
        return ()
    reading = FieldReading(intake.document.name, intake.document.line, ("grants",))
    grants = parse_grants(reading, written)
    intake.problems.extend(reading.problems)
    if policy is None or not policy.holds:
        intake.wrong(("grants",), "no rule of the policy asks for an approval; {approve: mcp/SERVER/TOOL} does")
    for place, grant in enumerate(grants if tools is not None and not reading.problems else ()):
        wrong = None if tools is None else _misnamed(grant.tool, tools)
        if wrong is not None:
            intake.wrong(("grants", place, "tool"), wrong)
    return tuple(written) if isinstance(written, list) else ()


def _misnamed(glob: str, tools: Tools) -> str | None:
    server = glob_server(glob)
    if server is not None and server not in tools:
        return f"the scenario has no server {server!r}; its servers are: {', '.join(tools) or 'none'}"
    return missing_tool_of_glob(glob, tools)
