"""When the absence of a call or an event is evidence that it did not happen (verdicts.md section 3).

Refuses to know what is absent.
"""

from harness.evidence import Evidence


def doubt(evidence: Evidence) -> str | None:
    """Why a call that is not in the record may have happened all the same; None when absence is evidence.

    Absence is evidence when the trial completed, nothing of the record is lost, and each server that the scenario names
    was initialised through us; in a recorded trace, when it has a message, a call or an event.
    """
    unfinished = record_doubt(evidence)
    if unfinished is not None:
        return unfinished
    trace = evidence.trace
    if evidence.recorded:
        return None if trace.messages or trace.tool_calls or trace.events else "the recorded trace is empty"
    silent = [server for server in evidence.servers if server not in evidence.initialised]
    if silent:
        hint = f" ({evidence.unpointed})" if evidence.unpointed else ""
        return f"{', '.join(silent)} {'was' if len(silent) == 1 else 'were'} never initialised through us{hint}"
    return None if evidence.initialised else "no server was initialised through us"


def record_doubt(evidence: Evidence) -> str | None:
    """Why the record of what an agent says may lack something; None when it is whole."""
    if not evidence.completed:
        return "the trial did not complete"
    if evidence.trace.gaps:
        return f"the record is incomplete ({', '.join(evidence.trace.gaps)})"
    return None
