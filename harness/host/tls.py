"""TLS apart from its socket: the kernel stamps the ciphertext, so an encrypted stream loses no exactness."""

import ssl

_READ_BYTES = 65536


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
        """One step of the handshake: whether it is done, and what to send."""
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
