"""Working sets on a server whose cache is known: an LRU of so many blocks, and what follows from that."""

import pytest

from harness.store import RunFolder
from tests.integration.scripted import bench, bench_here, define, run_folder, summary

# The scripted server has 4 characters a token and a template of 9 tokens: of a prompt 15 blocks of 16 tokens
# are shared and 2 are not.
SHARED, OWN, BLOCK, PROMPT = 15, 2, 16, 272.7
CAPACITY = 96  # blocks
TTFT_MS, GAP_MS = 40, 40  # with much less, a cell is measured again where this machine was busy
CACHE = ("--cache-tokens", str(CAPACITY * BLOCK), "--prefill-us-per-token", "20")
INFO = 'info = [{ path = "/version", keys = ["kv_tokens"] }]\nkv_tokens = ["kv_tokens"]\n'


def engine(name, *more, info=INFO):
    file = define(name, *CACHE, *more, ttft_ms=TTFT_MS, gap_ms=GAP_MS)
    file.write_text(file.read_text().replace("[server]\n", f"[server]\n{info}"))


def run(backends, *more, code=(0, 4), by=bench):
    values = {
        "prompts.prefix_tokens": 244,
        "prompts.question_tokens": 20,
        "prompts.output_tokens": 2,
        "load.working_set": [0, 0.5, 1, 2, 8],
        "verdict.cool_down_s": 0,
    }
    settings = [part for key, value in values.items() for part in ("--set", f"{key}={value}")]
    what = ("--scenario", "kv-working-set", "--backends", backends, "--no-probe", "--no-report")
    return by("run", *what, *settings, "--repeats", "1", *more, code=code)


def groups(name):
    """Of the requests of a cell, in their order."""
    folder = RunFolder(run_folder())
    return [shared[0].id for shared in folder.read_requested(folder.read_cell(name)[1]).shared]


def found_by_lru(asked, warmup):
    """Shared blocks that the measured requests find, by a list of blocks, the last used at its end."""
    held, found = [], 0
    for place, group in enumerate(asked):
        blocks = [(group, block) for block in range(SHARED)] + [(-place - 1, block) for block in range(OWN)]
        hits = 0
        while hits < SHARED and blocks[hits] in held:
            hits += 1
        found += hits if place >= warmup else 0
        held = [block for block in held if block not in blocks] + blocks[::-1]
        held = held[-CAPACITY:]
    return found


def rates(document):
    return {cell["load"]["value"]: cell["prefix_cache_hit_rate"] for cell in document["cells"]}


def test_a_cycle_is_found_whole_up_to_the_capacity_and_not_at_all_above_it(here):
    engine("one")
    done = run("one")
    document = summary()
    sizes = {cell["load"]["value"]: cell["load"]["working_set"] for cell in document["cells"]}
    assert {size["kv_tokens"] for size in sizes.values()} == {CAPACITY * BLOCK}
    assert [sizes[value]["prefixes"] for value in (0.5, 1, 2, 8)] == [2, 5, 11, 46]
    assert groups("003-one-w2-r0")[:13] == [*range(11), 0, 1]  # each of them once for a warm-up, and on
    measured = rates(document)
    for fits in (0.5, 1):
        assert measured[fits] == pytest.approx(SHARED * BLOCK / PROMPT, rel=0.01)
    assert measured[0] == measured[2] == measured[8] == 0
    (knee,) = document["knees"]
    low, high = knee["interval"]
    # 5.6 prompts of 273 tokens and 2
    assert low < CAPACITY / (SHARED + OWN) * 275 / (CAPACITY * BLOCK) < high
    assert low < knee["value"] < high
    assert knee["unrelated"] == 0
    assert " tokens: the largest has " in done.stderr
    said = " ".join(done.stdout.split())
    assert (
        f"one: the hit rate falls through half of {100 * knee['fits']:.3g}% at {knee['value']:.3g} ×" in said
    )
    assert f"(between {low:.3g} and {high:.3g}, 1 repeat)" in said
    assert "no reuse" in said
    assert "8× KV" in said


@pytest.mark.long
def test_popular_prefixes_are_found_as_an_lru_keeps_them(here):
    engine("one")
    run("one", "--set", "prompts.order=drawn", "--set", "prompts.zipf_exponent=1.0", "--requests", "60")
    document = summary()
    for cell in document["cells"]:
        value, warmup = cell["load"]["value"], cell["requests"]["warmup"]
        if not value:
            assert cell["prefix_cache_hit_rate"] == 0
            continue
        found = found_by_lru(groups(cell["cell"]), warmup) * BLOCK
        prompts = cell["prefix_cache_hit_rate"] and found / cell["prefix_cache_hit_rate"]
        assert prompts == pytest.approx(60 * PROMPT, rel=0.005), value
    assert 0.1 < rates(document)[8] < rates(document)[2] < rates(document)[1]


