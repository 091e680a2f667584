"""Messages that tests send over HTTP, and get."""

from tests.proxy.wires import call

OK = call("ok").encode()
RESULT = b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
META = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'
MODERN = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"ok","arguments":{{}},{META}}}}}'.encode()


def data(body: bytes) -> bytes:
    return b"event: message\ndata: " + body + b"\n\n"
