"""The engine's own metrics while it works, over one connection to each place that has them."""

import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus

from harness.client.answer import Answer
from harness.client.limits import Limits
from harness.client.look_up import LookUp
from harness.engines.speak.prometheus import gauge_paths, read_series, together, whole_prompts
from harness.errors import SetupError
from harness.sampling.job import Exporter
from harness.sampling.sources import Put, Source, UnreadableError
from harness.untrusted import BadDocumentError

_LIMITS = Limits(total_s=2.0)


class EngineExporter(Source):
    def __init__(self, exporter: Exporter, period_s: float) -> None:
        self.period_s = period_s
        self.missing = {}
        self.about = {"url": exporter.url}
        self._exporter = exporter
        self._look_up = LookUp(exporter.access, _LIMITS)

    def read(self, put: Put) -> None:
        """The JSON answer gives what the Prometheus one does not, also if that one is not there."""
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
        answer, at_ns = self._ask(ours.url)
        values = read_series(answer.figures, ours.counters, ours.gauges)
        if ours.prompt_tokens_exclude_cached:
            if "prompt_tokens" in values and "cached_prompt_tokens" not in values:
                self.missing["engine.prompt_tokens"] = (
                    f"{ours.counters['prompt_tokens']} leaves out cached tokens, and nothing counts those"
                )
            values = whole_prompts(values)
        return self._put(put, {**ours.counters, **ours.gauges}, values, at_ns)

    def _read_json(self, put: Put, given: set[str]) -> set[str]:
        ours = self._exporter
        wanted = {name: path for name, path in ours.json_gauges.items() if name not in given}
        if not wanted:
            return set()
        answer, at_ns = self._ask(ours.json_url)
        try:
            document = answer.document()
        except BadDocumentError as error:
            raise UnreadableError(f"{ours.json_url}: {error}") from None
        if document == []:  # the last read emptied it, and no iteration ended since
            return set()
        return self._put(put, wanted, gauge_paths(document, wanted), at_ns)

    def _put(self, put: Put, wanted: Mapping[str, str], values: Mapping[str, float], at_ns: int) -> set[str]:
        """The names that were there."""
        for name, series in wanted.items():
            if name in values:
                put(f"engine.{name}", values[name], at_ns)
                self.missing.pop(f"engine.{name}", None)
            else:
                self.missing.setdefault(f"engine.{name}", f"no {series} in the engine's metrics")
        return set(values)

    def _ask(self, url: str) -> tuple[Answer, int]:
        """Stamped midway between question and answer: the engine took its values in between."""
        began = time.monotonic_ns()
        try:
            answer = self._look_up.ask(url)
        except SetupError as error:
            raise UnreadableError(str(error)) from None
        if answer.status != HTTPStatus.OK:
            raise UnreadableError(f"{url}: answers {answer.status}")
        return answer, (began + time.monotonic_ns()) // 2

    def close(self) -> None:
        self._look_up.close()


class EngineExporters(Source):
    """Several engines that work as one: `engine.N.…` is the Nth, `engine.…` all together."""

    def __init__(self, exporters: Sequence[Exporter], period_s: float, *, apart: bool = False) -> None:
        """`apart`: they have other roles, and there is nothing of all together."""
        self.period_s, self._apart = period_s, apart
        self._parts = [EngineExporter(exporter, period_s) for exporter in exporters]
        self.missing = {}
        self.about = {"urls": [exporter.url for exporter in exporters]}

    def read(self, put: Put) -> None:
        """Adds up the energy. If one cannot be read there is no sum, since one without it would look like a
        fall."""
        samples: dict[str, list[tuple[float, int]]] = {}
        problems = []
        for index, part in enumerate(self._parts):

            def keep(name: str, value: float, at_ns: int, index: int = index) -> None:
                put(name.replace("engine.", f"engine.{index}.", 1), value, at_ns)
                samples.setdefault(name, []).append((value, at_ns))

            try:
                part.read(keep)
            except UnreadableError as error:
                problems.append(str(error))
        # A series that one part lacks is missing of the whole.
        self.missing = {name: why for part in self._parts for name, why in part.missing.items()}
        if problems:
            raise UnreadableError("; ".join(problems))
        for name, parts in samples.items():
            if len(parts) == len(self._parts) and not self._apart:
                values, times = zip(*parts, strict=True)
                put(name, together(name.removeprefix("engine."), values), sum(times) // len(times))

    def close(self) -> None:
        for part in self._parts:
            part.close()
