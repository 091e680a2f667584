"""Lines that a policy must stop, and what is read from the answers to them."""

from proxy.refusals import REFUSAL_KEY
from proxy.spans import JSON
from tests.proxy.wires import call

PLAIN = call()
PAD = " " * 300
EVIL_PARAMS = '"params":{"name":"evil","arguments":{}}'
HEAD = '"jsonrpc":"2.0","id":1,"method":"tools/call"'


def ids_answered(replies: list[JSON]) -> list[JSON]:
    flat: list[JSON] = []
    for reply in replies:
        flat += reply if isinstance(reply, list) else [reply]
    return [one["id"] for one in flat if isinstance(one, dict)]


def code_of(reply: JSON) -> JSON:
    assert isinstance(reply, dict)
    if "error" in reply:
        error = reply["error"]
        assert isinstance(error, dict)
        data = error["data"]
        assert isinstance(data, dict)
        mark = data["wiretrap"]
        assert isinstance(mark, dict)
        assert mark["code"] == error["code"]
    else:
        result = reply["result"]
        assert isinstance(result, dict)
        assert result["isError"] is True
        meta = result["_meta"]
        assert isinstance(meta, dict)
        mark = meta[REFUSAL_KEY]
        assert isinstance(mark, dict)
    return mark["code"]


DENIED_ONES: dict[str, tuple[str, list[JSON]]] = {
    "plain": (PLAIN, [1]),
    "escaped letters": (f'{{{HEAD},"params":{{"n\\u0061me":"\\u0065vil"}}}}', [1]),
    "escaped method": ('{"jsonrpc":"2.0","id":1,"m\\u0065thod":"tools\\/call",' + EVIL_PARAMS + "}", [1]),
    "no id": (call(id_text=None), []),
    "id null": (call(id_text="null"), []),
    "id true": (call(id_text="true"), []),
    "id an object": (call(id_text='{"a":1}'), []),
    "id 1.5": (call(id_text="1.5"), [1.5]),
    "id 0": (call(id_text="0"), [0]),
    "id empty": (call(id_text='""'), [""]),
    "id -0": (call(id_text="-0"), [0]),
    "id huge": (call(id_text="1" * 4000), [int("1" * 4000)]),
    "id escaped": (call(id_text='"\\u0041\\ud83d\\ude00"'), ["A😀"]),
    "crlf": (PLAIN + "\r", [1]),
    "blanks around": (f" \t{PLAIN} ", [1]),
    "blanks inside": (PLAIN.replace(":", " \t: ").replace(",", " , "), [1]),
    "depth 900": (call(arguments="[" * 900 + "]" * 900), [1]),
    "unknown members": (PLAIN[:-1] + ',"extra":{"method":"ping"}}', [1]),
    "a result beside it": (PLAIN[:-1] + ',"result":{}}', [1]),
    "arguments that are no object": (call(arguments='"x"'), [1]),
}

NESTED: dict[str, tuple[bytes, list[JSON]]] = {
    "call inside a ping": (f'{{"jsonrpc":"2.0","id":5,"method":"ping","x":{PAD}{PLAIN}}}'.encode(), [5]),
    "call deep inside an answer": (f'{{"jsonrpc":"2.0","id":5,"result":{{"a":[{{"b":{PAD}{PLAIN}}}]}}}}'.encode(), []),
    "call inside arguments": (call("ok", arguments=f'{{"x":{PAD}{PLAIN}}}').encode(), [1]),
    "folded call inside a ping": (
        f'{{"id":5,"method":"ping","x":{PAD}{PLAIN.replace(chr(34) + "method", chr(34) + "Method")}}}'.encode(),
        [5],
    ),
    "call beside others in an array of carriage returns": (f'{{"x":[\r{{"a":1}},{PAD}{PLAIN}\r]}}'.encode(), []),
}
"""Lines that are read strictly, and in which a reader with a small buffer may begin to read somewhere inside."""

