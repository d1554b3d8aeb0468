"""TLS apart from its socket: the kernel stamps the ciphertext, so an encrypted stream loses no exactness."""

import os
import ssl
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness.errors import SetupError, SpecError, reason

_READ_BYTES = 65536
_ASKED_FOR_OURS = (
    "certificate required",
    "handshake failure",
    "unknown ca",
    "bad certificate",
    "certificate unknown",
)
_NO_TLS = ("wrong version number", "packet length too long", "record layer failure")


@dataclass(frozen=True, slots=True)
class Certificates:
    """Paths of PEM files; "": none. Without `authorities` those of the environment are trusted, else
    certifi's."""

    authorities: str = ""
    client: str = ""  # our own
    client_key: str = ""  # where it is not in the file of the certificate

    def context(self) -> ssl.SSLContext:
        """A client's context. Raises SpecError for a file of these, SetupError for one of the environment."""
        context = _trusting(self.authorities) if self.authorities else _trusting_as_set_up()
        # From Python 3.13 on it refuses many a private authority that curl and Python before it take.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if self.client:
            _show(context, self.client, self.client_key)
        return context

    def shared(self) -> ssl.SSLContext:
        """`context`, read once for all clients: it takes a tenth of a second."""
        return _shared(self, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))

    def hint(self, failure: str) -> str:
        """What may help against a failed connection, by the words of OpenSSL; "" if nothing is known."""
        reason = failure.lower().replace("_", " ")
        if "mismatch" in reason or "not valid for" in reason:
            return "use the name or address that stands in the server's certificate"
        if "has expired" in reason or "not yet valid" in reason:
            return "renew the server's certificate, unless this machine's clock is wrong (`date`)"
        if "certificate verify failed" in reason:
            return "trust the authority that signed the server's certificate: --ca-cert FILE"
        if any(sign in reason for sign in _NO_TLS):
            return "the server answers without TLS: its URL may begin with http://"
        if not any(sign in reason for sign in _ASKED_FOR_OURS):
            return ""
        if self.client:
            return f"the server refuses the client certificate {self.client}"
        return "the server wants a client certificate: --client-cert FILE"


@cache
def _shared(certificates: Certificates, _file: str | None, _folder: str | None) -> ssl.SSLContext:
    return certificates.context()


def _trusting(authorities: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=authorities)
    except OSError as error:
        hint = "name a file of certificates in PEM"
        raise SpecError(f"cannot be read: {_words(error)}", where=authorities, hint=hint) from None


def _trusting_as_set_up() -> ssl.SSLContext:
    import httpx  # loaded where it is used

    try:
        return httpx.create_ssl_context()
    except OSError as error:
        name = "SSL_CERT_FILE" if os.environ.get("SSL_CERT_FILE") else "SSL_CERT_DIR"
        raise SetupError(
            f"certificates cannot be read: {reason(error)}",
            where=f"{name}={os.environ.get(name, '')}",
            hint=f"name a file of certificates in PEM, or unset {name}",
        ) from None


def _show(context: ssl.SSLContext, client: str, key: str) -> None:
    def no_password() -> str:
        raise ValueError  # else OpenSSL asks on the terminal

    try:
        context.load_cert_chain(client, key or None, password=no_password)
    except ValueError:
        what, hint = "the key needs a password", "write it without: openssl pkey -in KEY -out PLAIN"
        raise SpecError(what, where=key or client, hint=hint) from None
    except OSError as error:
        if isinstance(error, ssl.SSLError) and _lacks_key(key or client):
            what, hint = "holds a certificate and no key", "name the file of its key: --client-key FILE"
            raise SpecError(what, where=key or client, hint=hint) from None
        raise SpecError(
            f"cannot be used: {_words(error)}",
            where=" with ".join(filter(None, (client, key))),
            hint="the certificate and its key in PEM, in one file or two",
        ) from None


def _lacks_key(path: str) -> bool:
    """Whether a file in PEM has a certificate alone; OpenSSL has the same error for what is not in PEM."""
    try:
        text = Path(path).read_text("ascii", "ignore")
    except OSError:
        return False
    if " KEY-----" in text or "BEGIN CERTIFICATE" not in text:
        return False
    try:
        ssl.create_default_context(cadata=text)
    except ssl.SSLError:
        return False
    return True


def _words(error: OSError) -> str:
    """OpenSSL gives many failures no other name than its own."""
    if isinstance(error, ssl.SSLError):
        return (error.reason or "not PEM").replace("_", " ").lower()
    return reason(error)


class Secure:
    """One connection's TLS state. Failures are ssl.SSLError, which is an OSError."""

    __slots__ = ("_incoming", "_object", "_outgoing", "begun", "closed")

    def __init__(self, context: ssl.SSLContext, host: str | None) -> None:
        """`host` is the name the peer's certificate must be for; None on the server's side."""
        self.begun = False  # the handshake
        self.closed = False  # the peer said that nothing more will come
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(
            self._incoming, self._outgoing, server_side=host is None, server_hostname=host
        )

    def shake(self, data: bytes) -> tuple[bool, bytes]:
        """Takes one step of the handshake: whether it is done, and the bytes to send."""
        self.begun = True
        self._incoming.write(data)
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return False, self._outgoing.read()
        return True, self._outgoing.read()

    def seal(self, *parts: bytes) -> bytes:
        for part in parts:
            self._object.write(part)
        return self._outgoing.read()

    def open(self, data: memoryview | bytes) -> bytes:
        """The plaintext that `data` completes; b"" for part of a record and for messages of TLS itself."""
        self._incoming.write(data)
        parts = []
        try:
            while part := self._object.read(_READ_BYTES):
                parts.append(part)
            self.closed = True  # an empty read is the peer's close_notify
        except ssl.SSLWantReadError:
            pass
        return b"".join(parts)
