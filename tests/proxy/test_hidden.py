import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy import vocabulary as v
from proxy.frames import read_strict
from proxy.listing import hide_tools, replaced
from proxy.members import FrameError
from proxy.refusals import NOT_READABLE
from proxy.spans import JSON
from tests.proxy.deniedlines import code_of
from tests.proxy.test_bytes import json_values
from tests.proxy.wires import EVIL, Wire, call, policy_of

HIDING = policy_of(rules=[{"deny": "mcp/x/evil*", "as": "hidden"}])
ASK = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
EVIL_TOOL = '{"name":"evil","inputSchema":{"type":"object"}}'
OK_TOOL = '{ "title":"n\\u00e9", "name":"ok","inputSchema":{"x":1E2, "a":-0.0} }'


def listed(tools: str, *, scope: str = "", before: str = "", after: str = "", id_text: str = "1") -> str:
    return f'{{"jsonrpc":"2.0", "id":{id_text},"result":{{{before}"tools":{tools}{scope}{after}}},"extra":1}}'


def asked(tmp_path: Path) -> Wire:
    connection = Wire(tmp_path, HIDING)
    connection.client(ASK)
    connection.to_server = b""
    return connection


CASES = {
    "first": (f"[ {EVIL_TOOL} , {OK_TOOL}]", f"[ {OK_TOOL}]"),
    "last": (f"[{OK_TOOL} ,\t{EVIL_TOOL} ]", f"[{OK_TOOL} ]"),
    "middle": (f"[{OK_TOOL}, {EVIL_TOOL}\r,  {OK_TOOL}]", f"[{OK_TOOL}\r,  {OK_TOOL}]"),
    "only": (f"[ {EVIL_TOOL} ]", "[  ]"),
    "all": (f"[{EVIL_TOOL},{EVIL_TOOL} , {EVIL_TOOL}]", "[]"),
    "both ends": (f"[{EVIL_TOOL},{OK_TOOL},{EVIL_TOOL}]", f"[{OK_TOOL}]"),
    "two in a row": (f"[{OK_TOOL},{EVIL_TOOL}, {EVIL_TOOL},{OK_TOOL}]", f"[{OK_TOOL},{OK_TOOL}]"),
    "escaped name": (f'[{OK_TOOL},{{"n\\u0061me":"\\u0065vil"}}]', f"[{OK_TOOL}]"),
    "by glob": (f'[{OK_TOOL},{{"name":"evil_more"}}]', f"[{OK_TOOL}]"),
    "none": (f"[{OK_TOOL} , {OK_TOOL}]", f"[{OK_TOOL} , {OK_TOOL}]"),
    "empty": ("[ ]", "[ ]"),
}


@pytest.mark.parametrize(("tools", "left"), CASES.values(), ids=CASES.keys())
def test_a_hidden_tool_goes_and_every_other_byte_stays(tmp_path: Path, tools: str, left: str) -> None:
    connection = asked(tmp_path)
    rest = {"before": '"_meta":{"a":1.0} , ', "after": ' , "nextCursor":"\\u0065vil","ttlMs":1e3'}
    connection.server(listed(tools, **rest) + "\r")
    assert connection.to_client.decode() == listed(left, **rest) + "\r\n"
    request = connection.only("request")
    assert request.attributes[v.OUTCOME] == "ok"
    assert v.REFUSED_BY_US not in request.attributes
    result = request.attributes[v.RESULT]
    assert isinstance(result, str)
    assert json.loads(result)["tools"] == json.loads(left)


@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("scope", ['"public"', '"private"', "null", '{"a":[1]}'])
def test_a_cache_scope_becomes_private_when_a_tool_is_taken_out(tmp_path: Path, order: str, scope: str) -> None:
    connection = asked(tmp_path)
    given_scope = (
        {"before": f'"cacheScope" : {scope},'} if order == "before" else {"after": f', "cacheScope" :{scope} '}
    )
    private = {key: text.replace(scope, '"private"') for key, text in given_scope.items()}
    connection.server(listed(f"[{EVIL_TOOL},{OK_TOOL}]", **given_scope))
    assert connection.to_client.decode() == listed(f"[{OK_TOOL}]", **private) + "\n"


