import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.readings import answerable_ids, hidden_readings, readings
from tests.proxy.test_fail_open import lines
from tests.proxy.wires import call


def seen(raw: bytes | str) -> list[tuple[str, str | None]]:
    return [(one.method, one.name) for one in readings(raw if isinstance(raw, bytes) else raw.encode())]


@settings(max_examples=200)
@given(lines() | st.binary(max_size=60))
def test_no_bytes_make_it_fail(raw: bytes) -> None:
    assert len(readings(raw)) <= 256
    hidden_readings(raw)
    ids, _ = answerable_ids(raw)
    assert not any("\n" in one for one in ids)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (call("a"), [("tools/call", "a")]),
        ('{"method":"ping","method":"tools/call","params":{"name":"a","name":"b"}}',
         [("ping", "a"), ("ping", "b"), ("tools/call", "a"), ("tools/call", "b")]),
        (f"[{call('a')},[{call('b')}]]", [("tools/call", "a"), ("tools/call", "b")]),
        (call("a") + call("b"), [("tools/call", "a"), ("tools/call", "b")]),
        (call("a") + " // " + call("b"), [("tools/call", "a"), ("tools/call", "b")]),
        ('{"METHOD":"x","PARAMS":{"URI":"u"}}', [("x", "u")]),
        ('{"method":"x"}', [("x", None)]),
        ('{"id":1,"result":{}}', []),
        ('{"method":1}', []),
        ("banner", []),
        ("", []),
        (call("a").encode("utf-16-le") + b"\n", [("tools/call", "a")]),
        (b"\0" + call("a").encode("utf-16-le") + b"\n", [("tools/call", "a")]),
        (call("a").encode("utf-32"), [("tools/call", "a")]),
        (f'{{"x":\r{call("a")}\r}}', [("tools/call", "a")]),
        (call("a")[:-1], [("tools/call", "a")]),
    ],
)  # fmt: skip
def test_every_reading_is_given_once(raw: bytes | str, expected: list[tuple[str, str | None]]) -> None:
    assert seen(raw) == expected


def test_a_reading_carries_the_arguments_that_the_last_of_them_gives() -> None:
    params = '{"name":"a","arguments":{"x":1},"arguments":{"x":[{"y":2}]}}'
    (reading,) = readings(f'{{"method":"tools/call","params":{params}}}'.encode())
    assert reading.arguments == {"x": [{"y": 2}]}


def test_many_repeated_members_are_read_in_good_time() -> None:
    names = ",".join(f'"name":"{number}","arguments":{{}}' for number in range(20_000))
    methods = ",".join(f'"method":"{number}"' for number in range(20_000))
    assert len(readings(f'{{{methods},"params":{{{names}}}}}'.encode())) == 256
    assert readings(b"\r" * 1_000_000) == ()


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (f'{{"x":\r{call("a")}\r}}', 1),
        (f'{{"x":[\r{call("a")},\r1]}}', 1),
        (f"\r{call('a')}\r\n", 0),
        (call("a").replace(",", ",\r"), 0),
        ('{"x":\r{"a":1}\r}', 0),
        (call("a"), 0),
    ],
)
def test_a_hidden_reading_is_one_that_only_carriage_returns_make(text: str, count: int) -> None:
    assert len(hidden_readings(text.encode())) == count
