from pathlib import Path

import pytest

from proxy import vocabulary as v
from tests.proxy.wires import Wire, answer, by_id, call, ping


def test_ids_are_told_apart_by_type_and_value(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    connection.client(ping("1"), ping('"1"'), ping('""'), ping("0"))
    for place, id_text in enumerate(['"1"', "0", '""', "1"]):
        connection.server(answer(id_text, str(place)))
    ended = by_id(connection)
    assert {text: span.attributes[v.RESULT] for text, span in ended.items()} == {
        '"1"': "0",
        "0": "1",
        '""': "2",
        "1": "3",
    }
    assert {ended["1"].attributes[v.REQUEST_ID], ended['"1"'].attributes[v.REQUEST_ID]} == {"1"}
    assert not any(v.ID_REUSED in span.attributes for span in ended.values())


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("4", "4.0"),
        ("4.0", "4"),
        ("4e0", "4"),
        ("0", "-0"),
        ("-0.0", "0"),
        ("1.5", "1.50"),
        ("1e400", "1e400"),
        ('"\\u0061"', '"a"'),
        ("123456789012345678901234567890", "123456789012345678901234567890.0"),
    ],
)
def test_one_number_or_text_is_one_id_however_it_is_written(tmp_path: Path, asked: str, answered: str) -> None:
    connection = Wire(tmp_path)
    connection.client(ping(asked))
    connection.server(answer(answered))
    assert connection.only("request").attributes[v.OUTCOME] == "ok"
    assert connection.only("request").attributes[v.ID_TEXT] == asked


@pytest.mark.parametrize(
    ("asked", "answered"), [("9007199254740993", "9007199254740992"), ("1", "true"), ("0", "false"), ("1", "null")]
)
def test_ids_that_only_look_alike_do_not_meet(tmp_path: Path, asked: str, answered: str) -> None:
    connection = Wire(tmp_path)
    connection.client(ping(asked))
    connection.server(answer(answered))
    assert connection.only("unmatched").attributes[v.ID_TEXT] == answered
    connection.end()
    assert connection.only("request").attributes[v.OUTCOME] == "unanswered"


def test_a_reused_open_id_keeps_both_and_answers_are_taken_in_order(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    connection.client(call("first"), call("second"))
    connection.server(answer("1", '{"n":1}'), answer("1.0", '{"n":2}'), answer("1"))
    first, second = connection.spans("request")
    assert (first.attributes[v.TOOL_NAME], first.attributes[v.TOOL_RESULT]) == ("first", '{"n":1}')
    assert (second.attributes[v.TOOL_NAME], second.attributes[v.TOOL_RESULT]) == ("second", '{"n":2}')
    assert first.attributes[v.ID_REUSED] is second.attributes[v.ID_REUSED] is True
    assert connection.only("unmatched").attributes[v.ID_TEXT] == "1"


def test_an_id_that_is_free_again_is_not_reused(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    connection.client(ping("1"))
    connection.server(answer("1"))
    connection.client(ping("1"))
    connection.server(answer("1"))
    assert not any(v.ID_REUSED in span.attributes for span in connection.spans("request"))


def test_the_two_directions_have_ids_of_their_own(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    connection.client(ping("1"))
    connection.server(ping("1"))
    connection.server(answer("1", '{"by":"server"}'))
    connection.client(answer("1", '{"by":"client"}'))
    results = {span.attributes[v.DIRECTION]: span.attributes[v.RESULT] for span in connection.spans("request")}
    assert results == {"client_to_server": '{"by":"server"}', "server_to_client": '{"by":"client"}'}
    assert connection.spans("unmatched") == []


def cancel(id_text: str) -> str:
    return f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id_text}}}}}'


def test_a_late_answer_after_a_cancellation_keeps_its_outcome(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    connection.client(call("a"), cancel("1"))
    connection.server(answer("1", '{"isError":true}'))
    request = connection.only("request")
    assert (request.attributes[v.OUTCOME], request.attributes[v.CANCELLED]) == ("tool_error", True)


def test_a_cancelled_request_without_an_answer_is_cancelled_at_the_end(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    connection.client(ping("1"), ping("2"), cancel("1"), cancel('"2"'), cancel("[]"))
    connection.end()
    assert {text: span.attributes[v.OUTCOME] for text, span in by_id(connection).items()} == {
        "1": "cancelled",
        "2": "unanswered",
    }
    assert all(v.RESULT_SEQ not in span.attributes for span in connection.spans("request"))


def test_a_server_cancels_what_it_asked_itself(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    connection.client(ping("1"))
    connection.server(ping("1"), cancel("1"))
    connection.end()
    outcomes = {span.attributes[v.DIRECTION]: span.attributes[v.OUTCOME] for span in connection.spans("request")}
    assert outcomes == {"client_to_server": "unanswered", "server_to_client": "cancelled"}


def test_a_server_that_ends_a_subscription_cancels_it(tmp_path: Path) -> None:
    connection = Wire(tmp_path)
    connection.client('{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}', ping("2"))
    connection.server(cancel("1"), cancel("2"))
    connection.end()
    assert {text: span.attributes[v.OUTCOME] for text, span in by_id(connection).items()} == {
        "1": "cancelled",
        "2": "unanswered",
    }
