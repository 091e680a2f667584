"""TLS through the forward proxy: unread and said so, refused where a policy is in force, or read with an authority."""

import os
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.convert import convert
from proxy import vocabulary as v
from proxy.certificates import CERTIFICATE, KEY, CaError, open_authority
from proxy.policy import Policy
from proxy.refusals import DENIED
from proxy.spans import Span
from tests.proxy.deniedlines import code_of
from tests.proxy.forwardwires import ForwardProxy, TlsUpstream, Tunnel, forwarded
from tests.proxy.httpupstream import Upstream
from tests.proxy.httpwires import JSON_TYPE
from tests.proxy.wires import EVIL, OBSERVING, call

OK = call("ok")


def directly(proxy: ForwardProxy, upstream: Upstream) -> Tunnel:
    """A client that trusts the server itself, through the tunnel."""
    assert isinstance(upstream, TlsUpstream)
    return Tunnel(proxy.port, proxy.target, ssl.create_default_context(cafile=upstream.certificates))


def never_reached(upstream: Upstream) -> bool:
    return isinstance(upstream, TlsUpstream) and upstream.accepted == 0


def unread(spans: list[Span]) -> tuple[Span, Span]:
    (begun,) = [span for span in spans if span.attributes[v.SPAN_KIND] == "unread"]
    (closed,) = [span for span in spans if span.attributes[v.SPAN_KIND] == "connection_closed"]
    return begun, closed


@pytest.mark.parametrize("policy", [None, OBSERVING])
def test_tls_passes_unread_and_the_record_says_so(tmp_path: Path, policy: Policy | None) -> None:
    with forwarded(tmp_path, policy, secure=True) as (proxy, upstream):
        with directly(proxy, upstream) as client:
            proxy.send(client, "POST", "/mcp", call().encode(), [JSON_TYPE])
            assert client.rest(client.head()).status == 200
        (request,) = upstream.requests
        assert request.body == call().encode()
        spans = proxy.spans()
        begun, closed = unread(spans)
        assert begun.name == "not observable"
        assert closed.attributes[v.UNREAD_HOST] == begun.attributes[v.UNREAD_HOST] == proxy.target
        assert closed.attributes[v.SERVER_ID] == "x"
        assert closed.attributes[v.UNREAD_REASON] == "it is TLS, and no --ca-dir is given"
        for key in (v.UNREAD_SENT, v.UNREAD_RECEIVED):
            count = closed.attributes[key]
            assert isinstance(count, int)
            assert count > 500
        assert len(spans) == 3
        trace = convert(spans)
        assert trace.gaps == (
            "what went through 1 tunnels to x was not observable: it is TLS, and no --ca-dir is given",
        )
        assert proxy.said == [f"not observable: x, {proxy.target}: it is TLS, and no --ca-dir is given"]


def test_tls_with_a_policy_in_force_is_refused_by_an_alert_and_nothing_reaches_the_server(tmp_path: Path) -> None:
    with forwarded(tmp_path, EVIL, secure=True) as (proxy, upstream):
        for _ in range(2):
            with pytest.raises(ssl.SSLError, match=r"(?i)access.denied"):
                directly(proxy, upstream)
        assert never_reached(upstream)
        assert len(proxy.said) == 1
        assert "refused what cannot be read of x" in proxy.said[0]
        spans = proxy.spans("unread")
        assert [span.attributes[v.REFUSED_BY_US] for span in spans] == [True, True]
        assert {span.attributes[v.CLOSE_REASON] for span in proxy.spans("connection_closed")} == {"refused"}
        assert convert(proxy.spans()).gaps == ()


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def test_what_is_neither_http_1_nor_tls_passes_unread_without_a_policy_and_is_refused_with_one(tmp_path: Path) -> None:
    for name, policy in (("without", None), ("with", EVIL)):
        (tmp_path / name).mkdir()
        with forwarded(tmp_path / name, policy) as (proxy, upstream), socket.create_server(("127.0.0.1", 0)) as server:
            port, upstream.port = upstream.port, server.getsockname()[1]
            with proxy.client("tunnel") as client:
                client.socket.sendall(PREFACE)
                if policy is None:
                    there, _ = server.accept()
                    with there:
                        assert there.makefile("rb").read(len(PREFACE)) == PREFACE
                else:
                    assert client.file.read() == b""
            upstream.port = port
            begun, _ = unread(proxy.spans())
            assert begun.attributes[v.UNREAD_REASON] == "it is neither HTTP/1 nor TLS"


