"""A sweep as tables, in plain text or in Markdown.

Refuses to know how its numbers were come by. What is not known is a dash.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.opinions import count_opinions
from harness.repeats import FEW, Interval, wilson
from harness.report.table import rate_text
from harness.results import Rate
from harness.sweepresult import ArmResult, SweepResult
from proxy.visible import visible

UNKNOWN = "-"


@dataclass(frozen=True, slots=True)
class Table:
    """A title, the heads of the columns, the rows, and what stands below."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def tables(sweep: SweepResult) -> Iterator[Table]:
    """The tables of a sweep, in order; those that would be empty are left out."""
    arms = sweep.arms
    yield Table(
        "Pass rates",
        ("agent", "trials", "passed", "adjusted", "95 %, by task", "95 %, by trial"),
        tuple(_rates(arm) for arm in arms),
        "passed: of all trials; adjusted: of those that are neither incomplete nor lost to infrastructure; by task: a"
        f" bootstrap over tasks, rough under {FEW} of them, and where all came out alike Wilson's over"
        " tasks; by trial: Wilson's, if trials were independent",
    )
    names = list(dict.fromkeys(task for arm in arms for task in arm.tasks))
    yield Table(
        "By task",
        ("task", "agent", "passed", "95 %, by trial"),
        tuple(_of_task(arm, task) for task in names for arm in arms),
    )
    failures = tuple(
        (arm.name, category, str(count)) for arm in arms for category, count in arm.categories.most_common()
    )
    if failures:
        yield Table("Why trials failed", ("agent", "category", "trials"), failures)
    opinions = tuple(row for arm in arms for row in _opinions(arm))
    if opinions:
        yield Table("What a judge thinks", ("agent", "judge", "a success", "against the verdict", "failed"), opinions)
    yield Table(
        "Passing trials, in the mean",
        ("agent", "trials", "calls", "model calls", "tokens", "cost", "seconds"),
        tuple(_passing(arm) for arm in arms),
    )
    facts = [row for arm in arms for row in _facts(arm)]
    if facts:
        yield Table(
            "Who had the fact",
            ("agent", "task", "fact", "trials", "read by any", "decider had it", "decider had it not", "who had it"),
            tuple(facts),
        )
    yield Table(
        "What it took",
        ("agent", "tokens in", "cached", "out", "cost", "seconds, median", "most"),
        tuple(_took(arm) for arm in arms),
        f"{UNKNOWN}: not known for every trial",
    )


def _rates(arm: ArmResult) -> tuple[str, ...]:
    trials = f"{len(arm.done)}" + (f" of {len(arm.trials)}" if arm.not_done else "")
    return (
        arm.name,
        trials,
        rate_text(arm.raw),
        rate_text(arm.adjusted),
        _between(arm.clustered),
        _between(arm.independent),
    )


def _between(interval: Interval | None) -> str:
    return UNKNOWN if interval is None else f"{interval[0] * 100:.0f}..{interval[1] * 100:.0f} %"


def _of_task(arm: ArmResult, task: str) -> tuple[str, ...]:
    ones = arm.tasks.get(task, ())
    passed = sum(one.passed for one in ones)
    return task, arm.name, rate_text(Rate(passed, len(ones))), _between(wilson(passed, len(ones)))


def _opinions(arm: ArmResult) -> Iterator[tuple[str, ...]]:
    count = count_opinions([one.result.verdict for one in arm.done])
    if count.asked:
        success = rate_text(Rate(count.success, count.judged))
        yield arm.name, ", ".join(count.judges), success, str(count.against), str(count.failed)


def _passing(arm: ArmResult) -> tuple[str, ...]:
    numbers = (
        arm.mean(lambda one: one.measured.calls),
        arm.mean(lambda one: one.measured.model_calls),
        arm.mean(lambda one: one.measured.tokens),
    )
    cost, seconds = arm.mean(lambda one: one.measured.cost), arm.mean(lambda one: one.result.seconds)
    return arm.name, str(len(arm.passing)), *(_number(one, 1) for one in numbers), _number(cost, 4), _number(seconds, 2)


def _facts(arm: ArmResult) -> Iterator[tuple[str, ...]]:
    for (task, fact), ones in arm.facts.items():
        who = Counter(name for had in ones for name in had.knowers)
        knew = [had.decider_knew for had in ones]
        yield (
            arm.name,
            task,
            fact,
            str(len(ones)),
            str(sum(bool(had.readers) for had in ones)),
            str(knew.count(True)),
            str(knew.count(False)),
            ", ".join(f"{name} {count}" for name, count in sorted(who.items())) or "nobody",
        )


def _took(arm: ArmResult) -> tuple[str, ...]:
    seconds = sorted(one.result.seconds for one in arm.done)
    middle = (seconds[len(seconds) // 2] + seconds[(len(seconds) - 1) // 2]) / 2 if seconds else None
    return (
        arm.name,
        _number(arm.total(lambda one: one.tokens_in), 0),
        _number(arm.total(lambda one: one.tokens_cached), 0),
        _number(arm.total(lambda one: one.tokens_out), 0),
        _number(arm.total(lambda one: one.cost), 4),
        _number(middle, 2),
        _number(seconds[-1] if seconds else None, 2),
    )


def _number(value: float | None, digits: int) -> str:
    return UNKNOWN if value is None else f"{value:.{digits}f}"


def as_text(sweep: SweepResult) -> str:
    """The tables in plain text, ending in a newline."""
    return "\n".join(line for table in tables(sweep) for line in _plain(table)) + _end(sweep)


def as_markdown(sweep: SweepResult) -> str:
    """The tables in Markdown, ending in a newline."""
    return (
        f"# Sweep {sweep.run_id}\n\n"
        + "\n".join(line for table in tables(sweep) for line in _marked(table))
        + _end(sweep)
    )


def _end(sweep: SweepResult) -> str:
    return f"\nNot finished: {visible(sweep.stopped)}\n" if sweep.stopped is not None else ""


def _plain(table: Table) -> Iterator[str]:
    rows = [table.heads, *(tuple(visible(cell) for cell in row) for row in table.rows)]
    wide = [max(len(row[column]) for row in rows) for column in range(len(table.heads))]
    yield table.title
    for row in rows:
        yield "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, wide, strict=True)).rstrip()
    if table.note:
        yield from (f"  {part}" for part in table.note.split("; "))
    yield ""


def _marked(table: Table) -> Iterator[str]:
    yield f"## {table.title}"
    yield ""
    yield _line(table.heads)
    yield "|" + "---|" * len(table.heads)
    yield from (_line(row) for row in table.rows)
    yield ""
    if table.note:
        yield f"{table.note}."
        yield ""


def _line(cells: Sequence[str]) -> str:
    # A bar would end the cell.
    return "| " + " | ".join(visible(cell).replace("|", "\\|") for cell in cells) + " |"
