"""The documentation is whole and true: every name of the product is in it, and every example runs.

CONTRIBUTING.md ("Docs") says what the words after a fenced block's language mean.
"""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import get_args

import click
import pytest
from pydantic import BaseModel

from harness import cli
from harness.agentfile import load_agent
from harness.assertions.assertion import Assertion
from harness.assertions.calls import Counts
from harness.assertions.claims import Claim
from harness.assertions.matcher import ExpectedCall
from harness.assertions.not_built import BUILT, NotBuilt
from harness.assertions.state import Exemption
from harness.judgemodel import DEFAULT
from harness.judges import SECONDS
from harness.labels import Label
from harness.models.provided import KEYS
from harness.opinion import RESULTS, SHOWN
from harness.results import Kind, RunResult, ScenarioResult, TrialResult
from harness.runfolder import RESERVED, TrialFolder
from harness.scenario import load_scenario
from harness.scenariofile import (
    AgentMarkEntry,
    BeforeEntry,
    Category,
    ContextEntry,
    ExpectedEntry,
    FactEntry,
    InputEntry,
    KnownEntry,
    LimitsEntry,
    MemoryEntry,
    ScenarioEntry,
    SecretEntry,
    ServerEntry,
    Severity,
)
from harness.seedfile import read_seed
from harness.sweepfile import SweepEntry, SweepLimitsEntry
from harness.sweeping import REPORTS
from harness.targets.profiles.known import PROFILES
from harness.targets.profiles.launch import Given, Start
from harness.trace import Coverage, Message, Outcome, Source, ToolCall, Trace
from harness.up.upfile import UpEntry, UpServerEntry, load_up_file
from harness.verdict import FailureCategory, Finding, Mode, Rests, Result, Status, Verdict
from proxy import cli as proxy_cli
from proxy import refusals, vocabulary
from proxy.bridge import NO_SESSION
from proxy.bridgeline import FIRST, QUIET, UNREAD
from proxy.bridgesession import WAITING
from proxy.connect import ORDER
from proxy.connectserve import RECORD_FAILED as CONNECT_RECORD_FAILED
from proxy.context import Context
from proxy.endpoint import PATH
from proxy.faults import FIELDS as FAULT_FIELDS
from proxy.faults import KINDS
from proxy.frames import CAP
from proxy.httpserve import RECORD_FAILED as HTTP_RECORD_FAILED
from proxy.mcpheaders import HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, NO_METHOD, UNPARSED
from proxy.mending import LIMIT
from proxy.nursery import GRACE, STOP_GRACE
from proxy.otlp import BATCH_SPANS, FLUSH, LINGER, QUEUE_BYTES, QUEUE_SPANS
from proxy.policy import CLIENT_REQUESTS, TRUST_LABELS, PolicyError, load_policy, parse_policy
from proxy.problem import Problem
from proxy.relay import HELD_FROM_SERVER
from proxy.seats import IDLE, MOST
from proxy.spanread import read_spans
from proxy.spans import JSON, SERVER, Attribute, Span
from proxy.stdio import BACKSTOP, GROUP_GRACE, LEFT_GRACE, RECORD_FAILED
from proxy.yamlfile import load_document
from servers.catalogue import FIXTURES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.glob("*.md")))
FILES_FROM = {
    "walk.md": ROOT / "README.md",
    "verdicts.md": ROOT / "README.md",
    "targets.md": DOCS / "own.md",
}
"""Pages that go on with the files of another one."""
NOT_RUN = ("make", "git", "source", "cd", "pip")
"""Commands of a console block that would set something up; of `make` the target must be there."""


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    words: tuple[str, ...]
    text: str

    @property
    def name(self) -> str:
        return next((word.removeprefix("file=") for word in self.words if word.startswith("file=")), "")

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    found: list[str] | None = None
    start, info = 0, ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if found is not None and line.strip() == "```":
            language, *words = info.split() or [""]
            yield Block(page, start, language, tuple(words), "".join(f"{one}\n" for one in found))
            found = None
        elif found is not None:
            found.append(line)
        elif line.startswith("```"):
            found, start, info = [], number, line[3:]
    assert found is None, f"{page.name}:{start}: the block has no end"


BLOCKS = [block for page in PAGES for block in blocks(page)]
TEXTS = {page.name: page.read_text(encoding="utf-8") for page in PAGES}


