"""`bench doctor`: how exact this client is on this machine."""

import argparse
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from harness.cli.display.live import wrapped
from harness.cli.display.output import UNBROKEN, progress_display
from harness.cli.display.result import Result, put
from harness.cli.flags import options
from harness.cli.typed import Flags, typed
from harness.errors import ExitCode
from harness.model import DoctorResult, ErrorSpread, MeasuredLoad, OnNode
from harness.model.numbers import counted
from harness.report.wording import aligned

if TYPE_CHECKING:
    from harness.apis import ApiName
    from harness.cluster.options import ClusterOptions

EPILOG = """Takes under a minute. The result is stored in the cache folder; runs use it.

Exit codes: 0 exact to 1 ms at 256 streams; 4 not exact enough to measure; 3 the server did not start, or the
result could not be stored."""

# One column each: its title on three lines.
_HEADS = (
    ("load", "", ""),
    ("{}s", "", "/s"),
    ("TTFT error", "p50/p99/max", "ms"),
    ("ITL error", "p50/p99/max", "ms"),
    ("E2E error", "p99", "ms"),
    ("sent late", "p99", "ms"),
    ("client", "CPU", "µs/{}"),
    ("server late", "p99", "ms"),
    ("server", "CPU", "%"),
    ("validity", "", ""),
)


@dataclass(frozen=True)
class Options(Flags):
    quick: bool
    api: "ApiName"
    load_from: "ClusterOptions | None"
    json: bool

    @classmethod
    def from_parsed(cls, parsed: argparse.Namespace) -> Self:
        return typed(cls, parsed, load_from=options.load_from(parsed))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from harness.apis import API_NAMES, APIS

    apis = [name for name in API_NAMES if APIS[name].gives != "transcripts"]
    parser.add_argument(
        "--quick", action="store_true", help="measure three loads instead of all, up to 256 streams"
    )
    parser.add_argument(
        "--api",
        choices=apis,
        metavar="API",
        default="chat",
        help=f"API to measure with: {', '.join(apis)} (default: chat, whose result runs use)",
    )
    options.add_cluster(parser)
    options.add_json(parser)


def main(given: Options) -> Result:
    from harness.cluster.placement import joined
    from harness.doctor.examine import examine
    from harness.doctor.loads import LOADS, QUICK
    from harness.doctor.result import as_stored, path, store

    with closing(progress_display()) as ui, joined(given.load_from) as cluster:
        found = examine(QUICK if given.quick else LOADS, ui.stage, cluster, given.api)
    put(Result(lambda screen: as_text(found, screen.rows)), as_json=given.json)
    kept = []
    if given.load_from is None and given.api == "chat":  # runs of this machine alone go by what is stored
        store(found)
        kept = [f"kept in {path()}"]
    code = ExitCode.OK if found.verdict.fit_to_measure else ExitCode.INVALID
    return Result(document=lambda: as_stored(found), code=code, notes=kept)


def as_text(found: DoctorResult, width: int = UNBROKEN) -> str:
    verdict = found.verdict
    lines = [
        *_table(found, width),
        *_nodes(found),
        "",
        *_machine(found),
        _workers(found),
        "",
        verdict.sentence,
        *(f"limit: {limit}" for limit in verdict.limits),
        *(f"hint: {hint}" for hint in verdict.hints),
    ]
    return "\n".join(wrapped(line, width) for line in lines)


def _table(found: DoctorResult, width: int) -> Iterator[str]:
    from harness.doctor.loads import whole

    unit = "answer" if whole(found.api) else "token"
    heads = [[word.format(unit) for word in head] for head in _HEADS]
    return aligned([*zip(*heads, strict=True), *map(_cells, found.loads)], width)


