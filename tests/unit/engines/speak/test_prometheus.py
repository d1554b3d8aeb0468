import dataclasses

import pytest

from harness.engines.speak.prometheus import gauge_paths, histogram, read_series, totals
from harness.spec.backend_refs import load_backend

TEXT = """\
# HELP vllm:prompt_tokens_total Number of prefill tokens processed.
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="a}b"} 12.0
vllm:prompt_tokens_total{engine="1",model_name="x y"} 3.5
vllm:prompt_tokens_created{engine="0"} 1.79e+09
vllm:prompt_tokens_total_other 99
llamacpp:requests_processing 0
stamped 4 1395066363000
up +Inf
broken_line
"""


def test_label_sets_are_summed_and_other_series_ignored():
    assert totals(
        TEXT, ["vllm:prompt_tokens_total", "llamacpp:requests_processing", "stamped", "absent"]
    ) == {"vllm:prompt_tokens_total": 15.5, "llamacpp:requests_processing": 0.0, "stamped": 4.0}


def test_special_values_are_numbers_and_words_are_not():
    assert totals(TEXT, ["up"]) == {"up": float("inf")}
    assert totals("up down\nlow 1\n", ["up", "low"]) == {"low": 1.0}
    assert totals("up 1\nup down\n", ["up"]) == {}


def test_ranks_of_an_engine_add_up_as_several_engines_do():
    """The fullest KV cache holds back, however empty the others are."""
    tokens = 'x:tokens_total{engine="0"} 3\nx:tokens_total{engine="1"} 4\n'
    kv, hits = (f'x:{name}{{engine="0"}} 0.2\nx:{name}{{engine="1"}} 0.6\n' for name in ("kv", "hits"))
    gauges = {"kv_use": "x:kv", "cache_hit_rate": "x:hits"}
    counters = {"output_tokens": "x:tokens_total", "preemptions": ""}
    found = read_series(tokens + kv + hits, counters, gauges)
    assert found == {"output_tokens": 7.0, "kv_use": 0.6, "cache_hit_rate": pytest.approx(0.4)}


# As MAX 26.7.0 answered on a CPU.
MAX = """\
maxserve_num_requests_running 1.0
maxserve_num_requests_queued 0.0
maxserve_cache_num_used_blocks 96.0
maxserve_cache_num_total_blocks 128.0
maxserve_cache_hits_tokens_total{tier="g0"} 512.0
maxserve_num_output_tokens_total 12.0
maxserve_num_input_tokens_total 1175.0
"""


def test_a_use_of_the_cache_is_read_as_blocks_of_all_blocks():
    metrics = load_backend("modular-max").metrics
    found = read_series(MAX, dataclasses.asdict(metrics.counters), dataclasses.asdict(metrics.gauges))
    assert found == {
        "prompt_tokens": 1175,
        "cached_prompt_tokens": 512,
        "host_cached_tokens": 0,
        "output_tokens": 12,
        "running": 1,
        "waiting": 0,
        "kv_use": 0.75,
    }


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ('used{e="0"} 1\nused{e="1"} 3\nall{e="0"} 4\nall{e="1"} 4\n', {"kv_use": 0.75}),  # the fullest
        ("used 1\nall 0\n", {}),
        ("used 1\n", {}),
        ("all 4\n", {}),
        ('used{e="0"} 1\nused{e="1"} 3\nall 4\n', {}),
    ],
)
def test_a_quotient_is_of_each_label_set_and_needs_both_sides(text, share):
    assert read_series(text, {}, {"kv_use": "used / all"}) == share


def test_a_quotient_has_two_sides():
    assert read_series("used 1\nall 4\n", {}, {"kv_use": "used / all / all"}) == {}


def test_what_is_no_number_is_not_there():
    assert read_series("x down\n", {"output_tokens": "x"}, {}) == {}
    assert read_series("x NaN\ny 1\n", {"output_tokens": "x"}, {"running": "y"}) == {"running": 1.0}


def test_a_name_that_begins_another_is_not_that_other():
    text = "x:tokens_total 3\nx:tokens 9\nx:tokens_total_created 1.7e9\n"
    assert read_series(text, {"a": "x:tokens", "b": "x:tokens_total"}, {}) == {"a": 9.0, "b": 3.0}