def section(page: str, heading: str) -> str:
    """The text under a heading, without what stands under further headings."""
    found = re.search(rf"^#+ {re.escape(heading)}$\n(.*?)(?=^#+ |\Z)", TEXTS[page], re.DOTALL | re.MULTILINE)
    assert found is not None, f"{page} has no heading {heading!r}"
    return found[1]


def first_cells(text: str) -> list[str]:
    """Every name in backticks in the first column of the tables of a text."""
    cells = re.findall(r"^ *\|([^|]*)\|", text, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def ticked(text: str) -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", text))


def words_of(literal: object) -> set[str]:
    return {str(word) for word in get_args(literal)}


def fields(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


# Blocks


KNOWN: dict[str, list[tuple[str, ...]]] = {
    "console": [()],
    "json": [(), ("mcpServers",)],
    "python": [()],
    "toml": [("mcp_servers",)],
    "text": [(), ("span",)],
    "yaml": [("scenario",), ("agent",), ("policy",), ("seed",), ("up",), ("part",), ("broken",), ()],
}


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_block_says_how_it_is_checked(block: Block) -> None:
    words = tuple(word for word in block.words if not word.startswith("file="))
    assert words in KNOWN.get(block.language, []), f"{block}: a block {block.language} {block.words} is not checked"
    assert block.language != "yaml" or block.words, f"{block}: say file=NAME, or what it is"


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "yaml"], ids=str)
def test_an_example_in_yaml_is_read_by_the_real_loader(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "example.yaml"
    file.write_text(block.text)
    match block.words[0]:
        case "scenario":
            load_scenario(file)
        case "agent":
            load_agent(file)
        case "policy":
            load_policy(str(file))
        case "seed":
            problems: list[Problem] = []
            read_seed(file, problems)
            assert problems == []
        case "up":
            load_up_file(file, {"TICKETS_TOKEN": "token"})
        case "part":
            load_document(block.text, str(block))
        case word:
            assert word == "broken" or word.startswith("file="), "what is neither is validated by its page's console"


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "json"], ids=str)
def test_an_example_in_json_is_json_and_its_servers_start_with_a_command_line_of_ours(block: Block) -> None:
    data = json.loads(block.text)
    servers = data.get("mcpServers", {}) if isinstance(data, dict) else {}
    assert bool(servers) == ("mcpServers" in block.words)
    for entry in servers.values():
        assert_ours(entry)


