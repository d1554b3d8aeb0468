"""The tokens that were sent: usage, answers at once, finish reasons, replicas, caps."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.model import CellResult, PairVerdict, Summary
from harness.store import RunFolder
from tests.bench.audit.row import Row, Seen
from tests.bench.audit.servers_tokens import (
    Behaviour,
    cached_beyond_prompt,
    doubled,
    halved,
    inflated,
    serving,
    total,
)
from tests.bench.command import bench

_FIXED = ("--scenario", "fixed-length", "--input-tokens", "40", "--output-tokens", "20")
_CLOSED = ("--concurrency", "4", "--requests", "48", "--set", "load.warmup_requests=8")
_QUICK = ("--model-name", "m", "--no-probe", "--no-report", "--no-agreement", "--sample-hz", "0")
_PAIR = ("--repeats", "3", "--set", "verdict.cool_down_s=0")
_LABELS = ("vllm", "openai")
_LIMIT_S = 300
# Marks that another user of the machine makes, and that say nothing of these servers.
_OF_MACHINE = {"contended", "stolen-time", "client-busy", "loop-lag", "machine-stalled", "client-stalled"}


@dataclass(frozen=True)
class _Ran:
    code: int
    text: str  # as a person sees it: table and messages
    summary: Summary

    @property
    def cell(self) -> CellResult:
        return self.summary.cells[0]

    @property
    def marks(self) -> list[str]:
        reasons = (reason for cell in self.summary.cells for reason in cell.validity.reasons)
        return sorted({f"{one.verdict} {one.code}" for one in reasons if one.code not in _OF_MACHINE})

    def verdict(self, metric: str) -> PairVerdict:
        return next(one for one in self.summary.comparison if one.metric == metric)


def _bench(room: Path, *arguments: str) -> _Ran:
    words = ("run", *_FIXED, *_QUICK, "--out", room / "out", *arguments)
    done = bench(*words, limit_s=_LIMIT_S, COLUMNS=120, BENCH_CACHE=room / "cache")
    (folder,) = (room / "out").glob("*-fixed-length-*")
    return _Ran(done.returncode, done.stdout + done.stderr, RunFolder(folder).read_summary())


def _alone(behaviour: Behaviour, room: Path, *arguments: str) -> _Ran:
    with serving(behaviour) as (url,):
        return _bench(room, "--backends", f"openai={url}", *(arguments or _CLOSED))


def _pair(first: Behaviour, second: Behaviour, room: Path, tokens: int = 20) -> _Ran:
    with serving(first, second) as urls:
        backends = ",".join(f"{label}={url}" for label, url in zip(_LABELS, urls, strict=True))
        return _bench(room, "--backends", backends, *_CLOSED, *_PAIR, "--output-tokens", str(tokens))


def _ms(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.1f} ms"


def _figures(cell: CellResult) -> str:
    rate = "n/a" if cell.output_tokens_per_s is None else f"{cell.output_tokens_per_s:.0f} tok/s"
    return f"TTFT {_ms(cell.ttft_ms.p50)}, TPOT {_ms(cell.tpot_ms.p50)}, E2E {_ms(cell.e2e_ms.p50)}, {rate}"


def _share(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.0%}"


def _wrong(*claims: tuple[bool, str]) -> str:
    """What does not hold."""
    return "; ".join(words for holds, words in claims if not holds)


def _near(value: float | None, true: float, share: float = 0.05) -> bool:
    return value is not None and abs(value / true - 1) <= share


def _at_once(room: Path) -> Seen:
    ran = _alone(Behaviour(at_once=True), room)
    cell = ran.cell
    return Seen(
        f"{_figures(cell)}; {', '.join(ran.marks)}; exit {ran.code}",
        _wrong(
            (cell.tpot_ms.p50 is None and cell.itl_ms.p50 is None, "TPOT and ITL are not known"),
            (_near(cell.ttft_ms.p50, 440) and _near(cell.e2e_ms.p50, 440), "TTFT and E2E are 440 ms"),
            (ran.marks == ["SUSPECT itl-merged"], "marked as written at once, and no more"),
            ("answers came at once" in ran.text, "the terminal says why"),
        ),
    )


def _at_once_slower(room: Path) -> Seen:
    ran = _pair(Behaviour(at_once=True), Behaviour(), room)
    words = {metric: ran.verdict(metric).verdict for metric in ("ttft_ms.p50", "e2e_ms.p50", "tpot_ms.p50")}
    return Seen(
        f"{words}; exit {ran.code}",
        _wrong(
            (words["ttft_ms.p50"] == "slower", "TTFT is slower"),
            (words["e2e_ms.p50"] == "same", "E2E is the same"),
            (words["tpot_ms.p50"] == "not enough runs", "TPOT has no verdict"),
            (ran.code == 0, "exit 0"),
        ),
    )


def _tpot_limit(behaviour: Behaviour) -> Callable[[Path], Seen]:
    def look(room: Path) -> Seen:
        ran = _alone(behaviour, room, *_CLOSED, "--set", "slo.tpot_ms.p95=50")
        cell = ran.cell
        attainment = "n/a" if cell.slo is None else f"{cell.slo.attainment:.2f}"
        goodput = cell.goodput_requests_per_s
        return Seen(
            f"attainment {attainment}, goodput {'n/a' if goodput is None else f'{goodput:.1f}/s'}",
            _wrong((cell.slo is None and goodput is None, "whether the limit is kept is not known")),
        )

    return look


def _implausible(behaviour: Behaviour) -> Callable[[Path], Seen]:
    def look(room: Path) -> Seen:
        ran = _alone(behaviour, room)
        hits = ran.cell.prefix_cache_hit_rate
        return Seen(
            f"{_figures(ran.cell)}, cache hits {_share(hits)}; {', '.join(ran.marks)}",
            _wrong(
                ("SUSPECT usage-implausible" in ran.marks, "usage-implausible"),
                (hits is None or hits <= 1, "no hit rate above 100%"),
            ),
        )

    return look


def _apart(
    first: Behaviour, second: Behaviour, said: str, words: dict[str, Sequence[str]], tokens: int = 20
) -> Callable[[Path], Seen]:
    """`words`: by metric, those that are right. `said`: of what is unequal, in the terminal."""

    def look(room: Path) -> Seen:
        ran = _pair(first, second, room, tokens)
        found = {metric: ran.verdict(metric).verdict for metric in words}
        unequal = re.findall(r"^(?:warning: )?unequal[^:]*: ([^;\n]*)", ran.text, re.M)
        return Seen(
            f"{found}; unequal in the terminal: {unequal}; exit {ran.code}",
            _wrong(
                *((found[metric] in right, f"{metric} is {right[0]}") for metric, right in words.items()),
                (any(said in text for text in unequal), f"the terminal names {said}"),
            ),
        )

    return look


def _finish(reason: str, outcome: str, mark: str) -> Callable[[Path], Seen]:
    def look(room: Path) -> Seen:
        ran = _alone(Behaviour(finish=reason), room)
        outcomes = ran.cell.requests.outcomes
        return Seen(
            f"{outcomes}; {', '.join(ran.marks)}",
            _wrong(
                (outcomes == {outcome: 48}, f"all are {outcome}"),
                (mark in str(ran.marks) if mark else not ran.marks, mark or "no mark"),
            ),
        )

    return look


def _replicas(room: Path) -> Seen:
    with serving(Behaviour(), Behaviour(gap_s=0.028)) as urls:
        ran = _bench(
            room, "--backends", f"openai={'+'.join(urls)}", "--concurrency", "8", "--requests", "96",
            "--set", "load.warmup_requests=16",
        )  # fmt: skip
    by_url = [_ms(one.tpot_ms.p50 if one.tpot_ms else None) for one in ran.cell.replicas.urls]
    return Seen(
        f"TPOT by URL {', '.join(by_url)}; {', '.join(ran.marks)}",
        _wrong(("SUSPECT replica-slower" in ran.marks, "replica-slower")),
    )


def _capped(room: Path) -> Seen:
    ran = _alone(
        Behaviour(slots=2), room, "--rate", "10", "--requests", "60", "--set", "load.max_in_flight=4",
        "--arrival", "constant",
    )  # fmt: skip
    again = "measured again" in ran.text
    return Seen(
        f"{', '.join(ran.marks)}; exit {ran.code}{', measured again' if again else ''}",
        _wrong(
            ("INVALID held-at-cap" in ran.marks, "held-at-cap"),
            (not any("rate-missed" in mark for mark in ran.marks), "no blame of the client"),
            (not again and "put down to the client" not in ran.text, "not measured again"),
        ),
    )


def _caching(room: Path) -> Seen:
    with serving(Behaviour(ttft_s=0.2, cached_ttft_s=0.04)) as (url,):
        ran = _bench(room, "--backends", f"openai={url}", "--aa", *_CLOSED, *_PAIR)
    first = {label: [c for c in ran.summary.cells if c.label == label] for label in ("openai#a", "openai#b")}
    medians = {label: _ms(cells[0].ttft_ms.p50 if cells else None) for label, cells in first.items()}
    every = [cell.ttft_ms.p50 for cell in ran.summary.cells]
    return Seen(
        f"TTFT {medians}; {', '.join(ran.marks)}",
        _wrong((len(every) == 6 and all(_near(one, 200) for one in every), "200 ms in all six cells")),
    )


_UNDECIDED = ("not comparable", "not enough runs")
ROWS: tuple[Row, ...] = (
    Row("the whole answer is written at once", "TTFT = E2E = 440 ms; no gap is known", _at_once),
    Row(
        "written at once against streamed, equal E2E",
        "slower in TTFT, E2E the same, TPOT not known",
        _at_once_slower,
    ),
    Row(
        "a limit on TPOT, server without streaming",
        "not known whether it is kept",
        _tpot_limit(Behaviour(streams=False)),
    ),
    Row("usage doubled", "20 tokens, 181 tok/s", _implausible(Behaviour(usage=doubled))),
    Row("usage half of the text events", "20 tokens, 181 tok/s", _implausible(Behaviour(usage=halved))),
    Row(
        "the total in place of the output tokens",
        "20 tokens, 181 tok/s",
        _implausible(Behaviour(usage=total)),
    ),
    Row(
        "cached tokens above the prompt's",
        "the hit rate is not known",
        _implausible(Behaviour(usage=cached_beyond_prompt)),
    ),
    Row(
        "half the text with the same usage",
        "equal speed in characters/s; less text",
        _apart(
            Behaviour(),
            Behaviour(share=0.5, usage=doubled),
            "characters per token",
            {
                "tpot_ms.p50": ("not comparable",),
                "e2e_ms.p50": ("not comparable",),
                "output_tokens_per_s": ("not comparable",),
            },
        ),
    ),
    Row(
        "48 of 50 tokens, equal speed",
        "no difference",
        _apart(
            Behaviour(),
            Behaviour(share=0.96),
            "tokens per answer",
            {"e2e_ms.p50": _UNDECIDED, "output_tokens_per_s": (*_UNDECIDED, "same")},
            tokens=50,
        ),
    ),
    Row(
        "usage 4% higher for the same text",
        "no difference",
        _apart(
            Behaviour(),
            Behaviour(usage=inflated),
            "characters per token",
            {
                "tpot_ms.p50": _UNDECIDED,
                "output_tokens_per_s": _UNDECIDED,
                "e2e_ms.p50": ("same", *_UNDECIDED),
            },
            tokens=50,
        ),
    ),
    Row("finish reason cancelled", "no answer is whole", _finish("cancelled", "aborted", "failed-requests")),
    Row(
        "finish reason content_filter",
        "no answer is whole",
        _finish("content_filter", "aborted", "failed-requests"),
    ),
    Row(
        "a finish reason that nobody knows",
        "not known whether the answers are whole",
        _finish("paused", "ok", "finish-reason-unknown"),
    ),
    Row("finish reason end_turn", "48 whole answers", _finish("end_turn", "ok", "")),
    Row("one of two replicas 40% slower in decode", "TPOT 20 and 28 ms", _replicas),
    Row("saturated, and the in-flight cap holds requests back", "the server carries 4.5/s of 10/s", _capped),
    Row(
        "--aa on a running server that keeps prompts",
        "TTFT 200 ms under both labels; 40 ms of a prompt that was seen",
        _caching,
    ),
)
