"""Sessions over two servers with a cache each: behind a router with affinity or none, or dealt by bench."""

from pathlib import Path

import pytest

from harness.mockserver import running
from tests.factories.agents import Shape, write_weka
from tests.integration.router import by_header, router
from tests.integration.scripted import bench, summary

SHAPE = Shape(sessions=12, calls=4, tool_s=0.02, think_s=0.02, gap_s=0.05)
AFFINITY = ("--header", "X-Session=agent-{session}")


@pytest.fixture
def pair():
    options = {"dialect": "vllm", "ttft_ms": 10, "gap_ms": 1, "cache_tokens": 1_000_000}
    with running(**options) as one, running(**options) as other:
        yield one, other


def run(backends, *more):
    write_weka(Path("trace.jsonl"), SHAPE, 3)
    what = ("--trace", "trace.jsonl", "--backends", backends, "--concurrency", "4")
    bench("run", *what, "--no-probe", "--no-report", "--no-agreement", *more, code=(0, 4))
    (cell,) = summary()["cells"]
    return cell


def own_hit_rate(*servers):
    """By the ledgers of the servers themselves, of all that they answered."""
    records = [record for server in servers for record in server.truth()["records"]]
    return sum(one["cached_tokens"] for one in records) / sum(one["prompt_tokens"] for one in records)


@pytest.mark.long
def test_a_router_with_affinity_finds_what_one_without_computes_again(here, pair):
    hit_rates = {}
    for name, flags in (("kept", AFFINITY), ("scattered", ())):
        folder = here / name
        folder.mkdir()
        with (
            pytest.MonkeyPatch.context() as patch,
            router([one.url for one in pair], by_header("X-Session", 2)) as url,
        ):
            patch.chdir(folder)
            cell = run(f"vllm={url}", *flags)
        hit_rates[name] = cell["prefix_cache_hit_rate"]
        assert cell["requests"]["failed"] == 0
        ideal = cell["prefix_cache_ideal"]
    assert hit_rates["kept"] == pytest.approx(ideal, abs=0.05)
    assert hit_rates["scattered"] < hit_rates["kept"] - 0.1


def test_each_url_has_the_hit_rate_of_its_own_cache(here, pair):
    cell = run("vllm=" + "+".join(one.url for one in pair))
    for part, server in zip(cell["replicas"]["urls"], pair, strict=True):
        assert part["cached_share"] == pytest.approx(own_hit_rate(server), abs=0.02)
        assert part["cached_share"] > 0.3
