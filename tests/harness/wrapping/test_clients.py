"""Configurations as clients write them: what becomes of their servers, and that all else stays byte for byte."""

import json
import tomllib

import pytest

from harness.wrapping.clientfile import Format, rewrite
from harness.wrapping.entries import MODULE, Wrapping
from harness.wrapping.located import ConfigError

HOW = Wrapping(("/w/wiretrap",), ("--policy", "/p.yaml"))
STDIO = '"proxy", "stdio", "--server", "{}", "--policy", "/p.yaml", "--", '
CONNECT = '"proxy", "connect", "--server", "{}", "--policy", "/p.yaml", '


def stdio(name: str) -> str:
    return STDIO.format(name)


def connect(name: str) -> str:
    return CONNECT.format(name)


CASES: dict[str, tuple[Format, str, str]] = {
    "Claude Desktop, and what it has beside servers": (
        "json",
        '\ufeff{\r\n  "globalShortcut": "",\r\n  "mcpServers": {\r\n    "fs": {\r\n      "command": "npx",\r\n'
        '      "args": ["-y", "fs", "/home"],\r\n      "env": {}\r\n    }\r\n  }\r\n}\r\n\r\n',
        '\ufeff{\r\n  "globalShortcut": "",\r\n  "mcpServers": {\r\n    "fs": {\r\n      "command": "/w/wiretrap",\r\n'
        f'      "args": [{stdio("fs")}"npx", "-y", "fs", "/home"],'
        '\r\n      "env": {}\r\n    }\r\n  }\r\n}\r\n\r\n',
    ),
    "Claude Code, over HTTP with a variable in a header": (
        "json",
        '{"mcpServers":{"api":{"type":"http","url":"${BASE:-https://a.example}/mcp",'
        '"headers":{"Authorization":"Bearer ${KEY}"}}}}',
        '{"mcpServers":{"api":{"type":"stdio","command":"/w/wiretrap", "args": ['
        f'{connect("api")}"--header-env", "Authorization=WIRETRAP_HEADER_AUTHORIZATION", "--", '
        '"${BASE:-https://a.example}/mcp"],"env":{"WIRETRAP_HEADER_AUTHORIZATION":"Bearer ${KEY}"}}}}',
    ),
    "a project of Claude Code": (
        "json",
        '{"projects": {"/p": {"mcpServers": {"x": {"command": "a"}}, "history": [1.0, 1e5]}}}',
        f'{{"projects": {{"/p": {{"mcpServers": {{"x": {{"command": "/w/wiretrap", "args": [{stdio("x")}"a"]}}}},'
        ' "history": [1.0, 1e5]}}}',
    ),
    "Cursor, which tells by the fields what a server is": (
        "json",
        '{"mcpServers": {"x": {"url": "https://a.example/mcp", "headers": {"X-A": "${env:A}", "x-a": "b"}}}}',
        f'{{"mcpServers": {{"x": {{"command": "/w/wiretrap", "args": [{connect("x")}'
        '"--header-env", "X-A=WIRETRAP_HEADER_X_A", "--header-env", "x-a=WIRETRAP_HEADER_X_A_2", "--", '
        '"https://a.example/mcp"], "env": {"WIRETRAP_HEADER_X_A": "${env:A}", "WIRETRAP_HEADER_X_A_2": "b"}}}}',
    ),
    "VS Code, with comments, trailing commas and inputs": (
        "json",
        '{\n\t// mine\n\t"inputs": [{"id": "t",},],\n\t"servers": {\n\t\t"a": { /* c */\n\t\t\t"type": "stdio",\n'
        '\t\t\t"command": "uvx", // run\n\t\t\t"args": [\n\t\t\t\t"one", // first\n\t\t\t],\n\t\t},\n\t},\n}',
        '{\n\t// mine\n\t"inputs": [{"id": "t",},],\n\t"servers": {\n\t\t"a": { /* c */\n\t\t\t"type": "stdio",\n'
        f'\t\t\t"command": "/w/wiretrap", // run\n\t\t\t"args": [\n\t\t\t\t{stdio("a")}"uvx",\n\t\t\t\t"one", // first'
        "\n\t\t\t],\n\t\t},\n\t},\n}",
    ),
    "Gemini CLI over HTTP": (
        "json",
        '{"mcpServers": {"x": {"httpUrl": "https://a.example/mcp", "timeout": 5000, "trust": false}}}',
        f'{{"mcpServers": {{"x": {{"command": "/w/wiretrap", "args": [{connect("x")}"--", "https://a.example/mcp"],'
        ' "timeout": 5000, "trust": false}}}',
    ),
    "Codex, in tables": (
        "toml",
        "# mine\nmodel = 'o'\n\n[mcp_servers.a]\ncommand = 'npx' # run\nargs = [\n  \"-y\", # yes\n]\n\n"
        '[mcp_servers.a.env]\nA = "b"\n\n[mcp_servers.b]\n  command = "x"',
        "# mine\nmodel = 'o'\n\n[mcp_servers.a]\ncommand = \"/w/wiretrap\" # run\nargs = [\n  "
        f"{stdio('a')}'npx',\n  \"-y\", # yes\n]\n\n"
        f'[mcp_servers.a.env]\nA = "b"\n\n[mcp_servers.b]\n  command = "/w/wiretrap"\n  args = [{stdio("b")}"x"]',
    ),
    "Codex, in dotted keys and maps on one line": (
        "toml",
        '[mcp_servers]\r\n"a b".command = "x"\r\nb = { command = "y", args = [] }\r\n',
        f'[mcp_servers]\r\n"a b".command = "/w/wiretrap"\r\n"a b".args = [{stdio("a-b")}"x"]\r\n'
        f'b = {{ command = "/w/wiretrap", args = [{stdio("b")}"y"] }}\r\n',
    ),
    "Codex over HTTP": (
        "toml",
        '[mcp_servers.a]\nurl = "https://a.example/mcp"\nbearer_token_env_var = "KEY"\n'
        '[mcp_servers.a.http_headers]\n"X-A" = "1"\n[mcp_servers.b]\nurl = "https://b.example/mcp"\n'
        'env_http_headers = { "X-B" = "B_KEY" }\n',
        f'[mcp_servers.a]\ncommand = "/w/wiretrap"\nargs = [{connect("a")}"--header-env", "X-A=WIRETRAP_HEADER_X_A", '
        '"--bearer-env", "KEY", "--", "https://a.example/mcp"]\nenv_vars = ["KEY"]\n'
        '[mcp_servers.a.env]\nWIRETRAP_HEADER_X_A = "1"\n[mcp_servers.b]\ncommand = "/w/wiretrap"\n'
        f'args = [{connect("b")}"--header-env", "X-B=B_KEY", "--", "https://b.example/mcp"]\nenv_vars = ["B_KEY"]\n',
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_server_is_started_through_the_proxy_and_all_else_stays(name: str) -> None:
    form, text, expected = CASES[name]
    made = rewrite(text, form, HOW)
    assert made.text == expected
    assert {server.what for server in made.servers} == {"wrapped"}
    again = rewrite(made.text, form, Wrapping(("/elsewhere/wiretrap",)))
    assert again.text == made.text
    assert {server.what for server in again.servers} == {"already"}


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"url": "https://a.example/mcp?key=k"}, "would come to stand on a command line"),
        ({"url": "https://a.example/${KEY}/mcp"}, "which would be filled in on a command line"),
        ({"url": "https://u:p@a.example/mcp"}, "would come to stand on a command line"),
        ({"url": "https://a.example", "oauth": {"clientId": "x"}}, "signs in by itself (oauth)"),
        ({"url": "https://a.example", "oauth": {}}, "signs in by itself (oauth)"),
        ({"url": "https://a.example", "headersHelper": "x"}, "signs in by itself (headersHelper)"),
        ({"url": "https://a.example", "type": "sse"}, "HTTP with SSE"),
        ({"url": "wss://a.example", "type": "ws"}, "its type is 'ws'"),
        ({"url": "unix:///s"}, "does not begin with http"),
        ({"url": "https://a.example", "headers": {"A": 1}}, "its headers are no map of texts"),
        ({"url": "https://a.example", "headers": {}, "env": {}}, "it has a URL and an env"),
        ({"url": "https://a.example", "args": []}, "it has a URL and args"),
        ({"url": "https://a.example", "httpUrl": "https://b.example"}, "not one of a command and a URL"),
        ({"command": "x", "url": "https://a.example"}, "not one of a command and a URL"),
        ({"command": "x", "args": "y"}, "its args are no list of texts"),
        ({"command": "x", "args": [1]}, "its args are no list of texts"),
        ({"command": "x", "type": "http"}, "its type is 'http'"),
        ({}, "not one of a command and a URL"),
        ("x", "it is no map"),
    ],
)
def test_what_cannot_go_through_the_proxy_is_left_and_said_and_the_others_go(entry: object, why: str) -> None:
    text = json.dumps({"mcpServers": {"left": entry, "b": {"command": "x", "args": None}}})
    made = rewrite(text, "json", HOW)
    left, other = made.servers
    assert (left.what, other.what) == ("left", "wrapped")
    assert why in left.why
    assert json.loads(made.text)["mcpServers"]["left"] == entry


