"""Whether a declared constraint constrains, or is only accepted."""

from collections.abc import Collection, Iterator

from harness.engines.speak.dialect import Chat
from harness.model import Finding
from harness.probe.asker import Asker, user
from harness.probe.exchange import Seen
from harness.probe.shapes import PROMPT, TRIALS, Trial
from harness.probe.streaming import refused
from harness.records.finish import Finish, finish_of

_ROOM = 160  # tokens: more than any of the shapes needs
_IGNORED = "answers are not constrained: no comparison with an engine that keeps to the shape"
_TOOL = {
    "type": "function",
    "function": {
        "name": "look_up_river",
        "description": "Looks a river up.",
        "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    },
}


def undeclared(asker: Asker, names: Collection[str]) -> Iterator[Finding]:
    if names and asker.thorough:
        then = "cells that ask for it say that they were not constrained"
        yield Finding("structured: others", "cannot", f"not asked: {', '.join(names)}", None, then)


def shape(asker: Asker, name: str) -> Iterator[Finding]:
    topic, trial = f"structured: {name}", TRIALS[name]
    seen = asker.put(Chat((user(PROMPT),), _ROOM, trial.constraint))
    if not seen.ok:
        yield refused(topic, "yes", seen, "requests with it fail")
        return
    holds = _constrained(trial, seen)
    answer = repr(seen.text if len(seen.text) <= 40 else f"{seen.text[:39]}…")
    if holds is None:
        yield Finding(topic, "yes", f"cut off at {_ROOM} tokens: {answer}", None)
    elif holds:
        yield Finding(topic, "yes", answer, True)
    else:
        yield Finding(topic, "yes", f"accepted and ignored: {answer}", False, _IGNORED, matters=True)


def _constrained(trial: Trial, seen: Seen) -> bool | None:
    """An answer cut off at the limit may be the beginning of the right one."""
    if trial.fits(seen.text):
        return True
    cut = finish_of(seen.finish_reason) is Finish.CUT or seen.count("output_tokens") >= _ROOM
    return None if cut and trial.begins(seen.text) else False


def tools(asker: Asker) -> Iterator[Finding]:
    if not asker.dialect.tools:
        yield Finding("tools", "cannot", "not asked", None, "scenarios with tools measure plain chat")
        return
    seen = asker.put(Chat((user("What is the longest river of France?"),), 32, tools=[_TOOL]))
    if seen.ok:
        yield Finding("tools", "accepted", "accepted", True)
    else:
        yield refused("tools", "accepted", seen, "scenarios with tools fail on this server")
