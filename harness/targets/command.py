"""Runs an agent that is a program of somebody's: it is handed a prompt and an MCP configuration, and left alone.

Refuses to know what the program is. The process that calls this belongs to the trial: whatever is found below it at the
end was started by the agent, and is ended.
"""

import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.agentfile import PLACEHOLDERS
from harness.processes import Process, command_line, descendants, end_descendants
from harness.runfolder import write_new
from harness.targets.conversation import Conversation
from harness.targets.counting import CallCounter
from harness.targets.deadline import Deadline, TimeUpError, TrialCancelledError
from harness.targets.ending import Ending
from harness.targets.folderwatch import FolderWatch
from harness.targets.profiles.known import Profile
from harness.targets.profiles.launch import Given, Launch, Start, Tokens, Told, named_model
from harness.targets.streams import Streams
from proxy.plainfile import open_plain
from proxy.spanfile import SpanFileError
from proxy.spans import JSON

PLACEHOLDER = re.compile(r"\{(" + "|".join(PLACEHOLDERS) + r")\}")
PACE = 0.05
"""Seconds between two looks at the span files."""
PATIENCE = 5.0
"""Seconds that a proxy gets to end by itself, and to record that: with the agent gone its input has ended."""
LONGEST_VARIABLE = 100_000
"""Bytes; Linux takes no argument or variable past 128 KiB (MAX_ARG_STRLEN)."""
APART = (sys.executable, "-P", "-m", "harness.targets.apart")
ANSWER_CAP = 16 * 1024 * 1024
"""Bytes of the answer that are looked at (wire rule 2); agent.out has all of it."""


@dataclass(frozen=True, slots=True)
class Handed:
    """The files that the agent gets, in the trial's private temporary folder."""

    prompt: str
    prompt_file: Path
    input_file: Path
    mcp_config: Path
    context: Path
    servers: Mapping[str, Start]

    def fill(self, argument: str) -> str:
        """The argument with its placeholders replaced once; what a prompt says is not looked into again."""
        values = {"prompt": self.prompt, "prompt_file": str(self.prompt_file), "mcp_config": str(self.mcp_config)}
        return PLACEHOLDER.sub(lambda found: values[found[1]], argument)

    def environment(self, ours: Mapping[str, str]) -> dict[str, str]:
        """Our environment without `WIRETRAP_*`, and with the three variables of verdicts.md section 2.

        WIRETRAP_PROMPT is absent where the prompt is longer than a variable may be; the file has it whole.
        """
        environment = {name: value for name, value in ours.items() if not name.startswith("WIRETRAP_")}
        if len(os.fsencode(self.prompt)) <= LONGEST_VARIABLE and "\0" not in self.prompt:
            environment["WIRETRAP_PROMPT"] = self.prompt
        environment["WIRETRAP_INPUT_FILE"] = str(self.input_file)
        environment["WIRETRAP_MCP_CONFIG"] = str(self.mcp_config)
        return environment


def hand_over(folder: Path, given: Mapping[str, JSON], servers: Mapping[str, Start], context: Path) -> Handed:
    """Write the prompt, the whole `input` and the MCP configuration into `folder`."""
    entries: dict[str, JSON] = {name: start.as_config() for name, start in servers.items()}
    prompt = given.get("user_message")
    text = prompt if isinstance(prompt, str) else ""
    return Handed(
        prompt=text,
        prompt_file=write_new(folder / "prompt.txt", text),
        input_file=write_new(folder / "input.json", json.dumps(dict(given), indent=2) + "\n"),
        mcp_config=write_new(folder / "mcp.json", json.dumps({"mcpServers": entries}, indent=2) + "\n"),
        context=context,
        servers=servers,
    )


