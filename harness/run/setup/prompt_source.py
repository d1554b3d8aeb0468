"""Reads the file that prompts come from, and refuses what is asked of it that it cannot give."""

from collections.abc import Mapping

from harness.errors import SpecError
from harness.model import RunWarning
from harness.model.numbers import as_given, counted
from harness.plan import ProbeSizes, all_requests, highest_load, load_points, most_requests, warmup_requests
from harness.spec.scenario import Scenario, TraceReplay, turns_of
from harness.spec.scenario.verdict import check_classes
from harness.validity import notices
from harness.workload.prompts.recorded import figures_of, source_of
from harness.workload.traces import Dataset, Trace, window


def checked_source(
    scenario: Scenario, sizes: ProbeSizes | None, given: Mapping[str, object]
) -> Trace | Dataset | None:
    """The file of the scenario's prompts; None for generated ones.

    `sizes`: of a capacity search. `given`: keys of the command line. Raises SpecError.
    """
    source = source_of(scenario.prompts, most_requests(scenario, sizes))
    if isinstance(source, Trace):
        _check_blocks(source, given)
    if isinstance(source, Trace) and source.calls is not None:
        _check_sessions(scenario)
    elif isinstance(source, Trace):
        _check_no_sessions(scenario, source)
    if source is not None:
        _check_warmup(scenario, source)
    if isinstance(source, Dataset) and not (scenario.lora.adapters or scenario.images.counts):
        check_classes(scenario.verdict, figures_of(source), "verdict")
    if isinstance(source, Dataset) and source.has_schemas and scenario.request.exact_output:
        raise SpecError(
            "has schemas, at whose end an answer ends: its length cannot be forced",
            where=source.source,
            hint="--set request.exact_output=false",
        )
    if sizes is not None and scenario.load.rate:
        _check_long_probe(scenario, sizes, source)
    elif source is not None and scenario.load.concurrency:
        _check_slots(scenario, sizes, source)
    return source


def source_warnings(source: Trace | Dataset | None) -> tuple[RunWarning, ...]:
    """Warnings about lines of the prompt file that were left out or changed."""
    if source is None:
        return ()
    parts = []
    if skipped := source.skipped:
        left_out = sum(skipped.values())
        lines = source.lines if isinstance(source, Trace) else left_out + len(source)
        reasons = "; ".join(f"{count}: {reason}" for reason, count in skipped.items())
        text = f"{source.source}: {left_out} of {lines} lines left out: {reasons}"
        parts.append(notices.FILE_LINES_LEFT_OUT.warning(text))
    if isinstance(source, Trace) and source.remarks:
        changes = "; ".join(f"{count} {what}" for what, count in source.remarks.items())
        parts.append(notices.TRACE_CHANGED.warning(f"{source.source}: {changes}"))
    return tuple(parts)


def length_warnings(source: Trace | Dataset | None, fitting: int | None) -> tuple[RunWarning, ...]:
    """The warning about prompts of a file that its scenario leaves out for their length.

    `fitting`: how many are left; None: as many as every load needs.
    """
    if not isinstance(source, Dataset) or fitting is None or fitting == len(source):
        return ()
    text = f"{source.source}: {len(source) - fitting} of {len(source)} prompts left out for their length"
    hint = "prompts.min_input_tokens and prompts.max_input_tokens say which lengths are sent"
    return (notices.FILE_LINES_LEFT_OUT.warning(text, hint),)


def _check_sessions(scenario: Scenario) -> None:
    """Refuses what recorded sessions do not take: it would have no effect, or cut them."""
    for key in ("think_time_s", "rest_s"):
        if getattr(scenario.load, key):
            raise SpecError(
                "recorded sessions have waits of their own",
                where=f"load.{key}",
                hint="prompts.max_wait_s cuts them",
            )
    if scenario.load.warmup_requests:
        raise SpecError(
            "recorded sessions have no warm-up: it would end within some of them",
            where="load.warmup_requests",
            hint="leave it out",
        )
    if scenario.cache.state == "warm":
        raise SpecError(
            "what recorded sessions share is not sent ahead",
            where="cache.state",
            hint='"primed" sends the first prompt of each session, "cold" none',
        )


def _check_blocks(trace: Trace, given: Mapping[str, object]) -> None:
    if given.get(key := "prompts.block_tokens") not in (None, trace.block_tokens):
        blocks = f"blocks of {trace.block_tokens} tokens" if trace.block_tokens else "no blocks of one size"
        raise SpecError(
            f"has no effect on {trace.source}: of format {trace.format}, it has {blocks}",
            where=f"{key}, as given",
            hint="leave it out",
        )


def _check_no_sessions(scenario: Scenario, trace: Trace) -> None:
    prompts = scenario.prompts
    assert isinstance(prompts, TraceReplay)
    of_sessions = {
        "scenario.rules": bool(scenario.scenario.rules),
        "prompts.unique_sessions": prompts.unique_sessions,
        "prompts.max_wait_s": prompts.max_wait_s is not None,
    }
    for key, asked in of_sessions.items():
        if asked:
            raise SpecError(
                f"is of recorded sessions, and {trace.source} has none",
                where=key,
                hint="--scenario trace replays a trace without sessions",
            )


def _check_warmup(scenario: Scenario, source: Trace | Dataset) -> None:
    """A file gives each prompt once, so warm-up can take all of them."""
    most = max(warmup_requests(scenario, point) for point in load_points(scenario.load))
    if len(source) <= most:
        raise SpecError(
            f"no prompt is left to measure: the file gives {len(source)}, and warm-up takes {most}",
            where=source.source,
            hint="--set load.warmup_requests=0, or a longer file",
        )


def _check_long_probe(scenario: Scenario, sizes: ProbeSizes, source: Trace | Dataset | None) -> None:
    """Refuses a search of rates whose probes would all end too early to decide.

    Of chats the later turns follow the answers, so that a probe reaches its rate only after a whole chat. A
    file gives each prompt once.
    """
    if turns_of(scenario.prompts) > 1 or (isinstance(source, Trace) and source.calls is not None):
        raise SpecError(
            "a probe ends before its chats or sessions have come to their rate",
            where="--find-capacity --rate",
            hint="--concurrency finds how many of them at once keep the limits",
        )
    highest = highest_load(scenario.load)
    needed = all_requests(scenario, highest, sizes.long(highest))
    if source is not None and len(source) < needed:
        raise SpecError(
            f"a long probe at {as_given(highest.value)} requests/s takes {needed:,} prompts, and the file "
            f"gives {len(source):,}",
            where=source.source,
            hint="a longer file, a lower highest rate, or a lower --probe-seconds",
        )


def _check_slots(scenario: Scenario, sizes: ProbeSizes | None, source: Trace | Dataset) -> None:
    """Refuses more slots than a cell or probe has sessions or prompts: the others would be empty."""
    highest, held, what = highest_load(scenario.load), len(source), "prompt"
    if isinstance(source, Trace) and source.calls is not None:
        probe = sizes.short(highest) if sizes else None
        calls = window(source, max_requests=all_requests(scenario, highest, probe)).calls
        held, what = len(set(calls.session.tolist())) if calls else 0, "session"
    if held < highest.value:
        raise SpecError(
            f"a {'probe' if sizes else 'cell'} of {as_given(highest.value)} in flight has "
            f"{counted(held, what)} of the file",
            where="--find-capacity --concurrency" if sizes else "load.concurrency",
            hint=f"a lower {'highest load' if sizes else 'load'}, more --requests, or a longer file",
        )
