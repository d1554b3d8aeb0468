"""Images on a server that takes a known time for each: in the request and fetched, new and sent before."""

import pytest

from tests.integration.scripted import MEASURED, bench, bench_here, define, only_cell
from tests.long import others_long

IMAGE_MS, IMAGE_TOKENS = 150, 32
WAYS = [(send, api) for send in ("data", "url") for api in ("chat", "responses", "messages")]
OFTEN = [("data", "chat"), ("url", "responses")]


def engine(name, *more, image_ms=IMAGE_MS, ttft_ms=20, gap_ms=2):
    costs = ("--image-ms", str(image_ms), "--image-tokens", str(IMAGE_TOKENS), "--image-cache", "6")
    file = define(name, *costs, *more, ttft_ms=ttft_ms, gap_ms=gap_ms)
    counters = 'image_queries = "vllm:mm_cache_queries_total"\nimage_hits = "vllm:mm_cache_hits_total"\n'
    file.write_text(file.read_text() + counters)


def run(*more, code=MEASURED, by=bench):
    small = ("--requests", "15", "--set", "load.warmup_requests=10", "--output-tokens", "4")
    what = ("--scenario", "images-in", "--backends", "one", "--no-probe", "--no-report", "--repeats", "1")
    sizes = ("--set", 'images.sizes=["64x64"]', "--set", "images.distinct=2")
    return by("run", *what, *small, "--input-tokens", "16", *sizes, *more, code=code)


@pytest.mark.parametrize(("send", "api"), list(others_long(WAYS, lambda *way: way in OFTEN)))
def test_images_come_to_the_server_in_each_api(here, send, api):
    engine("one", image_ms=20, ttft_ms=100, gap_ms=10)
    file = here / "backends" / "one.toml"
    file.write_text(file.read_text().replace("[prefix_cache]", "[dialect.apis.responses]\n"
                                             "[dialect.apis.messages]\n[prefix_cache]"))  # fmt: skip
    run("--set", f"images.send={send}", "--api", api)
    cell = only_cell()
    assert {name: kind["ok"] for name, kind in cell["by_kind"].items()} == {
        "no image": 3,
        "1 x 64x64 jpeg, fresh": 3, "1 x 64x64 jpeg, repeated": 3,
        "2 x 64x64 jpeg, fresh": 3, "2 x 64x64 jpeg, repeated": 3,
    }  # fmt: skip
    assert cell["images"]["sent"] == 18
    assert cell["images"]["sent_bytes"] > 18 * 500
    assert cell["images"]["cache_hit_rate"] > 0
    asked = cell["template_tokens"]
    assert asked["max"] - asked["min"] == pytest.approx(2 * IMAGE_TOKENS, abs=2)


@pytest.mark.long
@pytest.mark.time
def test_an_image_costs_what_its_encoding_takes(here):
    engine("one")
    done = run("--requests", "30", "--concurrency", "1")
    cell = only_cell()
    assert cell["image_ms"] == pytest.approx(IMAGE_MS, rel=0.05)
    assert cell["images"]["ms_by_sort"] == pytest.approx(
        {"64x64 jpeg, fresh": IMAGE_MS, "64x64 jpeg, repeated": 0}, abs=0.05 * IMAGE_MS
    )
    assert "ms for each of 64x64 jpeg, fresh" in " ".join(done.stdout.split())


def test_a_server_that_takes_no_images_fails_all_that_have_some(here):
    engine("one", "--fault", "html-500:at=4:times=1000", image_ms=20, ttft_ms=100, gap_ms=10)
    run()
    assert only_cell()["image_ms"] is None


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--set", "images.sizes=[]"), "must be one or more different values"),
        (("--set", 'images.sizes=["big"]'), "'big' is no size"),
        (("--set", "images.counts=[65]"), "must be from 0 to 64"),
        (("--set", 'images.formats=["gif"]'), "images.formats"),
        (("--set", "images.distinct=0"), "must be at least 1"),
        (("--set", "lora.adapters=2"), "adapters and images do not go together"),
        (("--api", "completions"), "takes no images"),
        (("--model", "smollm2-135m-instruct"), "'smollm2-135m-instruct' takes no images"),
        (("--set", "images.send=url", "--backends", "vllm=http://192.0.2.1:9"), "does not reach 127.0.0.1"),
    ],
)
def test_what_makes_no_images_is_one_error(here, flags, said):
    engine("one")
    done = run(*flags, code=2, by=bench_here)
    assert said in done.stderr
    assert done.stderr.count("error:") == 1
