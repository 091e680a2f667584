"""Agents that are reached, called or read instead of being started by a command: their fields in an agent file.

Refuses to know how any of them is run.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import AfterValidator, ConfigDict, Field, JsonValue

from harness.intake import Entry, Intake
from harness.scenariofile import VariableName, Word
from proxy.problem import Path as FieldPath
from proxy.secretvalues import named_secrets
from proxy.spans import JSON
from proxy.webaddress import read_url

Framework: TypeAlias = Literal["python", "openai-agents", "langchain", "pydantic-ai"]
"""What calls the function of an agent: nothing but Python, or a framework that it makes an agent of."""
FRAMEWORKS: tuple[Framework, ...] = get_args(Framework)
LARGEST_ANSWER = 16 * 1024 * 1024
"""Bytes of an answer that are taken, where the agent file says nothing (wire rule 2)."""
LARGEST = 1024 * 1024 * 1024
PROMPT, SCENARIO, SERVERS = "{prompt}", "{scenario_id}", "{mcp_servers}"
"""What may stand in texts of a `request`; the last is a whole text, and becomes an object."""
_CHAT: Mapping[str, JSON] = {"messages": [{"role": "user", "content": PROMPT}], "stream": True}
_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True, slots=True)
class Remote:
    """An agent that runs somewhere and is asked over HTTP; `contract` is how.

    `http` is the live contract of the OWASP Agent Security Regression Harness: POST `{scenario_id, input}`, and back
    comes `{messages, tool_calls, events}`. `chat` is a prompt, and text that may stream; `request` is what is posted,
    `answer` the path to the text in what comes back, None for where OpenAI's chat completions have it.

    `headers` are plain, `header_env` names the variables of others. Its servers are behind proxies that listen: at
    `ports`, by server, or anywhere where they are handed over; None where it cannot reach them at all.
    """

    contract: Literal["http", "chat"]
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    header_env: Mapping[str, str] = field(default_factory=dict)
    max_bytes: int = LARGEST_ANSWER
    ports: Mapping[str, int] | None = None
    hand_over: bool = False
    request: JSON = None
    answer: str | None = None
    path: Path | None = None

    @property
    def target(self) -> str:
        """Its name in reports."""
        return f"{self.contract} alone" if self.ports is None else self.contract


@dataclass(frozen=True, slots=True)
class Called:
    """An agent that is a function of Python's, `module:function`, called by `interpreter` in a process of its own."""

    framework: Framework
    function: str
    interpreter: str = sys.executable
    path: Path | None = None

    @property
    def target(self) -> str:
        """Its name in reports."""
        return self.framework


@dataclass(frozen=True, slots=True)
class Recorded:
    """A trace that was recorded, of ours or of another harness; `{scenario_id}` in its name is filled in."""

    trace: str
    path: Path

    @property
    def target(self) -> str:
        """Its name in reports."""
        return "trace"

    def file(self, scenario_id: str) -> Path:
        """The trace of a scenario; relative names are those of the agent file's folder."""
        return self.path.parent / self.trace.replace(SCENARIO, scenario_id)


Target: TypeAlias = Remote | Called | Recorded
KINDS = ("http", "chat", "trace", *FRAMEWORKS)
"""The fields that may stand, each alone, in the agent file of such an agent, or under a scenario's `agent`."""


def _url(text: str) -> str:
    read_url(text)
    return text


def _header(text: str) -> str:
    if re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", text) is None:
        raise ValueError(f"{text!r} is no name of a header")
    if text.lower() in ("content-length", "transfer-encoding", "host"):
        raise ValueError(f"{text} is set for each request, and cannot be chosen")
    return text


def _value(text: str) -> str:
    if not text.isascii() or not text.isprintable():
        raise ValueError("a header's value is printable ASCII")
    return text


def _function(text: str) -> str:
    if _FUNCTION.fullmatch(text) is None:
        raise ValueError(f"{text!r} names no function; write module:function")
    return text


Header: TypeAlias = Annotated[str, AfterValidator(_header)]
Port: TypeAlias = Annotated[int, Field(ge=1, le=65535)]


class _RemoteEntry(Entry):
    url: Annotated[str, AfterValidator(_url)]
    headers: dict[Header, Annotated[str, AfterValidator(_value)]] = Field(default_factory=dict)
    header_env: dict[Header, VariableName] = Field(default_factory=dict)
    max_bytes: int = Field(default=LARGEST_ANSWER, ge=1, le=LARGEST)
    ports: dict[str, Port] | None = None


class HttpEntry(_RemoteEntry):
    """`http: {…}`; with `hand_over` the body has `mcp_servers` too."""

    hand_over: bool = False


