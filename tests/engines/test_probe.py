"""The probe on real engines: their definitions hold, and a field of another dialect is caught."""

import dataclasses

import pytest

from harness.model import Probed
from harness.probe import examine
from harness.spec.dialect import Structured
from tests.engines.runs import VLLM

pytestmark = pytest.mark.engine

TRAPS = ("events sent", "loaded when ready", "3 streams at once", "context")


# Two shared cores compile every grammar: what is asked last, of the cache, must be reached all the same.
LIMIT_S = 600


def topics(found: Probed) -> dict[str, bool | None]:
    return {finding.topic: finding.holds for finding in found.findings}


def differing(found: Probed) -> list[tuple[str, str]]:
    """Less what a busy machine brings about: a front end that comes late sends several tokens together."""
    return [(one.topic, one.seen) for one in found.mismatches if one.topic != "tokens per event"]


def misspoken(engine, **shapes):
    """The engine with a word for each of `shapes` that it does not know."""
    dialect = dataclasses.replace(engine.definition.dialect, structured=Structured(**shapes))
    engine.definition = dataclasses.replace(engine.definition, dialect=dialect)
    return engine


def test_llamacpp_is_as_declared_and_ignores_what_it_does_not_know(start):
    with start("llamacpp") as engine:
        found = examine(engine, limit_s=LIMIT_S)
        assert differing(found) == []
        seen = topics(found)
        for topic in ("structured: json_schema", "structured: choice", "structured: grammar", *TRAPS):
            assert seen[topic], topic
        misspoken(engine, regex={"structured_outputs": {"regex": "{regex}"}})
        ((topic, seen),) = differing(examine(engine, tools=False, thorough=False))
    assert topic == "structured: regex"
    assert seen.startswith("accepted and ignored: ")


def test_llamacpp_is_emptied_where_no_prompts_are_kept_in_host_memory(start):
    with start("llamacpp@no-host-cache") as engine:
        found = examine(engine, shapes=(), tools=False, thorough=False)
    assert differing(found) == []
    assert topics(found)["cache reset"]


def test_vllm_is_as_declared_and_ignores_its_own_former_fields(start):
    with start(VLLM) as engine:
        found = examine(engine, limit_s=LIMIT_S)
        assert differing(found) == []
        seen = topics(found)
        for shape in ("json_schema", "regex", "choice", "grammar"):
            assert seen[f"structured: {shape}"], shape
        for topic in ("cache salt", *TRAPS):
            assert seen[topic], topic
        assert seen["cache reset"]
        misspoken(engine, regex={"guided_regex": "{regex}"}, json_schema={"guided_json": "{schema}"})
        caught = dict(differing(examine(engine, tools=False, thorough=False)))
    assert set(caught) == {"structured: regex", "structured: json_schema"}