def test_a_tunnel_to_a_server_that_is_not_there_has_its_end_in_the_record(tmp_path: Path) -> None:
    with forwarded(tmp_path) as (proxy, upstream):
        upstream.close()
        with proxy.client("tunnel") as client:
            client.socket.sendall(b"\x16\x03\x01")
            proxy.wait_for("connection_closed")
        _, closed = unread(proxy.spans())
        assert (closed.attributes[v.CLOSE_REASON], closed.attributes[v.UNREAD_SENT]) == ("server_ended", 0)


def test_a_tunnel_that_cannot_be_recorded_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "spans").write_text("no folder")
    upstream = TlsUpstream(tmp_path / "theirs")
    proxy = ForwardProxy(tmp_path, upstream)
    try:
        with pytest.raises(OSError, match=r"."):
            directly(proxy, upstream)
        assert never_reached(upstream)
        proxy.close()
        assert "cannot be written" in proxy.failure
    finally:
        proxy.close()
        upstream.close()


def test_with_an_authority_tls_is_read_judged_and_recorded(tmp_path: Path) -> None:
    with forwarded(tmp_path, EVIL, way="tls") as (proxy, upstream):
        assert code_of(proxy.post(call()).json) == DENIED
        assert proxy.post(OK).status == 200
        (request,) = upstream.requests
        assert (request.body, request.values("host")) == (OK.encode(), [proxy.target])
        assert [span.attributes[v.DECISION] for span in proxy.spans("decision")] == ["deny", "allow"]


def test_a_server_whose_certificate_nobody_vouches_for_is_502(tmp_path: Path) -> None:
    with forwarded(tmp_path, way="tls") as (proxy, upstream):
        proxy.board.forward._tls = None
        answer = proxy.post(OK)
        assert answer.status == 502
        assert b"CERTIFICATE_VERIFY_FAILED" in answer.body
        assert upstream.requests == []


def test_a_client_that_does_not_trust_the_authority_is_in_the_record(tmp_path: Path) -> None:
    with forwarded(tmp_path, secure=True, reads=True) as (proxy, upstream):
        with pytest.raises(ssl.SSLCertVerificationError):
            directly(proxy, upstream)
        proxy.wait_for("connection_closed")
        begun, _ = unread(proxy.spans())
        assert begun.attributes[v.REFUSED_BY_US] is True
        assert "does it trust the CA?" in str(begun.attributes[v.UNREAD_REASON])
        assert never_reached(upstream)


def test_a_host_that_is_no_server_of_ours_keeps_its_own_certificate_also_with_an_authority(tmp_path: Path) -> None:
    with (
        forwarded(tmp_path, EVIL, servers=("x=mcp.example",), secure=True, reads=True) as (proxy, upstream),
        directly(proxy, upstream) as client,
    ):
        proxy.send(client, "POST", "/mcp", call().encode(), [JSON_TYPE])
        assert client.rest(client.head()).status == 200


# The authority


def test_an_authority_is_made_once_with_a_key_for_nobody_else_and_signs_for_names_and_addresses(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "ca"
    first, second = open_authority(str(folder)), open_authority(str(folder))
    assert [(folder / name).stat().st_mode & 0o777 for name in (KEY, CERTIFICATE)] == [0o600, 0o644]
    assert folder.stat().st_mode & 0o777 == 0o700
    client = ssl.create_default_context(cafile=first.path)
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    for authority, host, asked in (
        (first, "MCP.example.", "mcp.example"),
        (second, "127.0.0.1", "127.0.0.1"),
        (second, "::1", "::1"),
    ):
        shake_hands(client, authority.context(host), asked)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(client, first.context("mcp.example"), "other.example")
    assert sorted(os.listdir(folder)) == [KEY, CERTIFICATE]


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, name: str) -> None:
    """A whole handshake in memory; raises what the client says."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(3):
        for end in list(ends):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            ends.remove(end)
    assert ends == []


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / KEY).chmod(0o644), "others may read the key"),
        (lambda folder: (folder / KEY).unlink(), "ca-key.pem"),
        (lambda folder: (folder / CERTIFICATE).write_text("none"), "cannot be read"),
        (lambda folder: (folder / KEY).write_text("none"), "cannot be read"),
        (lambda folder: (folder / KEY).write_bytes((folder / "other" / KEY).read_bytes()), "is not the key of"),
    ],
)
def test_an_authority_that_is_spoilt_says_what_is_wrong(
    tmp_path: Path, spoil: Callable[[Path], object], said: str
) -> None:
    open_authority(str(tmp_path))
    open_authority(str(tmp_path / "other"))
    spoil(tmp_path)
    with pytest.raises(CaError, match=said):
        open_authority(str(tmp_path))
