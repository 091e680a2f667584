"""The four architectures: who is told what, in which order, and whose answer is the final one.

Refuses to know models, connections and tasks.
"""

import re
from collections.abc import Mapping

from harness.architectures import prompts
from harness.architectures.stage import Stage
from harness.architectures.toolbox import Outcome, OwnTool
from harness.models.model import ToolOffer
from proxy.spans import JSON

ROOM = 60
"""Characters that a field of a rigid hand-over holds."""
_FIRST_WORD = re.compile(r"\W*(\w+)")


def play(stage: Stage) -> str:
    """Carry the task out; the final answer. Raises ModelError, LimitError and ClientError."""
    names: list[JSON] = [*stage.crew]
    stage.tell("architecture", {"name": stage.agent.architecture, "agents": names})
    match stage.agent.architecture:
        case "single_agent":
            with stage.enter("agent", prompts.ALONE) as agent:
                return agent.work(stage.given)
        case "peer_to_peer":
            return _peers(stage)
        case "supervisor_worker":
            return _supervised(stage)
        case "debate_critic":
            return _debated(stage)


def _peers(stage: Stage) -> str:
    told, answer = stage.given, ""
    peers = list(stage.crew.items())
    for place, (name, servers) in enumerate(peers):
        following, following_servers = peers[place + 1] if place + 1 < len(peers) else (None, ())
        handed: list[str] = []
        own = () if following is None else (_hand_over(stage, name, following, handed),)
        with stage.enter(name, prompts.peer(name, servers, following, following_servers), own) as peer:
            answer = peer.work(told)
            if following is not None and not peer.done:
                answer = peer.work(prompts.NUDGE)
            if not handed:
                return answer
        told = prompts.handed_over(stage.given, name, handed[-1])
    return answer


def _hand_over(stage: Stage, giver: str, taker: str, handed: list[str]) -> OwnTool:
    rigid = stage.agent.handoff == "rigid"
    fields = stage.agent.form if rigid else ("note",)
    text: dict[str, JSON] = {"type": "string", "maxLength": ROOM} if rigid else {"type": "string"}
    properties: dict[str, JSON] = dict.fromkeys(fields, text)
    schema: dict[str, JSON] = {
        "type": "object",
        "properties": properties,
        "required": [*fields],
        "additionalProperties": False,
    }

    def use(arguments: Mapping[str, JSON]) -> Outcome:
        if handed:
            return Outcome("You have handed over already.", is_error=True)
        wrong = _misfits(arguments, fields, ROOM if rigid else None)
        if wrong:
            return Outcome(f"The hand-over was not taken: {wrong}.", is_error=True)
        said = "\n".join(f"{field}: {arguments[field]}" for field in fields) if rigid else str(arguments["note"])
        handed.append(said)
        stage.tell("handoff", {"from": giver, "to": taker, "text": said, "form": stage.agent.handoff})
        return Outcome(f"Handed over to {taker}.", done=True)

    described = f"Hand the task over to {taker}, who is told this and no more of what you know. It ends your part."
    return OwnTool(ToolOffer("hand_over", described, schema), use)


def _misfits(arguments: Mapping[str, JSON], fields: tuple[str, ...], room: int | None) -> str:
    """Why the arguments are not those fields as text; empty where they are."""
    unknown = [name for name in arguments if name not in fields]
    if unknown:
        return f"there is no field {', '.join(unknown)}; there are {', '.join(fields)}"
    for field in fields:
        value = arguments.get(field)
        if not isinstance(value, str):
            return f"{field} has to be a text"
        if room is not None and (len(value) > room or "\n" in value):
            return f"{field} has room for one line of {room} characters"
    return ""


def _supervised(stage: Stage) -> str:
    workers = {name: servers for name, servers in stage.crew.items() if name != "supervisor"}
    with stage.enter("supervisor", prompts.supervisor(list(workers.items())), (_delegate(stage, workers),)) as agent:
        return agent.work(stage.given)


def _delegate(stage: Stage, workers: Mapping[str, tuple[str, ...]]) -> OwnTool:
    schema: dict[str, JSON] = {
        "type": "object",
        "properties": {"worker": {"type": "string", "enum": [*workers]}, "instruction": {"type": "string"}},
        "required": ["worker", "instruction"],
        "additionalProperties": False,
    }

    def use(arguments: Mapping[str, JSON]) -> Outcome:
        match arguments:
            case {"worker": str() as worker, "instruction": str() as instruction} if worker in workers:
                pass
            case _:
                return Outcome(f"Give worker ({', '.join(workers)}) and instruction, both as text.", is_error=True)
        stage.tell("delegation", {"from": "supervisor", "to": worker, "instruction": instruction})
        with stage.enter(worker, prompts.worker(worker, workers[worker])) as agent:
            summary = agent.work(instruction)
        stage.tell("summary", {"from": worker, "to": "supervisor", "text": summary})
        return Outcome(summary)

    described = "Give one worker one instruction. It knows nothing else. You get its summary."
    return OwnTool(ToolOffer("delegate", described, schema), use)


def _debated(stage: Stage) -> str:
    with stage.enter("proposer", prompts.ALONE) as proposer:
        draft = proposer.work(stage.given)
        for number in range(1, stage.agent.revisions + 1):
            log = "\n".join(proposer.box.log) or "(no tool was called)"
            with stage.enter("critic", prompts.CRITIC) as critic:
                text = critic.work(prompts.to_review(stage.given, log, draft))
            word = _FIRST_WORD.match(text)
            accepted = word is not None and word[1].casefold() == "accept"
            stage.tell("critique", {"accepted": accepted, "text": text, "draft": draft, "input": log})
            if accepted:
                break
            stage.tell("revision", {"number": number})
            draft = proposer.work(prompts.to_revise(text))
    return draft
