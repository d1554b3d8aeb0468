"""The engine's own metrics while it works, over one connection kept open."""

import http.client
import json
import ssl
import time
from typing import Any
from urllib.parse import urlsplit

from harness.engines.prometheus import gauge_paths, read_series
from harness.observe.job import Exporter
from harness.observe.sources import Put, UnreadableError

_TIMEOUT_S = 2.0


class EngineExporter:
    def __init__(self, exporter: Exporter, period_s: float) -> None:
        self.period_s = period_s
        self.missing: dict[str, str] = {}
        self.about: dict[str, Any] = {"url": exporter.url}
        self._exporter = exporter
        self._connections: dict[str, http.client.HTTPConnection] = {}

    def open(self) -> None:
        pass

    def read(self, put: Put) -> None:
        """Stamped in the middle of question and answer: the engine looked at itself in between."""
        ours = self._exporter
        if ours.counters or ours.gauges:
            body, at_ns = self._ask(ours.url)
            values = read_series(body.decode(errors="replace"), ours.counters, ours.gauges)
            if ours.prompt_tokens_exclude_cached and "prompt_tokens" in values:
                values["prompt_tokens"] += values.get("cached_prompt_tokens", 0.0)
            self._put(put, {**ours.counters, **ours.gauges}, values, at_ns)
        if ours.json_url:
            body, at_ns = self._ask(ours.json_url)
            try:
                answer = json.loads(body)
            except ValueError as error:
                raise UnreadableError(f"{ours.json_url}: not JSON: {error}") from None
            if answer != []:  # drained by the last read
                self._put(put, ours.json_gauges, gauge_paths(answer, ours.json_gauges), at_ns)

    def _put(self, put: Put, wanted: dict[str, str] | Any, values: dict[str, float], at_ns: int) -> None:
        for name, series in wanted.items():
            if name in values:
                put(f"engine.{name}", values[name], at_ns)
                self.missing.pop(f"engine.{name}", None)
            else:
                self.missing.setdefault(f"engine.{name}", f"no {series} in the engine's metrics")

    def _ask(self, url: str) -> tuple[bytes, int]:
        parts = urlsplit(url)
        began = time.monotonic_ns()
        try:
            connection = self._connection(parts.scheme, parts.netloc)
            path = parts.path + (f"?{parts.query}" if parts.query else "")
            connection.request("GET", path, headers=dict(self._exporter.headers))
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._drop(parts.netloc)
            raise UnreadableError(f"{url}: {error or type(error).__name__}") from None
        if answer.status != http.client.OK:
            raise UnreadableError(f"{url}: answers {answer.status}")
        return body, (began + time.monotonic_ns()) // 2

    def _connection(self, scheme: str, host: str) -> http.client.HTTPConnection:
        if host not in self._connections:
            self._connections[host] = (
                http.client.HTTPSConnection(host, timeout=_TIMEOUT_S, context=ssl.create_default_context())
                if scheme == "https"
                else http.client.HTTPConnection(host, timeout=_TIMEOUT_S)
            )
        return self._connections[host]

    def _drop(self, host: str) -> None:
        if host in self._connections:
            self._connections.pop(host).close()

    def close(self) -> None:
        for host in list(self._connections):
            self._drop(host)