class ChatEntry(_RemoteEntry):
    """`chat: {…}`."""

    request: JsonValue = None
    answer: str | None = None


class CalledEntry(Entry):
    """`python: {…}` and those of the frameworks; a text is the function alone."""

    function: Annotated[str, AfterValidator(_function)]
    interpreter: Word | None = None


class TargetAgentEntry(Entry):
    """A map with one of KINDS; it is for its schema, since each kind is read by itself."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    http: HttpEntry | None = None
    chat: ChatEntry | None = None
    trace: Word | None = None
    python: CalledEntry | Word | None = None
    openai_agents: CalledEntry | Word | None = Field(default=None, alias="openai-agents")
    langchain: CalledEntry | Word | None = None
    pydantic_ai: CalledEntry | Word | None = Field(default=None, alias="pydantic-ai")


def texts_of(value: JSON) -> Iterator[str]:
    """Every text of a JSON value, keys apart."""
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from texts_of(item)
        case dict():
            for item in value.values():
                yield from texts_of(item)
        case _:
            pass


def read_target(intake: Intake, data: dict[str, JSON], path: Path, within: FieldPath = ()) -> Target | None:
    """The agent of a map that has one of KINDS, None where it cannot be used; problems are noted.

    `path` is the file that it stands in, and `within` leads to it there.
    """
    [kind, *others] = [kind for kind in KINDS if kind in data]
    for other in [*others, *(key for key in data if key not in KINDS)]:
        alone = "under `agent`" if within else "in its file"
        intake.wrong((*within, other), f"unknown field; an agent of the kind `{kind}` stands alone {alone}")
    value, at = data[kind], (*within, kind)
    match kind:
        case "http":
            http = intake.read(HttpEntry, value, at)
            _check_variables(intake, at, {} if http is None else http.header_env)
            return None if http is None else _remote("http", http, path, http.hand_over, None, None)
        case "chat":
            chat = intake.read(ChatEntry, value, at)
            if chat is None:
                return None
            _check_variables(intake, at, chat.header_env)
            request: JSON = dict(_CHAT) if chat.request is None else chat.request
            if not any(PROMPT in text for text in texts_of(request)):
                intake.wrong((*at, "request"), f"the task is nowhere in it; put {PROMPT} where it belongs")
            hand_over = any(text == SERVERS for text in texts_of(request))
            return _remote("chat", chat, path, hand_over, request, chat.answer)
        case "trace":
            if isinstance(value, str) and value and "\0" not in value:
                return Recorded(value, path)
            intake.wrong(at, "expected the name of a trace's file")
            return None
        case _:
            called = intake.read(CalledEntry, {"function": value} if isinstance(value, str) else value, at)
            framework = next(one for one in FRAMEWORKS if one == kind)
            if called is None:
                return None
            return Called(framework, called.function, _interpreter(called.interpreter, path.parent), path)


def _check_variables(intake: Intake, at: FieldPath, names: Mapping[str, str]) -> None:
    for header, variable in names.items():
        if not named_secrets((), {variable: "x"}, {}):
            said = f"{variable!r} does not say that it is a secret, so nothing would redact it (docs/redaction.md)"
            intake.wrong((*at, "header_env", header), said)


def _remote(
    contract: Literal["http", "chat"],
    entry: _RemoteEntry,
    path: Path,
    hand_over: bool,
    request: JSON,
    answer: str | None,
) -> Remote:
    ports = entry.ports if entry.ports is not None else {} if hand_over else None
    return Remote(
        contract, entry.url, entry.headers, entry.header_env, entry.max_bytes, ports, hand_over, request, answer, path
    )


def _interpreter(word: str | None, folder: Path) -> str:
    """The interpreter as it is started from anywhere; a name with a slash is relative to the agent file's folder."""
    if word is None:
        return sys.executable
    return str((folder / word).absolute()) if "/" in word else word


def filled(template: JSON, prompt: str, scenario_id: str, servers: Mapping[str, JSON]) -> JSON:
    """A `request` with what it asks for put in, once: what a prompt says is not looked into again."""
    match template:
        case str() if template == SERVERS:
            return dict(servers)
        case str():
            found = {PROMPT: prompt, SCENARIO: scenario_id, SERVERS: json.dumps(dict(servers))}
            return re.sub("|".join(map(re.escape, found)), lambda word: found[word[0]], template)
        case list():
            return [filled(item, prompt, scenario_id, servers) for item in template]
        case dict():
            return {key: filled(item, prompt, scenario_id, servers) for key, item in template.items()}
        case _:
            return template