def test_a_cache_scope_stays_when_no_tool_is_taken_out(tmp_path: Path) -> None:
    connection = asked(tmp_path)
    line = listed(f"[{OK_TOOL}]", after=',"cacheScope":"public"')
    connection.server(line)
    assert connection.to_client.decode() == line + "\n"


def test_an_empty_page_keeps_its_cursor(tmp_path: Path) -> None:
    connection = asked(tmp_path)
    connection.server(listed(f"[{EVIL_TOOL}]", after=',"nextCursor":"p2"'))
    assert connection.replies == [{"jsonrpc": "2.0", "id": 1, "result": {"tools": [], "nextCursor": "p2"}, "extra": 1}]


AMBIGUOUS = {
    "name in two cases": listed('[{"name":"ok","Name":"evil"}]'),
    "name under NUL": listed('[{"name":"ok","name\\u0000":"evil"}]'),
    "name twice": listed('[{"name":"ok","name":"evil"}]'),
    "tools twice": listed(f"[{OK_TOOL}]", after=f',"tools":[{EVIL_TOOL}]'),
    "Tools beside tools": listed(f"[{OK_TOOL}]", after=f',"Tools":[{EVIL_TOOL}]'),
    "Tools alone": listed("[]").replace('"tools":[]', f'"Tools":[{EVIL_TOOL}]'),
    "result twice": listed(f"[{EVIL_TOOL}]").replace('"extra":1', '"result":{}'),
    "id twice": listed(f"[{EVIL_TOOL}]").replace('"extra":1', '"id":2'),
    "id twice, first": listed(f"[{EVIL_TOOL}]", id_text='2,"id":1'),
    "id in two cases": listed(f"[{EVIL_TOOL}]").replace('"extra":1', '"ID":2'),
    "Result alone": listed(f"[{EVIL_TOOL}]").replace('"result"', '"Result"'),
    "a method beside it": listed(f"[{EVIL_TOOL}]").replace('"extra":1', '"method":"x"'),
    "an element that is no object": listed(f"[{EVIL_TOOL},1]"),
    "NaN": listed(f"[{EVIL_TOOL}]", after=',"x":NaN'),
    "bom": "\ufeff" + listed(f"[{EVIL_TOOL}]"),
    "lone surrogate": listed(f"[{EVIL_TOOL}]", after=',"x":"\\ud800"'),
    "control character": listed(f"[{EVIL_TOOL}]", after=',"x":"\x01"'),
    "5000 digits": listed(f"[{EVIL_TOOL}]", after=',"x":' + "1" * 5000),
    "too deep": listed(f"[{EVIL_TOOL}]", after=',"x":' + "[" * 5000 + "]" * 5000),
    "something behind it": listed(f"[{EVIL_TOOL}]") + " x",
}


@pytest.mark.parametrize("line", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_a_list_that_a_reader_could_see_otherwise_is_replaced_by_an_error(tmp_path: Path, line: str) -> None:
    connection = asked(tmp_path)
    connection.server(line)
    (reply,) = connection.replies
    assert isinstance(reply, dict)
    assert reply["id"] == 1
    assert code_of(reply) == NOT_READABLE
    request = connection.only("request")
    assert request.attributes[v.REFUSED_BY_US] is True
    assert request.attributes[v.OUTCOME] == "protocol_error"
    assert str(connection.only("malformed").attributes[v.REQUEST]).rstrip("\n") == line


OTHERS = [
    "server ready",
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"tools":[{"name":"evil"}],"a":NaN}}',
    '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x","message":"y"}}',
    '{"jsonrpc":"2.0","id":1,"result":null}',
    '{"jsonrpc":"2.0","id":1,"result":{"tools":{"name":"evil"}}}',
]