def assert_ours(entry: dict[str, JSON]) -> None:
    """An entry of a client's configuration starts the proxy over stdio, or names one of the page over HTTP."""
    if "command" not in entry:
        (url,) = (value for key, value in entry.items() if key in ("url", "httpUrl"))
        assert url == "http://127.0.0.1:8080/mcp"
        return
    arguments = entry["args"]
    assert entry["command"] == "wiretrap"
    assert isinstance(arguments, list)
    assert arguments[:2] == ["proxy", "stdio"]
    proxy_cli.stdio.make_context("wiretrap proxy stdio", [str(word) for word in arguments[2:]])


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "toml"], ids=str)
def test_an_example_in_toml_is_toml_and_its_servers_start_with_a_command_line_of_ours(block: Block) -> None:
    servers = tomllib.loads(block.text)["mcp_servers"]
    assert servers
    for entry in servers.values():
        assert_ours(entry)


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "python"], ids=str)
def test_an_example_in_python_compiles_and_its_command_line_is_one_of_ours(block: Block) -> None:
    tree = ast.parse(block.text)
    compile(tree, str(block), "exec")
    lines = [node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PROXY"]
    for line in lines:
        assert isinstance(line.value, ast.List)
        *words, command = line.value.elts
        assert isinstance(command, ast.Starred)
        said: list[JSON] = [ast.literal_eval(word) for word in words]
        assert_ours({"command": "wiretrap", "args": [*said, "npx"]})
    assert bool(lines) == (block.page.name == "agents.md")


def test_every_profile_is_in_each_table_of_its_page_and_its_program_and_words_are_named() -> None:
    told = first_cells(section("agents.md", "Judged"))
    assert sorted(told) == sorted([*PROFILES, *PROFILES])
    text = section("agents.md", "Judged")
    for profile in PROFILES.values():
        launch = profile.launch(Given({"ID": Start(("wiretrap",))}, Path("FILE"), Path("/folder"), {}, ()))
        assert profile.program in ticked(text)
        assert {word for word in launch.arguments if word.startswith("--")} <= set(re.findall(r"--[a-zA-Z-]+", text))
        assert set(launch.environment) <= ticked(text)


# Examples that run


def folder_of(page: Path, folder: Path) -> Path:
    """The page's folder: all files that it, and the page before it, write."""
    for source in (FILES_FROM.get(page.name), page):
        for block in BLOCKS:
            if block.page == source and block.name:
                file = folder / block.name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(block.text, encoding="utf-8")
    return folder


@dataclass(frozen=True)
class Command:
    block: Block
    line: str
    output: str


def commands(page: Path) -> list[Command]:
    found: list[Command] = []
    for block in BLOCKS:
        if block.page == page and block.language == "console":
            parts = re.split(r"^\$ (.*)\n", block.text, flags=re.MULTILINE)
            assert parts[0] == "", f"{block}: a console block begins with a command"
            found += [Command(block, *pair) for pair in zip(parts[1::2], parts[2::2], strict=True)]
    return found


def pattern(text: str) -> re.Pattern[str]:
    """What a person may leave out is `...`: any text, in a line or over lines."""
    return re.compile(".*?".join(re.escape(part) for part in text.rstrip("\n").split("...")), re.DOTALL)


def does_fit(claimed: str, found: str) -> bool:
    return pattern(claimed).fullmatch(found.rstrip("\n")) is not None


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.name)
def test_what_a_page_says_that_a_command_prints_it_prints(page: Path, tmp_path: Path) -> None:
    folder = folder_of(page, tmp_path)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "NO_COLOR": "1",
        "LC_ALL": "C",
    }
    code = 0
    for command in commands(page):
        if command.line.split()[0] in NOT_RUN:
            continue
        if command.line == "echo $?":
            printed = str(code)
        else:
            run = subprocess.run(
                ["bash", "-c", command.line],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=60,
                check=False,
            )
            code, printed = run.returncode, run.stdout.decode()
        assert does_fit(command.output, printed), f"{command.block}: $ {command.line}\n{printed}"
    shown = [block for block in BLOCKS if block.page == page and block.words == ("span",)]
    if shown:
        spans = [as_text(span) for span in read_spans(sorted(folder.glob("*/*/*/*/spans")), print)]
        for block in shown:
            assert any(does_show(block.text, span) for span in spans), f"{block}: no such span:\n" + "\n\n".join(spans)


def does_show(claimed: str, span: str) -> bool:
    """Whether each line is one of the span's, in any order: that of attributes means nothing."""
    lines = [line for line in claimed.splitlines() if line != "..."]
    return all(any(does_fit(line, found) for found in span.splitlines()) for line in lines)


def as_text(span: Span) -> str:
    def show(value: Attribute) -> str:
        return json.dumps(value) if isinstance(value, bool) else str(value)

    lines = [f"name: {span.name}", f"kind: {'SERVER' if span.kind == SERVER else 'INTERNAL'}"]
    return "\n".join([*lines, *(f"{key}: {show(value)}" for key, value in span.attributes.items())])


def test_every_file_of_a_page_is_used_by_a_command_of_it() -> None:
    for page in PAGES:
        named = [block for block in BLOCKS if block.page == page and block.name]
        lines = [command.line for command in commands(page)]
        for block in named:
            told = [line for line in lines if block.name in line]
            inside = [other for other in named if block.name in other.text and other is not block]
            assert told or inside, f"{block}: no command of the page uses {block.name}"


def test_a_make_target_that_is_named_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    named = {target for text in TEXTS.values() for target in re.findall(r"(?:\$ |`)make ([a-z]+)", text)}
    assert {"demo", "test", "setup"} <= named <= targets


def test_every_link_leads_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", TEXTS[page.name]):
            if "://" in target:
                continue
            path, _, anchor = target.partition("#")
            file = page.parent / path if path else page
            assert file.exists(), f"{page.name}: {target}"
            if anchor:
                headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
                anchors = [re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings]
                assert anchor in anchors, f"{page.name}: {target}"


def test_every_page_of_docs_is_linked_from_the_readme() -> None:
    for page in DOCS.glob("*.md"):
        assert f"(docs/{page.name}" in TEXTS["README.md"], page.name


