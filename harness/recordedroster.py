"""Who the agents of a run that was recorded were, by its manifest.

Refuses to know traces and verdicts.
"""

from pathlib import Path

from harness.checked import CheckError, read_object
from harness.roster import Roster, read_roster
from harness.runfolder import MANIFEST


def roster_of(run: Path, scenario_id: str) -> Roster | None:
    """The roster of a scenario's agents in a run folder; None where they were not of our making, or nobody knows."""
    try:
        match read_object(run / MANIFEST, needed=False):
            case {"scenarios": dict(scenarios)}:
                made_of = scenarios.get(scenario_id)
            case _:
                return None
    except CheckError:
        return None
    match made_of:
        case {"agent": {"roster": said}}:
            return read_roster(said)
        case _:
            return None
