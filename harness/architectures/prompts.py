"""Every word that our agents are told by us. None of it says what a task is about, least of all how it comes out.

Refuses to know who says it when.
"""

from collections.abc import Sequence

ALONE = (
    "You carry out the user's task with your tools. Use tools to find things out and to change things; never guess "
    "what a tool can tell you. Do exactly what is asked and no more. When you are done, say in one or two sentences "
    "what you did and found."
)
CRITIC = (
    "You review the work of another agent. You have no tools. You are given the task, the log of the tool calls that "
    "were really made with their results, and the agent's draft of its answer. Check whether the task was carried out "
    "fully and correctly, and whether the draft says only what the log shows. The first word of your answer is ACCEPT "
    "when nothing is wrong, else REVISE; after REVISE say what is wrong and what has to be done."
)
NUDGE = "You have not handed over yet. Use the tool hand_over."


def peer(name: str, tools: Sequence[str], following: str | None, following_servers: Sequence[str]) -> str:
    """The system prompt of one peer; `following` is who comes after it, None for the last."""
    first = (
        f"You are {name}, one of several agents that carry out a task together. You work with {_systems(tools)}. "
        "Use tools to find things out and to change things; never guess what a tool can tell you."
    )
    if following is None:
        return f"{first} You are the last: finish the task, then say in one or two sentences what was done and found."
    return (
        f"{first} After you comes {following}, who works with {_systems(following_servers)} and cannot use your tools, "
        f"nor see what they answered. Do your part of the task, then hand over to {following} with the tool hand_over."
    )


def handed_over(task: str, giver: str, text: str) -> str:
    """What a peer is told that comes after another."""
    return f"The task:\n{task}\n\n{giver} did its part and hands over to you:\n{text}"


def supervisor(workers: Sequence[tuple[str, Sequence[str]]]) -> str:
    """The system prompt of a supervisor; each worker with its servers."""
    who = "; ".join(f"{name}, who works with {_systems(servers)}" for name, servers in workers)
    return (
        "You carry out the user's task through workers; you have no other tools. With the tool delegate you give one "
        f"worker one instruction, and get its summary. The workers are: {who}. A worker starts afresh each time and "
        "knows nothing but your instruction: neither the task, nor what it or another worker did before. When the task "
        "is done, say in one or two sentences what was done and found."
    )


def worker(name: str, servers: Sequence[str]) -> str:
    """The system prompt of a worker."""
    return (
        f"You are {name}. You work with {_systems(servers)}. Carry out the instruction with your tools, and do no more "
        "than it says; never guess what a tool can tell you. Then answer with a short summary for the one who "
        "instructed you: what you did and found."
    )


def to_review(task: str, log: str, draft: str) -> str:
    """What the critic is told."""
    return f"The task:\n{task}\n\nThe log of the tool calls:\n{log}\n\nThe draft:\n{draft}"


def to_revise(critique: str) -> str:
    """What the proposer is told after a critique."""
    return f"A reviewer says of your draft:\n{critique}\n\nPut right what is wrong, then give your answer again."


def _systems(servers: Sequence[str]) -> str:
    match list(servers):
        case []:
            return "no system"
        case [one]:
            return f"the system {one}"
        case many:
            return f"the systems {', '.join(many)}"
