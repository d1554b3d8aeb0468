"""Files that tools wrote, damaged at random: one error or a stated gap, never a figure that cannot be."""

import json
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import SpecError
from harness.imports import read
from harness.records.layout import UNKNOWN
from tests.factories import foreign

CAPTURES = Path(__file__).resolve().parents[2] / "captures" / "imports"
WHOLE = {
    "aiperf": "aiperf/profile_export_aiperf.json",
    "evalscope": "evalscope/benchmark_summary.json",
    "genai-bench": "genai-bench/D16_16_text-to-text_num_concurrency_4_time_1s.json",
    "genai-perf": "genai-perf/profile_export.json",
    "genai-perf summary": "genai-perf/profile_export_genai_perf.json",
    "guidellm": "guidellm/r.json",
    "inference-perf": "inference-perf/per_request_lifecycle_metrics.json",
    "inference-perf summary": "inference-perf/summary_lifecycle_metrics.json",
    "vllm": "vllm/r.json",
    "vllm detailed": "vllm.detail/r.json",
}
ODD = (None, -1, 0, 1e300, "", "x", [], {}, [[]], True, {"a": None})
TIMES = ("sent_ns", "first_text_ns", "last_text_ns", "end_ns")


def leaves(value, path=()):
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield (*path, key)
        yield from leaves(part, (*path, key))


@cache
def written(name):
    """The text of a whole file, and the path of each of its values."""
    text = (CAPTURES / WHOLE[name]).read_text()
    return text, list(leaves(json.loads(text)))


def changed(text, path, do):
    made = json.loads(text)
    place = made
    for key in path[:-1]:
        place = place[key]
    do(place, path[-1])
    return made


def says_where(error, path):
    assert str(path) in str(error)


def read_or_refused(path):
    """Whatever was read can be: no time before the send, no figure that is none."""
    try:
        _, taken = read(path)
    except SpecError as error:
        return says_where(error, path)
    for one in taken:
        assert all(np.isfinite(value) and value >= 0 for value in one.reported.values())
        rows = one.records.requests
        known = np.array([[row[name] for name in TIMES] for row in rows]).reshape(-1, len(TIMES))
        for times in known:
            there = [time for time in times if time != UNKNOWN]
            assert there == sorted(there)
    return taken


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("mutated") / "r.json"


@pytest.mark.parametrize("name", WHOLE)
@given(data=st.data())
def test_a_value_that_is_something_else(place, name, data):
    text, paths = written(name)
    path = data.draw(st.sampled_from(paths))
    odd = data.draw(st.sampled_from(ODD))
    foreign.write(place, changed(text, path, lambda at, key: at.__setitem__(key, odd)))
    read_or_refused(place)


@pytest.mark.parametrize("name", WHOLE)
@given(data=st.data())
def test_a_key_that_is_missing(place, name, data):
    text, paths = written(name)
    path = data.draw(st.sampled_from(paths))
    foreign.write(place, changed(text, path, lambda at, key: at.__delitem__(key)))
    read_or_refused(place)


@pytest.mark.parametrize("name", WHOLE)
@given(data=st.data())
def test_bytes_that_are_lost_or_turned(place, name, data):
    text = (CAPTURES / WHOLE[name]).read_bytes()
    at = data.draw(st.integers(0, len(text) - 1))
    place.write_bytes(data.draw(st.sampled_from([text[:at], text[:at] + b"\xff" + text[at + 1 :], text * 2])))
    read_or_refused(place)


# Kinds of times of each file that have a unit of their own; a summary has one for all.
TIMES_OF = {
    "aiperf": [{"time_to_first_token", "request_latency", "inter_token_latency"}],
    "evalscope": [{"Avg Latency (s)"}],
    "genai-bench": [{"ttft"}, {"e2e_latency"}, {"output_latency"}, {"ttft", "e2e_latency", "output_latency"}],
    "genai-perf": [{"timestamp"}, {"response_timestamps"}, {"timestamp", "response_timestamps"}],
    "genai-perf summary": [{"time_to_first_token", "request_latency", "inter_token_latency"}],
    "guidellm": [{"request_start"}, {"request_end"}, {"first_token_iteration"}, {"last_token_iteration"}],
    "inference-perf": [
        {"start_time"},
        {"end_time"},
        {"chunk_times"},
        {"start_time", "end_time", "chunk_times"},
    ],
    "inference-perf summary": [{"latency"}],
    "vllm": [{"duration"}],
    "vllm detailed": [{"ttfts"}, {"itls"}],
}
BESIDE = {"inference-perf": "inference-perf/summary_lifecycle_metrics.json"}


def scaled(value, by):
    if isinstance(value, dict):
        return {key: scaled(part, by) for key, part in value.items()}
    if isinstance(value, list):
        return [scaled(part, by) for part in value]
    return value * by if isinstance(value, int | float) and not isinstance(value, bool) else value


def with_scaled(value, keys, by):
    """Wherever those keys stand."""
    if isinstance(value, list):
        return [with_scaled(part, keys, by) for part in value]
    if not isinstance(value, dict):
        return value
    return {
        name: scaled(part, by) if name in keys else with_scaled(part, keys, by)
        for name, part in value.items()
    }


def figures(taken):
    """Every time that an import states, in ms."""
    (one,) = taken
    rows = one.records.requests
    answers = rows[rows["first_text_ns"] != UNKNOWN]
    of_rows = {name: np.mean(answers[name] - answers["sent_ns"]) / 1e6 for name in TIMES if len(answers)}
    return of_rows | {path: value for path, value in one.reported.items() if "_ms" in path}


CASES = [pytest.param(name, keys, id=f"{name}-{'+'.join(sorted(keys))}") for name, of in TIMES_OF.items()
         for keys in of]  # fmt: skip


@pytest.mark.parametrize("by", [1e3, 1e-3])
@pytest.mark.parametrize(("name", "keys"), CASES)
def test_times_in_another_unit(tmp_path, name, keys, by):
    """Milliseconds for seconds, or the other way round: refused, or nothing that is read has changed."""
    document, file = json.loads((CAPTURES / WHOLE[name]).read_text()), tmp_path / "r.json"
    if name in BESIDE:
        shutil.copy(CAPTURES / BESIDE[name], tmp_path)
    right = figures(read_or_refused(foreign.write(file, document)))
    found = read_or_refused(foreign.write(file, with_scaled(document, keys, by)))
    assert found is None or figures(found) == pytest.approx(right)
