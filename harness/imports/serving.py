"""The common format of vLLM's and SGLang's benchmark files: parallel arrays in seconds, figures in ms."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from harness.imports.source import Document, finite, plain, wrong
from harness.imports.taken import MOST_S, OUTCOMES, UNKNOWN_LOAD, agree, of_reported, unix_ns
from harness.metrics.peers import tool_named
from harness.model import STATISTICS, Load
from harness.model.exchanged import as_median
from harness.model.numbers import short
from harness.records.layout import Outcome

Number = int | float
MEASURES = {"TTFT": "ttft_ms", "ITL": "itl_ms", "TPOT": "tpot_ms", "E2E": "e2e_ms",
            "output": "output_tokens_per_s", "requests": "requests_per_s"}  # fmt: skip
_LIST = re.compile(rb"\[[^\[\]]*\]")  # inside the outer one: they hold numbers alone
_GAPS = msgspec.json.Decoder(list[float])


class Arrays(msgspec.Struct):
    """`itls` stays text until its request is read: it is most of a large file."""

    duration: Number
    completed: int
    request_rate: Number | str | None = None
    max_concurrency: int | None = None
    burstiness: Number | None = None
    input_lens: list[int | None] = []
    output_lens: list[int | None] = []
    ttfts: list[Number] = []
    itls: msgspec.Raw = msgspec.Raw(b"[]")
    errors: list[str | None] = []

    def outcome(self, index: int) -> tuple[Outcome, str]:
        """How a request ended, and what the tool wrote of its failure."""
        if index < len(self.errors) and (error := self.errors[index]):
            if not error.startswith("Traceback "):
                return Outcome.HTTP_ERROR, error
            last = error.rstrip().rpartition("\n")[2]  # `module.Class: what`
            return OUTCOMES.get(last.partition(":")[0].rpartition(".")[2], Outcome.HTTP_ERROR), last
        answered = self.ttfts[index] > 0 or self.output_lens[index]
        return (Outcome.OK if answered else Outcome.EMPTY), ""


def gaps(file: Arrays, names: Sequence[str], where: str) -> Iterator[list[float]]:
    """The gaps of each request, read one by one. Lists: an array for each of a million takes longer to make.

    Raises SpecError if they and the arrays of these names are not of the same requests.
    """
    sizes = {name: len(getattr(file, name)) for name in names}
    if len(set(sizes.values())) > 1:
        shown = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise wrong(f"its arrays are not of the same requests: {shown}", where)
    count, found = len(file.ttfts), 0
    for match in _LIST.finditer(memoryview(file.itls), 1):
        found += 1
        if found > count:
            break
        try:
            yield _GAPS.decode(match[0])
        except msgspec.DecodeError as error:
            raise wrong(f"itls: {error}", where) from None
    if found != count:
        raise wrong(f"itls: of {'more' if found > count else found} requests, and there are {count}", where)


def load(
    rate: Number | str | None,
    most: int | None,
    *,
    requests: int | None = None,
    burstiness: Number | None = None,
) -> Load:
    """The load. Without a rate and a limit all `requests` are sent at once; None: then it is not known."""
    per_second, shape = plain(rate), plain(burstiness)
    if not per_second and not most and requests is None:
        return UNKNOWN_LOAD
    if not per_second:
        return Load(kind="concurrency", value=most or max(requests or 0, 1), think_time_s=0.0)
    if shape in (None, 1.0):
        return Load(kind="rate", value=per_second, arrival="poisson")
    return Load(kind="rate", value=per_second, arrival="gamma", burstiness=shape)


def began_unix_ns(date: str, duration_s: float) -> int | None:
    """`date` is the end: 20261125-083000 in the time zone of the machine that measured, or ISO 8601."""
    try:
        ended = round(datetime.strptime(date, "%Y%m%d-%H%M%S").replace(tzinfo=UTC).timestamp() * 1e9)
    except ValueError:
        if (at := unix_ns(date)) is None:
            return None
        ended = at
    return ended - int(duration_s * 1e9)


def figures(document: Document, tool: str, names: Mapping[str, str]) -> dict[str, float]:
    """What the tool computed itself, at its place in a cell. `names`: by metric, the keys of the file.

    Raises SpecError for what is no amount.
    """
    raw_values = document.read_as(dict[str, msgspec.Raw], tool).items()
    small = {key: raw for key, raw in raw_values if len(memoryview(raw)) < 1000}  # no arrays of requests
    values = {key: document.part(raw).read_as(object, tool) for key, raw in small.items()}
    found: dict[str, float] = {}
    for metric, name in names.items():
        for statistic in STATISTICS:
            value = plain(values.get(f"{statistic}_{name}_ms"))
            value = plain(values.get(f"{as_median(statistic)}_{name}_ms")) if value is None else value
            if value is not None:
                found[f"{metric}.{statistic}"] = value
    rates = {"request_throughput": "requests_per_s", "output_throughput": "output_tokens_per_s"}
    for key, metric in rates.items():
        if (rate := plain(values.get(key))) is not None:
            found[metric] = rate
    total, seconds = plain(values.get("total_input_tokens")), plain(values.get("duration"))
    if total is not None and seconds:
        found["input_tokens_per_s"] = total / seconds
    return {path: finite(value, path, document.where) for path, value in found.items()}


def check_duration(file: Arrays, stated: Mapping[str, float], where: str) -> None:
    """Raises SpecError if the rate of answers is not that of the duration: other units, or damage."""
    if not 0 < file.duration < MOST_S:
        raise wrong(f"a duration of {short(file.duration)} s", where)
    rate = file.completed / file.duration
    agree("request_throughput", stated.get("requests_per_s"), rate, where, "its count and duration give")


def definitions(
    tool: str, metrics: Mapping[str, float], placed: Mapping[str, str] = MEASURES
) -> dict[str, str]:
    """The meaning of the tool's own figures. `placed`: measures that are another metric here."""
    named, places = tool_named(tool), {**MEASURES, **placed}
    meant = {places[measure]: why for measure, why in named.why.items()}
    return of_reported(meant, named.title, metrics)