UNREADABLE: dict[str, tuple[bytes, list[JSON]]] = {
    "array outside its protocol": (f"[{PLAIN}]".encode(), [1]),
    "array in an array": (f"[[{PLAIN}]]".encode(), [1]),
    "array with a notification": (f'[{{"jsonrpc":"2.0","method":"a"}},{PLAIN}]'.encode(), [1]),
    "name twice, evil first": (f'{{{HEAD},"params":{{"name":"evil","name":"ok"}}}}'.encode(), [1]),
    "name twice, evil last": (f'{{{HEAD},"params":{{"name":"ok","name":"evil"}}}}'.encode(), [1]),
    "name twice, once escaped": (f'{{{HEAD},"params":{{"name":"ok","nam\\u0065":"evil"}}}}'.encode(), [1]),
    "method twice": (f'{{{HEAD},"method":"ping",{EVIL_PARAMS}}}'.encode(), [1]),
    "method twice, call first": (f'{{"method":"ping",{HEAD},{EVIL_PARAMS}}}'.encode(), [1]),
    "params twice": (f'{{{HEAD},{EVIL_PARAMS},"params":{{"name":"ok"}}}}'.encode(), [1]),
    "params twice, other case": (f'{{{HEAD},"params":{{"name":"ok"}},"Params":{{"name":"evil"}}}}'.encode(), [1]),
    "id twice": (f'{{"id":2,{HEAD},{EVIL_PARAMS}}}'.encode(), []),
    "id in two cases": (f'{{"Id":2,{HEAD},{EVIL_PARAMS}}}'.encode(), []),
    "Name beside name": (f'{{{HEAD},"params":{{"name":"ok","Name":"evil"}}}}'.encode(), [1]),
    "Name alone": (f'{{{HEAD},"params":{{"NAME":"evil"}}}}'.encode(), [1]),
    "Method beside method": (f'{{"id":1,"method":"ping","Method":"tools/call",{EVIL_PARAMS}}}'.encode(), [1]),
    "Method alone": (f'{{"jsonrpc":"2.0","id":1,"METHOD":"tools/call",{EVIL_PARAMS}}}'.encode(), [1]),
    "long s in params": ('{"jsonrpc":"2.0","id":1,"method":"tools/call","paramſ":{"name":"evil"}}'.encode(), [1]),
    "dotless i in the key": ('{"jsonrpc":"2.0","ıd":1,"method":"tools/call","params":{"name":"evil"}}'.encode(), []),
    "a key with NUL": (f'{{{HEAD},"params":{{"name\\u0000":"evil"}}}}'.encode(), [1]),
    "a key with NUL and more": (f'{{{HEAD},"params":{{"name":"ok","name\\u0000x":"evil"}}}}'.encode(), [1]),
    "a method key with NUL": (f'{{"id":1,"method\\u0000":"tools/call","method":"ping",{EVIL_PARAMS}}}'.encode(), [1]),
    "bom": (b"\xef\xbb\xbf" + PLAIN.encode(), [1]),
    "bom after blanks": (b" \xef\xbb\xbf" + PLAIN.encode(), [1]),
    "NaN": (call(arguments='{"a":NaN}').encode(), [1]),
    "-Infinity": (call(arguments='{"a":-Infinity}').encode(), [1]),
    "NaN as id": (call(id_text="NaN").encode(), []),
    "lone surrogate": (call(arguments='{"a":"\\ud800"}').encode(), [1]),
    "lone surrogate in a key": (call(arguments='{"\\uDC00":1}').encode(), [1]),
    "lone surrogate in the id": (call(id_text='"\\ud800"').encode(), []),
    "raw surrogate": (call().replace("{}", '"\ud800"').encode("utf-8", "surrogatepass"), [1]),
    "latin-1": (call(arguments='"é"').encode("latin-1"), [1]),
    "invalid id bytes": (PLAIN.encode().replace(b'"id":1', b'"id":"\xff"'), []),
    "overlong slash": (PLAIN.encode().replace(b"/", b"\xc0\xaf"), [1]),
    "control character": (call(arguments='"a\x01b"').encode(), [1]),
    "repeat in arguments": (call(arguments='{"a":1,"a":2}').encode(), [1]),
    "repeat deep in arguments": (call(arguments='{"x":[{"":{"a":1,"a":2}}]}').encode(), [1]),
    "repeat under an empty key of params": (f'{{{HEAD},"params":{{"name":"evil","":{{"a":1,"a":2}}}}}}'.encode(), [1]),
    "comment": (PLAIN.encode() + b" // ok", [1]),
    "comment inside": (PLAIN.replace(",", ",/*x*/", 1).encode(), [1]),
    "trailing comma": ((PLAIN[:-1] + ",}").encode(), [1]),
    "single quotes": (PLAIN.replace('"', "'").encode(), []),
    "form feed before": (b"\x0c" + PLAIN.encode(), [1]),
    "vertical tab before": (b"\x0b" + PLAIN.encode(), [1]),
    "no-break space before": (b"\xc2\xa0" + PLAIN.encode(), [1]),
    "record separator": (b"\x1e" + PLAIN.encode(), [1]),
    "NUL before": (b"\0" + PLAIN.encode(), [1]),
    "NUL behind": (PLAIN.encode() + b"\0", [1]),
    "two on one line": (b'{"jsonrpc":"2.0","id":7,"method":"ping"}' + PLAIN.encode(), [7, 1]),
    "two on one line, call first": (PLAIN.encode() + b' {"jsonrpc":"2.0","id":7,"method":"ping"}', [1, 7]),
    "depth 1100": (call(arguments="[" * 1100 + "]" * 1100).encode(), [1]),
    "depth 10000": (call(arguments="[" * 10_000 + "]" * 10_000).encode(), [1]),
    "depth 10000, folded": (
        (f'{{"x":{"[" * 10_000}{"]" * 10_000},"id":1,"Method":"tools/call","Params":{{"Name":"evil"}}}}').encode(),
        [1],
    ),
    "depth 10000 of objects": (call(arguments='{"a":' * 10_000 + "1" + "}" * 10_000).encode(), [1]),
    "5000 digits": (call(arguments="1" * 5000).encode(), [1]),
    "5000 digits as id": (call(id_text="1" * 5000).encode(), []),
    "utf-16": (PLAIN.encode("utf-16"), [1]),
    "utf-16-le": (PLAIN.encode("utf-16-le"), [1]),
    "utf-16-be": (PLAIN.encode("utf-16-be"), [1]),
    "utf-32": (PLAIN.encode("utf-32"), [1]),
    "utf-32-be": (PLAIN.encode("utf-32-be"), [1]),
    "upper case method": (PLAIN.replace("tools/call", "Tools/Call").encode(), [1]),
    "blank behind method": (PLAIN.replace("tools/call", "tools/call ").encode(), [1]),
    "tab before method": (PLAIN.replace("tools/call", "\\ttools/call").encode(), [1]),
    "NUL behind method": (PLAIN.replace("tools/call", "tools/call\\u0000").encode(), [1]),
    "NUL inside a method": (PLAIN.replace("tools/call", "tool\\u0000s/call").encode(), [1]),
    "NUL and more behind method": (PLAIN.replace("tools/call", "tools/call\\u0000x").encode(), [1]),
    "no-break space before method": (PLAIN.replace("tools/call", "\\u00a0tools/call").encode(), [1]),
    "em space before method": (PLAIN.replace("tools/call", "\\u2003tools/call").encode(), [1]),
    "unit separator before method": (PLAIN.replace("tools/call", "\\u001ftools/call").encode(), [1]),
    "next line behind method": (PLAIN.replace("tools/call", "tools/call\\u0085").encode(), [1]),
    "byte order mark before method": (PLAIN.replace("tools/call", "\\ufefftools/call").encode(), [1]),
    "zero-width space in method": (PLAIN.replace("tools/call", "tools\\u200b/call").encode(), [1]),
    "method in an array": (PLAIN.replace('"tools/call"', '["tools/call"]').encode(), []),
    "method in two arrays": (PLAIN.replace('"tools/call"', '[["tools/call"]]').encode(), []),
    "method inherited": (f'{{"id":1,"__proto__":{{"method":"tools/call"}},{EVIL_PARAMS}}}'.encode(), []),
    "params inherited": (f'{{{HEAD},"params":{{"__proto__":{{"name":"evil"}},"name":"ok"}}}}'.encode(), [1]),
    "arguments inherited": (call(arguments='{"__proto__":{"tier":1}}').encode(), [1]),
    "call between carriage returns of an answer": (f'{{"id":9,"result":\r{PLAIN}\r}}'.encode(), []),
    "call between carriage returns of nothing": (f'{{"x":\r{PLAIN}\r}}'.encode(), []),
    "call between carriage returns of a request": (
        f'{{"id":9,"method":"ping","params":{{"x":[\r{PLAIN},\r]}}}}'.encode(),
        [9],
    ),
    "two calls of one name between carriage returns": (
        f'{{"id":9,"method":"tools/call","params":{{"name":"ok","arguments":[\r{PLAIN}\r,1]}}}}'.encode(),
        [9],
    ),
    "folded call between carriage returns": (
        f'{{"id":9,"result":\r{PLAIN.replace("method", "Method")}\r}}'.encode(),
        [],
    ),
    "not closed": (PLAIN[:-1].encode(), [1]),
    "not closed, and a colon missing": (PLAIN[:-1].replace('"2.0"', '"2.0').encode(), []),
}