def _cells(measured: MeasuredLoad) -> tuple[str, ...]:
    errors = measured.errors
    busy_share = measured.server.busy_share
    exactness = (
        ("n/a",) * 3
        if errors is None
        else (_spread(errors.ttft_ms), _spread(errors.itl_ms), f"{errors.e2e_ms.p99:.3f}")
    )
    return (
        measured.load.title,
        f"{measured.tokens_per_s:,.0f}",
        *exactness,
        _number(measured.send_lag_p99_ms, ".3f"),
        _number(measured.cpu_us_per_token, ".1f"),
        _number(measured.server.late_p99_ms, ".3f"),
        _number(busy_share and 100 * busy_share, ".0f"),
        measured.verdict,
    )


def _nodes(found: DoctorResult) -> Iterator[str]:
    """A line per load that a cluster sent."""
    for result in found.loads:
        if result.nodes:
            yield f"\n{result.load.title}, by node; from sent to received, least/median/most:"
        yield from map(_on_node, result.nodes)


def _on_node(on: OnNode) -> str:
    node = on.node
    placed = "n/a" if on.before_ms is None else "/".join(f"{value:.3f}" for value in on.before_ms)
    offset, known_to = _number(node.clock_offset_ms, "+,.3f"), _number(node.clock_uncertainty_ms, ".3f")
    drift, start = _number(node.drift_ppm, "+.1f"), _number(node.start_skew_ms, "+.3f")
    return (
        f"  {node.place}: {counted(on.requests, 'request')}, {placed} ms; "
        f"clock {offset} ± {known_to} ms, drift {drift} ppm, start {start} ms"
    )


def _spread(error_ms: ErrorSpread | None) -> str:
    """None: answers come whole."""
    if error_ms is None:
        return "–"
    return f"{error_ms.p50:.3f}/{error_ms.p99:.3f}/{error_ms.max:.3f}"


def _workers(found: DoctorResult) -> str:
    verdict, heaviest = found.verdict, found.loads[-1]
    nodes = counted(len(heaviest.nodes), "load node")
    there = f"{heaviest.client.workers} on {nodes}; " if heaviest.nodes else ""
    loads = {"streams": verdict.streams_per_worker, "arrivals/s": verdict.arrivals_per_worker}
    carries = ", ".join(f"{figure:,} {unit}" for unit, figure in loads.items() if figure)
    most = f"one carries about {carries} in half a core" if carries else "what one carries is not known"
    return f"workers  {there}{most}"


def _number(value: float | None, form: str) -> str:
    return "n/a" if value is None else format(value, form)


def _machine(found: DoctorResult) -> Iterator[str]:
    host, clock, limits, core = found.host, found.clock, found.limits, found.server_core
    pinned = "nothing pinned" if core is None else f"server on core {core}"
    others = [result.other_cores for result in found.loads if result.other_cores is not None]
    ports = limits.ephemeral_ports
    yield f"cores    {host.cpus_usable} usable, {pinned}; governor {host.cpu_governor or 'n/a'}"
    if host.gpus:
        yield f"GPUs     {host.hardware}; driver {host.gpu_driver or 'n/a'}"
    yield (
        f"others   load average {_number(host.load_average_1min, '.1f')} before; "
        f"other work kept {_number(min(others, default=None), '.1f')} to "
        f"{_number(max(others, default=None), '.1f')} cores busy meanwhile"
    )
    yield (
        f"clock    {clock.source or 'n/a'}, resolution {clock.resolution_ns:g} ns; "
        f"{'kernel receive stamps' if clock.kernel_receive_stamps else 'stamps taken when read'}, "
        f"known to {clock.stamp_uncertainty_ns} ns"
    )
    yield (
        f"limits   {limits.file_descriptors_hard or 'unlimited'} open files, "
        f"ports {f'{ports[0]}–{ports[1]}' if ports else 'n/a'}: "
        f"{limits.connections_to_one_server or 'unlimited'} connections to one server"
    )
    for result in found.loads:
        if result.arrivals is not None:
            yield (
                f"arrivals {result.load.title}: dispersion {result.arrivals.drawn:.2f} as drawn, "
                f"{result.arrivals.received:.2f} as received"
            )