# Commands


def command_of(name: str) -> click.Command:
    if name.startswith("proxy "):
        return proxy_cli.proxy.commands[name.removeprefix("proxy ")]
    found = import_module(f"harness.commands.{cli.MODULES.get(name, name)}").command
    assert isinstance(found, click.Command)
    return found


ALL_COMMANDS = ("proxy stdio", "proxy http", "proxy forward", "proxy bridge", "proxy connect", *cli.COMMANDS)


def test_every_command_has_a_section() -> None:
    named = set(re.findall(r"^## wiretrap (.+)$", TEXTS["commands.md"], re.MULTILINE))
    proxies = {f"proxy {name}" for name in proxy_cli.proxy.commands}
    assert named == {*proxies, *cli.COMMANDS}
    assert {"--version", "--help"} <= ticked(section("commands.md", "wiretrap"))


@pytest.mark.parametrize("name", ALL_COMMANDS)
def test_every_option_of_a_command_is_in_its_section_and_no_other(name: str) -> None:
    command = command_of(name)
    context = click.Context(command, help_option_names=["-h", "--help"])
    options = {
        max(parameter.opts, key=len) for parameter in command.get_params(context) if isinstance(parameter, click.Option)
    }
    told = {cell.split()[0] for cell in first_cells(section("commands.md", f"wiretrap {name}")) if cell.startswith("-")}
    assert told == options


def test_every_field_of_a_context_file_is_named() -> None:
    assert set(Context._fields) <= set(first_cells(section("commands.md", "wiretrap proxy stdio")))


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("proxy stdio", {"2", str(RECORD_FAILED), "126", "127"}),
        ("proxy http", {"0", "2", str(HTTP_RECORD_FAILED)}),
        ("proxy bridge", {"0", "2", str(HTTP_RECORD_FAILED), "126", "127"}),
        ("proxy connect", {"0", "2", str(CONNECT_RECORD_FAILED)}),
        ("proxy forward", {"0", "2", str(HTTP_RECORD_FAILED)}),
        ("run", {"0", "1", "2", "3", "130"}),
        ("check", {"0", "1", "2", "3"}),
        ("compare", {"0", "1", "2", "3"}),
        ("import", {"0", "2"}),
        ("rejudge", {"0", "1", "2", "3"}),
        ("targets", {"0", "2"}),
        ("trace", {"0", "2", "130"}),
        ("export", {"0", "1", "2"}),
        ("schema", {"0", "2"}),
        ("selfcheck", {"0", "1", "2", "3"}),
        ("sweep", {"0", "1", "2", "3", "130"}),
        ("validate", {"0", "2"}),
        ("approve", {"0", "1", "2", "130"}),
        ("up", {"0", "1", "2", str(HTTP_RECORD_FAILED)}),
        ("wrap", {"0", "1", "2"}),
    ],
)
def test_every_exit_code_is_named(name: str, codes: set[str]) -> None:
    told = set(re.findall(r"^\| (\d+) \|", section("commands.md", f"wiretrap {name}"), re.MULTILINE))
    assert told == codes


def test_the_exit_codes_of_a_run_are_those_that_the_page_names() -> None:
    def code(result: Result, status: Status, *, cancelled: bool = False) -> int:
        trial = TrialResult("s", 1, Verdict(result, status, ""), 0.0, "scripted")
        return RunResult("r", (ScenarioResult("s", "", "task", (trial,)),), 0.0, cancelled).exit_code

    assert code("pass", "completed") == 0
    assert code("fail", "limit") == 1
    assert code("error", "infra_error") == 3
    assert code("error", "cancelled", cancelled=True) == 130


def test_every_variable_of_the_environment_is_named() -> None:
    used = {
        name
        for room in ("proxy", "harness", "servers")
        for file in (ROOT / room).rglob("*.py")
        for name in re.findall(
            r'["\'](WIRETRAP_[A-Z_]*[A-Z]|XDG_[A-Z_]+|NO_COLOR)["\']', file.read_text(encoding="utf-8")
        )
    } - {"WIRETRAP_ROOM"}
    assert used <= ticked(TEXTS["commands.md"])


