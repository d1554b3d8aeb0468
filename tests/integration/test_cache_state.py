"""The declared state of the prefix cache is brought about, by whatever the engine has, and then confirmed."""

import json
from pathlib import Path

import pytest

from harness.mockserver import running
from tests.integration.conftest import inside
from tests.integration.scripted import bench, define

RESET = 'reset = { path = "/reset_prefix_cache" }'
LYING = 'reset = { path = "/health", method = "GET" }'
TTFT_MS, GAP_MS = 100, 50  # with much less, a cell is measured again where this machine was busy
SALT = 'cache_salt = { cache_salt = "{salt}" }'


def engine(name, reset="", more=""):
    """A backend: `reset` is how its cache is emptied, `more` is of its dialect."""
    file = define(name, ttft_ms=TTFT_MS, gap_ms=GAP_MS)
    text = file.read_text().replace(RESET, reset).replace("[dialect]", f"[dialect]\n{more}")
    file.write_text(text.partition("[metrics]")[0])


def run(backend, state, *more):
    """The cells of one run; their validity is not looked at, for their answers are short."""
    small = (
        *("--set", "prompts.turns=1", "--set", "prompts.prefix_tokens=256"),
        *("--set", "prompts.question_tokens=16", "--requests", "8"),
    )
    load = ("--set", "load.warmup_requests=0", "--concurrency", "1,2", "--output-tokens", "2")
    what = ("--scenario", "shared-prefix", "--backends", backend, "--set", f"cache.state={state}")
    done = bench("run", *what, "--json", "--no-report", *small, *load, *more, code=(0, 4))
    folders = sorted(Path("results").iterdir())
    summary = json.loads(done.stdout)
    facts = [
        json.loads((folders[-1] / "cells" / c["cell"] / "cell.json").read_text()) for c in summary["cells"]
    ]
    return summary, facts


def first_measured(cell):
    """The facts of a cell. One that this machine spoiled was measured again, with a salt of its own."""
    spoiled = cell.parents[1] / "set-aside" / f"{cell.name}.1"
    return json.loads(((spoiled if spoiled.is_dir() else cell) / "cell.json").read_text())


def reasons(cell):
    return {reason["code"] for reason in cell["validity"]["reasons"]}


@pytest.fixture(scope="module")
def cold(tmp_path_factory):
    """A cold run with its probe: (summary, facts of its cells, run folder)."""
    with inside(tmp_path_factory.mktemp("cold")) as here:
        engine("one", RESET, 'structured = { regex = { regex = "{regex}" } }')
        summary, facts = run("one", "cold")
    (folder,) = (here / "results").iterdir()
    return summary, facts, folder


def test_cold_by_the_engines_reset(cold):
    summary, facts, _ = cold
    for cell, fact in zip(summary["cells"], facts, strict=True):
        assert fact["cache"]["method"] == "reset"
        assert cell["conditions"]["cache"]["holds"]


def test_the_probe_is_kept_and_speaks_up_before_anything_is_measured(cold):
    _, facts, folder = cold
    probe = json.loads((folder / "probe-one.json").read_text())
    topics = {finding["topic"] for finding in probe["findings"]}
    assert "cache reset" in topics
    assert not any(topic.startswith("structured") for topic in topics), "this scenario asks for no shape"
    assert probe["requests"] < 10
    manifest = json.loads((folder / "manifest.json").read_text())
    counted = manifest["backends"]["one"]["probe"]
    assert counted["not_as_declared"] == []
    assert all(fact["most_prompt_tokens"] > max(counted["prompt_tokens"].values()) for fact in facts)


def test_warm_holds_what_is_shared_and_primed_holds_all(here):
    engine("one", RESET)
    with running(ttft_ms=TTFT_MS, gap_ms=GAP_MS) as server:
        warm, warmed = run(f"one={server.url}", "warm", "--no-probe")
        primed, facts = run(f"one={server.url}", "primed", "--no-probe")
    assert all(1 <= fact["cache"]["primed"] <= 2 for fact in warmed)  # one per system prompt that occurs
    assert [fact["cache"]["primed"] for fact in facts] == [8, 8]
    for colder, warmer in zip(warm["cells"], primed["cells"], strict=True):
        assert colder["conditions"]["cache"]["holds"]
        assert warmer["conditions"]["cache"]["holds"]
        assert 0.8 < colder["prefix_cache_hit_rate"] < warmer["prefix_cache_hit_rate"]


