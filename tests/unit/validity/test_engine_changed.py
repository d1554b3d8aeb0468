"""Cells of one backend that were not measured on the same engine."""

import msgspec
import pytest

from harness.validity.engine_changed import engine_changes, other_builds
from tests.factories.summaries import cell

DIGEST, OTHER_DIGEST = "sha256:" + "a" * 64, "sha256:" + "b" * 64


def measured(repeat, version="0.32.0", load=4, label="vllm", settings=None, **engine):
    found = {"served_name": "bench", "image_digest": None, "weights_sha256": None, "info": {}, **engine}
    conditions = {"engine": found, "settings": settings or {}, "unclassified": {"info own": "7"}}
    point = {"kind": "concurrency", "value": load}
    return cell(label, point, repeat, engine_version=version, conditions=conditions)


def texts(*cells):
    return [
        (warning.backend, warning.text.partition(" during the run: ")[2]) for warning in engine_changes(cells)
    ]


def test_repeats_of_one_engine_are_no_warning():
    assert texts(*(measured(repeat, settings={"kv-tokens": "200000"}) for repeat in range(3))) == []


def test_a_start_whose_server_does_not_report_its_version_is_of_no_other():
    assert texts(measured(0, "1.1 (server: b7)"), measured(1, "1.1"), measured(2, None)) == []


def test_another_backend_may_have_another_version():
    assert texts(measured(0), measured(0, "0.5.23", label="sglang")) == []


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ({"version": "1.1"}, {"version": "1.12"}, "engine version 1.1 (r0), 1.12 (r1)"),
        ({"version": "1.1 (server: b7)"}, {"version": "1.1 (server: b8)"}, "server version b7 (r0), b8 (r1)"),
        ({"served_name": "llama"}, {"served_name": "qwen"}, "model llama (r0), qwen (r1)"),
        (
            {"image_digest": DIGEST},
            {"image_digest": OTHER_DIGEST},
            f"image digest {DIGEST} (r0), {OTHER_DIGEST} (r1)",
        ),
        ({"weights_sha256": "5f"}, {"weights_sha256": "60"}, "weights SHA-256 5f (r0), 60 (r1)"),
        ({"packages_sha256": "7a"}, {"packages_sha256": "7b"}, "packages SHA-256 7a (r0), 7b (r1)"),
        (
            {"settings": {"context": "4096"}},
            {"settings": {"context": "2048"}},
            "context per sequence 4096 (r0), 2048 (r1)",
        ),
    ],
)
def test_what_another_start_may_change_is_named(first, second, words):
    assert texts(measured(0, **first), measured(1, **second)) == [("vllm", words)]


@pytest.mark.parametrize(("tokens", "differs"), [("190000", False), ("189999", True), ("many", True)])
def test_a_cache_that_is_nearly_as_large_is_no_warning(tokens, differs):
    cells = [measured(0, settings={"kv-tokens": "200000"}), measured(1, settings={"kv-tokens": tokens})]
    found = [("vllm", f"KV cache in tokens 200000 (r0), {tokens} (r1)")] if differs else []
    assert texts(*cells) == found


def test_a_number_that_is_none_is_not_another_one():
    assert texts(*(measured(repeat, settings={"kv-tokens": "nan"}) for repeat in range(2))) == []


def test_numbers_that_are_nearly_equal_are_listed_together():
    sizes = ("200000", "100000", "199000", "200000", "200000", "200000")
    cells = [measured(repeat, settings={"kv-tokens": size}) for repeat, size in enumerate(sizes)]
    assert texts(*cells) == [
        ("vllm", "KV cache in tokens about 200000 (r0, r2, r3, r4, 1 more), 100000 (r1)")
    ]


def test_cells_of_one_repeat_are_told_apart_by_their_load():
    cells = [measured(0, load=1), measured(0, "0.33.0", load=8), measured(1), measured(1, load=8)]
    assert texts(*cells) == [("vllm", "engine version 0.32.0 (c1 r0, r1), 0.33.0 (c8 r0)")]


def test_a_fact_that_is_not_known_of_a_cell_is_not_compared():
    assert texts(measured(0), measured(1, None, served_name=None)) == []


def test_cells_of_older_versions_are_compared_by_engine_version_alone():
    older = [cell("vllm", repeat=repeat, engine_version=f"0.{repeat}") for repeat in range(2)]
    assert texts(*older) == [("vllm", "engine version 0.0 (r0), 0.1 (r1)")]


def answered(repeat, names):
    found = measured(repeat)
    return msgspec.structs.replace(
        found, conditions=msgspec.structs.replace(found.conditions, answered_model=names)
    )


def test_a_model_that_answers_name_in_some_cells_only_is_another_engine():
    first, second = answered(0, {"bench": "llama"}), answered(1, {"bench": "qwen"})
    assert texts(first, second) == [("vllm", "model in answers llama (r0), qwen (r1)")]
    assert other_builds("vllm", [first, second]).endswith("model in answers llama (r0), qwen (r1)")
    assert texts(first, answered(1, {"bench": "llama"})) == texts(first, answered(1, {})) == []


def test_models_of_adapters_are_compared_each():
    cells = [
        answered(0, {"base": "llama", "adapter-1": "one"}),
        answered(1, {"base": "llama", "adapter-1": "two"}),
        answered(2, {"adapter-2": "two"}),
    ]
    assert texts(*cells) == [("vllm", "model in answers for adapter-1 one (r0), two (r1)")]