def test_every_file_of_a_run_folder_is_named() -> None:
    tree = section("commands.md", "The run folder")
    folder = TrialFolder(Path("trial"))
    files = [folder.spans, folder.trace, folder.verdict, folder.output, folder.errors]
    files += [folder.state("SERVER", moment) for moment in ("before", "after", "journal")]
    for name in RESERVED - {".", ".."} | {file.name for file in files}:
        assert name in tree


# Files that a person writes


def test_every_field_of_a_scenario_is_in_its_table_and_no_other() -> None:
    told = {heading: first_cells(section("scenario.md", heading)) for heading in (
        "Scenario", "Input", "Servers", "Limits", "Expected", "Facts")}  # fmt: skip
    assert set(told["Scenario"]) == fields(ScenarioEntry)
    assert set(told["Input"]) == fields(InputEntry)
    assert set(told["Servers"]) == fields(ServerEntry)
    assert set(told["Limits"]) == fields(LimitsEntry)
    assert set(told["Expected"]) == fields(ExpectedEntry)
    assert set(told["Facts"]) == fields(FactEntry)


def test_every_field_of_a_file_of_wiretrap_up_is_in_a_table_and_no_other() -> None:
    assert set(first_cells(section("up.md", "The file"))) == fields(UpEntry) | fields(UpServerEntry)


def test_every_field_of_a_sweep_is_in_its_table_and_no_other_and_so_is_every_report() -> None:
    text = section("sweep.md", "The file")
    assert set(first_cells(text)) == fields(SweepEntry)
    assert fields(SweepLimitsEntry) <= ticked(text)
    assert set(REPORTS) <= ticked(section("sweep.md", "The report"))


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("Input", ContextEntry),
        ("Expected", MemoryEntry),
        ("Expected", SecretEntry),
        ("Facts", KnownEntry),
        ("Facts", BeforeEntry),
        ("Task files of agent-mark", AgentMarkEntry),
    ],
)
def test_every_field_of_a_smaller_map_is_named(heading: str, model: type[BaseModel]) -> None:
    assert fields(model) <= set(re.findall(r"[a-z_]+", " ".join(ticked(section("scenario.md", heading)))))


def test_every_field_of_an_agent_file_and_its_steps_is_named(tmp_path: Path) -> None:
    told = first_cells(section("scenario.md", "Agent files"))
    accepted = {"steps", "transport", "command", "profile"}
    for step in ("call: mcp/a/b", "read: mcp/a/resource:b", "prompt: mcp/a/prompt:b", "say: x", "goal: x"):
        accepted |= unknown_field_list(tmp_path, f"steps:\n  - {{{step}, nonsense: 1}}\n")
    assert set(told) == accepted


def unknown_field_list(folder: Path, text: str) -> set[str]:
    file = folder / "wrong.yaml"
    file.write_text(text)
    with pytest.raises(ValueError, match="here may stand") as raised:
        load_agent(file)
    return listed(str(raised.value))


def listed(message: str) -> set[str]:
    found = re.search(r"here may stand ([a-z_, ]+)", message)
    assert found is not None
    return set(found[1].split(", "))


@pytest.mark.parametrize(
    ("heading", "data", "besides"),
    [
        ("Policy", {"nonsense": 1}, set()),
        ("Rules", {"rules": [{"nonsense": 1}]}, set()),
        (
            "Requests to the client",
            {"client_requests": {"nonsense": 1}},
            {"client_requests", "allow", "deny", "input_required"},
        ),
    ],
)
def test_every_field_of_a_policy_is_named(heading: str, data: JSON, besides: set[str]) -> None:
    with pytest.raises(PolicyError) as raised:
        parse_policy(data, "policy", lambda _: 1)
    text = section("policy.md", heading)
    told = set(first_cells(text)) if heading != "Requests to the client" else ticked(text) - besides
    assert told == listed(str(raised.value))


def test_every_value_of_a_policy_and_every_code_of_a_refusal_is_named() -> None:
    told = ticked(TEXTS["policy.md"])
    assert {"enforce", "observe", "tool_error", "error", "hidden", *TRUST_LABELS, *CLIENT_REQUESTS.values()} <= told
    codes = {str(code) for code in (
        refusals.DENIED, refusals.NOT_READABLE, refusals.SERVER_ENDED, refusals.RECORDER_FAILED)}  # fmt: skip
    assert set(first_cells(section("wire.md", "Refusals"))) == codes
    assert codes <= set(first_cells(section("policy.md", "How a refusal looks")))
    assert refusals.REFUSAL_KEY in section("wire.md", "Refusals")


