import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.httpwords import Origin
from proxy.routes import (
    THIS_MACHINE,
    RouteError,
    Routes,
    Target,
    name_of,
    place_of,
    read_authority,
    read_entry,
    read_target,
    speech_of,
)

PARTS = st.lists(
    st.one_of(
        st.integers(0, 2**33).map(str),
        st.integers(0, 300).map(str),
        st.integers(0, 300).map(hex),
        st.integers(0, 300).map(lambda number: f"0{number:o}"),
        st.sampled_from(["", "08", "0x", "x"]),
    ),
    min_size=1,
    max_size=5,
).map(".".join)


@given(PARTS)
def test_an_address_in_numbers_is_read_as_the_system_reads_it(host: str) -> None:
    try:
        wanted = socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return
    assert name_of(host) == wanted


@given(st.text("abcXYZ019.-_:", max_size=20))
def test_a_name_has_one_spelling(host: str) -> None:
    assert name_of(name_of(host)) == name_of(host)
    assert name_of(host.upper()) == name_of(host)


@pytest.mark.parametrize("host", ["localhost", "a.LOCALHOST", "127.3.2.1", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::"])
def test_all_that_is_this_machine_is_one_place(host: str) -> None:
    assert place_of(host) == THIS_MACHINE


@pytest.mark.parametrize("host", ["mcp.example", "10.0.0.1", "127.example", "notlocalhost", "2001:db8::1"])
def test_what_is_elsewhere_is_not_this_machine(host: str) -> None:
    assert place_of(host) == host


def test_a_host_that_was_named_as_it_is_asked_for_wins_over_one_that_is_the_same_machine() -> None:
    routes = Routes([read_entry("a=127.0.0.1:1"), read_entry("b=127.0.0.2:1"), read_entry("c=localhost")])
    asked = {"127.0.0.1:1": "a", "127.0.0.2:1": "b", "127.0.0.3:1": "a", "[::1]:2": "c", "localhost:2": "c"}
    assert {text: routes.server(read_authority(text)) for text in asked} == asked
    assert routes.server(Target("mcp.example", 1)) is None


def test_one_server_may_be_at_several_places_and_no_place_has_two() -> None:
    assert Routes([read_entry("a=x:1"), read_entry("a=y")]).server(Target("Y.", 5)) == "a"
    with pytest.raises(RouteError, match="both a and b are at X:1"):
        Routes([read_entry("a=x:1"), read_entry("b=X:1")])


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("http://Mcp.Example/mcp?a=b", (Origin("http", "Mcp.Example", 80, True), "Mcp.Example", "/mcp?a=b")),
        ("HTTPS://x:8443", (Origin("https", "x", 8443, True), "x:8443", "/")),
        ("http://[::1]:80?q", (Origin("http", "::1", 80, True), "[::1]:80", "/?q")),
    ],
)
def test_a_url_is_read_as_it_stands(url: str, wanted: tuple[Origin, str, str]) -> None:
    assert read_target(url) == wanted


@given(st.binary(max_size=40), st.integers(0, 40))
def test_what_a_tunnel_speaks_is_the_same_however_it_arrives(data: bytes, cut: int) -> None:
    early = speech_of(data[:cut], 30)
    if cut and early is not None:
        assert speech_of(data, 30) == early


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"", None),
        (b"\x16", "tls"),
        (b"POST /m", None),
        (b"POST /mcp HTTP/1.1\r\n", "http"),
        (b"GET * HTTP/1.0\n", "http"),
        (b"PRI * HTTP/2.0\r\n", "other"),
        (b"SSH-2.0-x\r\n", "other"),
        (b"\x00", "other"),
        (b"GET /" + b"a" * 100, "other"),
    ],
)
def test_the_first_bytes_tell_what_a_tunnel_speaks(data: bytes, wanted: str | None) -> None:
    assert speech_of(data, 100) == wanted
