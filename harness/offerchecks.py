"""Whether what a scenario says of its fixtures can be there: tools that they offer, tables and columns that they have.

A name that nothing has makes a check that can never fail, or never pass. Refuses to open files and databases.
"""

from collections.abc import Iterator, Mapping

from harness.assertions.assertion import Assertion
from harness.assertions.names import read_name
from harness.assertions.state import Exemption, State, StateUnchanged
from harness.evidence import Dump
from harness.intake import Intake
from harness.namedtools import tools_named
from harness.offer import Tools, did_you_mean, missing_tool
from harness.query import QueryError, run_query, table_columns
from harness.scenariofile import ScenarioEntry
from proxy.problem import Path

Found = Iterator[tuple[Path, str]]


def check_tools(intake: Intake, entry: ScenarioEntry | None, assertions: Mapping[int, Assertion], tools: Tools) -> None:
    """Note each tool that is named and that no server offers. Names of what must not happen are held without case."""
    for place, assertion in assertions.items():
        for path, name, fold in tools_named(assertion):
            _check_name(intake, ("assertions", place, *path), name, tools, fold=fold)
    if entry is None:
        return
    expected = entry.expected
    lists = {
        "denied_tools": expected.denied_tools,
        "allowed_tools": expected.allowed_tools,
        "outbound_tools": expected.outbound_tools,
    }
    for key, names in lists.items():
        for place, name in enumerate(names or []):
            _check_name(intake, ("expected", key, place), name, tools, fold=key != "allowed_tools")
    for place, fact in enumerate(entry.facts):
        for part, named in (("known", fact.known), ("before", fact.before)):
            wrong = None if named is None else missing_tool(named.server, named.tool, tools)
            if wrong is not None:
                intake.wrong(("facts", place, part, "tool"), wrong)


def _check_name(intake: Intake, path: Path, text: str, tools: Tools, *, fold: bool) -> None:
    name = read_name(text.strip().casefold() if fold else text)
    server = next((one for one in tools if fold and one.casefold() == name.server), name.server)
    if server is not None and server not in tools:
        # A list may name more servers than one scenario has, but a name that is nearly one of its own is a slip.
        near = did_you_mean(server, tools)
        if path[0] == "expected" and "did you mean" in near:
            intake.wrong(path, f"the scenario has no server {server!r}{near}")
        return
    wrong = missing_tool(server, name.tool, tools, fold=fold)
    if wrong is not None:
        intake.wrong(path, wrong)


def check_state(intake: Intake, assertions: Mapping[int, Assertion], schemas: Mapping[str, tuple[str, ...]]) -> None:
    """Note what cannot be asked of databases with these CREATE statements, by server id."""
    for place, assertion in assertions.items():
        match assertion:
            case State() if assertion.server in schemas:
                wrong = _query_problems(assertion, schemas[assertion.server])
            case StateUnchanged():
                wrong = _exemption_problems(assertion.except_, schemas)
            case _:
                continue
        for path, message in wrong:
            intake.wrong(("assertions", place, *path), message)


def _query_problems(assertion: State, schema: tuple[str, ...]) -> Found:
    try:
        answer = run_query(Dump(schema, {}), assertion.query)
    except QueryError as error:
        tables = "; ".join(f"{table}: {', '.join(columns)}" for table, columns in table_columns(schema).items())
        yield ("query",), f"{error}; the tables of {assertion.server} and their columns are {tables}"
        return
    cells = {"equals": map(len, assertion.equals or []), "matches": map(len, assertion.matches or [])}
    for field, counts in cells.items():
        for number, count in enumerate(counts):
            if count != len(answer.columns):
                there = f"the query gives {len(answer.columns)}: {', '.join(answer.columns)}"
                yield (field, number), f"this row has {count} cells, and {there}"


def _exemption_problems(exemptions: list[Exemption], schemas: Mapping[str, tuple[str, ...]]) -> Found:
    for place, exemption in enumerate(exemptions):
        schema = schemas.get(exemption.server)
        if schema is None:
            continue
        path: Path = ("except", place)
        tables = table_columns(schema)
        columns = tables.get(exemption.table)
        if columns is None:
            said = did_you_mean(exemption.table, tables)
            yield (*path, "table"), f"{exemption.server} has no table {exemption.table!r}{said}"
            continue
        named: list[tuple[Path, str]] = [(("where", name), name) for name in exemption.where]
        named += [(("columns", number), name) for number, name in enumerate(exemption.columns or [])]
        for inner, name in named:
            if name not in columns:
                said = did_you_mean(name, columns)
                yield (*path, *inner), f"{exemption.server}.{exemption.table} has no column {name!r}{said}"
