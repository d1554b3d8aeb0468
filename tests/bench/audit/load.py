"""The load that was asked, and what is said of its course: closed loops, rates, drifts and steps."""

from collections.abc import Callable
from pathlib import Path

from harness.model import CellResult
from harness.store import RunFolder
from harness.validity import RULES
from tests.bench.audit.row import Row, Seen
from tests.bench.audit.servers_load import Server, serving
from tests.bench.command import bench

_LIMIT_S = 400
# The machine of the audit may be busy: these say so, of themselves or of processes that could not run. Merged
# events are of a server or client that was not scheduled between two of them; these servers write each alone.
_MACHINE = {str(code.value) for code, rule in RULES.items() if rule.cause in ("machine", "client")} | {
    "itl-merged",
    "merged-events",
}


def _bench(arguments: list[str]) -> tuple[CellResult, ...]:
    """The cells of the run, in their order."""
    before = set(Path().glob("*/summary.json"))
    done = bench(*arguments, "--out", ".", limit_s=_LIMIT_S)
    made = set(Path().glob("*/summary.json")) - before
    if len(made) != 1:
        raise RuntimeError(f"bench left {len(made)} runs: exit {done.returncode}\n{done.stderr[-2000:]}")
    return RunFolder(made.pop().parent).read_summary().cells


def _run(url: str, *more: str) -> tuple[CellResult, ...]:
    lengths = ("--scenario", "fixed-length", "--input-tokens", "40")
    return _bench(["run", "--backends", f"openai={url}", *lengths, *more])


def _marks(cell: CellResult) -> str:
    """Not that the cell was short: these servers are quicker than what a scenario expects of an engine."""
    codes = sorted({str(reason.code.value) for reason in cell.validity.reasons} - _MACHINE - {"too-short"})
    return ", ".join(codes) or "no mark"


def _start_spread(room: Path) -> Seen:
    with serving(Server(gap_ms=10, per_stream_ms=5)) as url:
        (cell,) = _run(url, "--output-tokens", "8", "--concurrency", "8", "--requests", "40")
    tpot, e2e, rate = cell.tpot_ms.p50 or 0, cell.e2e_ms.p50 or 0, cell.output_tokens_per_s or 0
    printed = f"TPOT {tpot:.1f}, E2E {e2e:.0f} ms, {rate:.0f} tok/s, {_marks(cell)}"
    off = [
        name
        for name, seen, true in (("TPOT", tpot, 50), ("E2E", e2e, 370), ("tok/s", rate, 173))
        if abs(seen / true - 1) > 0.03
    ]
    if _marks(cell) != "no mark":
        off.append("a mark")
    return Seen(printed, ", ".join(off))


def _constant(room: Path) -> Seen:
    """At the loads at which the start left a mark."""
    with serving(Server(gap_ms=10)) as a:
        cells = _run(
            a,
            *("--output-tokens", "20", "--concurrency", "1,2,4,8,16,32", "--requests", "96"),
            *("--repeats", "1"),
        )
    return _none_marked(cells)


def _url(room: Path) -> Seen:
    with serving(Server(gap_ms=10)) as url:
        return _none_marked(_bench([url, "--minutes", "1"]))


def _scenario(name: str) -> Callable[[Path], Seen]:
    def try_it(room: Path) -> Seen:
        with serving(Server(gap_ms=10)) as url:
            return _none_marked(
                _bench(["run", "--backends", f"openai={url}", "--scenario", name, "--profile", "cpu"])
            )

    return try_it


def _none_marked(cells: tuple[CellResult, ...]) -> Seen:
    marked = [
        f"{cell.load.point.label}: {_marks(cell)} ({cell.steady_state.why})"
        for cell in cells
        if _marks(cell) != "no mark"
    ]
    return Seen(f"{len(marked)} of {len(cells)} cells marked", "; ".join(marked))


def _rate(room: Path) -> Seen:
    sent, first = [], []
    with serving(Server(ttft_ms=60, gap_ms=17, places=4)) as url:
        for seed in range(5):
            (cell,) = _run(url, "--output-tokens", "21", "--rate", "8", "--seed", str(seed))
            stands = cell.arrivals.achieved if cell.arrivals else None
            sent.append(stands["rate_per_s"] if stands else float("nan"))
            first.append(cell.ttft_ms.p50 or float("nan"))
    rates = ", ".join(f"{rate:.1f}" for rate in sent)
    printed = f"sent {rates} per s; TTFT p50 {', '.join(f'{value:.0f}' for value in first)} ms"
    wrong = [rate for rate in sent if not abs(rate / 8 - 1) < 0.02]
    return Seen(printed, f"{len(wrong)} of 5 rates" if wrong else "")


def _course(server: Server, form: str, code: str) -> Callable[[Path], Seen]:
    def try_it(room: Path) -> Seen:
        with serving(server) as url:
            (cell,) = _run(url, "--output-tokens", "20", "--concurrency", "4", "--requests", "320")
        why = cell.steady_state.why or "steady"
        named = f"{form}: " in why and code in _marks(cell)
        return Seen(f"{_marks(cell)}: {why}", "" if named else f"not named a {form}")

    return try_it


_SCENARIOS = ("batch-1-8-32", "short-classification", "shared-prefix", "users-10-50-100", "single-user")

ROWS: tuple[Row, ...] = (
    Row(
        "the start of 8 slots, gap that grows with the number in flight",
        "TPOT 50.0, E2E 370 ms, 173 tok/s",
        _start_spread,
    ),
    Row("constant server, 1 to 32 in flight", "no mark", _constant),
    Row("constant server, `bench URL`", "no mark", _url),
    *(Row(f"constant server, {name}, cpu profile", "no mark", _scenario(name)) for name in _SCENARIOS),
    Row("`--rate 8`, 32 requests, five seeds, server of 10/s", "8.0 per s each", _rate),
    Row(
        "drift of 4% a second",
        "a drift, `not-steady`",
        _course(Server(drift_per_s=0.04), "drift", "not-steady"),
    ),
    Row(
        "step of +40% after 9 s",
        "a step, `not-steady`",
        _course(Server(step=1.4, step_at_s=9), "step", "not-steady"),
    ),
    Row(
        "first 5 s 1.5 times slower",
        "a ramp, `ramp-kept`",
        _course(Server(gap_ms=7.5, step=1 / 1.5, step_at_s=5), "ramp", "ramp-kept"),
    ),
)
