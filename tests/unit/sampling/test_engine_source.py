"""What is read of an engine's own metrics, from answers that are given: Prometheus text, JSON, neither."""

import json

import pytest

from harness.client.answer import Answer
from harness.errors import SetupError
from harness.host.access import Access
from harness.sampling.job import Exporter
from harness.sampling.sources import UnreadableError
from harness.sampling.sources.engine import EngineExporter, EngineExporters

URL, JSON_URL = "http://engine/metrics", "http://engine/iterations"
TEXT = "a_total 5\nb_total 7\nrunning 2\n"
PATHS = {"running": "active", "kv_use": "blocks.used / blocks.most", "waiting": "queued"}


def exporter(**names):
    return Exporter(url=URL, access=Access(), **names)


def answer(text, status=200):
    return Answer(URL, status, {}, text.encode(), ())


def reading(source, answers):
    """The series of one read; `answers` by URL, an error among them is raised."""

    def ask(url):
        given = answers[url]
        if isinstance(given, Exception):
            raise given
        return given

    source._look_up.ask = ask
    found = {}
    source.read(lambda name, value, at_ns: found.update({name: value}))
    return found


def test_series_are_read_by_our_names_and_what_is_not_there_is_missing_until_it_comes():
    source = EngineExporter(exporter(counters={"output_tokens": "a_total"}, gauges={"running": "r"}), 1.0)
    assert reading(source, {URL: answer(TEXT)}) == {"engine.output_tokens": 5}
    assert source.missing == {"engine.running": "no r in the engine's metrics"}
    assert reading(source, {URL: answer(TEXT + "r 3\n")})["engine.running"] == 3
    assert source.missing == {}


@pytest.mark.parametrize(("exclude", "prompt"), [(False, 5), (True, 12)])
def test_cached_tokens_are_added_where_the_engine_leaves_them_out(exclude, prompt):
    counters = {"prompt_tokens": "a_total", "cached_prompt_tokens": "b_total"}
    source = EngineExporter(exporter(counters=counters, prompt_tokens_exclude_cached=exclude), 1.0)
    assert reading(source, {URL: answer(TEXT)})["engine.prompt_tokens"] == prompt


def test_prompt_tokens_without_cached_ones_are_none_where_the_engine_does_not_count_those():
    counters = {
        "prompt_tokens": "a_total",
        "cached_prompt_tokens": "cached_total",
        "output_tokens": "b_total",
    }
    source = EngineExporter(exporter(counters=counters, prompt_tokens_exclude_cached=True), 1.0)
    assert reading(source, {URL: answer(TEXT)}) == {"engine.output_tokens": 7}
    assert source.missing == {
        "engine.prompt_tokens": "a_total leaves out cached tokens, and nothing counts those",
        "engine.cached_prompt_tokens": "no cached_total in the engine's metrics",
    }


def both():
    return EngineExporter(exporter(gauges=PATHS, json_url=JSON_URL, json_gauges=PATHS), 1.0)


def iterations(*documents):
    return answer(
        json.dumps([{"active": active, "blocks": {"used": used, "most": 200}} for active, used in documents])
    )


def test_the_last_iteration_counts_and_an_empty_list_is_no_sample():
    source, refused = both(), SetupError("refused")
    found = reading(source, {URL: refused, JSON_URL: iterations((1, 10), (3, 50))})
    assert found == {"engine.running": 3, "engine.kv_use": 0.25}
    assert set(source.missing) == {"engine.waiting"}
    assert reading(source, {URL: refused, JSON_URL: answer("[]")}) == {}
    assert set(source.missing) == {"engine.waiting"}


def test_what_the_text_gives_is_not_asked_of_the_json():
    source = EngineExporter(
        exporter(gauges={"running": "running"}, json_url=JSON_URL, json_gauges={"running": "active"}), 1.0
    )
    assert reading(source, {URL: answer(TEXT)}) == {"engine.running": 2}


@pytest.mark.parametrize(
    ("text", "of_json", "said"),
    [
        (SetupError("refused"), answer("", status=404), "refused; http://engine/iterations: answers 404"),
        (answer("", status=500), answer("not json"), "http://engine/metrics: answers 500; "),
    ],
)
def test_where_neither_can_be_read_both_reasons_are_given(text, of_json, said):
    with pytest.raises(UnreadableError) as caught:
        reading(both(), {URL: text, JSON_URL: of_json})
    assert str(caught.value).startswith(said)


def several(*answers, apart=False):
    """Series of engines that work as one, and why they could not be read."""
    names = {"output_tokens": "a_total"}
    gauges = {"kv_use": "kv", "cache_hit_rate": "hit"}
    source = EngineExporters([exporter(counters=names, gauges=gauges)] * len(answers), 1.0, apart=apart)
    for part, given in zip(source._parts, answers, strict=True):
        part._look_up.ask = lambda _url, given=given: given
    found, why = {}, ""
    try:
        source.read(lambda name, value, at_ns: found.update({name: value}))
    except UnreadableError as error:
        why = str(error)
    return found, why


ONE, OTHER = answer("a_total 5\nkv 0.2\nhit 0.1\n"), answer("a_total 3\nkv 0.6\nhit 0.5\n")


def test_counters_of_several_add_up_the_fullest_cache_counts_and_shares_have_a_mean():
    found, why = several(ONE, OTHER)
    assert why == ""
    assert (found["engine.0.output_tokens"], found["engine.1.output_tokens"]) == (5, 3)
    assert found["engine.output_tokens"] == 8
    assert found["engine.kv_use"] == 0.6
    assert found["engine.cache_hit_rate"] == pytest.approx(0.3)


def test_engines_with_other_roles_have_no_sum():
    found, _ = several(ONE, OTHER, apart=True)
    assert found["engine.1.output_tokens"] == 3
    assert "engine.output_tokens" not in found


def test_without_one_of_them_there_is_no_sum():
    found, why = several(ONE, answer("", status=503))
    assert found["engine.0.output_tokens"] == 5
    assert "engine.output_tokens" not in found
    assert why == "http://engine/metrics: answers 503"
    found, why = several(ONE, answer("kv 0.6\n"))
    assert (found["engine.kv_use"], why) == (0.6, "")
    assert "engine.output_tokens" not in found, "one without it would look like a fall"
