"""Files of prompts that cannot give what is asked of them."""

from pathlib import Path

import pytest

from harness.errors import SpecError
from harness.host import paths
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare

TRACES = Path(__file__).parents[2] / "workload" / "trace_data"
PLAIN = str(paths.data_file("data/example-trace.jsonl"))


def asked(scenario, **overrides):
    given = {key.replace("__", "."): value for key, value in overrides.items()}
    return prepare(RunOptions(scenario, "truth", overrides=given))


@pytest.mark.parametrize(
    ("scenario", "given", "said"),
    [
        ("prompt-file", {"load__warmup_requests": 4}, "the file gives 12, and warm-up takes 12"),
        (
            "trace",
            {"load__replay_speed": [], "load__concurrency": [1, 64], "load__warmup_requests": 8},
            "the file gives 120, and warm-up takes 192",
        ),
    ],
)
def test_a_file_whose_prompts_are_all_warm_up_is_refused(scenario, given, said):
    with pytest.raises(SpecError, match=f"no prompt is left to measure: {said}") as caught:
        asked(scenario, **given)
    assert caught.value.hint == "--set load.warmup_requests=0, or a longer file"


def test_a_file_with_a_prompt_after_its_warm_up_is_measured():
    assert len(asked("prompt-file", load__concurrency=[1], load__warmup_requests=11).source) == 12


def test_a_search_of_a_rate_is_refused_where_its_longest_probe_has_more_requests_than_the_file(tmp_path):
    """Its other probes would end too early too, and the search would be sure of nothing."""
    file = tmp_path / "prompts.jsonl"
    file.write_text("".join(f'{{"prompt": "Name the number {number}."}}\n' for number in range(1800)))
    limits = {"prompts.file": str(file), "slo.ttft_ms.p95": 500, "load.warmup_requests": 0}

    def searched(**load):
        given = limits | {f"load.{key}": value for key, value in load.items()}
        return prepare(RunOptions("prompt-file", "truth", overrides=given, find_capacity=True)).source

    with pytest.raises(SpecError, match=r"at 41 requests/s takes 1,845 prompts, and the file gives 1,800"):
        searched(concurrency=[], rate=[1, 41])
    assert len(searched(concurrency=[], rate=[1, 40])) == 1800
    assert len(searched(concurrency=[1, 64])) == 1800  # a smaller probe of a closed loop is no shorter one


@pytest.mark.parametrize("scenario", ["shared-prefix", "agent-sessions"])
def test_a_search_of_a_rate_is_refused_for_chats_which_reach_it_late(scenario):
    """400 requests at 200 requests/s, of chats that think for 4 s between turns, came at 10 requests/s."""

    def searched(load):
        given = {"slo.ttft_ms.p95": 500, "load.concurrency": [], "load.think_time_s": 0} | load
        return prepare(RunOptions(scenario, "truth", overrides=given, find_capacity=True))

    with pytest.raises(SpecError, match="before its chats or sessions have come to their rate"):
        searched({"load.rate": [1, 8]})
    assert searched({"load.concurrency": [1, 8]}).probe_sizes is not None


def test_a_search_up_to_more_slots_than_a_probe_has_sessions_is_refused():
    """24 sessions were never more than 24 in flight, and 63 kept the limits."""

    def searched(most, scenario="agent-sessions"):
        given = {"slo.ttft_ms.p95": 500, "load.concurrency": [1, most]}
        prepare(RunOptions(scenario, "truth", overrides=given, find_capacity=True))

    searched(24)
    with pytest.raises(SpecError, match="a probe of 25 in flight has 24 sessions of the file") as caught:
        searched(25)
    with pytest.raises(SpecError, match="a probe of 13 in flight has 12 prompts of the file"):
        searched(13, "prompt-file")
    assert caught.value.where == "--find-capacity --concurrency"