def test_gemini_means_the_older_transport_by_a_url_without_a_type() -> None:
    text = '{"mcpServers": {"x": {"url": "https://a.example/sse"}}}'
    [server] = rewrite(text, "json", Wrapping(("/w/wiretrap",), sse=True)).servers
    assert server.what == "left"


def test_ids_are_made_of_names_and_no_two_are_one() -> None:
    names = ["my server", "my-server", "MY SERVER", "ü", "..", "a/b", "taken"]
    servers: dict[str, object] = {name: {"command": "x"} for name in names}
    servers["old"] = {"command": "/w/wiretrap", "args": ["proxy", "stdio", "--server", "taken", "--", "x"]}
    made = rewrite(json.dumps({"mcpServers": servers}), "json", HOW)
    ids = [server.id for server in made.servers]
    assert ids == ["my-server", "my-server-2", "MY-SERVER-3", "server", "server-2", "a-b", "taken-2", "taken"]


def test_without_a_script_the_proxy_is_started_as_a_module() -> None:
    how = Wrapping(("/python", *MODULE))
    made = rewrite('{"mcpServers": {"x": {"command": "a"}}}', "json", how)
    assert json.loads(made.text)["mcpServers"]["x"]["args"][:4] == [*MODULE, "proxy"]
    assert rewrite(made.text, "json", how).text == made.text


