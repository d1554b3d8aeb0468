"""Engine: what it does unannounced, and whether it survived."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from harness.metrics.view import Mask
from harness.model import WITHOUT_TEXT, AnsweredModel, Ending, EndKind, IssueCode, known
from harness.model.metric import OF_AUDIO
from harness.model.numbers import counted, short
from harness.records.finish import Finish, finish_of
from harness.records.layout import UNKNOWN, EventKind, Outcome
from harness.validity.rule import Evidence, Rule, Violation
from harness.validity.usage import beyond, limited

_MOST_MODELS = _MOST_FALLS = 3  # that a reason names
LEAST_OF_AN_IMAGE = 1.0  # prompt tokens: an engine that looks at an image has dozens for it


@partial(
    Rule,
    code=IssueCode.ENGINE_DIED,
    measures="whether the engine's process or container lives, and whether it still answers",
    limit="alive and answering to the end",
    verdicts=("INVALID",),
    hint="see the engine log",
    cause="engine",
    eases=True,
    certain=True,
)
def _died(cell: Evidence) -> Iterator[Violation]:
    if why := cell.facts.engine_exited:
        ending = Ending(cell.facts.engine_end or _guessed(cell), why)
        yield Violation(why, hint=ending.hint(f"see {cell.facts.engine_log or 'the engine log'}"))


def _guessed(cell: Evidence) -> EndKind:
    """The kind where none was kept: an engine that dies closes connections, and no last request times out."""
    rows = cell.view.requests
    ended = rows[rows["outcome"] != Outcome.CANCELLED]
    in_vain = len(ended) and ended["outcome"][np.argmax(ended["end_ns"])] == Outcome.TIMEOUT
    return "slow" if in_vain else "died"


@partial(
    Rule,
    code=IssueCode.ENGINE_RESTARTED,
    measures="how often the engine's counters fell",
    limit="0",
    verdicts=("INVALID",),
    hint="the engine restarted during the cell: see its log; or several engines answer at one metrics "
    "URL: name each with --metrics-url",
    cause="engine",
    eases=True,
    certain=True,
)
def _restarted(cell: Evidence) -> Iterator[Violation]:
    if restarts := cell.facts.counter_restarts:
        falls = cell.facts.counter_falls_s
        shown = [f"{before:.1f} to {after:.1f} s" for before, after in falls[:_MOST_FALLS]]
        when = f", {', '.join(shown)} into the load" if shown else ""
        later = " and later" if len(falls) > _MOST_FALLS else ""
        yield Violation(f"its counters fell {counted(restarts, 'time')}{when}{later}")


@partial(
    Rule,
    code=IssueCode.MODEL_CHANGED,
    measures="models that the answers name, of requests for the same model or adapter",
    limit="1 model",
    hint="the server, or a gateway before it, changed the model: name one that it keeps, and measure again",
    cause="engine",
    eases=True,
)
def _model_changed(cell: Evidence) -> Iterator[Violation]:
    by_request: dict[str, list[AnsweredModel]] = {}
    for model in known(cell.facts.answered_models) or ():
        by_request.setdefault(model.requested, []).append(model)
    if changed := [models for models in by_request.values() if len(models) > 1]:
        found = changed[0]
        shown = [
            f"{model.answered} ({counted(model.requests, 'answer')}, the first sent at {model.first_s:.1f} s)"
            for model in found[:_MOST_MODELS]
        ]
        more = [f"{len(found) - len(shown)} more"] if len(found) > len(shown) else []
        for_whom = f" for {found[0].requested}" if len(by_request) > 1 else ""
        named = sum(model.requests for models in by_request.values() for model in models)
        within = "; some answers name several" if named > len(cell.view.answers) else ""
        yield Violation(f"{counted(len(found), 'model')}{for_whom}: {', '.join([*shown, *more])}{within}")


@partial(
    Rule,
    code=IssueCode.OUTPUT_LENGTH,
    measures="answers of another length than the one forced, longer than allowed by their events too, or "
    "shorter though they ended at a limit on their length",
    limit="0",
    hint="this engine did less or more work than asked: compare per token only",
    cause="work",
    eases=True,
)
def _output_length(cell: Evidence) -> Iterator[Violation]:
    rows = cell.view.answers
    same = cell.facts.workload.output_tokens  # None: lengths differ
    wanted = same if cell.requested is None else cell.requested.numbers["max_tokens"][rows["seq"]]
    if not cell.facts.workload.exact_output or wanted is None:
        yield from _beyond_limit(cell)
        yield from _below_limit(cell)
        return
    known = rows["output_tokens"] != UNKNOWN
    if wrong := int(np.count_nonzero(known & (rows["output_tokens"] != wanted))):
        length = "of the length asked for" if same is None else f"of {counted(same, 'token')}"
        yield Violation(f"{wrong} of {np.count_nonzero(known)} answers not {length}")


def _beyond_limit(cell: Evidence) -> Iterator[Violation]:
    if cell.requested is None:
        return
    rows, most = limited(cell)
    longer = int(np.count_nonzero(beyond(np.minimum(rows["output_tokens"], rows["text_events"]), most)))
    if longer:
        yield Violation(f"{longer} of {len(rows)} answers longer than allowed, by their events too")


def _below_limit(cell: Evidence) -> Iterator[Violation]:
    """The context of an engine or a cap of a gateway ends answers as the limit that was asked for would.

    Leaves out answers with reasoning, which some servers do not count.
    """
    if cell.requested is None:
        return
    rows, most = limited(cell)
    reasons = [cell.records.finish_reasons[row] for row in np.flatnonzero(cell.view.answered).tolist()]
    at_limit = [reason for reason in set(reasons) if finish_of(reason) is Finish.CUT]
    cut = cell.view.answers["seq"][np.isin(np.array(reasons, dtype=np.str_), at_limit)]
    shorter = beyond(most, np.maximum(rows["output_tokens"], rows["text_events"]))
    shorter &= np.isin(rows["seq"], cut) & (rows["first_reasoning_ns"] == UNKNOWN)
    if count := int(np.count_nonzero(shorter)):
        yield Violation(
            f"{count} of {len(rows)} answers ended at a limit on their length after "
            f"{rows['output_tokens'][shorter].mean():.1f} tokens where {most[shorter].mean():.1f} were "
            "allowed (means)",
            "the tokens that the request allowed",
            "the engine's context, or a cap of it or of a gateway, ends answers: raise it, or ask for less",
        )


@partial(
    Rule,
    code=IssueCode.USAGE_MISSING,
    measures="answers without a usage block: their tokens are not known",
    limit="0",
    hint="token rates are null: ask the server for usage in streams, or compare characters per second",
    cause="engine",
)
def _usage_missing(cell: Evidence) -> Iterator[Violation]:
    rows = cell.view.answers
    if cell.facts.request.api in OF_AUDIO:
        return  # its servers need not count tokens, and no figure is made of them
    counted = "prompt_tokens" if cell.facts.request.api in WITHOUT_TEXT else "output_tokens"
    if missing := int(np.count_nonzero(rows[counted] == UNKNOWN)):
        yield Violation(f"{missing} of {len(rows)} answers without a usage block")


@partial(
    Rule,
    code=IssueCode.THINKING_NOT_OFF,
    measures="answers with reasoning, by its text or the server's count, though the scenario has it off",
    limit="0",
    hint="TTFT and length include it: switch it off at the server, or set request.thinking to on for all",
    cause="work",
)
def _thinking(cell: Evidence) -> Iterator[Violation]:
    reasoned, silent = (int(np.count_nonzero(mask)) for mask in _reasoned(cell))
    if cell.facts.request.thinking == "off" and reasoned:
        shown = f"reasoning, {silent} of them without its text" if silent else "reasoning text"
        yield Violation(f"{counted(reasoned, 'answer')} with {shown}")


@partial(
    Rule,
    code=IssueCode.THINKING_MISSING,
    measures="answers without reasoning, though the scenario has it on",
    limit="0",
    hint="use a model that thinks, and start the engine with the parser of its reasoning",
    cause="work",
)
def _no_thinking(cell: Evidence) -> Iterator[Violation]:
    reasoned, _ = _reasoned(cell)
    without = int(np.count_nonzero(~reasoned))
    if cell.facts.request.thinking == "on" and without:
        yield Violation(f"{without} of {len(reasoned)} answers without reasoning")


@partial(
    Rule,
    code=IssueCode.IMAGES_UNREAD,
    measures="prompt tokens with the most images of a request and with the fewest, by the server's count",
    limit=f"{LEAST_OF_AN_IMAGE:g} more for each image",
    hint="the model may have seen no image: ask for what is on one, and check its vision part and flags",
    cause="work",
)
def _images_unread(cell: Evidence) -> Iterator[Violation]:
    """Engines that take images and hand none to the model count the tokens of the text alone."""
    if cell.requested is None:
        return
    rows = cell.view.answers[cell.view.answers["prompt_tokens"] != UNKNOWN]
    images = cell.requested.numbers["images"][rows["seq"]]
    if not len(rows) or (least := images.min()) == (most := images.max()):
        return
    few, many = (float(np.median(rows["prompt_tokens"][images == count])) for count in (least, most))
    if many - few < LEAST_OF_AN_IMAGE * (most - least):
        with_few = f"{short(few)} prompt tokens with {counted(int(least), 'image')}"
        yield Violation(f"{with_few}, {short(many)} with {most}")


def _reasoned(cell: Evidence) -> tuple[Mask, Mask]:
    """Masks over the answers: those with reasoning, and those whose server counts it and keeps its text."""
    events, rows = cell.records.events, cell.view.answers
    shown = np.isin(rows["seq"], events["seq"][events["kind"] == EventKind.REASONING])
    silent = ~shown & (rows["reasoning_tokens"] > 0)
    return shown | silent, silent


RULES = (
    _died,
    _restarted,
    _model_changed,
    _output_length,
    _usage_missing,
    _thinking,
    _no_thinking,
    _images_unread,
)