def test_every_category_severity_and_label_is_named() -> None:
    told = ticked(section("scenario.md", "Scenario"))
    assert words_of(Category) | words_of(Severity) <= told
    assert set(TRUST_LABELS) <= ticked(section("scenario.md", "Servers"))


@pytest.mark.parametrize("name", sorted(FIXTURES))
def test_every_fixture_has_a_section_with_every_tool(name: str) -> None:
    told = ticked(section("servers.md", name))
    assert {tool.name for tool in FIXTURES[name].tools} <= told
    assert name in ticked(section("scenario.md", "Servers"))


# Assertions


ASSERTIONS: dict[str, type[BaseModel]] = {
    str(get_args(model.model_fields["type"].annotation)[0]): model
    for model in (get_args(item)[0] for item in get_args(get_args(Assertion)[0]))
    if model is not NotBuilt
}


def test_every_assertion_has_a_section() -> None:
    assert set(ASSERTIONS) == BUILT
    headings = set(re.findall(r"^### `([a-z_]+)`$", TEXTS["scenario.md"], re.MULTILINE))
    assert headings == BUILT | {"state_unexplained"}


@pytest.mark.parametrize("name", sorted(BUILT))
def test_every_field_of_an_assertion_is_in_its_section_and_no_other(name: str) -> None:
    wanted = fields(ASSERTIONS[name]) - {"type", "id"}
    if name == "state_unchanged":
        wanted |= fields(Exemption)
    if name == "tool_calls":
        wanted |= fields(ExpectedCall)
    if name == "claims":
        wanted |= fields(Claim)
    assert set(first_cells(section("scenario.md", f"`{name}`"))) == wanted
    assert {"type", "id"} <= ticked(section("scenario.md", "Assertions"))


def test_every_word_of_counts_is_named() -> None:
    assert words_of(Counts) <= ticked(section("scenario.md", "`tool_called`"))


# The wire


def test_every_limit_and_every_time_on_the_wire_is_named() -> None:
    told = TEXTS["wire.md"]
    assert f"{CAP // 2**20} MiB" in told
    assert f"{HELD_FROM_SERVER // 2**10} KiB" in told
    for seconds in (BACKSTOP, GROUP_GRACE, LEFT_GRACE):
        assert f"{seconds:g} s" in section("wire.md", "How it ends")
    assert str(RECORD_FAILED) in section("wire.md", "If the record fails")
    http = TEXTS["http.md"]
    for words in (f"{CAP // 2**20} MiB", f"{IDLE / 60:g} minutes", f"At most {MOST} connections"):
        assert words in http


def test_every_limit_and_code_of_a_bridge_is_named() -> None:
    told = section("bridge.md", "HTTP in front of a server over stdio")
    for words in (f"After {FIRST:g} s", f"after {QUIET:g} s", f"up to {WAITING} messages", f"after {GRACE:g} s each"):
        assert words in told
    for words in (
        f"SIGKILL {STOP_GRACE:g} s later",
        f"{UNREAD // 2**20} MiB unread",
        f"longer than {CAP // 2**20} MiB",
    ):
        assert words in told
    for code in (HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, NO_METHOD, UNPARSED, NO_SESSION):
        assert re.search(rf"\| [^|]*{code}\b[^|]* \|", told)
    assert f"{ORDER:g} s to be accepted" in section("bridge.md", "Stdio in front of a server over HTTP")


def test_every_limit_of_an_export_is_named() -> None:
    told = section("export.md", "While it is written")
    assert f"{FLUSH:g} s" in told
    assert f"{LINGER:g} s" in told
    assert f"{BATCH_SPANS} at the most" in told
    assert f"{QUEUE_SPANS:,} spans or {QUEUE_BYTES // 2**20} MiB" in told
    assert f"{LIMIT // 2**10} KiB" in section("export.md", "What is changed in the copy")
    assert PATH in section("export.md", "Where to")


# Faults and judges


def test_every_field_and_kind_of_a_fault_is_in_a_table_and_no_other() -> None:
    assert sorted(first_cells(section("faults.md", "The file"))) == sorted([*FAULT_FIELDS, *KINDS])


