"""Refuses a warm cache that would hold most prompts whole, with what none of them shares."""

from functools import partial

from harness.errors import SpecError
from harness.metrics.prefix import first_of_each_prefix, first_turns
from harness.plan import ProbeSizes, all_requests, load_points, prompts_at, seed_for, warmup_requests
from harness.records.request_table import RequestTable
from harness.spec.scenario import PromptFile, Scenario
from harness.workload.prompts.generate import as_they_are, generate
from harness.workload.prompts.lora import assigned
from harness.workload.prompts.text import TextMaker

_MOST_MADE = 20_000  # prompts, about a second


def check_warm(scenario: Scenario, requested: RequestTable) -> None:
    """Raises SpecError."""
    if scenario.cache.state != "warm":
        return
    new, prompts = len(list(first_of_each_prefix(requested))), len(list(first_turns(requested)))
    if 2 * new > prompts:
        raise SpecError(
            f"{new} of {prompts} prompts begin as none before them, and a warm cache would hold all of these",
            where="cache.state",
            hint='"primed" holds all prompts, "cold" none',
        )


def check_warm_ahead(scenario: Scenario, seed: int, sizes: ProbeSizes | None) -> None:
    """Raises SpecError where prompts that no tokenizer counted are already refused.

    Which prompts a file gives, and how many prefixes a working set has, may not be known before a server
    runs. Of very many prompts, which take their time to make, the run alone decides.
    """
    load = scenario.load
    unknown = isinstance(scenario.prompts, PromptFile) or (load.working_set and load.kv_tokens is None)
    if scenario.cache.state != "warm" or unknown:
        return
    texts = TextMaker(None, scenario.text)
    decorate = partial(assigned, scenario.lora) if scenario.lora.adapters else as_they_are
    for point in load_points(load)[: 1 if sizes else None]:
        count = all_requests(scenario, point, sizes.short(point) if sizes else None)
        if count > _MOST_MADE:
            continue
        workload = generate(
            prompts_at(scenario, point),
            count,
            seed_for(seed, "prompts", point.label, 0),
            texts,
            decorate,
            warmup=warmup_requests(scenario, point),
            each_first=point.kind == "working-set",
        )
        check_warm(scenario, workload.requested)
