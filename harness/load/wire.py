"""Requests as wire bytes, made by httpx's own request building before the window opens."""

from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from harness.apis import APIS, ApiName
from harness.host.access import SESSION, Access
from harness.host.proxy import proxy_for
from harness.load.exchange import Exchange
from harness.load.job import LoadJob
from harness.load.route import proxy_authorization

_LENGTH = b"content-length: "
_SESSION = SESSION.encode()

RawHeaders = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Wire:
    """Every request of a job to one origin; only the length and the body differ."""

    head: bytes  # request line and headers up to the value of content-length
    tail: bytes  # the headers after it, with the empty line
    bodies: Sequence[bytes]
    sessions: Sequence[int] | None = None  # of each body, where a header names it

    def request(self, index: int) -> tuple[bytes, bytes]:
        """Head and body, for one gathered send; the body is not copied."""
        body = self.bodies[index]
        head = b"%b%d%b" % (self.head, len(body), self.tail)
        if self.sessions is not None:
            head = head.replace(_SESSION, b"%d" % self.sessions[index])
        return head, body


def build_request(url: str, access: Access, api: ApiName, body: bytes) -> httpx.Request:
    """No compression is asked for, since it would batch events."""
    headers = {"accept-encoding": "identity", **APIS[api].headers}
    nowhere = httpx.BaseTransport()  # the default one would read every certificate of the system
    with httpx.Client(headers=headers, trust_env=False, transport=nowhere) as client:
        return client.build_request("POST", access.asked(url), headers=access.headers, content=body)


def render_head(request: httpx.Request, proxy: str | None = None) -> bytes:
    """A proxy gets the whole URL, except inside a tunnel."""
    url, headers = request.url, request.headers.raw
    target = url.raw_path
    if proxy is not None and url.scheme == "http":
        target = b"http://%b%b" % (url.netloc, url.raw_path)
        headers = [*headers, *httpx.Headers(proxy_authorization(httpx.URL(proxy))).raw]
    lines = [b"%b %b HTTP/1.1" % (request.method.encode(), target)]
    lines += [b"%b: %b" % (name.lower(), value) for name, value in headers]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def in_session(headers: RawHeaders, job: LoadJob, exchange: Exchange) -> RawHeaders:
    """The headers, with the number of the session of this exchange where a value names it."""
    if not job.access.names_session:
        return headers
    number = exchange.seq if job.sessions is None else int(job.sessions.session[exchange.index])
    return [(name, value.replace(_SESSION, b"%d" % number)) for name, value in headers]


def _sessions(job: LoadJob, seqs: Sequence[int]) -> Sequence[int] | None:
    """The session of each body, else its position in the workload; None if no header names it."""
    if not job.access.names_session:
        return None
    return seqs if job.sessions is None else job.sessions.session.tolist()


def render(url: str, job: LoadJob, bodies: Sequence[bytes], seqs: Sequence[int]) -> Wire:
    request = build_request(url, job.access, job.api, bodies[0] if bodies else b"{}")
    before, _, after = render_head(request, proxy_for(url)).partition(_LENGTH)
    return Wire(before + _LENGTH, after[after.index(b"\r\n") :], bodies, _sessions(job, seqs))


def secrets(url: str, access: Access) -> tuple[str, ...]:
    """Credentials of the job and of its proxy, longest first, which an error text must not repeat."""
    proxy = httpx.URL(proxy_for(url) or "")
    secret_texts = {*access.credentials, proxy.password}
    for value in proxy_authorization(proxy).values():
        secret_texts |= {value, value.rpartition(" ")[2]}
    return tuple(sorted((text for text in secret_texts if text), key=len, reverse=True))
