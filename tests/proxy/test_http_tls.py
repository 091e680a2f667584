"""A server behind TLS: its certificate is checked, and what comes through is what it sends."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from proxy import vocabulary as v
from proxy.httpwords import Origin
from proxy.refusals import SERVER_ENDED
from proxy.tlstrust import TrustError, trust
from tests.proxy.deniedlines import code_of
from tests.proxy.httpupstream import Upstream
from tests.proxy.httpwires import Proxy
from tests.proxy.wires import ALLOWING, EVIL, call


def certificate(folder: Path, name: str = "127.0.0.1") -> tuple[ssl.SSLContext, str]:
    """A server's side of TLS for an address, and the file of the authority that a client has to trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(name))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    chain, secret = folder / "ca.pem", folder / "key.pem"
    chain.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, secret)
    return context, str(chain)


def test_a_server_behind_tls_is_reached_and_policy_holds(tmp_path: Path) -> None:
    context, ca = certificate(tmp_path)
    upstream = Upstream(tls=context)
    proxy = Proxy(tmp_path, 0, EVIL, upstream=Origin("https", "127.0.0.1", upstream.port), ca=ca)
    try:
        for _ in range(3):
            assert proxy.post(call("ok")).status == 200
        assert proxy.post(call()).status == 200
        assert [request.body for request in upstream.requests] == [call("ok").encode()] * 3
        assert len({id(request.connection) for request in upstream.requests}) == 1
        assert upstream.requests[0].values("host") == [f"127.0.0.1:{upstream.port}"]
    finally:
        proxy.close()
        upstream.close()


def test_the_variable_that_names_certificates_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context, ca = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", ca)
    upstream = Upstream(tls=context)
    proxy = Proxy(tmp_path, 0, ALLOWING, upstream=Origin("https", "127.0.0.1", upstream.port))
    try:
        assert proxy.post(call("ok")).status == 200
    finally:
        proxy.close()
        upstream.close()


@pytest.mark.parametrize("named", [False, True], ids=["an authority that nobody knows", "another name"])
def test_a_certificate_that_does_not_hold_is_a_failure_of_the_connection_and_nothing_is_sent(
    tmp_path: Path, named: bool
) -> None:
    context, ca = certificate(tmp_path, "192.0.2.1" if named else "127.0.0.1")
    upstream = Upstream(tls=context)
    proxy = Proxy(tmp_path, 0, ALLOWING, upstream=Origin("https", "127.0.0.1", upstream.port), ca=ca if named else "")
    try:
        answer = proxy.post(call("ok"))
        assert (answer.status, code_of(answer.json)) == (502, SERVER_ENDED)
        assert b"certificate" in answer.body
        assert upstream.requests == []
        assert proxy.only("request").attributes[v.REFUSED_BY_US] is True
    finally:
        proxy.close()
        upstream.close()


def test_a_file_without_certificates_is_told(tmp_path: Path) -> None:
    with pytest.raises(TrustError, match="--upstream-ca"):
        trust(str(tmp_path / "none.pem"))
    (tmp_path / "empty.pem").write_text("x")
    with pytest.raises(TrustError, match="--upstream-ca"):
        trust(str(tmp_path / "empty.pem"))
