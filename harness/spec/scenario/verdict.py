"""[verdict] and [slo]: what is to be decided, and limits that a request must keep to count as good."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from harness.errors import SpecError
from harness.model import METRICS, PERCENTILES, SLO_METRICS, VERDICT_METRICS, better_of
from harness.model.choices import AUTO_REPEATS, BetweenRepeats
from harness.model.metric_table import of_class, root_of
from harness.spec.scenario.limits import MOST_REPEATS, Seconds, at_most, positive
from harness.spec.strict import check_known, nearest

# `[slo] ttft_ms.p95 = 500`: 95% of the requests have their first token within 500 ms.
SloTable = Mapping[str, Mapping[str, float]]
LEAST_REPEATS = 3  # fewer give no interval worth the name
EACH = "*"  # in the place of a class: `by_depth.*.ttft_ms.p50` is a metric for each depth that was measured
SLO_SHARES = (*PERCENTILES, "max")


@dataclass(frozen=True, slots=True)
class Verdict:
    primary: str = "ttft_ms.p50"  # what the rank line is about
    # Declared before the run: only these get verdicts, and each makes the others harder to reach. Of a class
    # of requests as `by_kind.short.ttft_ms.p50`, of each class as `by_kind.*.ttft_ms.p50`.
    metrics: tuple[str, ...] = ("ttft_ms.p50", "tpot_ms.p50", "e2e_ms.p50", "output_tokens_per_s")
    # Of `bench run` with two backends or more, given with --set of any number. "auto": until every verdict
    # on the primary metric is decided, from min_repeats to max_repeats.
    repeats: int | Literal["auto"] = "auto"
    min_repeats: int = AUTO_REPEATS[0]  # of "auto"
    max_repeats: int = AUTO_REPEATS[1]  # of "auto"
    # What happens to an engine between two repeats. "auto": restart, or keep where bench did not start it.
    between_repeats: Literal["auto", BetweenRepeats] = "auto"
    cool_down_s: Seconds = 2.0  # between two engines

    @property
    def by_key(self) -> tuple[tuple[str, str], ...]:
        """Every metric with the key that names it."""
        return ("primary", self.primary), *(("metrics", metric) for metric in self.metrics)


def check_verdict(verdict: Verdict, where: str, *, text: bool = True) -> None:
    """Raises SpecError. Without `text`, answers are vectors or scores, which have no tokens."""
    for key, name in verdict.by_key:
        if better_of(name) is None or (key == "primary" and EACH in name):
            raise SpecError(
                f"unknown metric '{name}'", where=f"{where}.{key}", hint=nearest(name, VERDICT_METRICS)
            )
        if not text and METRICS[root_of(name)].of_text:
            raise SpecError(
                f"'{name}' is of generated text, which these answers are not",
                where=f"{where}.{key}",
                hint="items_per_s, e2e_ms.p50 and input_tokens_per_s are of vectors and scores too",
            )
    if verdict.repeats != "auto" and verdict.repeats < 1:
        raise SpecError(f"must be at least 1, not {verdict.repeats}", where=f"{where}.repeats")
    for key, number in (("repeats", verdict.repeats), ("max_repeats", verdict.max_repeats)):
        if number != "auto":
            at_most(number, f"{where}.{key}", MOST_REPEATS)
    if verdict.min_repeats < LEAST_REPEATS:
        raise SpecError(
            f"a verdict needs at least {LEAST_REPEATS} repeats, not {verdict.min_repeats}",
            where=f"{where}.min_repeats",
        )
    if verdict.max_repeats < verdict.min_repeats:
        raise SpecError(
            f"must be at least min_repeats ({verdict.min_repeats}), not {verdict.max_repeats}",
            where=f"{where}.max_repeats",
            hint="for fewer repeats than that set a fixed number: --repeats N",
        )


def check_classes(verdict: Verdict, known: Collection[str], where: str, hint: str = "") -> None:
    """Raises SpecError for a metric of a class that has no figures of its own: it would stay null."""
    for key, metric in verdict.by_key:
        name = of_class(metric)[0]
        if name and EACH not in name and name not in known:
            raise SpecError(
                f"the requests give no figures of '{metric}'",
                where=f"{where}.{key}",
                hint=hint or nearest(name, known) or "all requests of this workload are of one class",
            )


def check_slo(slo: SloTable, where: str, *, text: bool = True) -> None:
    """Raises SpecError. Without `text`, answers are vectors, scores or transcripts, which have no tokens."""
    for measure, limits in slo.items():
        check_known(measure, SLO_METRICS, f"{where}.{measure}", "latency")
        if not text and METRICS[measure].of_text:
            raise SpecError("is of generated text, which these answers are not", where=f"{where}.{measure}")
        for share, limit_ms in limits.items():
            key_path = f"{where}.{measure}.{share}"
            if share not in SLO_SHARES:
                raise SpecError(
                    f"'{share}' is not one of p50, p90, p95, p99 and max",
                    where=key_path,
                    hint=nearest(share, SLO_SHARES),
                )
            positive(limit_ms, key_path)