def test_what_is_said_of_a_judge_is_so() -> None:
    told = section("judge.md", "What the judge is asked")
    assert f"{SHOWN:,} characters" in told
    assert f"{RESULTS:,}" in told
    assert f"{SECONDS:g} seconds" in told
    which = section("judge.md", "Which judge")
    assert f"`{DEFAULT}`" in which
    assert {name for names in KEYS.values() for name in names} <= ticked(which)
    assert set(first_cells(section("judge.md", "Against labels by hand"))) == set(Label.model_fields)


# Spans and traces


def attributes() -> set[str]:
    """Every attribute of the vocabulary: its public texts with a dot in them, and those of the payloads."""
    source = ast.parse((ROOT / "proxy" / "vocabulary.py").read_text())
    names = [
        target.id
        for node in source.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id not in ("SEMCONV", "SCOPE")
    ]
    payloads = ("arguments", "result", "params", "request", "fault.result")
    makers = (vocabulary.payload_bytes, vocabulary.payload_sha256, vocabulary.payload_truncated)
    return {getattr(vocabulary, name) for name in names} | {make(one) for make in makers for one in payloads}


def test_every_attribute_of_a_span_is_in_the_table_and_no_other() -> None:
    told = first_cells(section("spans.md", "Attributes"))
    assert sorted(told) == sorted(attributes())


def test_every_kind_of_span_is_in_the_table_and_no_other() -> None:
    source = (ROOT / "proxy" / "vocabulary.py").read_text()
    found = re.search(r'SPAN_KIND = .*\n"""([a-z_,\s]+) or ([a-z_]+)\."""', source)
    assert found is not None
    kinds = {*re.split(r",\s", found[1]), found[2]}
    assert {cell for cell in first_cells(section("spans.md", "The kinds")) if cell != "wiretrap.span"} == kinds


def test_every_outcome_is_in_the_table_and_no_other() -> None:
    assert set(first_cells(section("spans.md", "Outcomes"))) - {"wiretrap.outcome"} == words_of(Outcome)


def test_every_field_of_a_trace_is_in_its_table_and_no_other() -> None:
    assert set(first_cells(section("trace.md", "The document"))) == {"schema_version", *Trace.__dataclass_fields__}
    # A message of a trial has the agent's id among what is extra.
    assert set(first_cells(section("trace.md", "Messages"))) == {"agent", *Message.__dataclass_fields__} - {"extra"}
    assert set(first_cells(section("trace.md", "Tool calls"))) == set(ToolCall.__dataclass_fields__) - {"extra"}
    assert set(Coverage.__dataclass_fields__) <= ticked(section("trace.md", "Coverage"))
    assert set(first_cells(section("trace.md", "Coverage"))) == words_of(Source)


def test_every_event_is_in_the_table_with_every_field() -> None:
    source = ast.parse((ROOT / "harness" / "mcpevents.py").read_text())
    texts = {node.value for node in ast.walk(source) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    events = {text for text in texts if re.fullmatch(r"mcp_[a-z]+_[a-z_]+", text)} - {
        "mcp_tool_name",
        "mcp_prompt_name",
    }
    told = section("trace.md", "Events")
    assert set(first_cells(told)) - {"goal", "model_call", "approval", "fault"} == events
    keys = {
        key.value
        for node in ast.walk(source)
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }
    assert keys <= ticked(told)


# Verdicts


def test_every_word_of_a_verdict_is_named() -> None:
    assert set(first_cells(section("verdicts.md", "From findings to a verdict"))) == words_of(Result)
    assert set(first_cells(section("verdicts.md", "How a trial ends"))) == words_of(Status)
    told = section("verdicts.md", "What is evidence")
    assert words_of(Rests) <= set(first_cells(told))
    told = section("verdicts.md", "Why a trial failed")
    assert set(first_cells(told)) == words_of(FailureCategory) | words_of(Mode)


def test_every_field_of_a_verdict_file_is_named() -> None:
    trial = TrialResult(
        "s", 1, Verdict("pass", "completed", "", (Finding("a", "pass", "", "wire", 1, 1, 1),)), 0.0, "real"
    )
    told = ticked(section("verdicts.md", "Reading `verdict.json`"))
    assert {*trial.as_json(), "schema_version", "run_id", "kept", *words_of(Kind)} <= told
    assert set(Finding.__dataclass_fields__) <= told