@pytest.mark.parametrize("line", OTHERS)
def test_every_other_line_passes_as_it_is(tmp_path: Path, line: str) -> None:
    connection = asked(tmp_path)
    connection.server(line)
    assert connection.to_client.decode() == line + "\n"


def test_a_list_that_nobody_hides_from_passes_however_it_is_written(tmp_path: Path) -> None:
    connection = Wire(tmp_path, EVIL)
    connection.client(ASK)
    connection.server(AMBIGUOUS["name twice"])
    assert connection.to_client.decode() == AMBIGUOUS["name twice"] + "\n"


def test_lists_in_an_array_are_edited_in_their_place(tmp_path: Path) -> None:
    connection = Wire(tmp_path, HIDING)
    connection.negotiate("2025-03-26")
    connection.client(f"[{ASK},{ASK.replace(':1,', ':2,')},{ASK.replace(':1,', ':3,')},{call('ok', id_text='4')}]")
    first = listed(f"[{EVIL_TOOL},{OK_TOOL}]")
    second = listed(f"[{OK_TOOL},{EVIL_TOOL}]", id_text="2")
    odd = listed('[{"name":"ok","Name":"evil"}]', id_text="3")
    other = '{"jsonrpc":"2.0","id":4,"result":{"tools":[{"name":"evil"}]}}'
    connection.server(f"[{first} , {second},{odd},{other} ]")
    text = connection.to_client.decode()
    kept = listed(f"[{OK_TOOL}]")
    assert text.startswith(f'[{kept} , {kept.replace(":1,", ":2,", 1)},{{"jsonrpc":"2.0","id":3,"error":')
    assert text.endswith(f",{other} ]\n")
    assert json.loads(text)


def test_a_hidden_tool_is_denied_when_it_is_called_all_the_same(tmp_path: Path) -> None:
    connection = Wire(tmp_path, HIDING)
    connection.client(call("evil"))
    assert connection.to_server == b""


def test_a_denied_tool_that_is_not_hidden_is_listed(tmp_path: Path) -> None:
    connection = Wire(tmp_path, EVIL)
    connection.client(ASK)
    line = listed(f"[{EVIL_TOOL}]")
    connection.server(line)
    assert connection.to_client.decode() == line + "\n"


blanks = st.sampled_from(["", " ", "\t ", "\r"])
tool_objects = st.dictionaries(
    st.text(max_size=4).filter(lambda key: key.casefold().partition("\0")[0] != "name"), json_values, max_size=3
)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(tool_objects, st.sampled_from(["evil", "ok", "evilest", "devil"]), blanks, blanks), max_size=6),
    st.booleans(),
)
def test_what_is_left_is_the_list_without_the_hidden_tools_text_for_text(
    tools: list[tuple[dict[str, JSON], str, str, str]], ascii_only: bool
) -> None:
    texts = [json.dumps({**tool, "name": name}, ensure_ascii=ascii_only) for tool, name, _, _ in tools]
    array = ",".join(f"{before}{text}{after}" for text, (_, _, before, after) in zip(texts, tools, strict=True))
    line = f'{{"id":1, "result" :{{"a":1,"tools": [{array}],"z":[ ]}}}}'
    try:
        message = read_strict(line.encode("utf-8", "surrogatepass")).messages[0]
    except FrameError:
        return
    edits = hide_tools(message, lambda name: name.startswith("evil"))
    edited = replaced(line, edits)
    expected = json.loads(line)
    expected["result"]["tools"] = [tool for tool in expected["result"]["tools"] if not tool["name"].startswith("evil")]
    assert json.loads(edited) == expected
    at = 0
    for text, (_, name, _, _) in zip(texts, tools, strict=True):
        if not name.startswith("evil"):
            at = edited.index(text, at) + len(text)
    hidden = sum(len(text) for text, (_, name, _, _) in zip(texts, tools, strict=True) if name.startswith("evil"))
    commas = sum(name.startswith("evil") for _, name, _, _ in tools)
    if commas == len(tools):
        commas = max(commas - 1, 0)
    assert len(line) - len(edited) >= hidden + commas
