"""The engine's own metrics while it works, over one connection kept open."""

import http.client
import json
import ssl
import time
from collections.abc import Mapping
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
        """The JSON answer gives what the Prometheus one does not, also where that one is not there at all."""
        ours, given, problems = self._exporter, set[str](), []
        reads = [self._read_text] * bool(ours.counters or ours.gauges) + [self._read_json] * bool(
            ours.json_url
        )
        for read in reads:
            try:
                given |= read(put, given)
            except UnreadableError as error:
                problems.append(str(error))
        if problems and len(problems) == len(reads):
            raise UnreadableError("; ".join(problems))

    def _read_text(self, put: Put, _given: set[str]) -> set[str]:
        ours = self._exporter
        body, at_ns = self._ask(ours.url)
        values = read_series(body.decode(errors="replace"), ours.counters, ours.gauges)
        if ours.prompt_tokens_exclude_cached and "prompt_tokens" in values:
            values["prompt_tokens"] += values.get("cached_prompt_tokens", 0.0)
        return self._put(put, {**ours.counters, **ours.gauges}, values, at_ns)

    def _read_json(self, put: Put, given: set[str]) -> set[str]:
        ours = self._exporter
        wanted = {name: path for name, path in ours.json_gauges.items() if name not in given}
        if not wanted:
            return set()
        body, at_ns = self._ask(ours.json_url)
        try:
            answer = json.loads(body)
        except ValueError as error:
            raise UnreadableError(f"{ours.json_url}: not JSON: {error}") from None
        if answer == []:  # the last read emptied it, and no iteration ended since
            return set()
        return self._put(put, wanted, gauge_paths(answer, wanted), at_ns)

    def _put(self, put: Put, wanted: Mapping[str, str], values: Mapping[str, float], at_ns: int) -> set[str]:
        """Names of what there was."""
        for name, series in wanted.items():
            if name in values:
                put(f"engine.{name}", values[name], at_ns)
                self.missing.pop(f"engine.{name}", None)
            else:
                self.missing.setdefault(f"engine.{name}", f"no {series} in the engine's metrics")
        return set(values)

    def _ask(self, url: str) -> tuple[bytes, int]:
        """Stamped in the middle of question and answer: the engine looked at itself in between."""
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
