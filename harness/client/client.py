"""An HTTP client for one server that reads whole answers within limits."""

import time
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

import httpcore
import httpx

from harness.client.answer import Answer
from harness.client.limits import CONNECT_S, Account, LimitError, Limits
from harness.client.transport import Transport, accounted
from harness.errors import SetupError
from harness.host.access import Access
from harness.untrusted import Secrets, one_line

_DEFAULT = Limits()
_OPEN = Access()
_NO_ANSWER = (
    httpcore.NetworkError,
    httpcore.TimeoutException,
    httpcore.ProtocolError,
    httpcore.UnsupportedProtocol,
    httpx.HTTPError,
    httpx.InvalidURL,
)
_CODINGS = ("gzip", "x-gzip", "deflate")


class Client:
    """Safe to use from several threads. Credentials are removed from everything that is read."""

    def __init__(
        self,
        base_url: str,
        access: Access = _OPEN,
        *,
        keep_alive: bool = True,
    ) -> None:
        self._access, self._secrets = access, Secrets(access.credentials)
        self._client = httpx.Client(
            base_url=base_url,
            # Not compressed: a server that does so all the same is read within the limits.
            headers={
                "accept-encoding": "identity",
                **access.headers_outside(),
            },
            transport=Transport(access.certificates, keep_alive=keep_alive),
            timeout=httpx.Timeout(None, connect=CONNECT_S),
            follow_redirects=False,  # the answer of another host, or in clear, is not this server's
            trust_env=False,
        )

    def close(self) -> None:
        self._client.close()

    def ask(
        self,
        method: str,
        url: str,
        *,
        json: Any = None,
        content: bytes | BinaryIO | None = None,
        content_type: str = "application/json",
        limits: Limits = _DEFAULT,
    ) -> Answer:
        """`url` may be a path. Raises SetupError if no answer comes, or one beyond the limits."""
        request = self._client.build_request(
            method,
            self._access.asked(url),
            json=json,
            content=content,
            headers={"content-type": content_type},
        )
        own_query = url.partition("?")[2].encode() or None
        where = str(request.url.copy_with(userinfo=b"", query=own_query))
        host, asked = f"{request.url.scheme}://{request.url.netloc.decode()}", f"{method} {request.url.path}"
        account = Account(limits)
        try:
            with accounted(account):
                return self._exchange(request, account, where)
        except LimitError as error:
            raise SetupError(str(error), where=where) from None
        except _NO_ANSWER as error:
            if account.is_over:  # the last step was given what was left, and no more
                raise SetupError(account.late, where=where) from None
            if account.head_is_too_long:  # the parser saw it first
                raise SetupError(account.long_head, where=where) from None
            words = self._secrets.hidden(_words(error))
            hint = self._access.certificates.hint(words) if request.url.scheme == "https" else ""
            raise SetupError(f"no answer to {asked}: {words}", where=host, hint=hint) from error

    def _exchange(self, request: httpx.Request, account: Account, where: str) -> Answer:
        response = self._client.send(request, stream=True)
        try:
            account.head_over = True
            _check_head(response.headers, account)
            whole, pieces = bytearray(), []
            for part in _unpacked(response, account.limits.body_bytes):
                whole += part
                pieces.append((time.monotonic(), len(whole)))
                if len(whole) > account.limits.body_bytes:
                    raise LimitError(f"the answer is longer than {account.limits.body_bytes} bytes")
                account.left_s(None)  # what h11 held already is read without waiting
        finally:
            response.close()
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Answer(where, response.status_code, headers, bytes(whole), tuple(pieces), self._secrets)


def _check_head(headers: httpx.Headers, account: Account) -> None:
    limits = account.limits
    if len(headers.raw) > limits.headers:
        raise LimitError(f"the answer has more than {limits.headers} headers")
    if sum(len(name) + len(value) for name, value in headers.raw) > limits.head_bytes:
        raise LimitError(account.long_head)


def _unpacked(response: httpx.Response, most_bytes: int) -> Iterator[bytes]:
    """Decompressed parts, none longer than the limit whatever the ratio."""
    coding = response.headers.get("content-encoding", "").strip().lower()
    if coding in ("", "identity"):
        yield from response.iter_raw()
        return
    if coding not in _CODINGS:
        raise LimitError(f"the answer is in the content-encoding {one_line(coding, 30)!r}, not asked for")
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        for part in response.iter_raw():
            data = inflate.decompress(part, most_bytes)
            if inflate.unconsumed_tail:
                raise LimitError(f"the answer is longer than {most_bytes} bytes once decompressed")
            yield data
    except zlib.error as error:
        raise LimitError(f"the compressed answer is damaged: {error}") from None


def _words(error: Exception) -> str:
    return one_line(str(error), 200) or type(error).__name__