@pytest.mark.parametrize(
    ("scenario", "slots", "held"), [("agent-sessions", 24, "24 sessions"), ("prompt-file", 12, "12 prompts")]
)
def test_more_slots_than_the_file_has_sessions_or_prompts_are_refused(scenario, slots, held):
    """24 sessions were called 64 in flight."""
    few = {"load__warmup_requests": 0, "load__requests": 192}
    asked(scenario, load__concurrency=[slots, 1], **few)
    with pytest.raises(SpecError, match=f"a cell of {slots + 1} in flight has {held} of the file") as caught:
        asked(scenario, load__concurrency=[slots + 1, 1], **few)
    assert caught.value.where == "load.concurrency"


@pytest.mark.parametrize(
    ("scenario", "given", "where"),
    [
        ("agentx", {"prompts__file": PLAIN}, "scenario.rules"),
        ("trace", {"prompts__unique_sessions": True}, "prompts.unique_sessions"),
        ("trace", {"prompts__max_wait_s": 3}, "prompts.max_wait_s"),
    ],
)
def test_what_is_of_sessions_needs_a_trace_of_them(scenario, given, where):
    with pytest.raises(
        SpecError, match=r"is of recorded sessions, and .*example-trace\.jsonl has none"
    ) as caught:
        asked(scenario, **given)
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mooncake.jsonl", "of format mooncake, it has blocks of 512 tokens"),
        ("azure.csv", "of format azure, it has no blocks of one size"),
    ],
)
def test_a_size_of_blocks_that_the_format_has_not_is_refused(name, said):
    few = {"prompts__file": str(TRACES / name), "load__warmup_requests": 0}
    with pytest.raises(SpecError, match=f"^prompts.block_tokens, as given: has no effect on .*{said}"):
        asked("trace", prompts__block_tokens=16, **few)
    assert asked("trace", **few).source.format == name.partition(".")[0]
    assert asked("trace", prompts__file=PLAIN, prompts__block_tokens=16).source.block_tokens == 16


@pytest.mark.parametrize("key", ["think_time_s", "rest_s"])
def test_recorded_sessions_take_no_other_waits(key):
    given = {"load__concurrency": [1], "load__warmup_requests": 8, f"load__{key}": 60}
    with pytest.raises(SpecError, match="recorded sessions have waits of their own") as caught:
        asked("agent-sessions", **given)
    assert caught.value.where == f"load.{key}"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("load__warmup_requests", 8, "recorded sessions have no warm-up"),
        ("cache__state", "warm", "share is not sent ahead"),
    ],
)
def test_what_has_no_effect_on_recorded_sessions_is_refused(key, value, said):
    with pytest.raises(SpecError, match=said) as caught:
        asked("agent-sessions", **{key: value})
    assert caught.value.where == key.replace("__", ".")
    assert asked("agent-sessions", cache__state="primed").source.calls is not None


@pytest.mark.parametrize(
    ("lines", "known"),
    [
        (['{"prompt": "a", "category": "math"}', '{"prompt": "b"}'], ("math", "other")),
        (['{"prompt": "a", "schema": {}}', '{"prompt": "b"}'], ("json_schema", "other")),
        (['{"prompt": "a", "category": "math"}', '{"prompt": "b", "category": "math"}'], ()),
        (['{"prompt": "a"}', '{"prompt": "b"}'], ()),
    ],
)
def test_a_class_that_no_prompt_of_the_file_has_is_refused(tmp_path, lines, known):
    file = tmp_path / "prompts.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")

    def of(*names):
        metrics = [f"by_kind.{name}.ttft_ms.p50" for name in names]
        given = {"verdict__metrics": metrics, "request__exact_output": False}
        return asked("prompt-file", prompts__file=str(file), load__concurrency=[1], **given)

    assert len(of(*known).source) == 2
    with pytest.raises(SpecError, match="the requests give no figures of 'by_kind") as caught:
        of(*known, "nix")
    assert caught.value.where == "verdict.metrics"
