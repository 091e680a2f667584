"""Certificates that are made for the servers whose TLS is to be read, and the authority that signs them.

Refuses to know sockets and who asks for them.
"""

import os
import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from tempfile import NamedTemporaryFile

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from proxy.routes import name_of
from proxy.spanfile import make_folder

CERTIFICATE, KEY = "ca.pem", "ca-key.pem"
_YEARS = 10
_DAYS = 30
"""Days that the certificate of a server is good for: it lives as long as the proxy."""
_MOST = 1024
"""Hosts whose certificates are kept."""


class CaError(ValueError):
    """An authority that cannot be used: which file, why, and what to do."""


class Authority:
    """Signs certificates for hosts. `path` is that of its own certificate, which clients have to trust."""

    def __init__(self, path: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self.path = path
        self._certificate = certificate
        self._key = key
        self._server_key = ec.generate_private_key(ec.SECP256R1())
        self._contexts: dict[str, ssl.SSLContext] = {}

    def context(self, host: str) -> ssl.SSLContext:
        """How to be that host over TLS, for clients that trust us."""
        name = name_of(host)
        found = self._contexts.get(name)
        if found is None:
            found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            found.set_alpn_protocols(["http/1.1"])
            folder = os.path.dirname(self.path)
            # The system's reader of certificates takes files only.
            with NamedTemporaryFile(dir=folder, prefix=".", suffix=".pem") as file:
                file.write(_key_text(self._server_key) + self.sign(name).public_bytes(Encoding.PEM))
                file.flush()
                found.load_cert_chain(file.name)
            if len(self._contexts) >= _MOST:
                self._contexts.clear()
            self._contexts[name] = found
        return found

    def sign(self, name: str) -> x509.Certificate:
        """A certificate for a host, in the one spelling of it."""
        try:
            alternative: x509.GeneralName = x509.IPAddress(ip_address(name))
        except ValueError:
            alternative = x509.DNSName(name)
        public = self._server_key.public_key()
        return (
            _builder(self._certificate.subject, "Wiretrap", _DAYS, public)
            .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )


def open_authority(folder: str) -> Authority:
    """The authority of a folder, made where there is none yet: its key is for nobody else to read. Raises CaError."""
    certificate_path = os.path.join(os.path.abspath(folder), CERTIFICATE)
    key_path = os.path.join(os.path.abspath(folder), KEY)
    try:
        make_folder(os.path.abspath(folder))
        if not os.path.exists(certificate_path) and not os.path.exists(key_path):
            _make(certificate_path, key_path)
        if os.stat(key_path).st_mode & 0o077:
            raise CaError(f"{key_path}: others may read the key of the authority; chmod 600 it, or have a new one made")
        with open(certificate_path, "rb") as file:
            certificate = x509.load_pem_x509_certificate(file.read())
        with open(key_path, "rb") as file:
            key = load_pem_private_key(file.read(), password=None)
    except OSError as error:
        raise CaError(f"--ca-dir {folder}: {error}; remove what is left of it, or name another folder") from None
    except (TypeError, ValueError) as error:
        if isinstance(error, CaError):
            raise
        raise CaError(f"--ca-dir {folder}: {CERTIFICATE} and {KEY} cannot be read: {error}") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise CaError(f"--ca-dir {folder}: {KEY} is not the key of {CERTIFICATE}; remove both to have new ones made")
    if certificate.not_valid_after_utc < datetime.now(UTC):
        raise CaError(f"{certificate_path}: it is past its time; remove it and {KEY} to have new ones made")
    return Authority(certificate_path, certificate, key)


def _make(certificate_path: str, key_path: str) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key()
    name = f"Wiretrap on {os.uname().nodename}"[:64]
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        _builder(subject, name, 365 * _YEARS, public)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    _write(key_path, _key_text(key), 0o600)
    _write(certificate_path, certificate.public_bytes(Encoding.PEM), 0o644)


def _write(path: str, data: bytes, mode: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(fd, "wb") as file:
        file.write(data)


def _key_text(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _builder(issuer: x509.Name, name: str, days: int, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        # Clocks of containers may be a little behind.
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
