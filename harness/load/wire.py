"""Requests as wire bytes, made by httpx's own request building before the window opens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import httpx

from harness.load.route import proxy_authorization, proxy_for

_LENGTH = b"content-length: "


@dataclass(frozen=True, slots=True)
class Wire:
    """Every request of a job for one origin; only the length and the body differ between requests."""

    head: bytes  # request line and headers up to the value of content-length
    tail: bytes  # the headers after it, with the empty line
    bodies: Sequence[bytes]
    seqs: Sequence[int]  # position of each body in the cell's workload

    def request(self, index: int) -> tuple[bytes, bytes]:
        """Head and body for one gathered send; the body is not copied."""
        body = self.bodies[index]
        return b"%b%d%b" % (self.head, len(body), self.tail), body


def build_request(url: str, headers: Mapping[str, str], body: bytes) -> httpx.Request:
    """User info in the URL becomes basic auth; no compression is asked for, since it would batch events."""
    with httpx.Client(headers={"accept-encoding": "identity"}, trust_env=False) as client:
        request = client.build_request("POST", url, headers=headers, content=body)
    if request.url.userinfo and "authorization" not in request.headers:
        request = next(httpx.BasicAuth(request.url.username, request.url.password).sync_auth_flow(request))
    return request


def render_head(request: httpx.Request, proxy: str | None = None) -> bytes:
    """A proxy is told the whole URL, except inside a tunnel."""
    url, headers = request.url, request.headers.raw
    target = url.raw_path
    if proxy is not None and url.scheme == "http":
        target = b"http://%b%b" % (url.netloc, url.raw_path)
        headers = [*headers, *httpx.Headers(proxy_authorization(httpx.URL(proxy))).raw]
    lines = [b"%b %b HTTP/1.1" % (request.method.encode(), target)]
    lines += [b"%b: %b" % (name.lower(), value) for name, value in headers]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def render(url: str, headers: Mapping[str, str], bodies: Sequence[bytes], seqs: Sequence[int]) -> Wire:
    request = build_request(url, headers, bodies[0] if bodies else b"{}")
    before, _, after = render_head(request, proxy_for(url)).partition(_LENGTH)
    return Wire(before + _LENGTH, after[after.index(b"\r\n") :], bodies, seqs)


def secrets(url: str, headers: Mapping[str, str]) -> tuple[str, ...]:
    """Credentials of the job and of its proxy, longest first, which an error text must not repeat."""
    places = [httpx.URL(url), httpx.URL(proxy_for(url) or "")]
    secret_texts = {place.password for place in places}
    said = [*headers.items(), *chain.from_iterable(proxy_authorization(place).items() for place in places)]
    for name, value in said:
        if name.lower() in {"authorization", "proxy-authorization", "cookie"} or "key" in name.lower():
            secret_texts |= {value, value.rpartition(" ")[2]}
    return tuple(sorted((text for text in secret_texts if text), key=len, reverse=True))
