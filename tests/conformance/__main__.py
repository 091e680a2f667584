"""`make conformance`: the official suite against a server, and against the same server behind the proxies.

And against a client, direct and through `wiretrap proxy forward`.

Exit code 1 where a scenario differs, or nothing was compared. `--write FILE` writes the table into a page, `--role`
runs one half of it.
"""

import argparse
import os
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep

from tests.conformance import bridges, suite

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("WIRETRAP_SHARED", ROOT.parent / "shared"))
BEGIN, END = "<!-- results -->", "<!-- end of results -->"
BRIDGES, END_OF_BRIDGES = "<!-- results of bridges -->", "<!-- end of results of bridges -->"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port: int = one.getsockname()[1]
        return port


@contextmanager
def listening(command: list[str], port: int) -> Iterator[None]:
    """A process that listens at a port, for as long as it is wanted."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until = monotonic() + 30
            while True:
                with socket.socket() as attempt:
                    if attempt.connect_ex(("127.0.0.1", port)) == 0:
                        break
                if process.poll() is not None or monotonic() > until:
                    raise OSError(f"{' '.join(command[:4])} does not listen at {port}")
                sleep(0.05)
            yield
        finally:
            process.terminate()


def rows(fixture: Path, folder: Path) -> tuple[list[str], bool, dict[str, suite.Checks]]:
    """The table's rows, whether the proxy changed nothing, and what the server's own checks said."""
    server, front = free_port(), free_port()
    direct, proxied = f"http://127.0.0.1:{server}/mcp", f"http://127.0.0.1:{front}/mcp"
    wiretrap = str(Path(sys.executable).with_name("wiretrap"))
    proxy = [wiretrap, "proxy", "http", "--server", "fixture", "--url", direct, "--port", str(front), "--quiet"]
    proxy += ["--spans", str(folder / "spans")]
    found: list[str] = []
    same = True
    direct_checks: dict[str, suite.Checks] = {}
    with listening([sys.executable, "-P", str(fixture), "http", str(server)], server), listening(proxy, front):
        for revision in suite.REVISIONS:
            first = suite.run(direct, revision, folder / f"direct-{revision}")
            second = suite.run(proxied, revision, folder / f"proxied-{revision}")
            direct_checks[revision] = first
            row, equal = compared(f"server by `proxy http`, {revision}", first, second)
            found.append(row)
            same = same and equal
    return found, same, direct_checks


def client_rows(fixture: Path, folder: Path) -> tuple[list[str], bool]:
    """The same for a client, whose requests go through a forward proxy."""
    front = free_port()
    wiretrap = str(Path(sys.executable).with_name("wiretrap"))
    spans = folder / "client-spans"
    proxy = [wiretrap, "proxy", "forward", "--server", "suite=localhost", "--port", str(front), "--quiet"]
    program = shlex.join([sys.executable, "-P", str(fixture)])
    found: list[str] = []
    same = True
    with listening([*proxy, "--spans", str(spans)], front):
        for revision in suite.REVISIONS:
            direct, proxied = folder / f"client-direct-{revision}", folder / f"client-proxied-{revision}"
            for scenario in suite.client_scenarios(revision):
                suite.run_client(program, scenario, revision, direct, None)
                before = size_of(spans)
                suite.run_client(program, scenario, revision, proxied, f"http://127.0.0.1:{front}")
                if size_of(spans) == before:
                    sys.stderr.write(f"{scenario}: nothing of it went through the proxy\n")
                    same = False
            row, equal = compared(f"client by `proxy forward`, {revision}", suite.read(direct), suite.read(proxied))
            found.append(row)
            same = same and equal
    return found, same


def size_of(spans: Path) -> int:
    """The bytes of a record so far."""
    return sum(file.stat().st_size for file in spans.glob("*.jsonl"))


def compared(role: str, first: suite.Checks, second: suite.Checks) -> tuple[str, bool]:
    """A row of the table, and whether the two runs say the same, and anything."""
    different = suite.differences(first, second)
    runs = (first, second)
    passed = [sum(n for checks in run.values() for (_, s), n in checks.items() if s == "SUCCESS") for run in runs]
    total = [sum(checks.total() for checks in run.values()) for run in runs]
    cells = [f"{passed[at]} of {total[at]} in {len(run)}" for at, run in enumerate(runs)]
    for one in different:
        sys.stderr.write(f"{one.scenario}: direct {dict(one.first)}, proxied {dict(one.second)}\n")
    row = f"| {role} | {cells[0]} | {cells[1]} | {len(different)} of {len(first)} |"
    return row, not different and len(first) > 0


def main(arguments: list[str]) -> int:
    """Run it; 0 where nothing differs, also where the fixture of the suite is not on this machine."""
    fixture = SHARED / "conformance" / "fixture_server.py"
    if not fixture.exists():
        sys.stderr.write(f"conformance: {fixture} is not there; name its folder's parent in WIRETRAP_SHARED\n")
        return 0
    if shutil.which("npm") is None:
        sys.stderr.write("conformance: npm is not on this machine, so the suite cannot be installed; nothing was run\n")
        return 0
    try:
        suite.make()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"conformance: the suite cannot be had: {error}\n")
        return 1
    told = argparse.ArgumentParser(prog="make conformance")
    told.add_argument("--write", type=Path, metavar="FILE")
    told.add_argument("--role", choices=("server", "client"))
    options = told.parse_args(arguments)
    found: list[str] = []
    more: list[str] = []
    bridged: list[str] = []
    same = also = good = True
    with TemporaryDirectory() as folder:
        if options.role != "client":
            found, same, direct = rows(fixture, Path(folder))
            bridged, good = bridges.rows(fixture, Path(folder), direct, listening, free_port)
        if options.role != "server":
            more, also = client_rows(fixture.with_name("fixture_client.py"), Path(folder))
    head = ["| role, revision | direct: checks passed in scenarios | through the proxy | scenarios that differ |"]
    table = "\n".join([*head, "|---|---|---|---|", *found, *more])
    of_bridges = "\n".join([bridges.HEAD, "|---|---|---|---|---|", *bridged])
    sys.stdout.write(f"{table}\n\n{of_bridges}\n")
    if options.write is not None:
        write(options.write, BEGIN, table, END)
        write(options.write, BRIDGES, of_bridges, END_OF_BRIDGES)
    return 0 if same and also and good else 1


def write(page: Path, begin: str, table: str, end: str) -> None:
    """Put a table between two marks of a page."""
    before, _, rest = page.read_text().partition(begin)
    page.write_text(f"{before}{begin}\n{table}\n{end}{rest.partition(end)[2]}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
