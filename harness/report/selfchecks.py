"""Self-checks as text for a person: how many mutants each scenario caught, and what the others were.

Refuses to know terminals: width and colour are given.
"""

from collections.abc import Iterator, Sequence

from harness.report.table import WORDS, Style
from harness.selfcheckresult import Fate, MutantResult, SelfCheck
from proxy.visible import visible

_WORDS: dict[Fate, str] = {"caught": "caught", "survived": "SURVIVED", "equivalent": "equivalent", "error": "ERROR"}


def as_text(checks: Sequence[SelfCheck], style: Style, *, whole: bool) -> str:
    """The table, ending in a newline; `whole` shows the mutants that were caught too."""
    return "\n".join(_lines(checks, style, whole)) + "\n"


def _lines(checks: Sequence[SelfCheck], style: Style, whole: bool) -> Iterator[str]:
    wide = max([len("scenario"), *(len(visible(check.scenario)) for check in checks)])
    yield f"{'scenario':<{wide}}  {'result':<7}  {'mutants':>7}  {'caught':>6}  {'survived':>8}  equivalent"
    for check in checks:
        numbers = f"{len(check.mutants):>7}  {check.count('caught'):>6}  {check.count('survived'):>8}"
        result = style.paint(check.result, f"{WORDS[check.result]:<7}")
        yield f"{visible(check.scenario):<{wide}}  {result}  {numbers}  {check.count('equivalent'):>10}"
        yield from _details(check, style, whole)
    yield ""
    mutants = sum(len(check.mutants) for check in checks)
    caught = sum(check.count("caught") for check in checks)
    equivalent = sum(check.count("equivalent") for check in checks)
    yield f"{_many(len(checks), 'scenario')}: {caught} of {_many(mutants - equivalent, 'mutant')} caught" + (
        f", {equivalent} equivalent" if equivalent else ""
    )


def _many(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _details(check: SelfCheck, style: Style, whole: bool) -> Iterator[str]:
    if check.problem:
        yield from style.fold(visible(check.problem), "    ", "      ")
    for one in check.mutants:
        if whole or one.fate != "caught":
            yield from style.fold(_described(one), "    ", "      ")
    for unbroken in check.unbroken:
        why = "as was said" if unbroken.meant else "as no mutant is made to"
        said = "NEVER BROKEN" if unbroken.counts else f"never broken, {why}"
        yield from style.fold(f"{said}: {visible(unbroken.id)}", "    ", "      ")


def _described(one: MutantResult) -> str:
    tail = f": {one.reason}" if one.fate in ("caught", "error") else ""
    return visible(f"{_WORDS[one.fate]} {one.mutant.what}{tail}")
