"""The official suite against a server over stdio: through `wiretrap proxy bridge`, and with `proxy stdio` behind it.

Refuses to know where the results go.
"""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from tests.conformance import suite

HEAD = "| role, revision | through `proxy bridge`: checks passed in scenarios | failed, but not directly over HTTP | through `proxy bridge` and `proxy stdio` | scenarios that differ |"  # noqa: E501  (a row of a table)

Listening = Callable[[list[str], int], AbstractContextManager[None]]


def passed(checks: suite.Checks) -> str:
    """How many checks passed, of how many, in how many scenarios."""
    good = sum(count for one in checks.values() for (_, status), count in one.items() if status == "SUCCESS")
    return f"{good} of {sum(one.total() for one in checks.values())} in {len(checks)}"


def failed(checks: suite.Checks) -> set[tuple[str, str]]:
    """The checks that failed, each with its scenario."""
    return {(name, check) for name, one in checks.items() for check, status in one if status == "FAILURE"}


def rows(
    fixture: Path, folder: Path, direct: dict[str, suite.Checks], listening: Listening, port: Callable[[], int]
) -> tuple[list[str], bool]:
    """The table's rows, and whether all is as it must be; `direct` has the checks of the same server over HTTP."""
    wiretrap = str(Path(sys.executable).with_name("wiretrap"))
    server = [sys.executable, "-P", str(fixture), "stdio"]
    spans = ["--spans", str(folder / "bridge-spans"), "--quiet"]
    behind = [wiretrap, "proxy", "stdio", "--server", "fixture", *spans, "--", *server]
    runs: list[dict[str, suite.Checks]] = []
    for name, command in (("bridge", server), ("both", behind)):
        at = port()
        front = [wiretrap, "proxy", "bridge", "--server", "fixture", "--port", str(at), *spans, "--", *command]
        with listening(front, at):
            url = f"http://127.0.0.1:{at}/mcp"
            runs.append({one: suite.run(url, one, folder / f"{name}-{one}") for one in suite.REVISIONS})
    found: list[str] = []
    good = True
    for revision in suite.REVISIONS:
        first, second = runs[0][revision], runs[1][revision]
        different = suite.differences(first, second)
        worse = failed(first) - failed(direct[revision])
        good = good and not different and not worse and first.keys() == direct[revision].keys() and len(first) > 0
        cells = [f"server over stdio, {revision}", passed(first), str(len(worse)), passed(second)]
        found.append(f"| {' | '.join(cells)} | {len(different)} of {len(first)} |")
        for one in different:
            sys.stderr.write(f"{one.scenario}: bridge {dict(one.first)}, with proxy stdio {dict(one.second)}\n")
        for scenario, check in sorted(worse):
            sys.stderr.write(f"{scenario}: {check} fails through the bridge only\n")
    return found, good
