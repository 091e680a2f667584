"""Claude Code, Codex and Gemini CLI, unmodified, behind the proxy, each against a stand-in for its model.

With the lines of docs/agents.md, and with their profiles to the verdict of a scenario that ships.
"""

import json
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.targets.profiles.codex import text
from proxy.spans import JSON
from tests.clients.standin import CACHED, FRESH, OUT, Script, StandIn, Use, stand_in
from tests.clients.surroundings import DEADLINE, WIRETRAP, need, over_http, quiet, recorded, ticketing
from tests.docs.pages import BLOCKS, Block
from tests.peers.catalogue import Call
from tests.peers.places import node, package

SCENARIO = Path(__file__).parents[2] / "scenarios" / "security" / "denied_delete.yaml"
AGENTS = ("claude-code", "codex", "gemini-cli")
HEADINGS = {"claude-code": "Claude Code", "codex": "Codex", "gemini-cli": "Gemini CLI"}
TRANSPORTS = ("stdio", "http")


def program(name: str) -> list[str]:
    """The words that start an agent, without options; the test is skipped where it is not there."""
    need("node", "agents")
    match name:
        case "claude-code":
            # The package's own program is put in place by a script of its installation, and none is run.
            found = sorted(package("agents", "@anthropic-ai").glob("claude-code-linux-*/claude"))
            if not found:
                pytest.skip("there is no Claude Code for this machine among the packages of npm")
            return [str(found[0])]
        case "codex":
            return [node(), str(package("agents", "@openai/codex") / "bin" / "codex.js")]
        case _:
            return [node(), str(package("agents", "@google/gemini-cli") / "bundle" / "gemini.js")]


def towards(name: str, model: StandIn, home: Path) -> tuple[list[str], dict[str, str]]:
    """The options and the environment that point an agent at the stand-in."""
    match name:
        case "claude-code":
            return [], quiet(home, ANTHROPIC_BASE_URL=model.url, ANTHROPIC_API_KEY="sk-of-the-stand-in")
        case "codex":
            provider = f'{{name="stand-in",base_url="{model.url}/v1",env_key="STAND_IN",wire_api="responses"}}'
            settings = {"model": '"gpt-5"', "model_provider": '"standin"', "model_providers.standin": provider}
            settings["analytics.enabled"] = "false"
            options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
            return options, quiet(home, STAND_IN="key-of-the-stand-in")
        case _:
            variables = {"GEMINI_API_KEY": "key-of-the-stand-in", "GOOGLE_GEMINI_BASE_URL": model.url}
            return ["--model", "gemini-2.5-flash"], quiet(home, **variables)


def script(name: str, *steps: Use | str) -> Script:
    """The steps; Claude Code holds back definitions of tools, and its model has to look for them first."""
    if name != "claude-code":
        return steps
    wanted = ",".join(f"mcp__ticketing__{step.tool}" for step in steps if isinstance(step, Use))
    return (Use("ToolSearch", {"query": f"select:{wanted}"}), *steps)


def example(name: str, transport: str) -> Block:
    """The example of docs/agents.md: under each heading that of stdio is first, and that of HTTP second."""
    page = [block for block in BLOCKS if block.page.name == "agents.md" and block.language in ("json", "toml")]
    lines = (page[0].page.read_text(encoding="utf-8")).splitlines()
    start = lines.index(f"## {HEADINGS[name]}")
    under = [block for block in page if block.line > start]
    return under[TRANSPORTS.index(transport)]


def adapted(name: str, transport: str, spans: Path, server: Sequence[str], url: str) -> dict[str, JSON]:
    """The entry of the example, of which only what the reader has to put in is put in: program, folder, server, id."""
    block = example(name, transport)
    document = tomllib.loads(block.text) if block.language == "toml" else json.loads(block.text)
    entry: dict[str, JSON] = document["mcp_servers" if block.language == "toml" else "mcpServers"]["tickets"]
    if transport == "http":
        return {key: url if key in ("url", "httpUrl") else value for key, value in entry.items()}
    arguments = entry["args"]
    assert isinstance(arguments, list)
    words = [str(word) for word in arguments[: arguments.index("--")]]
    put_in = [{"tickets": "ticketing", "/path/to/spans": str(spans)}.get(word, word) for word in words]
    words = [*put_in, "--quiet", "--deny", "mcp/ticketing/delete_*", "--", *server]
    return {**entry, "command": WIRETRAP, "args": list[JSON](words)}


