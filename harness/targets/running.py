"""Runs an agent of any kind: its scenario and servers in, how it ended out, and what it said taken down.

Refuses to know how a trial is judged.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from harness.agentfile import Agent, CommandAgent, ScriptedAgent
from harness.hiding import Hiding
from harness.modelagent import ModelAgent
from harness.runfolder import TrialFolder
from harness.scenario import Scenario
from harness.targetfile import Called, Recorded, Remote
from harness.targets.asked import Task, run_asked
from harness.targets.command import hand_over, run_command
from harness.targets.context import Context
from harness.targets.conversation import Conversation
from harness.targets.deadline import Deadline
from harness.targets.ending import Ending
from harness.targets.piped import run_piped
from harness.targets.profiles.known import PROFILES
from harness.targets.profiles.launch import Start
from harness.targets.proxied import Prepared
from harness.targets.streams import Streams
from harness.uncollected import uncollected


@dataclass(frozen=True, slots=True)
class Run:
    """One agent and its scenario, the trial's folder and private folder, what is hidden, and what cancels it."""

    scenario: Scenario
    agent: Agent
    folder: TrialFolder
    private: Path
    hiding: Hiding
    trial: int
    cancel: int | None = None


def run_agent(run: Run, prepared: Prepared, context: Context, conversation: Conversation) -> Ending:
    """Run the agent to its end; every process that it started has ended when this returns."""
    limits, private = run.scenario.limits, run.private
    streams = Streams(run.folder, private, run.hiding)
    match run.agent:
        case ScriptedAgent(transport="stdio") as agent:
            deadline = Deadline.after(limits.seconds, run.cancel)
            return run_piped(agent, prepared, streams, conversation, deadline, limits.tool_calls)
        case ScriptedAgent() as agent:
            # Only here is the MCP SDK needed in this process, and it takes a second to import.
            with uncollected():
                from harness.targets.direct import run_direct  # noqa: PLC0415  (it loads the SDK)

            deadline = Deadline.after(limits.seconds, run.cancel)
            tap = conversation.file.tap
            return run_direct(
                agent, prepared, context, run.folder.spans, conversation, deadline, limits.tool_calls, tap
            )
        case ModelAgent() as agent:
            # Only here are models and architectures needed.
            from harness.targets.model import Given, run_model  # noqa: PLC0415  (it loads what models need)

            given = Given(run.scenario.input, tuple(run.scenario.servers), limits, run.trial)
            deadline = Deadline.after(limits.seconds, run.cancel)
            return run_model(agent, prepared, given, context, streams, private, conversation, deadline)
        case CommandAgent(command=command) as agent:
            handed = hand_over(private, run.scenario.input, _starts(prepared), prepared.context)
            deadline = Deadline.after(limits.seconds, run.cancel)
            cwd = _folder_of(agent, run.scenario)
            profile = None if agent.profile is None else PROFILES[agent.profile]
            return run_command(command, cwd, handed, streams, conversation, deadline, limits.tool_calls, profile)

        case Remote() | Called() as agent:
            task = Task(
                run.scenario.id,
                run.scenario.input,
                {name: start.as_config() for name, start in _starts(prepared).items()},
                hand_over(private, run.scenario.input, _starts(prepared), prepared.context),
                streams,
                private,
                run.hiding,
                Deadline.after(limits.seconds, run.cancel),
                limits.tool_calls,
            )
            return run_asked(agent, task, conversation)
        case Recorded():
            raise AssertionError("a recorded trace is not run")


def _starts(prepared: Prepared) -> dict[str, Start]:
    return {one.id: Start(one.command, one.environment, one.front) for one in prepared.upstreams}


def ports_of(agent: Agent) -> Mapping[str, int] | None:
    """Where the proxies listen; None where the agent starts them."""
    match agent:
        case Remote(ports=ports):
            return ports
        case _:
            return None


def reachable(scenario: Scenario, agent: Agent) -> Scenario:
    """The scenario without the servers that its agent has no way to: what they hold would say nothing of it."""
    match agent:
        case Remote(ports=None):
            return replace(scenario, servers={}, policy=None, policy_map=None)
        case _:
            return scenario


def unpointed(scenario: Scenario, agent: Agent) -> str:
    """Why the agent has no way to the scenario's servers, as far as what it was given tells; "" where it has one."""
    match agent:
        case CommandAgent() if agent.unpointed:
            return (
                "its command has no {mcp_config}, so it must read the file that the variable WIRETRAP_MCP_CONFIG names"
            )
        case Remote(ports=None, contract=contract) if scenario.servers:
            ways = {"http": "`hand_over: true` nor `ports`", "chat": "`ports` nor `{mcp_servers}` in its `request`"}
            return f"its agent file has neither {ways[contract]}, so that it has no way to the scenario's servers"
        case _:
            return ""


def _folder_of(agent: CommandAgent, scenario: Scenario) -> Path:
    """Where the agent's command is run: in the folder of the file that names it, else where we are."""
    if agent.path is not None:
        return agent.path.parent
    return scenario.path.parent if agent is scenario.agent else Path(os.getcwd())
