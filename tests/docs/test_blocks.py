"""Every example is of a known form, and what reads such a thing takes it.

CONTRIBUTING.md ("Docs") says what the words after a fenced block's language mean.
"""

import ast
import json
import re
import tomllib
from pathlib import Path

import pytest

from harness.agentfile import load_agent
from harness.scenario import load_scenario
from harness.seedfile import read_seed
from harness.targets.profiles.known import PROFILES
from harness.targets.profiles.launch import Given, Start
from harness.up.upfile import load_up_file
from proxy import cli as proxy_cli
from proxy.policy import load_policy
from proxy.problem import Problem
from proxy.spans import JSON
from proxy.yamlfile import load_document
from tests.docs.pages import BLOCKS, Block, first_cells, section, ticked

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
