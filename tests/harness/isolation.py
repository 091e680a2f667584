"""Trials that run at once, each with a marker of its own, and where each marker is found afterwards."""

import json
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from proxy.spans import JSON
from tests.harness.runs import Ran, run, write_scenario

REPORTS = ("report.json", "report.md", "report.sarif", "junit.xml", "results.ndjson")
"""Files of a run that have a part for each trial."""


@dataclass(frozen=True, slots=True)
class Planted:
    """`markers` are by scenario; each stands in the agent's arguments, in a ticket and in what the agent says."""

    ran: Ran
    markers: dict[str, str]

    def missing(self) -> list[str]:
        """What does not have its own marker, though it must: else nothing would be shown by the markers' absence."""
        return [
            f"{name}: {file}"
            for name, marker in self.markers.items()
            for file in (
                "trace.json",
                "spans/run.jsonl",
                "state/ticketing.after.jsonl",
                "state/ticketing.journal.jsonl",
            )
            if marker.encode() not in (self.ran.folder / name / "1" / file).read_bytes()
        ]

    def strays(self) -> list[str]:
        """Where a marker of another trial stands."""
        return [
            f"{place}: that of {name}"
            for place, owner, data in self._pieces()
            for name, marker in self.markers.items()
            if name != owner and marker.encode() in data
        ]

    def _pieces(self) -> Iterator[tuple[str, str, bytes]]:
        """A place, whose it is, and what stands there: the trials' files, and of the reports each trial's part."""
        for path in sorted(self.ran.folder.rglob("*")):
            if path.is_file() and path.name not in REPORTS:
                place = path.relative_to(self.ran.folder)
                yield str(place), place.parts[0], path.read_bytes()
        for line in (self.ran.folder / "results.ndjson").read_bytes().splitlines():
            yield "results.ndjson", str(json.loads(line)["scenario"]), line
        match self.ran.document("report.json"):
            case {"scenarios": list(scenarios), **rest}:
                yield "report.json", "", json.dumps(rest).encode()
                for scenario in scenarios:
                    assert isinstance(scenario, dict)
                    yield "report.json", str(scenario["id"]), json.dumps(scenario).encode()
            case _:
                raise AssertionError("the report has no scenarios")
        for row in (self.ran.folder / "report.md").read_text().splitlines():
            yield "report.md", row.split(" ")[1] if row.startswith("| ") else "", row.encode()
        for result in json.loads((self.ran.folder / "report.sarif").read_text())["runs"][0]["results"]:
            yield "report.sarif", result["properties"]["scenario"], json.dumps(result).encode()
        for case in ElementTree.parse(self.ran.folder / "junit.xml").iter("testcase"):
            yield "junit.xml", str(case.get("name")), ElementTree.tostring(case)


def plant(folder: Path, trials: int, jobs: int) -> Planted:
    """Run so many scripted trials in process, so many at once."""
    markers = {f"trial-{number:03}": f"marker{secrets.token_hex(16)}" for number in range(1, trials + 1)}
    paths = [_scenario(folder, name, marker) for name, marker in markers.items()]
    return Planted(run(paths, folder, jobs=jobs), markers)


def _scenario(folder: Path, name: str, marker: str) -> Path:
    tool = "mcp/ticketing/update_ticket"
    changed: dict[str, JSON] = {"ticket_id": 1, "description": marker}
    steps: list[JSON] = [
        {"call": "mcp/ticketing/create_ticket", "arguments": {"customer_id": "CUST-001", "description": marker}},
        {"call": tool, "arguments": {**changed}},
        {"call": "mcp/ticketing/search_tickets", "arguments": {"customer_id": "CUST-001"}},
        {"say": f"It is {marker}."},
    ]
    agent = folder / f"{name}.agent.yaml"
    folder.mkdir(parents=True, exist_ok=True)
    agent.write_text(json.dumps({"transport": "in_process", "steps": steps}))
    query = f"select count(*) from tickets where description = '{marker}'"
    return write_scenario(
        folder,
        id=name,
        servers={"ticketing": {"fixture": "ticketing", "trust": "internal"}},
        agent={"scripted": str(agent)},
        assertions=[
            {"type": "tool_called", "tool": tool, "arguments": {**changed}},
            {"type": "state", "server": "ticketing", "query": query, "equals": [[2]]},
        ],
    )


def main() -> int:
    """A hundred trials, four at once; 0 when all pass and no marker is where it does not belong."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="wiretrap-isolation-") as folder:
        planted = plant(Path(folder), 100, 4)
        passed = sum(trial.verdict.result == "pass" for trial in planted.ran.result.trials)
        missing, strays = planted.missing(), planted.strays()
    seconds = time.monotonic() - began
    lines = [f"{passed} of {len(planted.markers)} trials passed, 4 at once, in {seconds:.1f} s"]
    lines += [f"has not its own marker: {text}" for text in missing]
    lines += [f"has a marker of another trial: {text}" for text in strays]
    lines.append(f"{len(strays)} markers in another trial's files")
    sys.stdout.write("\n".join(lines) + "\n")
    return 0 if passed == len(planted.markers) and not missing and not strays else 1


if __name__ == "__main__":
    sys.exit(main())
