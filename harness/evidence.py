"""Everything that a verdict may rest on: the trace, and what the servers' databases held before and after.

Refuses to know how any of it was gathered.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, TypeVarTuple, cast

from harness.opinion import Opinion
from harness.roster import Roster
from harness.trace import Trace
from proxy.spans import JSON

T = TypeVar("T")
Given = TypeVarTuple("Given")

Row = Mapping[str, JSON]
"""Column name to value; BLOB values as {"$blob": base64}."""


@dataclass(frozen=True, slots=True)
class Dump:
    """One database at one moment: its CREATE statements, and of each table the rows by rowid."""

    schema: tuple[str, ...]
    tables: Mapping[str, Mapping[int, Row]]


@dataclass(frozen=True, slots=True)
class JournalCall:
    """One execution of a tool, as the server's journal numbers them, with the arguments that the server was given."""

    number: int
    tool: str
    arguments: JSON


@dataclass(frozen=True, slots=True)
class JournalRow:
    """One changed row as the server's own journal tells it. `request_id` is JSON text; order is the journal's.

    `call` is the execution that changed it; None where the journal does not say.
    """

    connection: str | None
    request_id: str | None
    table: str
    rowid: int
    op: str
    before: Row | None
    after: Row | None
    call: JournalCall | None = None


@dataclass(frozen=True, slots=True)
class ServerState:
    """A server's database before and after the trial, and its journal.

    `before` is None where only the end is known, as of a database that was handed in. `journal` is None when the server
    keeps none: then a change is put to the calls open between two dumps. The rows are those of the database; a reason
    that shows a value shows what `hide` makes of its text.
    """

    before: Dump | None
    after: Dump
    journal: tuple[JournalRow, ...] | None
    hide: Callable[[str], str] = field(default=str, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the assertions of one trial see.

    `completed` is true when the trial's status is completed. `servers` are the ids that the scenario names;
    `initialised` those that were negotiated with through us. `recorded` is true for a trace that we did not see being
    made. `user_message` is the task. `expected` is the scenario's open map of that name. `hidden` are the globs of
    tools that the policy takes out of what servers list. `doubts` say why the record may not be that of the agent's
    real connections. `environment` has the variables that its secrets name, as far as they are set, both with the
    record's marks; `secrets` are those secrets themselves, by name; `canaries` the text that was planted for each name.
    `unpointed`: the agent's command does not tell it where the servers are.
    `opinions` are those of a judge, by rubric. `roster` is who the agents are, None where it is not of our making.
    """

    trace: Trace
    completed: bool
    servers: tuple[str, ...] = ()
    initialised: frozenset[str] = frozenset()
    recorded: bool = False
    state: Mapping[str, ServerState] = field(default_factory=dict)
    expected: Mapping[str, JSON] = field(default_factory=dict)
    user_message: str = ""
    hidden: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    canaries: Mapping[str, str] = field(default_factory=dict)
    unpointed: bool = False
    opinions: Mapping[str, Opinion] = field(default_factory=dict)
    roster: Roster | None = None
    _worked_out: dict[object, dict[object, object]] = field(default_factory=dict, init=False, compare=False, repr=False)

    def once(self, work: Callable[["Evidence", *Given], T], *given: *Given) -> T:
        """What `work` makes of this evidence, worked out when it is first asked for, since several assertions ask the
        same. Nobody may change it. It is kept until other work is asked for: a long trial's is large."""
        if work not in self._worked_out:
            self._worked_out.clear()
        known = self._worked_out.setdefault(work, {})
        if given not in known:
            known[given] = work(self, *given)
        return cast("T", known[given])
