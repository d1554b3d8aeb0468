"""What carries the requests of a job: the most exact way that its URL and the platform allow."""

import select
import urllib.request
from enum import Enum, auto

import httpx

from harness.load.job import LoadJob
from harness.load.stamps import kernel_stamps_work

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class Carrier(Enum):
    KERNEL_STAMPS = auto()  # the socket loop with the kernel's stamps
    USER_STAMPS = auto()  # the socket loop with stamps taken at the read
    POLL = auto()  # the same on poll(2)
    HTTPX = auto()  # httpx on asyncio


def choose_carrier(job: LoadJob) -> tuple[Carrier, str]:
    """Also why it is not the best one; "" where it is, or where the job asked for it."""
    if job.http2:
        return Carrier.HTTPX, "HTTP/2: stamps are taken in user space"
    if proxy_for(job.url) is not None:
        return Carrier.HTTPX, "proxy: stamps are taken in user space"
    if not hasattr(select, "epoll"):
        return Carrier.POLL, "no epoll here: stamps are taken in user space, sockets looked at with poll"
    if job.stamps == "user":
        return Carrier.USER_STAMPS, ""
    if not kernel_stamps_work():
        return Carrier.USER_STAMPS, "the kernel gives no receive timestamps: stamps are taken in user space"
    return Carrier.KERNEL_STAMPS, ""


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for this URL; loopback never takes one."""
    target = httpx.URL(url)
    proxies = urllib.request.getproxies()
    if target.host in _LOOPBACK or urllib.request.proxy_bypass(target.host):
        return None
    return proxies.get(target.scheme) or proxies.get("all")
