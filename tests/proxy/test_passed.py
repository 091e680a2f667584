"""An answer goes on before it is read, and all that follows is seen as if it had been read at once."""

from pathlib import Path

from proxy import vocabulary as v
from tests.proxy.wires import Wire, call

ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}\n'
SAMPLE = b'{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}\n'
ASKING = (
    b'{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":'
    b'{"k":{"method":"elicitation/create","params":{}}}}}\n'
)
MODERN = '{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'


def test_an_answer_is_on_its_way_before_it_is_recorded(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    connection.client(call("ok"))
    assert connection.relay.from_server(ANSWER).to_client == ANSWER
    assert connection.spans("request") == []
    connection.relay.settle()
    assert connection.only("request").attributes[v.OUTCOME] == "ok"


def test_an_id_that_is_used_again_before_the_answer_is_recorded_is_free(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    connection.client(call("ok"))
    connection.relay.from_server(ANSWER)
    connection.client(call("ok"))
    connection.server(ANSWER)
    outcomes = [(span.attributes[v.OUTCOME], span.attributes.get(v.ID_REUSED)) for span in connection.spans("request")]
    assert outcomes == [("ok", None), ("ok", None)]


def test_what_asks_the_client_is_recorded_before_it_goes_on(tmp_path: Path) -> None:
    for line in (SAMPLE, SAMPLE.replace(b"method", b"m\\u0065thod"), ASKING, ASKING.replace(b"inp", b"\\u0069np")):
        connection = Wire(tmp_path)
        connection.client(call("ok", arguments=MODERN))
        before = len(connection.spans("decision"))
        assert connection.relay.from_server(line).to_client == line
        assert len(connection.spans("decision")) == before + 1


def test_an_answer_that_no_one_had_recorded_when_all_ended_is_recorded_at_the_end(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    connection.client(call("ok"))
    connection.relay.from_server(ANSWER)
    connection.relay.close("server_ended")
    assert connection.only("request").attributes[v.OUTCOME] == "ok"
