"""The typed documents: schemas that are current and say what every key means; published runs keep to them."""

from dataclasses import fields

import pytest

from harness.model import DeclaredVerdict, SampledSource, ScenarioTables, from_json, schema
from harness.spec.scenario import Scenario, Verdict


def properties(node):
    """Every key that the schema names, with what is said of it."""
    if isinstance(node, dict):
        yield from node.get("properties", {}).items()
        for below in node.values():
            yield from properties(below)
    elif isinstance(node, list):
        for below in node:
            yield from properties(below)


@pytest.mark.parametrize("kind", schema.DOCUMENTS)
def test_the_schema_is_made_from_the_types(kind):
    stale = "stale: run python -m harness.model.schema"
    assert schema.path(kind).read_text(encoding="utf-8") == schema.text(kind), stale


@pytest.mark.parametrize("kind", schema.DOCUMENTS)
def test_the_schema_says_what_every_key_means(kind):
    named = list(properties(schema.schema(kind)))
    assert len(named) > 8
    assert [key for key, about in named if not about.get("description")] == []


def test_a_manifest_keeps_every_table_of_a_scenario():
    """It is converted by name: what its type lacks would be lost without a word."""
    assert {field.name for field in fields(Scenario)} == set(ScenarioTables.__struct_fields__)
    assert {field.name for field in fields(Verdict)} == set(DeclaredVerdict.__struct_fields__)


DEVICE = {"index": 0, "name": "H200", "uuid": "GPU-a", "memory_bytes": 1, "power_limit_w": None, "mig": []}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cpus", "2"),
        ("cpu_quotas", ["2"]),
        ("cpu_quotas", {"server": "2"}),
        ("devices", 3),
        ("devices", [{**DEVICE, "index": "0"}]),
        ("devices", [{**DEVICE, "mig": [{"number": "1", "uuid": "MIG-a"}]}]),
        ("chosen", ["1 of 1 GPUs"]),
        ("lost", [1]),
        ("lost", {"gpu.0": {"why": 3}}),
    ],
)
def test_a_source_says_of_processors_and_gpus_what_figures_can_be_made_of(key, value):
    source = {"period_s": 1, "reads": 1, "failures": 0, "last_failure": "", "longest_read_ms": 1,
              "unavailable": "", "missing": {}, "failing_since_s": None}  # fmt: skip
    good = {"cpus": 2, "cpu_quotas": {"server": 2}, "engine_processes": {"7": "a"}, "url": "http://h",
            "devices": [DEVICE], "chosen": "1 of 1 GPUs", "lost": {"gpu.0": {"why": "w"}}}  # fmt: skip
    assert from_json({**source, "about": good}, SampledSource).about == good
    with pytest.raises(ValueError, match="Expected"):
        from_json({**source, "about": {**good, key: value}}, SampledSource)
