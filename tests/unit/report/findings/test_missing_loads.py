"""A sweep without a verdict at equal speed per user names the loads that would give one; they do."""

import pytest
from msgspec.structs import replace

from harness.report.findings.conclude import conclude
from harness.report.findings.missing_loads import missing_loads
from harness.verdicts.per_user import speed_levels
from tests.factories.documents import changed
from tests.factories.summaries import summary
from tests.unit.verdicts.test_per_user import RULES, sweep, within


def swept(*sweeps, **changes):
    cells = [run for mine in sweeps for run in mine]
    return replace(summary(*cells, **changes), per_user=speed_levels(cells, RULES))


def steps(shown):
    return [(step.why, step.do) for step in conclude(shown).next_steps]


def pair(slo, loads, more=0.25, less=0.375):
    return swept(sweep("vllm", more, slo=slo, loads=loads), sweep("sglang", less, slo=slo, loads=loads))


def test_a_speed_that_was_asked_for_and_is_exceeded_at_every_load_needs_higher_ones():
    """25 ms are reached at 60 in flight of the one and at 40 of the other: 4 times 16 is beyond both."""
    first, *_ = steps(pair(within(25), (1, 4, 16)))
    why = "vllm and sglang are faster than 40 tokens/s per user at every load"
    assert first == (why, "the same command with `--concurrency 1,4,16,32,64,128`")
    with_them = pair(within(25), (1, 4, 16, 32, 64, 128))
    assert [found.verdict for level in with_them.per_user for found in level.pairs] == ["more"]
    assert why not in dict(steps(with_them))


def test_a_speed_that_some_repeats_have_needs_higher_loads_too():
    """The last of three repeats is 10% slower, so it alone is as slow as 66.7 tokens/s per user."""
    noise = (1.0, 1.001, 1.1)
    given = {"noise": noise, "slo": within(15), "loads": (1, 4, 16)}
    first, *_ = steps(swept(sweep("vllm", 0.25, **given), sweep("sglang", 0.25, **given)))
    why = "vllm and sglang are faster than 66.7 tokens/s per user at every load of some repeat"
    assert first == (why, "the same command with `--concurrency 1,4,16,32`")


def test_a_speed_that_is_slower_at_every_load_needs_lower_ones():
    first, *_ = steps(pair(within(11), (8, 16, 64)))
    assert first == (
        "vllm and sglang are slower than 90.9 tokens/s per user at every load",
        "the same command with `--concurrency 1,3,8,16,64`",
    )
    with_them = pair(within(11), (1, 3, 8, 16, 64))
    assert [found.verdict for level in with_them.per_user for found in level.pairs] == ["more"]
    assert "at every load" not in str(steps(pair(within(9), (1, 4, 16)))), "nobody is so fast"


def test_a_load_that_is_too_far_is_not_advised():
    assert list(missing_loads(pair(within(2000), (1, 4, 16)))) == []
    flat = [sweep(name, 0.0, slo=within(25), noise=(1.0, 1.0, 1.0)) for name in ("vllm", "sglang")]
    assert list(missing_loads(swept(*flat))) == []


def test_an_open_loop_is_not_driven_beyond_its_rates():
    given = {"kind": "rate", "slo": within(25), "loads": (1, 4, 16)}
    shown = swept(sweep("vllm", **given), sweep("sglang", 0.375, **given))
    assert list(missing_loads(shown)) == []


@pytest.mark.parametrize(("kind", "middles"), [("concurrency", [8, 32]), ("rate", [8, 32])])
def test_what_the_shape_between_loads_leaves_open_needs_loads_between(kind, middles):
    shown = swept(sweep("vllm", 0.25, kind=kind), sweep("sglang", 0.27, kind=kind))
    (step,) = missing_loads(shown)
    assert (step.why, step.kind) == (
        "loads between those measured would say more at equal speed per user",
        kind,
    )
    assert step.loads == (1, 4, *middles[:1], 16, *middles[1:], 64)
    do = f"the same command with `--{kind} 1,4,8,16,32,64`"
    assert (step.why, do) in steps(shown)
    decided = swept(sweep("vllm", 0.25), sweep("sglang", 0.4))
    assert list(missing_loads(decided)) == []


def test_neighbours_have_no_load_between_them():
    quiet = (1.0, 1.0001, 0.9999)
    near = {"loads": (1, 2, 3), "alone_ms": 1.0, "noise": quiet}
    shown = swept(sweep("vllm", 1.0, **near), sweep("sglang", 1.03, **near))
    assert any("more loads" in found.why for level in shown.per_user for found in level.pairs)
    assert list(missing_loads(shown)) == []


def test_backends_that_share_no_speed_need_loads_at_which_the_fast_one_is_as_slow():
    fast, slow = sweep("vllm", 0.1, alone_ms=5), sweep("sglang", alone_ms=50)
    (step,) = missing_loads(swept(fast, slow))
    assert (step.why, step.loads) == (
        "no two backends are equally fast per user at these loads",
        (1, 4, 16, 64, 128, 256, 512, 1024),
    )
    more = sweep("vllm", 0.1, alone_ms=5, loads=step.loads)
    assert swept(more, sweep("sglang", alone_ms=50, loads=step.loads)).per_user


def test_backends_whose_shared_speeds_are_too_near_need_loads_that_widen_them():
    """From 30.8 to 35.7 tokens/s, which is less than a fifth apart."""
    fast = {"alone_ms": 20.0, "loads": (2, 8, 12)}
    slow = {"alone_ms": 27.0, "loads": (2, 8, 12)}
    (step,) = missing_loads(swept(sweep("vllm", 1.0, **fast), sweep("sglang", 0.5, **slow)))
    why = "the speeds per user that backends share are too near to each other to choose from"
    assert (step.why, step.loads) == (why, (2, 8, 12, 24))
    wider = (
        sweep(name, each, alone_ms=alone, loads=step.loads)
        for name, each, alone in (("vllm", 1.0, 20), ("sglang", 0.5, 27))
    )
    assert swept(*wider).per_user


def test_a_search_chooses_its_loads_and_files_are_imported():
    searched = [{"label": "vllm", "kind": "rate", "interval": [4, 4, 5], "searches": 1, "tested": []}]
    shown = pair(within(25), (1, 4, 16))
    assert list(missing_loads(replace(shown, capacity=summary(capacity=searched).capacity))) == []
    files = [changed(run, imported={"level": "summary"}) for run in shown.cells]
    assert steps(replace(shown, cells=tuple(files)))[0][1] == (
        "import files of these loads: 1, 4, 16, 32, 64, 128"
    )
