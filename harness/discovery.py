"""Which files under a path are scenarios, and all scenarios of a run at once.

Refuses to know what is in a scenario beyond telling it from the other files that people write.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, TypeAlias

from harness.lookalike import AGENT_FIELDS, POLICY_FIELDS, SCENARIO_FIELDS, SWEEP_FIELDS, is_up_file
from harness.offer import Offers
from harness.places import is_folder, is_there
from harness.scenario import Scenario, ScenarioError, load_scenario
from harness.seedfile import is_seed
from proxy.plainfile import open_plain
from proxy.problem import Problem
from proxy.spans import JSON
from proxy.yamlfile import YamlError, load_document

Kind: TypeAlias = Literal["scenario", "agent", "policy", "seed", "script", "sweep", "up"]

_FOLDERS: dict[str, Kind] = {"agents": "agent", "policies": "policy", "seeds": "seed", "scripts": "script"}


def classify(path: Path) -> Kind:
    """What a YAML file is, by what is in it: the fields that only a scenario, an agent file or a policy has at its top.

    A seed is a map of nothing but lists of maps. What is none of these, or cannot be read, is what its folder says
    (agents, policies, seeds, scripts), else a scenario, so that a broken scenario is an error and never passed over.
    """
    try:
        with open_plain(path, follow=True) as file:
            data: JSON = load_document(file.read(), str(path)).data
    except (OSError, YamlError):
        data = None
    keys = set(data) if isinstance(data, dict) else set()
    if keys == {"policy"}:
        # As it stands in a scenario; who reads it says what to take out.
        return "policy"
    if is_up_file(data):
        return "up"
    if keys >= SWEEP_FIELDS and keys.isdisjoint(SCENARIO_FIELDS):
        return "sweep"
    if keys == {"script"}:
        return "script"
    said = _FOLDERS.get(path.parent.name, "scenario")
    if (
        is_seed(data)
        and keys.isdisjoint(SCENARIO_FIELDS | AGENT_FIELDS | POLICY_FIELDS)
        and said in ("seed", "scenario")
    ):
        return "seed"
    fields: dict[Kind, frozenset[str]] = {"scenario": SCENARIO_FIELDS, "agent": AGENT_FIELDS, "policy": POLICY_FIELDS}
    counts = {kind: len(keys & known) for kind, known in fields.items()}
    if not any(counts.values()):
        counts = {kind: sum(_is_near(key, known) for key in keys) for kind, known in fields.items()}
    best = max(counts, key=lambda kind: counts[kind])
    return best if counts[best] else said


def _is_near(key: str, known: Iterable[str]) -> bool:
    """Whether a field is one of these with a slip in it."""
    return bool(get_close_matches(key, known, n=1, cutoff=0.8))


def yaml_files(folder: Path) -> list[Path]:
    """Every .yaml and .yml file under a folder, in order of path, hidden files and folders apart."""
    found = [path for path in folder.rglob("*") if path.suffix in (".yaml", ".yml") and path.is_file()]
    return sorted(path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts))


def find_scenarios(paths: Iterable[Path]) -> list[Path]:
    """The scenario files that the paths name: a file is one as it is, a folder has those under it. Each comes once.

    Raises ScenarioError for a path that is not there and a folder without scenarios.
    """
    found: dict[Path, Path] = {}
    problems: list[Problem] = []
    for path in paths:
        if is_folder(path):
            files = [file for file in yaml_files(path) if classify(file) == "scenario"]
            if not files:
                problems.append(Problem(str(path), None, "", "there is no scenario in this folder"))
        elif is_there(path):
            files = [path]
        else:
            problems.append(Problem(str(path), None, "", "there is no such file or folder"))
            continue
        for file in files:
            found.setdefault(file.resolve(), file)
    if problems:
        raise ScenarioError(problems)
    return list(found.values())


def load_scenarios(paths: Iterable[Path], fixtures: Offers | None = None) -> tuple[Scenario, ...]:
    """All scenarios of a run, in order. Raises ScenarioError with everything that is wrong with any of them.

    Two scenarios of one id are an error, since a run folder has one folder for each.
    """
    scenarios: list[Scenario] = []
    problems: list[Problem] = []
    for path in find_scenarios(paths):
        try:
            scenarios.append(load_scenario(path, fixtures))
        except ScenarioError as error:
            problems.extend(error.problems)
    problems.extend(repeated_ids(scenarios))
    if problems:
        raise ScenarioError(dict.fromkeys(problems))
    return tuple(scenarios)


def repeated_ids(scenarios: Iterable[Scenario]) -> list[Problem]:
    """A problem for each scenario whose id an earlier one has."""
    first: dict[str, Path] = {}
    problems = []
    for scenario in scenarios:
        if scenario.id in first:
            message = f"the id {scenario.id!r} is taken by {first[scenario.id]}; each scenario of a run needs its own"
            problems.append(Problem(str(scenario.path), None, "id", message))
        first.setdefault(scenario.id, scenario.path)
    return problems