def test_histograms_add_up_their_label_sets():
    text = """\
x_bucket{engine="0",le="0.1"} 1
x_bucket{engine="1",le="0.1"} 2
x_bucket{engine="0",le="+Inf"} 4
x_bucket{le="+Inf",engine="1"} 5
x_sum{engine="0"} 0.5
x_sum{engine="1"} 0.25
x_count{engine="0"} 4
x_count{engine="1"} 5
"""
    found = histogram(text, "x")
    assert found["buckets"] == [(0.1, 3.0), (float("inf"), 9.0)]
    assert (found["sum"], found["count"]) == (0.75, 9.0)
    assert histogram(text, "y")["count"] is None
    in_ms = histogram(text, "x", 1000)
    assert in_ms["buckets"] == [(0.0001, 3.0), (float("inf"), 9.0)]
    assert (in_ms["sum"], in_ms["count"]) == (0.00075, 9.0)


def test_a_sum_of_series_and_one_label_of_a_series():
    text = 'hits{tier="device"} 5\nhits{tier="host"} 3\nmore 2\n'
    series = {
        "both": "hits + more",
        "host": 'hits{tier="host"}',
        "disk": 'hits{tier="disk"}',
        "first": "lost + more",
        "second": "more + lost",
        "none": 'lost{tier="host"}',
    }
    assert read_series(text, series, {}) == {"both": 10, "host": 3, "disk": 0, "second": 2}


def test_a_label_is_read_by_its_name_and_whole_value():
    """The end of another label's name, or text inside a value, is not the label that was asked for."""
    series = {"host": 'hits{source="host"}'}
    text = 'hits{source="device",cache_source="host"} 5\nhits{by="source=\\"host\\"", source = "disk"} 7\n'
    assert read_series(text, series, {}) == {"host": 0}
    assert read_series(text + 'hits{le="1",source="host",} 3\n', series, {}) == {"host": 3}
    both = {"host": 'hits{tier="2",source="host"}'}
    assert read_series('hits{source="host",tier="2"} 4\nhits{source="host",tier="1"} 9\n', both, {}) == {
        "host": 4
    }


def test_a_part_is_not_there_where_the_engine_does_not_split_by_that_label():
    """None of it would be a figure: nobody counted."""
    series = {"host": 'hits{source="host"}'}
    assert read_series('hits{model="m"} 5\n', series, {}) == {}
    assert read_series("hits 5\n", series, {}) == {}
    assert read_series('hits{source="host"} 5\n', {"host": "hits{source=host}"}, {}) == {}


def test_one_label_whose_value_is_no_number_is_not_there():
    series = {"host": 'hits{tier="host"}'}
    assert read_series('hits{tier="device"} 5\nhits{tier="host"} NaN\n', series, {}) == {}
    assert read_series('hits{tier="device"} NaN\nhits{tier="host"} 3\n', series, {}) == {"host": 3}


def test_gauges_of_json_are_paths_into_the_last_element():
    answer = [{"n": 1}, {"n": 5, "kv": {"used": 3, "max": 4}, "off": False, "none": None}]
    paths = {
        "running": "n",
        "kv_use": "kv.used / kv.max",
        "a": "off",
        "b": "none",
        "c": "kv.lost",
        "d": "n / zero",
    }
    assert gauge_paths(answer, paths) == {"running": 5.0, "kv_use": 0.75}
    assert gauge_paths({"n": 2}, paths) == {"running": 2.0}
    assert gauge_paths([], paths) == gauge_paths("text", paths) == gauge_paths(None, paths) == {}


def test_samples_of_openmetrics_keep_their_own_value():
    text = (
        'v_total{e="0"} 17 # {trace_id="abc"} 1.0\r\n'
        'w_total{a="x}y",b="q\\"}"} 5 1700000000.123\n'
        "x_total 4 # {} 9\n"
        "y_total{} 3\r\n"
    )
    names = ["v_total", 'v_total{e="0"}', "w_total", "x_total", "y_total"]
    assert totals(text, names) == dict(zip(names, [17, 17, 5, 4, 3], strict=True))


def test_a_histogram_of_gaps_is_not_taken_for_the_mean_per_request():
    """Triton observes vLLM's inter_token_latencies_iter under the older name of that series."""
    metrics = load_backend("triton-vllm").metrics
    assert metrics is not None
    assert (metrics.histograms.itl, metrics.histograms.tpot) == ("vllm:time_per_output_token_seconds", "")
