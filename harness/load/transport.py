"""The choice of what carries a job: the most exact way that its URL and the platform allow."""

import select
from enum import Enum, auto

from harness.host.proxy import proxy_for, require_socks
from harness.load.job import LoadJob
from harness.load.stamps import kernel_stamps_work


class Transport(Enum):
    KERNEL_STAMPS = auto()  # the socket loop with the kernel's stamps
    USER_STAMPS = auto()  # the socket loop with stamps taken at the read
    POLL = auto()  # the same on poll(2)
    HTTP2 = auto()  # tasks on asyncio
    HTTPX = auto()  # tasks on asyncio, for proxies that are not plain HTTP


def choose_transport(job: LoadJob) -> tuple[Transport, str]:
    """The transport, and what a reader of the figures should know of it. One for all URLs of a job.

    Raises SetupError for a proxy that nothing here can send through.
    """
    proxies = [proxy for url in job.urls if (proxy := proxy_for(url)) is not None]
    if job.http2:
        return Transport.HTTP2, "HTTP/2: stamps are taken in user space"
    if any(not proxy.startswith("http://") for proxy in proxies):
        for url in job.urls:
            require_socks(url)
        return Transport.HTTPX, "a proxy that is not plain HTTP: stamps are taken in user space"
    through = "through a proxy" if proxies else ""
    if not hasattr(select, "epoll"):
        return Transport.POLL, _joined(through, "no epoll here: stamps are taken in user space, after poll")
    if job.stamps == "user":
        return Transport.USER_STAMPS, through
    if not kernel_stamps_work():
        why = "the kernel gives no receive timestamps: stamps are taken in user space"
        return Transport.USER_STAMPS, _joined(through, why)
    return Transport.KERNEL_STAMPS, through


def _joined(*reasons: str) -> str:
    return "; ".join(filter(None, reasons))
