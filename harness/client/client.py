"""An HTTP client for one server that reads whole answers within limits."""

import re
from collections.abc import Mapping
from typing import Any, BinaryIO

import httpcore
import httpx

from harness.client.answer import Answer, NoAnswer, NoAnswerError
from harness.client.body import read_body
from harness.client.limits import CONNECT_S, Account, LimitError, Limits
from harness.client.transport import Transport, accounted
from harness.host.access import Access
from harness.host.proxy import way_round
from harness.untrusted import Secrets, one_line

_DEFAULT = Limits()
_OPEN = Access()
_ERRNO = re.compile(r"^\[Errno -?\d+\] ")
_NO_ANSWER = (
    httpcore.NetworkError,
    httpcore.TimeoutException,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
    httpx.HTTPError,
    httpx.InvalidURL,
)


class Client:
    """Safe to use from several threads. Credentials are removed from everything that is read."""

    def __init__(self, base_url: str, access: Access = _OPEN, *, keep_alive: bool = True) -> None:
        self._access, self._secrets = access, Secrets(access.credentials)
        self._headers = access.headers_outside()
        self._client = httpx.Client(
            base_url=base_url,
            # Not compressed: a server that does so anyway is read within the limits.
            headers={"accept-encoding": "identity"},
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
        headers: Mapping[str, str] | None = None,
        limits: Limits = _DEFAULT,
    ) -> Answer:
        """`url` may be a path. Raises NoAnswerError if no answer comes, or one beyond the limits."""
        request = self._client.build_request(
            method,
            self._access.asked(url),
            json=json,
            content=content,
            headers={"content-type": "application/json", **(headers or {}), **self._headers},
        )
        own_query = url.partition("?")[2].encode() or None
        where = str(request.url.copy_with(userinfo=b"", query=own_query))
        host, asked = f"{request.url.scheme}://{request.url.netloc.decode()}", f"{method} {request.url.path}"
        account = Account(limits)
        try:
            with accounted(account):
                try:
                    return self._exchange(request, account, where)
                except (httpcore.NetworkError, httpcore.RemoteProtocolError):
                    if method != "GET" or account.connected or account.received_bytes:
                        raise
                    return self._exchange(request, account, where)  # its server was closing that connection
        except LimitError as error:
            kind = NoAnswer.LATE if account.is_over else NoAnswer.UNREADABLE
            raise NoAnswerError(kind, str(error), where=where) from None
        except _NO_ANSWER as error:
            if account.is_over:  # the last step was given what was left, and no more
                raise NoAnswerError(NoAnswer.LATE, account.late, where=where) from None
            if account.head_is_too_long:  # the parser saw it first
                raise NoAnswerError(NoAnswer.UNREADABLE, account.long_head, where=where) from None
            words = _words(error, self._secrets)
            hint = self._access.certificates.hint(words) if request.url.scheme == "https" else ""
            hint = hint or way_round(str(request.url))
            kind = _kind(error)
            raise NoAnswerError(kind, f"no answer to {asked}: {words}", where=host, hint=hint) from error

    def _exchange(self, request: httpx.Request, account: Account, where: str) -> Answer:
        response = self._client.send(request, stream=True)
        try:
            account.head_over = True
            _check_head(response.headers, account)
            coding = response.headers.get("content-encoding", "")
            body, pieces = read_body(response.iter_raw(), coding, account)
        finally:
            response.close()
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Answer(where, response.status_code, headers, body, pieces, self._secrets)


def _check_head(headers: httpx.Headers, account: Account) -> None:
    limits = account.limits
    if len(headers.raw) > limits.headers:
        raise LimitError(f"the answer has more than {limits.headers} headers")
    if sum(len(name) + len(value) for name, value in headers.raw) > limits.head_bytes:
        raise LimitError(account.long_head)


def _kind(error: Exception) -> NoAnswer:
    """One type of h11 stands for what is no HTTP and for a connection that was closed within an answer."""
    broke = not isinstance(error, httpcore.RemoteProtocolError) or any(
        words in str(error) for words in ("peer closed", "Server disconnected")
    )
    return NoAnswer.LOST if broke else NoAnswer.UNREADABLE


def _words(error: Exception, secrets: Secrets) -> str:
    text = secrets.hidden(str(error))  # before it is cut: of a key that is cut the beginning would stay
    # h11 takes an answer that begins with control bytes for a request.
    if text == "illegal request line" or text.startswith("illegal status line"):
        return "what came is not HTTP"
    return one_line(_ERRNO.sub("", text), 200) or type(error).__name__