def test_a_secret_in_a_header_stands_on_no_command_line() -> None:
    entry = {"url": "https://a.example/mcp", "headers": {"Authorization": "Bearer s3cr3t", "X-Key": "k3y"}}
    made = rewrite(json.dumps({"mcpServers": {"x": entry}}), "json", HOW)
    server = json.loads(made.text)["mcpServers"]["x"]
    assert sorted(server["env"].values()) == ["Bearer s3cr3t", "k3y"]
    assert not any("s3cr3t" in word or "k3y" in word for word in server["args"])


@pytest.mark.parametrize(
    ("text", "form", "said"),
    [
        ("", "json", "line 1: a value is missing"),
        ('{"mcpServers": {"x": {}}', "json", "line 1: a ',' or the } of line 1 is missing"),
        ('{\n"mcpServers" {}}', "json", "line 2: a ':' is missing"),
        ("{\n'a': 1}", "json", "line 2: a text in quotes was expected"),
        ('{"a": 01}', "json", "line 1: '0' begins no value"),
        ('{"a": "\\x"}', "json", "line 1: this text has an escape that JSON does not know"),
        ('{"a": 1} x', "json", "line 1: something stands behind the end"),
        ('{"a": 1 /* x', "json", "line 1: a comment that begins with /* has no end"),
        ("[" * 300, "json", "more than 200 maps and lists"),
        ('{"mcpServers": {}}', "json", "it names no servers; they stand under mcpServers"),
        ("a = 1", "toml", "it names no servers; they stand under [mcp_servers.NAME]"),
        ("a = ", "toml", "not TOML: "),
        ('{"mcpServers": {"x": {}}, "mcpServers": {"y": {}}}', "json", "the key mcpServers stands twice"),
        ('{"mcpServers": {"x": {"command": "a"}, "x": {"command": "b"}}}', "json", "mcpServers.x stands twice"),
    ],
)
def test_what_is_no_configuration_is_told_by_line(text: str, form: Format, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        rewrite(text, form, HOW)
    assert said in str(caught.value)


def test_a_key_that_stands_twice_in_a_server_leaves_it() -> None:
    [server] = rewrite('{"mcpServers": {"x": {"command": "a", "command": "b"}}}', "json", HOW).servers
    assert (server.what, "twice" in server.why) == ("left", True)


def test_toml_of_every_kind_beside_the_servers_is_passed_over() -> None:
    text = (
        'a.b."c.d" = """x\n[mcp_servers.no]\n"""\n'
        + "d = 1979-05-27T07:32:00Z # [x]\nf = [ [1, 2], {x = '}'}, ] \n[[many]]\nx = inf\n[[many]]\nx = '''\n'a' '''\n"
        + "[ mcp_servers . x ] # y\ncommand = '''npx'''\n"
    )
    made = rewrite(text, "toml", HOW)
    before, after = tomllib.loads(text), tomllib.loads(made.text)
    assert after.pop("mcp_servers") != before.pop("mcp_servers")
    assert after == before
