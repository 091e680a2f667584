"""Whose certificates a server behind TLS may have. Refuses to know who connects."""

import ssl


class TrustError(ValueError):
    """A file of certificates that cannot be used: which, and why."""


def trust(ca: str = "") -> ssl.SSLContext:
    """Whose certificates are believed: the system's, or those of SSL_CERT_FILE, and of the file `ca` too."""
    context = ssl.create_default_context()
    if ca:
        try:
            context.load_verify_locations(ca)
        except (OSError, ValueError) as error:
            raise TrustError(f"--upstream-ca {ca}: no certificates can be read from it: {error}") from None
    return context
