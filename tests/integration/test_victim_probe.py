"""A victim on a server that answers one request at a time: what it waits for is known."""

import pytest

from tests.integration.scripted import bench, define, summary

TTFT_MS, GAP_MS, PREFILL_US = 40, 5, 400
LIGHT, HEAVY, ANSWER = 32, 512, 8  # tokens
EVERY_MS = 400
ALONE_MS = TTFT_MS + (LIGHT + 9) * PREFILL_US / 1000 + (ANSWER - 1) * GAP_MS


def run(backend, *more, code=(0, 4)):
    values = {
        "prompts.every_s": EVERY_MS / 1000,
        "prompts.heavy_every_s": EVERY_MS / 1000,
        "prompts.heavy_input_tokens": HEAVY,
        "prompts.heavy_output_tokens": ANSWER,
        "prompts.settle_s": 1,
        "verdict.metrics": '["victim_loss"]',
        "verdict.cool_down_s": 0,
    }
    settings = [part for key, value in values.items() for part in ("--set", f"{key}={value}")]
    what = ("--scenario", "victim-probe", "--backends", backend)
    brief = ("--no-probe", "--no-report", "--repeats", "1")
    return bench("run", *what, *brief, *settings, *more, code=code)


def engine(name, *more):
    define(name, "--prefill-us-per-token", str(PREFILL_US), *more, ttft_ms=TTFT_MS, gap_ms=GAP_MS)


def test_light_requests_come_in_four_stretches(here):
    engine("one")
    run("one", "--requests", "24")
    (cell,) = summary()["cells"]
    counts = {name: kind["requests"] for name, kind in cell["by_kind"].items()}
    assert counts["alone"] + counts["beside"] + counts["settling"] + counts["heavy"] == 24
    assert counts["beside"] == pytest.approx(counts["heavy"], abs=1)
    assert counts["settling"] in (2, 3)
    assert cell["victim_loss"] is not None


@pytest.mark.time
def test_what_the_victim_loses_is_what_it_waits_for(here):
    engine("one", "--max-running", "1")
    engine("many", "--max-running", "100")
    run("one,many", "--requests", "24")
    loss = {cell["label"]: cell["victim_loss"] for cell in summary()["cells"]}
    heavy_ms = ALONE_MS + (HEAVY - LIGHT) * PREFILL_US / 1000
    waits_ms = heavy_ms - EVERY_MS / 2
    assert loss["one"] == pytest.approx((ALONE_MS + waits_ms) / ALONE_MS, rel=0.1)
    assert loss["many"] == pytest.approx(1, abs=0.1)


@pytest.mark.long
@pytest.mark.time
def test_a_victim_that_still_waits_for_heavy_requests_was_not_alone(here):
    """They come twice as often as the server can answer, and the last ones are in flight after the pause."""
    engine("one", "--max-running", "1")
    run("one", "--requests", "32", "--set", f"prompts.heavy_every_s={EVERY_MS / 2000}")
    (cell,) = summary()["cells"]
    beside_ms = cell["by_kind"]["beside"]["e2e_ms"]["mean"]
    assert cell["victim_loss"] == pytest.approx(beside_ms / ALONE_MS, rel=0.1)
    assert cell["by_kind"]["alone"]["e2e_ms"]["mean"] > 1.5 * ALONE_MS


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--rate", "2"), "have times of their own"),
        (("--set", "prompts.every_s=0"), "must be at least 0.001"),
        (("--set", "prompts.heavy_input_tokens=0"), "must be at least 1"),
    ],
)
def test_what_makes_no_probe_is_one_error(here, flags, said):
    engine("one")
    done = run("one", *flags, code=2)
    assert said in done.stderr
    assert done.stderr.count("error:") == 1
