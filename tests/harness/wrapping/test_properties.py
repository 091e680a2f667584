"""Any configuration: wrapping changes commands alone, does so once, and undoing it gives the same bytes."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.wrapping.clientdisk import read_client_file, undo, write_wrapped
from harness.wrapping.clientfile import Format, rewrite
from harness.wrapping.entries import Wrapping
from harness.wrapping.jsonc import read_jsonc
from harness.wrapping.located import ConfigError
from harness.wrapping.unwrapping import unwrap
from proxy.spans import JSON

HOW = Wrapping(("/w/wire trap/wiretrap",), ("--policy", '/p "q".yaml'))
TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
BLANK = st.sampled_from(["", " ", "\n", "\r\n\t", "// c }\n", '/* " */', " /*\n*/ "])
LEAF = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXT)
VALUE = st.recursive(LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3))
URL = st.sampled_from(["https://a.example/mcp", "http://127.0.0.1:1", "${BASE}/mcp"])
OTHER = st.dictionaries(st.sampled_from(["disabled", "timeout", "x-é", "cwd"]), VALUE, max_size=2)
STDIO = st.builds(
    lambda command, rest, other: {"command": command, **rest, **other},
    TEXT,
    st.fixed_dictionaries(
        {},
        optional={"args": st.lists(TEXT, max_size=3), "env": st.dictionaries(TEXT, TEXT), "type": st.just("stdio")},
    ),
    OTHER,
)
REMOTE = st.builds(
    lambda url, rest, other: {"url": url, **rest, **other},
    URL,
    st.fixed_dictionaries({}, optional={"headers": st.dictionaries(TEXT, TEXT, max_size=3), "type": st.just("http")}),
    OTHER,
)
SERVERS = st.dictionaries(TEXT, STDIO | REMOTE, min_size=1, max_size=3)


def dump(draw: Callable[[], str], comma: Callable[[], bool], value: JSON) -> str:
    """JSON as a person may write it: blanks, comments and trailing commas anywhere."""
    match value:
        case dict() | list():
            parts = (
                [f"{json.dumps(key)}{draw()}:{draw()}{dump(draw, comma, inner)}" for key, inner in value.items()]
                if isinstance(value, dict)
                else [dump(draw, comma, inner) for inner in value]
            )
            opened, closed = "{}" if isinstance(value, dict) else "[]"
            inner = ",".join(f"{draw()}{part}{draw()}" for part in parts)
            return f"{opened}{inner}{',' if parts and comma() else ''}{draw()}{closed}"
        case _:
            return json.dumps(value, ensure_ascii=comma())


@st.composite
def jsonc(draw: st.DrawFn, values: st.SearchStrategy[JSON]) -> tuple[str, JSON]:
    value = draw(values)
    mark = draw(st.sampled_from(["", "\ufeff"]))
    ends = draw(BLANK)
    return f"{mark}{dump(lambda: draw(BLANK), lambda: draw(st.booleans()), value)}{ends}", value


def configs(servers: dict[str, JSON], above: str, other: dict[str, JSON]) -> JSON:
    return {**other, above: servers}


def toml(value: JSON) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case list():
            return f"[ {', '.join(map(toml, value))} ]"
        case dict():
            return f"{{ {', '.join(f'{toml(key)} = {toml(inner)}' for key, inner in value.items())} }}"
        case _:
            return repr(value)


TOML: st.SearchStrategy[dict[str, JSON]] = st.fixed_dictionaries(
    {"command": TEXT}, optional={"args": st.lists(TEXT, max_size=3)}
)


@st.composite
def tomls(draw: st.DrawFn) -> str:
    servers = draw(st.dictionaries(TEXT, TOML, min_size=1, max_size=3))
    end, text = draw(st.sampled_from(["\n", "\r\n"])), "x = 1 # [mcp_servers.y]\n\n"
    for name, server in servers.items():
        head = f"mcp_servers.{toml(name)}"
        lined = draw(st.booleans())
        note = draw(st.sampled_from(["", " # note", "\t"]))
        lines = [f"{key} = {toml(value)}{note}" for key, value in server.items()]
        if lined:
            lines = [line.replace("[ ", "[ # c\n  ", 1) for line in lines]
        text += "\n".join([f"[ {head} ]{note}", *lines, draw(st.sampled_from(["", "# end", "cwd = '/'"]))]) + "\n"
    return text.removesuffix("\n").replace("\n", end) + draw(st.sampled_from(["", end]))


def expected(before: JSON, after: JSON) -> None:
    """That a server's map became what it is to be."""
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    args = after["args"]
    assert isinstance(args, list)
    given = before.get("args") or []
    assert isinstance(given, list)
    assert after["command"] == HOW.program[0]
    if "command" in before:
        assert args[:2] == ["proxy", "stdio"]
        assert args[args.index("--") :] == ["--", before["command"], *given]
        moved = {"command", "args"}
    else:
        assert args[:2] == ["proxy", "connect"]
        assert args[-2:] == ["--", before["url"]]
        moved = {"command", "args", "url", "headers", "env", "type"}
        headers = before.get("headers", {})
        variables = after.get("env", {})
        assert isinstance(headers, dict)
        assert isinstance(variables, dict)
        assert list(variables.values()) == list(headers.values())
    assert {k: x for k, x in before.items() if k not in moved} == {k: x for k, x in after.items() if k not in moved}