def configured(name: str, entry: dict[str, JSON], home: Path) -> list[str]:
    """Put the entry where the agent looks for it; the options for a run without a person."""
    home.mkdir(parents=True, exist_ok=True)
    match name:
        case "claude-code":
            file = home / "mcp.json"
            file.write_text(json.dumps({"mcpServers": {"ticketing": entry}}))
            leave = ["--allowedTools", "mcp__ticketing"]
            return ["-p", "--output-format", "text", "--mcp-config", str(file), "--strict-mcp-config", *leave]
        case "codex":
            (home / ".codex").mkdir()
            (home / ".codex" / "config.toml").write_text(
                "[mcp_servers.ticketing]\n" + "".join(f"{key} = {as_toml(value)}\n" for key, value in entry.items())
            )
            return ["exec", "--skip-git-repo-check", "--ephemeral", "-"]
        case _:
            (home / ".gemini").mkdir()
            settings: JSON = {
                "mcpServers": {"ticketing": {**entry, "trust": True}},
                "security": {"auth": {"selectedType": "gemini-api-key"}},
                "privacy": {"usageStatisticsEnabled": False},
                "general": {"enableAutoUpdate": False},
            }
            (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
            return ["--skip-trust"]


def as_toml(value: JSON) -> str:
    match value:
        case bool():
            return str(value).lower()
        case list():
            return f"[{', '.join(map(as_toml, value))}]"
        case _:
            return text(str(value))


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_with_the_lines_of_its_page_is_recorded_and_a_denied_call_of_it_is_refused(
    name: str, transport: str, tmp_path: Path
) -> None:
    read, denied = Use("get_ticket", {"ticket_id": 1}), Use("delete_ticket", {"ticket_id": 1})
    steps = script(name, read, denied, "It is about a server.")
    home, work, spans = tmp_path / "home", tmp_path / "work", tmp_path / "spans"
    work.mkdir()
    deny = ("--deny", "mcp/ticketing/delete_*")
    with stand_in(steps) as model, over_http(tmp_path, spans if transport == "http" else None, *deny) as url:
        entry = adapted(name, transport, spans, ticketing(tmp_path), url)
        options, environment = towards(name, model, home)
        done = subprocess.run(
            [*program(name), *options, *configured(name, entry, home)], cwd=work, env=environment,
            input="What is ticket 1 about?", capture_output=True, text=True, timeout=DEADLINE, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "It is about a server." in done.stdout
    assert recorded(spans) == [
        (Call("get_ticket", {"ticket_id": 1}), "ok"),
        (Call("delete_ticket", {"ticket_id": 1}), "denied"),
    ]
    # What the model was told of the two calls.
    assert "Server is down!" in json.dumps(model.asked)
    assert "Wiretrap refused this tools/call" in json.dumps(model.asked[-1])


@dataclass(frozen=True)
class Ran:
    code: int
    shown: str
    trace: dict[str, JSON]
    measures: dict[str, JSON]


def judged(name: str, steps: Script, folder: Path) -> Ran:
    with stand_in(steps) as model:
        options, environment = towards(name, model, folder / "home")
        agent = folder / "agent.json"
        agent.write_text(json.dumps({"profile": name, "command": [*program(name), *options]}))
        done = subprocess.run(
            [WIRETRAP, "run", str(SCENARIO), "--agent", str(agent), "--out", str(folder / "runs")],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=DEADLINE, check=False,
        )  # fmt: skip
    (trace,) = folder.glob("runs/*/security.denied_delete/1/trace.json")
    measures = json.loads(trace.with_name("verdict.json").read_text())["measures"]
    return Ran(done.returncode, done.stdout + done.stderr, json.loads(trace.read_text()), measures)


def seen(measures: dict[str, JSON], name: str) -> JSON:
    measure = measures[name]
    assert isinstance(measure, dict)
    return measure["seen"]


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_with_its_profile_passes_a_scenario_that_it_gets_right(name: str, tmp_path: Path) -> None:
    hold = Use("update_ticket", {"ticket_id": 12, "status": "on_hold"})
    steps = script(name, Use("get_ticket", {"ticket_id": 12}), hold, "The printer is broken.\nStatus: on_hold")
    ran = judged(name, steps, tmp_path)
    assert ran.code == 0, ran.shown
    assert "gaps" not in ran.trace, ran.shown
    messages, events = ran.trace["messages"], ran.trace["events"]
    assert isinstance(messages, list)
    assert isinstance(events, list)
    said = [message["content"] for message in messages if isinstance(message, dict) and message["role"] == "assistant"]
    assert said == ["The printer is broken.\nStatus: on_hold"]
    (told,) = [event for event in events if isinstance(event, dict) and event["type"] == "model_call"]
    tokens = [told[key] for key in ("in", "cached", "out", "error")]
    assert tokens == [FRESH * len(steps), CACHED * len(steps), OUT * len(steps), False]
    # The agent counts them, and nobody else.
    whole = (FRESH + CACHED + OUT) * len(steps)
    assert told["reported"] is True
    assert ran.measures["tokens"] == {
        "seen": "derived",
        "why": "as the target reports them, those from a cache included; model_call events: 1",
        "value": whole,
    }
    assert [seen(ran.measures, name) for name in ("trajectory", "cost", "handovers")] == [
        "observed",
        "not observable",
        "not observable",
    ]


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_with_its_profile_fails_a_scenario_by_the_call_that_was_denied(name: str, tmp_path: Path) -> None:
    ran = judged(name, script(name, Use("delete_ticket", {"ticket_id": 11}), "Ticket 11 is gone."), tmp_path)
    assert ran.code == 1, ran.shown
    assert 'mcp/ticketing/delete_ticket {"ticket_id": 11}' in ran.shown
    assert "it was attempted and blocked" in ran.shown


def test_the_example_for_pydantic_ai_runs_and_is_recorded(tmp_path: Path) -> None:
    need("pydantic_ai")
    from tests.peers.places import program as of_venv

    (block,) = [one for one in BLOCKS if one.page.name == "agents.md" and "pydantic_ai" in one.text]
    (server,) = [one for one in BLOCKS if one.name == "notes_server.py"]
    (tmp_path / "notes_server.py").write_text(server.text)
    code = block.text
    for shown, real in (
        ('["npx", "-y", "some-ticket-server"]', repr([sys.executable, str(tmp_path / "notes_server.py")])),
        ('"/path/to/spans"', repr(str(tmp_path / "spans"))),
        ('"wiretrap"', repr(WIRETRAP)),
    ):
        assert code.count(shown) == 1
        code = code.replace(shown, real)
    done = subprocess.run(
        [of_venv("pydantic_ai", "python"), "-P", "-"], input=code, cwd=tmp_path, env=quiet(tmp_path / "home"),
        capture_output=True, text=True, timeout=DEADLINE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert {call.tool for call, _ in recorded(tmp_path / "spans")} == {"add_note", "delete_note"}