def run_command(
    command: Sequence[str],
    cwd: Path,
    handed: Handed,
    streams: Streams,
    conversation: Conversation,
    deadline: Deadline,
    most_calls: int | None,
    profile: Profile | None = None,
) -> Ending:
    """Run the agent until it ends or a limit is reached, end all it started, and take down its answer."""
    with FolderWatch(streams.folder.spans) as watch:
        counter = CallCounter(streams.folder.spans, watch)
        spare = descendants(os.getpid())
        environment = handed.environment(os.environ)
        arguments = [handed.fill(argument) for argument in command]
        task = Path(os.devnull)
        try:
            if profile is not None:
                given = Given(handed.servers, handed.mcp_config, handed.prompt_file.parent, environment, APART)
                launch = profile.launch(given)
                _lay_out(launch)
                arguments += launch.arguments
                environment |= launch.environment
                task = handed.prompt_file
            with task.open("rb") as given_in, streams.output.open("ab") as output, streams.errors.open("ab") as errors:
                process = subprocess.Popen(
                    arguments,
                    stdin=given_in,
                    stdout=output,
                    stderr=errors,
                    cwd=cwd,
                    env=environment,
                    # Ctrl-C on the terminal reaches us alone, and the agent's own group is never ours.
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            return Ending("infra_error", f"the agent cannot be started: {command[0]!r}: {error}")
        ending = Ending("harness_error", "the agent could not be watched")
        try:
            ending = _watch(process, counter, deadline, most_calls)
        finally:
            _end(spare, handed.context, 0.0 if ending.status == "cancelled" else PATIENCE)
            # Already reaped where the lines above had to end it.
            process.wait()
        damage: tuple[str, ...] = ()
        try:
            streams.publish()
            answer = _answer(streams.folder.output)
            told = Told(read=False) if profile is None else profile.read(answer)
            if told.read:
                _take_down(told, named_model(command), conversation)
            else:
                conversation.say(answer)
        except OSError as error:
            damage = (f"what the agent said cannot be read: {streams.output.name}: {error.strerror or error}",)
        except SpanFileError as error:
            damage = (f"what the agent said cannot be recorded: {error}",)
        if ending.status in ("completed", "agent_crash") and most_calls is not None and counter.count() > most_calls:
            ending = _over(most_calls)
        counter.look()
        return replace(ending, doubts=counter.doubts, damage=damage)


def _lay_out(launch: Launch) -> None:
    """Write the files and make the links that an agent is started with; their folders are private."""
    for path, text in launch.files.items():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_new(path, text)
    for path, target in launch.links.items():
        if target.is_file():
            path.symlink_to(target)


def _take_down(told: Told, named: str | None, conversation: Conversation) -> None:
    """Its messages and tokens; `named` is the model that the agent's command line asks for."""
    for text in told.said:
        conversation.say(text)
    if told.tokens is not None or told.failed:
        tokens, model = told.tokens or Tokens(), told.model or named
        conversation.report(
            "model_call",
            {
                "in": tokens.fresh,
                "cached": tokens.cached,
                "out": tokens.out,
                "error": told.failed,
                **({} if model is None else {"model": model}),
            },
        )


def _watch(
    process: subprocess.Popen[bytes], counter: CallCounter, deadline: Deadline, most_calls: int | None
) -> Ending:
    descriptor = os.pidfd_open(process.pid)
    try:
        while descriptor not in deadline.wait({descriptor: select.POLLIN}, PACE):
            counter.look()
            if most_calls is not None and counter.count() > most_calls:
                return _over(most_calls)
    except TimeUpError:
        return Ending("agent_timeout", "the agent did not end within limits.seconds")
    except TrialCancelledError as error:
        return Ending("cancelled", str(error))
    finally:
        os.close(descriptor)
    code = process.wait()
    if code < 0:
        return Ending("agent_crash", f"the agent was ended by {_signal_name(-code)}; what it said is in agent.err")
    if code > 0:
        return Ending("agent_crash", f"the agent ended with exit code {code}; what it said is in agent.err")
    return Ending("completed")


def _over(most_calls: int) -> Ending:
    return Ending("limit", f"the agent made more than limits.tool_calls = {most_calls} calls")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _end(spare: Sequence[Process], context: Path, patience: float) -> None:
    def is_proxy(process: Process) -> bool:
        return str(context) in command_line(process.pid)

    end_descendants(os.getpid(), spare=spare, patience=patience, shelter=is_proxy)


def _answer(output: Path) -> str:
    with open_plain(output) as file:
        return file.read(ANSWER_CAP).decode(errors="surrogateescape")