@pytest.mark.long
def test_what_came_from_host_memory_is_counted_apart(here):
    engine("one", "--host-cache-tokens", "100000")
    file = here / "backends" / "one.toml"
    text = file.read_text()
    series = '"vllm:prefix_cache_hits_total + vllm:external_prefix_cache_hits_total"'
    text = text.replace('"vllm:prefix_cache_hits_total"', series)
    file.write_text(f'{text}host_cached_tokens = "vllm:external_prefix_cache_hits_total"\n')
    done = run("one", "--set", "load.working_set=[0,0.5,2]")
    document = summary()
    host = {cell["load"]["value"]: cell["host_cache_hit_rate"] for cell in document["cells"]}
    assert host[0] == host[0.5] == 0
    assert host[2] > 0.8
    assert rates(document)[2] == pytest.approx(rates(document)[0.5], rel=0.01)
    assert "stays above half" in " ".join(done.stdout.split())


def test_all_backends_get_the_prompts_that_the_first_ones_cache_asks_for(here):
    engine("small")
    file = define("large", "--cache-tokens", str(4 * CAPACITY * BLOCK), ttft_ms=TTFT_MS, gap_ms=GAP_MS)
    file.write_text(file.read_text().replace("[server]\n", f"[server]\n{INFO}"))
    run("small,large", "--set", "load.working_set=[0.5,2]")
    document = summary()
    by = {knee["label"]: knee for knee in document["knees"]}
    assert by["small"]["value"] is not None
    assert by["large"]["value"] is None
    assert by["large"]["largest"] == pytest.approx(by["small"]["interval"][1] / 4)
    assert len({cell["workload_sha256"] for cell in document["cells"] if cell["load"]["value"] == 2}) == 1


def test_a_rest_lies_between_warm_up_and_measured_part(here):
    engine("one")
    run("one", "--set", "load.working_set=[0.5]", "--set", "load.rest_s=1")
    (cell,) = summary()["cells"]
    assert cell["load"]["working_set"]["rest_s"] == 1
    assert cell["window_start_s"] >= 1


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--concurrency", "1,2"), "load.concurrency, as given: a working set needs one value"),
        (("--rate", "2"), "load.rate, as given: a working set needs one value"),
        (("--set", "load.working_set=[-1]"), "must be above 0, not -1"),
        (("--set", "prompts.groups=3"), "prompts.groups"),
        (("--set", "prompts.turns=2"), "with one turn"),
        (("--set", "load.rest_s=9", "--concurrency", "2"), "needs concurrency = [1]"),
        (("--find-capacity",), "a working set is no load"),
    ],
)
def test_what_makes_no_working_set_is_one_error(here, flags, said):
    engine("one")
    done = run("one", *flags, code=2, by=bench_here)
    assert said in done.stderr
    assert done.stderr.count("error:") == 1


def test_a_server_that_does_not_tell_its_size_can_be_given_one(here):
    engine("one", info="")
    done = run("one", "--set", "load.working_set=[0.5]", code=(2, 3))
    assert "does not say how many tokens its KV cache holds" in done.stderr
    assert "--set load.kv_tokens=N" in done.stderr


@pytest.mark.long
@pytest.mark.time
def test_host_memory_is_faster_where_the_kv_cache_is_too_small_and_not_below(here):
    slow = ("--cache-tokens", str(CAPACITY * BLOCK), "--prefill-us-per-token", "400")
    for name, more in (("off", ()), ("on", ("--host-cache-tokens", "100000", "--host-us-per-token", "10"))):
        file = define(name, *slow, *more, ttft_ms=40, gap_ms=1)
        file.write_text(file.read_text().replace("[server]\n", f"[server]\n{INFO}"))
    short = ("--requests", "16", "--set", "load.min_answers=16", "--repeats", "3")
    run("off,on", "--set", "load.working_set=[0.5,2]", *short)
    verdicts = {
        one["load"]["value"]: one["verdict"]
        for one in summary()["comparison"]
        if one["metric"] == "ttft_ms.p50"
    }
    assert verdicts == {0.5: "same", 2: "slower"}  # of off