def check(text: str, form: Format, parse: Callable[[str], JSON], above: str) -> None:
    made = rewrite(text, form, HOW)
    before, after = parse(text), parse(made.text)
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    assert {server.what for server in made.servers} == {"wrapped"}
    assert len({server.id for server in made.servers}) == len(made.servers)
    old, new = before.pop(above), after.pop(above)
    assert before == after
    assert isinstance(old, dict)
    assert isinstance(new, dict)
    assert list(old) == list(new)
    for name, server in old.items():
        expected(server, new[name])
    assert rewrite(made.text, form, HOW).text == made.text
    with TemporaryDirectory() as folder:
        path = Path(folder) / "config"
        path.write_bytes(text.encode())
        write_wrapped(read_client_file(path), made.text.encode())
        assert path.read_bytes() == made.text.encode()
        assert undo(read_client_file(path))
        assert path.read_bytes() == text.encode()
        assert list(Path(folder).iterdir()) == [path]


@settings(max_examples=40)
@given(jsonc(VALUE))
def test_json_with_comments_reads_as_what_was_written(one: tuple[str, JSON]) -> None:
    text, value = one
    assert read_jsonc(text).data == value


@settings(max_examples=40)
@given(st.text(st.sampled_from('{}[]",:/*\\ \n1atrue'), max_size=40))
def test_no_text_is_more_than_a_configuration_error(text: str) -> None:
    for form in ("json", "toml"):
        try:
            rewrite(text, "json" if form == "json" else "toml", HOW)
        except ConfigError:
            continue


@settings(max_examples=40)
@given(
    st.sampled_from(["mcpServers", "servers"]).flatmap(
        lambda above: st.tuples(
            st.just(above), jsonc(st.builds(configs, SERVERS, st.just(above), st.dictionaries(TEXT, VALUE, max_size=2)))
        )
    )
)
def test_wrapping_json_changes_commands_alone_and_is_undone_byte_for_byte(one: tuple[str, tuple[str, JSON]]) -> None:
    above, (text, _) = one
    check(text, "json", lambda source: read_jsonc(source).data, above)


@settings(max_examples=40)
@given(tomls())
def test_wrapping_toml_changes_commands_alone_and_is_undone_byte_for_byte(text: str) -> None:
    check(text, "toml", tomllib.loads, "mcp_servers")


@settings(max_examples=40)
@given(jsonc(st.builds(configs, SERVERS, st.just("mcpServers"), st.dictionaries(TEXT, VALUE, max_size=2))))
def test_what_was_added_since_stays_when_only_our_edits_are_undone(one: tuple[str, JSON]) -> None:
    text, _ = one
    made = rewrite(text, "json", HOW).text
    place = made.index("{") + 1
    added = made[:place] + '"added since": 1,' + made[place:]
    undone = unwrap(added, [text])
    assert {server.what for server in undone.servers} == {"undone"}
    assert undone.text == text[:place] + '"added since": 1,' + text[place:]
