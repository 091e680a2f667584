"""The file of `wiretrap up`: which servers there are, how each is reached, and what stands between.

Refuses to know processes. Everything that is wrong is found before anything is started.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, JsonValue, StringConstraints

from harness.intake import Entry, Intake, open_document
from harness.places import is_file
from harness.scenariofile import Name, Trust, VariableName, VariableValue, Word
from harness.scenariopolicy import read_policy
from proxy.endpoint import EndpointError, parse_endpoint
from proxy.glob import check_server_id
from proxy.grants import GrantError, load_grants
from proxy.httpwords import read_origin
from proxy.problem import Path as FieldPath
from proxy.problem import Problem, ProblemError, describe
from proxy.spans import JSON
from proxy.webaddress import UrlError

_VARIABLE = re.compile(r"\$\{([^}]*)\}")
Port: TypeAlias = Annotated[int, Field(ge=0, le=65535)]
RunId: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*$")]


class UpFileError(ProblemError):
    """A file that nothing can be started from; `problems` has everything that is wrong."""


class UpServerEntry(Entry):
    """One of `servers`: exactly one of command and url."""

    command: Annotated[list[Word], Field(min_length=1)] | None = None
    env: dict[VariableName, VariableValue] | None = None
    url: Name | None = None
    trust: Trust = "third_party"
    policy: JsonValue = None
    port: Port = 0


class UpEntry(Entry):
    """A file of `wiretrap up`. Each of servers and policy is read by itself."""

    run: RunId | None = None
    spans: Name | None = None
    otlp: Name | None = None
    grants: Name | None = None
    approvals: Name | None = None
    health: Port = 0
    secrets: list[VariableName] = Field(default_factory=list)
    trace_context: Literal["pass", "splice"] = "pass"
    policy: JsonValue = None
    servers: JsonValue


@dataclass(frozen=True, slots=True)
class UpServer:
    """One server: `command` is empty where it has a `url`. `policy` is the map to judge by, None for none."""

    command: tuple[str, ...]
    url: str
    env: Mapping[str, str]
    trust: Trust
    port: int
    policy: Mapping[str, JSON] | None


@dataclass(frozen=True, slots=True)
class UpFile:
    """A whole file; `folder` is where its relative paths begin. `run` and `spans` are "" where they are to be made.

    `grants` is the path of a file, `approvals` that of a desk's folder, "" each for none.
    """

    path: Path
    run: str
    spans: str
    otlp: str | None
    health: int
    secrets: tuple[str, ...]
    trace_context: str
    servers: Mapping[str, UpServer]
    grants: str = ""
    approvals: str = ""

    @property
    def folder(self) -> Path:
        """The file's own folder."""
        return self.path.absolute().parent


class _Reading:
    """One file being read; `environment` is ours, for the `${NAME}` in it."""

    def __init__(self, path: Path, intake: Intake, environment: Mapping[str, str]) -> None:
        self.path, self.intake, self.environment = path, intake, environment
        self.elsewhere: list[Problem] = []

    def filled(self, text: str, path: FieldPath) -> str:
        """The text with each `${NAME}` replaced by that variable of our environment."""
        for name in dict.fromkeys(_VARIABLE.findall(text)):
            if name not in self.environment:
                self.intake.wrong(path, f"the variable {name!r} is not set; export it before `wiretrap up`")
        return _VARIABLE.sub(lambda found: self.environment.get(found[1], ""), text)

    def policy(self, data: Mapping[str, JSON], path: FieldPath) -> Mapping[str, JSON] | None:
        """The map of a policy that stands under `policy` in the map at `path`."""
        part = Intake(self.intake.document)
        inner: list[Problem] = []

        def find(name: str, field: FieldPath) -> Path | None:
            file = self.path.parent / name
            if not is_file(file):
                part.wrong(field, f"there is no file {file}; paths are relative to the folder of {self.path.name}")
                return None
            return file

        _, found = read_policy(part, data, None, inner, find, path)
        self.intake.problems += part.problems
        self.elsewhere += inner
        return found

    def server(self, name: str, data: JSON, shared: Mapping[str, JSON] | None) -> UpServer | None:
        path: FieldPath = ("servers", name)
        if (problem := check_server_id(name)) is not None or not name.strip("."):
            self.intake.wrong(path, problem or "a server id may not be dots alone")
        entry = self.intake.read(UpServerEntry, data, path)
        if entry is None or not isinstance(data, dict):
            return None
        if (entry.command is None) == (entry.url is None):
            self.intake.wrong(path, "a server has exactly one of command and url")
            return None
        if entry.env is not None and entry.command is None:
            self.intake.wrong((*path, "env"), "only a command has env")
        url = entry.url or ""
        if url:
            try:
                read_origin(url)
            except UrlError as error:
                self.intake.wrong((*path, "url"), str(error))
        env = {key: self.filled(value, (*path, "env", key)) for key, value in (entry.env or {}).items()}
        policy = self.policy(data, path) if "policy" in data else shared
        return UpServer(tuple(entry.command or ()), url, env, entry.trust, entry.port, policy)

    def file(self) -> UpFile | None:
        data = self.intake.document.data
        entry = self.intake.read(UpEntry, data, ())
        if entry is None or not isinstance(data, dict):
            return None
        for place, name in enumerate(entry.secrets):
            if name not in self.environment:
                self.intake.wrong(("secrets", place), f"the variable {name!r} is not set; it is to hold a secret")
        if entry.otlp is not None:
            try:
                parse_endpoint(entry.otlp)
            except EndpointError as error:
                self.intake.wrong(("otlp",), str(error).removeprefix("--otlp: "))
        shared = self.policy(data, ()) if "policy" in data else None
        servers: dict[str, UpServer] = {}
        listed = data["servers"]
        if not isinstance(listed, dict) or not listed:
            said = f"expected a map from server ids to servers, not {describe(listed)}"
            self.intake.wrong(("servers",), said if listed != {} else "there is no server to stand in front of")
            listed = {}
        for name, item in listed.items():
            server = self.server(name, item, shared)
            if server is not None:
                servers[name] = server
        self.ports(entry.health, servers)
        if entry.grants is not None:
            try:
                load_grants(self.place(entry.grants))
            except GrantError as error:
                self.elsewhere += error.problems
        return UpFile(
            self.path,
            entry.run or "",
            self.place(entry.spans),
            entry.otlp,
            entry.health,
            tuple(entry.secrets),
            entry.trace_context,
            servers,
            self.place(entry.grants),
            self.place(entry.approvals),
        )

    def place(self, name: str | None) -> str:
        """A path of the file's, "" for none."""
        return "" if name is None else str(self.path.absolute().parent / name)

    def ports(self, health: int, servers: Mapping[str, UpServer]) -> None:
        taken = {health: "health"} if health else {}
        for name, server in servers.items():
            if server.port in taken:
                said = f"port {server.port} is that of {taken[server.port]} already; 0 chooses a free one"
                self.intake.wrong(("servers", name, "port"), said)
            elif server.port:
                taken[server.port] = f"the server {name}"


def load_up_file(path: Path, environment: Mapping[str, str]) -> UpFile:
    """Read the file and the policies that it names. Raises UpFileError with everything that is wrong."""
    problems: list[Problem] = []
    document = open_document(path, problems)
    if document is None:
        raise UpFileError(problems)
    reading = _Reading(path, Intake(document), environment)
    found = reading.file()
    problems = reading.intake.problems + reading.elsewhere
    if found is None or problems:
        raise UpFileError(dict.fromkeys(problems))
    return found
