"""Real clients, unmodified: what they get through the proxy over stdio and HTTP is what they get without it.

The record has each of their calls.
"""

import json
import os
import shutil
import subprocess
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import pytest

from proxy.spans import JSON
from tests.clients.surroundings import DEADLINE, as_json, need, over_http, proxied, quiet, recorded, ticketing
from tests.peers.catalogue import Call
from tests.peers.places import node, package, place, program

PROGRAMS = Path(__file__).with_name("programs")
CALLS = (
    Call("get_ticket", {"ticket_id": 1}),
    Call("search_tickets", {"customer_id": "CUST-003"}),
    Call("get_ticket", {"ticket_id": 999}),
)
PYTHON = {
    "Python SDK 2": ("servers", "sdk2.py"),
    "Python SDK 1.30": ("mcp_1_30", "sdk1.py"),
    "FastMCP": ("fastmcp", "fastmcp_client.py"),
    "OpenAI Agents SDK": ("openai_agents", "agents_sdk.py"),
    "LangChain": ("langchain", "langchain_tools.py"),
}
TYPESCRIPT = {"TypeScript SDK 2": "ts2.mjs", "TypeScript SDK 1": "ts1.mjs"}


def answers(command: list[str], server: dict[str, JSON], cwd: Path) -> list[dict[str, JSON]]:
    asked = json.dumps({**server, "calls": [asdict(call) for call in CALLS]})
    done = subprocess.run(
        command, input=asked, cwd=cwd, env=quiet(cwd / "home"), capture_output=True, text=True, timeout=DEADLINE,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return as_json(done.stdout)


def server(stack: ExitStack, transport: str, folder: Path, spans: Path | None) -> dict[str, JSON]:
    if transport == "http":
        return {"url": stack.enter_context(over_http(folder, spans))}
    command = ticketing(folder)
    return {"command": list(command if spans is None else proxied(command, spans))}


def both(command: list[str], transport: str, folder: Path) -> list[dict[str, JSON]]:
    """What a client gets, which is the same directly and through the proxy."""
    found = []
    for spans in (None, folder / "spans"):
        with ExitStack() as stack:
            found.append(answers(command, server(stack, transport, folder, spans), folder))
    assert found[0] == found[1]
    return found[1]


def assert_whole(got: list[dict[str, JSON]]) -> None:
    assert "get_ticket" in json.dumps(got[0]["tools"])
    assert "Server is down!" in json.dumps(got[1])
    assert "Server is down!" in json.dumps(got[2])
    assert "Ticket not found" in json.dumps(got[3])


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("client", PYTHON)
def test_a_python_client_gets_the_same_through_the_proxy(client: str, transport: str, tmp_path: Path) -> None:
    peer, script = PYTHON[client]
    need(peer)
    assert_whole(both([program(peer, "python"), "-P", str(PROGRAMS / script)], transport, tmp_path))
    assert [call for call, _ in recorded(tmp_path / "spans")] == list(CALLS)


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("client", TYPESCRIPT)
def test_a_typescript_client_gets_the_same_through_the_proxy(client: str, transport: str, tmp_path: Path) -> None:
    need("node", "sdks")
    # Node looks for packages beside the program.
    script = shutil.copy(PROGRAMS / TYPESCRIPT[client], tmp_path)
    os.symlink(place("sdks") / "node_modules", tmp_path / "node_modules")
    assert_whole(both([node(), str(script)], transport, tmp_path))
    assert [call for call, _ in recorded(tmp_path / "spans")] == list(CALLS)


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_an_agent_of_pydantic_ai_gets_the_same_through_the_proxy(transport: str, tmp_path: Path) -> None:
    need("pydantic_ai")
    script = str(PROGRAMS / "pydantic_ai_agent.py")
    got = both([program("pydantic_ai", "python"), "-P", script], transport, tmp_path)
    called = [one["called"] for one in got if "called" in one]
    assert {"get_ticket", "search_tickets"} == {call["tool"] for call in called if isinstance(call, dict)}
    assert len([one for one in got if "answer" in one]) == len(called)
    # It calls them at once, so their order is open.
    assert sorted(json.dumps(asdict(call)) for call, _ in recorded(tmp_path / "spans")) == sorted(
        map(json.dumps, called)
    )


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_inspector_gets_the_same_through_the_proxy(transport: str, tmp_path: Path) -> None:
    need("node", "sdks")
    launcher = package("sdks", "@modelcontextprotocol/inspector") / "clients" / "launcher" / "build" / "index.js"
    asked = [["--method", "tools/list"]]
    for call in CALLS:
        (name, value), *_ = call.arguments.items()
        asked.append(["--method", "tools/call", "--tool-name", call.tool, "--tool-arg", f"{name}={value}"])
    found: list[list[tuple[int, str]]] = []
    for spans in (None, tmp_path / "spans"):
        with ExitStack() as stack:
            where = server(stack, transport, tmp_path, spans)
            config = tmp_path / "servers.json"
            command = where.get("command")
            entry: dict[str, JSON] = (
                {"command": command[0], "args": command[1:]}
                if isinstance(command, list)
                else {"type": "streamable-http", "url": where["url"]}
            )
            config.write_text(json.dumps({"mcpServers": {"ticketing": entry}}))
            front = [node(), str(launcher), "--cli", "--config", str(config), "--server", "ticketing"]
            runs = []
            for options in asked:
                done = subprocess.run(
                    [*front, *options], cwd=tmp_path, env=quiet(tmp_path / "home"), capture_output=True, text=True,
                    stdin=subprocess.DEVNULL, timeout=DEADLINE, check=False,
                )  # fmt: skip
                assert done.stdout, done.stderr
                runs.append((done.returncode, done.stdout))
            found.append(runs)
    assert found[0] == found[1]
    assert "delete_ticket" in found[1][0][1]
    assert "Server is down!" in found[1][1][1]
    assert [call for call, _ in recorded(tmp_path / "spans")] == list(CALLS)