@pytest.mark.long
def test_an_engine_without_a_reset_is_started_for_every_cell(here):
    engine("one")
    summary, facts = run("one", "cold", "--no-probe")
    assert [fact["cache"]["method"] for fact in facts] == ["restart", "restart"]
    assert len({fact["engine_log"] for fact in facts}) == 2
    assert all(cell["conditions"]["cache"]["holds"] for cell in summary["cells"])
    manifest = json.loads(next(Path("results").glob("*/manifest.json")).read_text())
    assert "again for every cell" in manifest["backends"]["one"]["launch"]["why"]
    _, facts = run("one", "any", "--no-probe")
    assert len({fact["engine_log"] for fact in facts}) == 1


def test_a_server_that_cannot_be_restarted_is_salted(here):
    engine("salted", more=SALT)
    with running(ttft_ms=TTFT_MS, gap_ms=GAP_MS) as server:
        summary, facts = run(f"salted={server.url}", "cold", "--no-probe")
    assert [(fact["cache"]["method"], fact["cache"]["salted"]) for fact in facts] == [("salt", True)] * 2
    assert summary["cells"][0]["workload_sha256"]


@pytest.mark.parametrize("state", ["cold", "any"])
def test_the_same_run_again_on_a_running_server_finds_none_of_its_prompts(here, state):
    """Nothing empties this server's cache, and its prompts share nothing."""
    engine("plain")
    what = ("--scenario", "fixed-length", "--set", f"cache.state={state}", "--requests", "4")
    load = ("--concurrency", "1", "--output-tokens", "2", "--no-probe", "--no-report", "--json")
    with running(ttft_ms=TTFT_MS, gap_ms=GAP_MS) as server:
        for _ in range(2):
            done = bench("run", *what, *load, "--backends", f"plain={server.url}", code=(0, 4))
            (cell,) = json.loads(done.stdout)["cells"]
            assert cell["prefix_cache_hit_rate"] < 0.1
            assert "cache-not-cold" not in reasons(cell)
    first, second = (
        json.loads(next(folder.glob("cells/*/cell.json")).read_text())
        for folder in sorted(Path("results").iterdir())
    )
    assert first["cache"]["method"] == second["cache"]["method"] == "salt"
    assert first["cache"]["salt"] != second["cache"]["salt"]
    assert first["workload"]["sha256"] == second["workload"]["sha256"]


def test_two_running_servers_get_the_same_prompts_where_one_refuses_its_reset(here):
    """What comes first is measured before the other refuses."""
    engine("one", RESET)
    engine("two", 'reset = { path = "/none" }')
    with running(ttft_ms=TTFT_MS, gap_ms=GAP_MS) as first, running(ttft_ms=TTFT_MS, gap_ms=GAP_MS) as second:
        both = f"one={first.url},two={second.url}"
        run(both, "cold", "--no-probe", "--repeats", "1", "--no-agreement")
    facts = map(first_measured, next(Path("results").iterdir()).glob("cells/*"))
    salts = {(fact["cache"]["method"], fact["load"]["value"]): fact["cache"]["salt"] for fact in facts}
    assert [salts["reset", load] for load in (1, 2)] == [salts["salt", load] for load in (1, 2)]


def test_a_cache_that_was_not_emptied_is_found_by_the_hit_rate(here):
    """The same prompts twice on one server whose reset does nothing."""
    engine("liar", LYING)
    with running(ttft_ms=TTFT_MS, gap_ms=GAP_MS) as server:
        run(f"liar={server.url}", "cold", "--no-probe")
        summary, _ = run(f"liar={server.url}", "cold")
    for cell in summary["cells"]:
        assert "cache-not-cold" in reasons(cell)
        assert cell["conditions"]["cache"]["holds"] is False
    (warning,) = [w for w in summary["warnings"] if w["code"] == "not-as-declared"]
    assert "cache reset" in warning["text"]


def test_a_cache_that_keeps_nothing_is_not_warm(here):
    engine("one", RESET)
    with running(ttft_ms=TTFT_MS, gap_ms=GAP_MS, no_prefix_cache=True) as server:
        summary, _ = run(f"one={server.url}", "warm", "--no-probe")
    assert all("cache-not-warm" in reasons(cell) for cell in summary["cells"])
