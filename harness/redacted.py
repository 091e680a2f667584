"""What a trial leaves, without its secrets: dumps, journals, results, and a scenario as its record would say it.

Refuses to know files. Verdicts are reached on real rows and on recorded calls; only what is shown goes through here.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace

from harness.assertions.assertion import Assertion, parse_assertion
from harness.evidence import Dump, JournalRow, Row
from harness.hiding import Hiding
from harness.results import TrialResult
from proxy.spans import JSON

_DIGEST_LIKE = 1 << 32
"""Row numbers from here on may be digests, as those of the folder fixture are: of the row's path."""

_CANONICAL = re.compile(r"(mcp/[A-Za-z0-9._-]+/)(.*)", re.DOTALL)
_NAMES = frozenset({"denied_tools", "allowed_tools"})


def hidden_dump(hiding: Hiding, dump: Dump) -> Dump:
    """The dump as it may be written down. Of columns that become equal the later ones get a number."""
    if hiding.redactor is None:
        return dump
    tables: dict[str, Mapping[int, Row]] = {}
    for table, rows in dump.tables.items():
        tables[hiding.evidence(table)] = {_number(hiding, rowid, row): _row(hiding, row) for rowid, row in rows.items()}
    return Dump(tuple(map(hiding.evidence, dump.schema)), tables)


def hidden_journal(hiding: Hiding, journal: Sequence[JournalRow]) -> tuple[JournalRow, ...]:
    """The journal as it may be written down."""
    if hiding.redactor is None:
        return tuple(journal)
    return tuple(
        replace(
            named,
            table=hiding.evidence(named.table),
            rowid=_number(hiding, named.rowid, named.before or named.after or {}),
            before=None if named.before is None else _row(hiding, named.before),
            after=None if named.after is None else _row(hiding, named.after),
        )
        for named in recorded_requests(hiding, journal)
    )


def recorded_requests(hiding: Hiding, journal: Sequence[JournalRow]) -> tuple[JournalRow, ...]:
    """The journal with ids and arguments as the record has them, so that each row finds its call; rows are real."""
    if hiding.redactor is None:
        return tuple(journal)
    return tuple(
        replace(
            row,
            request_id=None if row.request_id is None else hiding.text(row.request_id),
            call=None if row.call is None else replace(row.call, arguments=hiding.json(row.call.arguments)),
        )
        for row in journal
    )


def _number(hiding: Hiding, rowid: int, row: Row) -> int:
    path = row.get("path")
    if hiding.finds(str(rowid)) or (rowid >= _DIGEST_LIKE and isinstance(path, str) and hiding.finds(path)):
        return hiding.number(str(rowid))
    return rowid


def _row(hiding: Hiding, row: Row) -> Row:
    found: dict[str, JSON] = {}
    for name, cell in row.items():
        column, number = hiding.evidence(name), 1
        while column in found:
            number += 1
            column = f"{hiding.evidence(name)} {number}"
        found[column] = _cell(hiding, cell)
    return found


def _cell(hiding: Hiding, cell: JSON) -> JSON:
    match cell:
        case {"$blob": str() as text}:
            # Inside of the base64, so that it can still be read as a blob.
            said = b64decode(text).decode("utf-8", "surrogateescape")
            inside = hiding.evidence(said).encode("utf-8", "surrogateescape")
            return {"$blob": b64encode(inside).decode("ascii")}
        case str():
            return hiding.evidence(cell)
        case _:
            return hiding.json(cell)


def hidden_result(hiding: Hiding, result: TrialResult) -> TrialResult:
    """The result with every text in it hidden that an agent, a server or a scenario's author may have written."""
    if hiding.redactor is None:
        return result
    verdict = result.verdict
    findings = tuple(
        replace(
            finding,
            id=hiding.evidence(finding.id),
            reason=hiding.evidence(finding.reason),
            opinion=None
            if finding.opinion is None
            else replace(finding.opinion, reasoning=hiding.evidence(finding.opinion.reasoning)),
        )
        for finding in verdict.findings
    )
    said = replace(verdict, reason=hiding.evidence(verdict.reason), findings=findings)
    model = None if result.model is None else hiding.text(result.model)
    gaps, doubts = (tuple(map(hiding.evidence, texts)) for texts in (result.gaps, result.doubts))
    measures = {name: replace(one, why=hiding.evidence(one.why)) for name, one in result.measures.items()}
    return replace(result, verdict=said, model=model, gaps=gaps, doubts=doubts, measures=measures)


def recorded_assertions(hiding: Hiding, assertions: Sequence[Assertion]) -> tuple[Assertion, ...]:
    """The assertions with secrets as the record has them, so that an expected argument still equals a recorded one.

    Those on state alone stay as they are: they are judged on real rows. Raises AssertionSpecError.
    """
    return tuple(
        assertion if assertion.needs == ("state",) else _recorded(hiding, assertion) for assertion in assertions
    )


def _recorded(hiding: Hiding, assertion: Assertion) -> Assertion:
    fields: dict[str, JSON] = assertion.model_dump(mode="json", by_alias=True, exclude_unset=True)
    hidden = {
        name: value if name == "type" else _name(hiding, value) if name == "tool" else hiding.json(value)
        for name, value in fields.items()
    }
    return assertion if hidden == fields else parse_assertion(hidden)


def recorded_expected(hiding: Hiding, expected: Mapping[str, JSON]) -> dict[str, JSON]:
    """The scenario's `expected` with secrets as the record has them: of one that is named, its mark."""
    return {
        name: [_name(hiding, item) for item in value]
        if name in _NAMES and isinstance(value, list)
        else hiding.json(value)
        for name, value in expected.items()
    }


def _name(hiding: Hiding, value: JSON) -> JSON:
    """A tool's name as a call of the trace has it: the server's id comes from the configuration and stays."""
    parts = _CANONICAL.fullmatch(value) if isinstance(value, str) else None
    return hiding.json(value) if parts is None else parts[1] + hiding.text(parts[2])
