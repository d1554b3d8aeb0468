"""Adapters on a server whose costs are known: so many in memory at once, and a fixed time to load another."""

import pytest

from tests.integration.scripted import MEASURED, bench, define, only_cell

SLOTS, SWAP_MS = 2, 200
LORA = '[lora]\nrequest = { model = "{adapter}" }\n'


def engine(name, *more, lora=LORA):
    costs = ("--adapters", "3", "--adapter-slots", str(SLOTS), "--adapter-swap-ms", str(SWAP_MS))
    file = define(name, *costs, *more, ttft_ms=20, gap_ms=2)
    text = file.read_text().replace("values = {", f"values = {{ lora_adapters = 0, lora_slots = {SLOTS},")
    file.write_text(text.replace("[dialect]", f"{lora}[dialect]"))


def run(backends, *more, code=MEASURED):
    small = ("--requests", "24", "--output-tokens", "4", "--input-tokens", "16", "--concurrency", "1")
    what = ("--scenario", "lora-mix", "--backends", backends, "--no-probe", "--no-report", "--repeats", "1")
    return bench("run", *what, *small, *more, code=code)


@pytest.mark.long
def test_round_robin_over_more_adapters_than_slots_loads_each_time(here):
    engine("one")
    run("one", "--set", "lora.assignment=round-robin")
    cell = only_cell()
    assert cell["adapters"]["swaps"] == 18  # of 24, six go to the base model
    assert cell["adapters"]["swap_ms"] is None  # nobody found an adapter in memory
    assert {name: kind["ok"] for name, kind in cell["by_kind"].items()} == {
        "base": 6, "adapter-1": 6, "adapter-2": 6, "adapter-3": 6
    }  # fmt: skip
    assert (
        cell["by_kind"]["adapter-1"]["ttft_ms"]["p50"]
        > cell["by_kind"]["base"]["ttft_ms"]["p50"] + SWAP_MS / 2
    )


def test_as_many_adapters_as_slots_are_loaded_once(here):
    engine("one")
    run("one", "--set", "lora.assignment=round-robin", "--set", "lora.adapters=2")
    assert only_cell()["adapters"]["swaps"] == 0


@pytest.mark.long
@pytest.mark.time
def test_what_a_swap_costs_is_found(here):
    engine("one")
    done = run(
        "one", "--set", "lora.assignment=weighted", "--set", "lora.weights=[2, 4, 2, 1]", "--requests", "60"
    )
    costs = only_cell()["adapters"]
    assert 0 < costs["swaps"] < 45
    assert costs["swap_ms"] == pytest.approx(SWAP_MS, rel=0.05)
    assert costs["ttft_over_base"] == pytest.approx(1, abs=0.1)
    assert f"more to load one ({costs['swaps']}" in " ".join(done.stdout.split())


def test_an_engine_that_cannot_name_adapters_is_refused_before_the_run(here):
    engine("one")
    engine("other", lora="")
    done = run("one,other", code=2)
    assert "lora could not be asked of other" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--set", "lora.weights=[1, 2]"), 'goes with assignment = "weighted"'),
        (("--set", "lora.assignment=weighted", "--set", "lora.weights=[1, 2]"), "must be 4 numbers above 0"),
        (("--set", "lora.adapters=-1"), "must be at least 0"),
        (("--set", "lora.assignment=some"), "lora.assignment"),
    ],
)
def test_what_makes_no_mix_is_one_error(here, flags, said):
    engine("one")
    done = run("one", *flags, code=2)
    assert said in done.stderr
    assert done.stderr.count("error:") == 1
