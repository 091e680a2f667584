"""Whether what the agent claims at the end is so: each claim of the final answer and the summaries is looked up.

Refuses to know what was asked.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator, model_validator

from harness.assertions.absence import doubt
from harness.assertions.arguments import holds
from harness.assertions.names import is_certain
from harness.assertions.spec import AssertionSpec, Part
from harness.cells import is_same
from harness.clauses import Clause, clauses
from harness.evidence import Evidence
from harness.outcomes import is_ok, listed, show
from harness.query import QueryError, run_query
from harness.sent import final_message
from harness.verdict import Finding, Rests
from proxy.spans import JSON

_GROUP = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Then(BaseModel):
    """What must be so where the claim is made: a query that gives `equals`, or a call that ended ok.

    Groups of the claim are `:name` in a query, and `${name}` as a whole text in the arguments of a call.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    server: str | None = None
    query: str | None = None
    equals: list[list[JsonValue]] | None = None
    tool: str | None = None
    arguments: dict[str, JsonValue] | None = None

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        by_query = (self.server, self.query, self.equals)
        if self.tool is None:
            if None in by_query or self.arguments is not None:
                raise ValueError("give server, query and equals, or tool and perhaps arguments")
        elif any(part is not None for part in by_query):
            raise ValueError("give server, query and equals, or tool and perhaps arguments, not both")
        return self


class Claim(BaseModel):
    """A claim: a regular expression with named groups, held against each clause, case folded by itself."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    says: str
    then: Then

    @field_validator("says")
    @classmethod
    def _pattern(cls, says: str) -> str:
        try:
            re.compile(says, re.IGNORECASE)
        except re.error as error:
            raise ValueError(f"{says!r} is not a regular expression: {error}") from error
        return says

    @model_validator(mode="after")
    def _groups(self) -> Self:
        groups = re.compile(self.says).groupindex
        used = set(_GROUP.findall(json.dumps(self.then.arguments)))
        unknown = sorted(used - groups.keys())
        if unknown:
            raise ValueError(f"says has no group {unknown[0]!r}")
        return self


class Claims(AssertionSpec):
    """Each claim that the final answer or a summary makes is so; one that is denied or supposed is not made."""

    needs: ClassVar[tuple[Part, ...]] = ("messages",)

    type: Literal["claims"]
    claims: list[Claim] = Field(min_length=1)

    def find(self, evidence: Evidence) -> Finding:
        """Fails on a claim that does not hold; not_run where none is made."""
        told = [(clause, text, said) for text, said in _told(evidence) for clause in clauses(text, fold=False)]
        made = [
            (claim, found, text, said)
            for clause, text, said in told
            for claim in self.claims
            for found in _found(claim, clause)
        ]
        if not made:
            return self.not_run("neither the final answer nor a summary makes a claim")
        wrong: list[str] = []
        unsure: list[str] = []
        for claim, found, text, _ in made:
            said = show(_as_said(found.group(), text))
            try:
                holds_ = _holds(claim.then, found.groupdict(), evidence)
            except QueryError as error:
                return self.error(f"{claim.then.server}: {error}")
            match holds_:
                case True:
                    pass
                case False:
                    wrong.append(f"the agent says {said}, and that is not so")
                case str() as why:
                    unsure.append(f"the agent says {said}, and whether it is so cannot be told: {why}")
        coverage = evidence.trace.coverage
        weak = "reported" in (coverage.messages, coverage.tool_calls) or any(said for *_, said in made)
        by_state = any(claim.then.query is not None for claim, *_ in made)
        rests: Rests = "reported" if weak else "state" if by_state else "wire"
        if wrong:
            return Finding(self.name, "fail", listed(wrong), rests)
        if unsure:
            return self.not_run(listed(unsure))
        return Finding(self.name, "pass", f"each of {len(made)} claims is so", rests)


def _told(evidence: Evidence) -> Iterator[tuple[str, bool]]:
    """The final answer and every summary, and whether that is the target's own word of itself."""
    last = final_message(evidence.trace)
    texts: list[tuple[JSON, bool]] = [] if last is None else [(last.content, last.reported)]
    texts += [(event.fields.get("text"), event.reported) for event in evidence.trace.events if event.type == "summary"]
    for text, said in texts:
        if isinstance(text, str):
            yield text, said


def _as_said(found: str, text: str) -> str:
    """What was found in a clause, as the agent wrote it: a clause has no markup, of which `_` is a sign."""
    words = re.split(r"[\s_]+", found)
    written = re.search(r"[\s*_`#>|~]+".join(map(re.escape, words)), text)
    return found if written is None else written.group()


def _found(claim: Claim, clause: Clause) -> Iterator[re.Match[str]]:
    folded = Clause(clause.text.casefold(), clause.question)
    for found in re.finditer(claim.says, clause.text, re.IGNORECASE):
        across = clause.seam is None or found.start() < clause.seam < found.end()
        if across and folded.states(found.start()):
            yield found


def _holds(then: Then, groups: Mapping[str, str | None], evidence: Evidence) -> bool | str:
    """Whether what must be so is so; a text says why it cannot be told."""
    if then.query is not None and then.server is not None:
        state = evidence.state.get(then.server)
        if state is None:
            return f"nothing is known of the state of {then.server}"
        answer = run_query(state.after, then.query, {name: text or "" for name, text in groups.items()})
        wanted = then.equals or []
        if len(wanted) != len(answer.rows):
            return False
        pairs = zip(wanted, answer.rows, strict=True)
        return all(len(row) == len(cells) and all(map(is_same, cells, row)) for row, cells in pairs)
    tool = then.tool or ""
    if evidence.trace.coverage.tool_calls == "none":
        return "nothing is known of tool_calls"
    fits = [
        holds(call, arguments)
        for call in evidence.trace.tool_calls
        if is_ok(call) and is_certain(tool, call) == "yes"
        for arguments in _arguments(then.arguments, groups)
    ]
    if "yes" in fits:
        return True
    return doubt(evidence) or False


def _arguments(
    arguments: Mapping[str, JSON] | None, groups: Mapping[str, str | None]
) -> Iterator[dict[str, JSON] | None]:
    """The arguments with their groups filled in: as texts, and with those that are numbers as numbers."""
    if arguments is None:
        yield None
        return
    for numbers in (False, True):
        filled = _filled(dict(arguments), groups, numbers=numbers)
        yield filled if isinstance(filled, dict) else {}


def _filled(value: JSON, groups: Mapping[str, str | None], *, numbers: bool) -> JSON:
    match value:
        case str():
            found = _GROUP.fullmatch(value)
            if found is None:
                return value
            text = groups[found[1]]
            if text is not None and numbers and re.fullmatch(r"-?\d+(?:\.\d+)?", text):
                return float(text) if "." in text else int(text)
            return text
        case list():
            return [_filled(item, groups, numbers=numbers) for item in value]
        case dict():
            return {key: _filled(item, groups, numbers=numbers) for key, item in value.items()}
        case _:
            return value
