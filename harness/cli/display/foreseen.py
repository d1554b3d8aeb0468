"""Pairs of backends that will get no verdict, known before the first cell, and the flag that would change
it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from harness.cli.display.output import agreed, can_ask, print_note
from harness.conditions import Key
from harness.conditions.ahead import Ahead, foreseen
from harness.engines.speak.dialect import unsupported_fields
from harness.engines.start.command import configured, facts_ahead
from harness.errors import SpecError
from harness.report.findings.verdict_words import refusal_sentence
from harness.report.wording import listing
from harness.run.setup.prepare import Prepared
from harness.sampling.machine import is_this_machine
from harness.spec.backend import Backend, Value
from harness.spec.scenario.synthetic import Agent, Structured
from harness.workload.prompts.request import Constraint

ANYWAY = "--anyway"
WHAT = "some pairs of backends will get no verdict:"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal in the words of the report. `flag`: how to make both equal; "" if no flag does."""

    sentence: str
    flag: str


def refusals(prepared: Prepared) -> list[Refusal]:
    prompts = prepared.scenario.prompts
    shapes = prompts.shapes if isinstance(prompts, Structured) else ()
    ahead: dict[str, Ahead] = {}
    for label, engine in prepared.engines.items():
        ref = engine.ref
        definition = configured(ref.definition, None, engine.values, engine.choice)
        tuned = frozenset(ref.tuned.values) if ref.tuned else frozenset()
        facts = facts_ahead(definition, engine.choice)
        lacking = _lacks(prepared, definition)
        ahead[label] = Ahead(definition.name, ref.variant, facts, tuned, lacking)
    load = prepared.scenario.load
    most = max(load.concurrency) if load.concurrency else None
    return [
        Refusal(
            refusal_sentence(" and ".join(difference.labels), difference.text),
            _flag(key, [ahead[label].engine.get("values", {}) for label in difference.labels])
            if key
            else _of_shapes(shapes, [ahead[label] for label in difference.labels]),
        )
        for key, difference in foreseen(ahead, most)
    ]


def unsupported(prepared: Prepared) -> list[str]:
    """What the scenario wants and a backend's requests cannot carry, a line each.

    Lengths that cannot be forced are left out: `free-lengths` reports them.
    """
    lacking = {backend.label: _lacks(prepared, backend.ref.definition) for backend in prepared.backends}
    missing = {
        label: "; ".join(text for name, text in texts.items() if name != "exact_output")
        for label, texts in lacking.items()
    }
    return [f"{label}: {text}" for label, text in missing.items() if text]


def unpriced(prepared: Prepared) -> list[str]:
    """A line where only GPUs have a price, and those of a server are not seen: its answers get no cost."""
    prices = prepared.options.prices
    if prices is None or prices.machine_per_hour is not None or prices.backend_per_hour:
        return []
    hosts = {
        backend.label: [urlsplit(url).hostname or "" for url in backend.ref.urls]
        for backend in prepared.backends
    }
    far = [label for label, names in hosts.items() if not all(map(is_this_machine, names))]
    what = "the GPUs of another machine are not seen; --price-per-hour is the price of the machine"
    return [f"{listing(far)}: no cost from a price per GPU: {what}"] if far else []


def _lacks(prepared: Prepared, definition: Backend) -> dict[str, str]:
    prompts = prepared.scenario.prompts
    shapes = prompts.shapes if isinstance(prompts, Structured) else ()
    tools = isinstance(prompts, Agent)
    adapters = prepared.scenario.lora.adapters
    return unsupported_fields(
        definition, prepared.scenario.request, map(Constraint, shapes), tools=tools, adapters=adapters
    )


def _flag(key: Key, values: Sequence[Mapping[str, Value]]) -> str:
    """One value for all, if each takes such a value as it is launched."""
    for name in key.values:
        if all(name in own for own in values):
            given = [own[name] for own in values]
            numbers = all(isinstance(value, int | float) for value in given)
            return f"--engine-set {name}={min(given, key=float) if numbers else given[0]}"
    return ""


def _of_shapes(shapes: Sequence[str], pair: Sequence[Ahead]) -> str:
    """The shapes that both can be asked for; "" if there is none, or if none is lacking."""
    both = [
        shape for shape in shapes if not any(f"structured.{shape}" in backend.unsupported for backend in pair)
    ]
    return f"--set 'prompts.shapes={json.dumps(both)}'" if both and len(both) < len(shapes) else ""


def confirm(prepared: Prepared, *, anyway: bool) -> None:
    """Raises SpecError if a verdict will be refused and the user does not want the figures without it."""
    found = refusals(prepared)
    if not found or anyway:
        return
    hint = _hint(found)
    if can_ask():
        for line in (WHAT, *(f"  {refusal.sentence}" for refusal in found), f"hint: {hint}"):
            print_note(line)
        if agreed("measure them all the same?"):
            return
        raise SpecError("nothing was downloaded or started", where="bench run")
    raise SpecError(
        WHAT,
        where="--backends",
        below="\n".join(f"  {refusal.sentence}" for refusal in found),
        hint=hint,
    )


def _hint(found: list[Refusal]) -> str:
    flags = list(dict.fromkeys(refusal.flag for refusal in found if refusal.flag))
    equal = f"{' '.join(flags)} makes them equal; " if flags else ""
    if any(not refusal.flag for refusal in found):
        equal += "where no flag makes them equal, leave one out of --backends; "
    return f"{equal}{ANYWAY} measures them as they are, and the report refuses those verdicts"
