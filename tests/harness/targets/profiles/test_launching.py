"""How the agents are started: with our servers, and with nothing else of a person's."""

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.targets.profiles import codex
from harness.targets.profiles.known import PROFILES, ProfileName
from harness.targets.profiles.launch import Given, Start

SERVERS = {"crm": Start(("wiretrap", "proxy", "a b")), "my.mail": Start(("python", "-m", "mail"), {"KEY": "va'lue"})}
APART = ("python", "apart")


def launch_given(ours: dict[str, str] | None = None, servers: dict[str, Start] = SERVERS) -> Given:
    return Given(servers, Path("/private/mcp.json"), Path("/private"), ours or {}, APART)


def test_claude_code_gets_the_file_of_servers_and_leave_for_their_tools() -> None:
    arguments = PROFILES["claude-code"].launch(launch_given()).arguments
    at = arguments.index("--mcp-config")
    assert arguments[at + 1 : at + 3] == ("/private/mcp.json", "--strict-mcp-config")
    assert arguments[-2:] == ("--allowedTools", "mcp__crm,mcp__my_mail")
    assert "--allowedTools" not in PROFILES["claude-code"].launch(launch_given(servers={})).arguments


def test_codex_gets_a_home_with_the_servers_started_apart_and_a_link_to_the_login() -> None:
    launch = PROFILES["codex"].launch(launch_given({"HOME": "/home/me"}))
    home = Path("/private/codex")
    assert launch.environment == {"CODEX_HOME": str(home)}
    assert launch.links == {home / "auth.json": Path("/home/me/.codex/auth.json")}
    servers = tomllib.loads(launch.files[home / "config.toml"])["mcp_servers"]
    assert servers["crm"]["command"] == "python"
    assert servers["crm"]["args"] == ["apart", "wiretrap", "proxy", "a b"]
    assert servers["my.mail"]["env"] == {"KEY": "va'lue"}
    assert all(server["required"] for server in servers.values())
    own = PROFILES["codex"].launch(launch_given({"HOME": "/home/me", "CODEX_HOME": "/codex"}))
    assert list(own.links.values()) == [Path("/codex/auth.json")]


def test_gemini_cli_gets_a_home_with_the_servers_and_takes_a_key_that_is_there() -> None:
    launch = PROFILES["gemini-cli"].launch(launch_given({"GEMINI_API_KEY": "k"}))
    (settings,) = launch.files.values()
    assert "k" not in json.loads(settings).values()
    assert json.loads(settings)["mcpServers"]["crm"]["args"] == ["proxy", "a b"]
    assert json.loads(settings)["security"] == {"auth": {"selectedType": "gemini-api-key"}}
    assert launch.arguments[-4:] == ("--allowed-mcp-server-names", "crm", "--allowed-mcp-server-names", "my.mail")
    (without,) = PROFILES["gemini-cli"].launch(launch_given()).files.values()
    assert "security" not in json.loads(without)


@pytest.mark.parametrize("name", PROFILES)
def test_no_value_of_a_servers_environment_stands_in_an_argument_or_a_variable(name: ProfileName) -> None:
    launch = PROFILES[name].launch(launch_given())
    assert "va'lue" not in " ".join([*launch.arguments, *launch.environment.values()])


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back_out_of_the_toml(name: str, word: str) -> None:
    text = codex.configuration(launch_given(servers={name: Start((word,), {name: word})}))
    server = tomllib.loads(text)["mcp_servers"][name]
    assert server["args"][-1] == word
    assert server["env"] == {name: word}


def test_a_server_whose_proxy_listens_already_is_named_by_its_url() -> None:
    url = "http://127.0.0.1:1/mcp"
    given = launch_given(servers={"far": Start((), url=url)})
    (toml,) = PROFILES["codex"].launch(given).files.values()
    far = tomllib.loads(toml)["mcp_servers"]["far"]
    assert (far["url"], far["required"], "command" in far) == (url, True, False)
    (settings,) = PROFILES["gemini-cli"].launch(given).files.values()
    assert json.loads(settings)["mcpServers"]["far"] == {"httpUrl": url, "trust": True}
