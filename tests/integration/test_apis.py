"""Whole runs in each API against the scripted server, in the dialects of three engines."""

from functools import cache

import pytest

from harness.cli.display.result import Result
from harness.mockserver.process import running
from harness.store import RunFolder
from tests.integration.scripted import bench_here, bench_in, run_folder, summary
from tests.long import others_long

APIS = ("chat", "completions", "responses", "messages")
EVENTFUL = ("responses", "messages")  # named events; the others send chunks
ENGINES = ("vllm", "llamacpp", "sglang")
REQUESTS, TOKENS = 8, 8
EVERY = [(engine, api) for api in APIS for engine in ENGINES]
# Each API once: in two of them a length can be forced, in two it cannot.
OFTEN = [("llamacpp", "chat"), ("llamacpp", "completions"), ("sglang", "responses"), ("vllm", "messages")]


LOAD = (
    *("--scenario", "fixed-length", "--requests", str(REQUESTS), "--concurrency", "2", "--repeats", "1"),
    *("--output-tokens", str(TOKENS), "--input-tokens", "64", "--no-report"),
    *("--set", "verdict.cool_down_s=0"),
)


def label_of(engine, api):
    return engine if api == "chat" else f"{engine}@{api}"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Returns (summary, run folder) of a run in these pairs of engine and API, OFTEN or EVERY."""

    @cache
    def measured(*pairs):
        here = tmp_path_factory.mktemp("apis")
        labels = ",".join(label_of(*pair) for pair in pairs)
        bench_in(here, "run", *LOAD, "--launch", "simulate", "--no-agreement", "--backends", labels)
        return summary(here), RunFolder(run_folder(here))

    return lambda pairs: measured(*pairs)


OF_SOME = pytest.mark.parametrize(
    "pairs", list(others_long([OFTEN, EVERY], lambda pairs: pairs is OFTEN)), ids=["some", "every"]
)


@pytest.mark.parametrize(("engine", "api"), list(others_long(EVERY, lambda *pair: pair in OFTEN)))
def test_every_engine_is_measured_in_every_api(runs, engine, api):
    found, folder = runs(OFTEN if (engine, api) in OFTEN else EVERY)
    label = label_of(engine, api)
    (cell,) = [cell for cell in found["cells"] if cell["label"] == label]
    assert cell["requests"]["outcomes"] == {"ok": REQUESTS}
    assert cell["output_tokens"]["total"] == REQUESTS * TOKENS
    assert cell["conditions"]["api"] == api
    assert folder.read_json(f"cells/{cell['cell']}/cell.json")["request"]["api"] == api
    findings = folder.read_json(f"probe-{label}.json")["findings"]
    assert [one for one in findings if one["holds"] is False] == []


@OF_SOME
def test_lengths_that_cannot_be_forced_are_a_condition(runs, pairs):
    found, _ = runs(pairs)
    assert len(found["cells"]) == len(pairs)
    for cell in found["cells"]:
        forced = cell["conditions"]["exact_output"]["forced"]
        expected = "messages" not in cell["label"] and cell["label"] != "sglang@responses"
        assert forced == expected, cell["label"]
        assert ("exact_output" in cell["conditions"]["unsupported"]) != expected


@OF_SOME
def test_a_length_that_an_api_cannot_force_is_a_warning(runs, pairs):
    found, _ = runs(pairs)
    warned = {
        warning["text"].partition(":")[0]
        for warning in found["warnings"]
        if warning["code"] == "free-lengths"
    }
    assert warned == {
        label_of(*pair) for pair in pairs if pair == ("sglang", "responses") or pair[1] == "messages"
    }


@pytest.mark.long
def test_apis_are_compared_with_verdicts(tmp_path):
    bench_in(
        tmp_path,
        *("run", *LOAD, "--launch", "simulate", "--backends", "vllm", "--api", "chat,responses"),
        *("--repeats", "3"),
    )
    found = summary(tmp_path)["comparison"]
    assert {(finding["a"], finding["b"]) for finding in found} == {("vllm", "vllm@responses")}
    (ttft,) = [finding for finding in found if finding["metric"] == "ttft_ms.p50"]
    assert ttft["verdict"] != "not comparable", ttft["why"]
    assert ttft["ratio"] is not None


def test_a_backend_without_the_api_is_one_line_before_anything_starts(tmp_path):
    done = bench_in(tmp_path, "run", *LOAD, "--backends", "tgi", "--api", "messages", "--dry-run", code=2)
    assert "backend 'tgi' has no Messages API" in done.stderr


def test_a_running_server_without_the_api_is_one_line(tmp_path):
    with running(ttft_ms=1, gap_ms=1, dialect="ollama") as server:
        done = bench_in(
            tmp_path, "run", *LOAD, "--backends", f"openai={server.url}", "--api", "messages", code=3
        )
    assert "no Messages API: POST /v1/messages answered 404" in done.stderr


def test_bench_url_says_which_apis_a_server_has(here, monkeypatch):
    """Before the run, which it comes to here."""
    monkeypatch.setattr("harness.cli.commands.run.measure", lambda *_: Result())
    with running(ttft_ms=20, gap_ms=10, dialect="vllm") as server:
        done = bench_here(server.url)
    assert "APIs: chat, completions, responses, messages" in done.stderr
    with running(ttft_ms=20, gap_ms=10, dialect="ollama") as server:
        done = bench_here(server.url)
    assert "APIs: chat, completions; none of responses, messages" in done.stderr


ALL = ("--launch", "simulate", "--backends", "vllm", "--api", ",".join(APIS), "--no-probe")


def cells(here):
    """By API."""
    return {cell["conditions"]["api"]: cell for cell in summary(here)["cells"]}


def prompts(here):
    """By label: turn and prompt tokens of each request, in order."""
    folder, found = RunFolder(run_folder(here)), {}
    for cell in folder.read_json("summary.json")["cells"]:
        records, facts = folder.read_cell(cell["cell"])
        rows, turns = records.requests, folder.read_requested(facts).numbers["turn"]
        found[cell["label"]] = list(
            zip(turns[rows["seq"]].tolist(), rows["prompt_tokens"].tolist(), strict=True)
        )
    return found


@pytest.fixture(scope="module")
def chats(tmp_path_factory):
    here = tmp_path_factory.mktemp("chats")
    bench_in(
        here,
        *("run", "--scenario", "shared-prefix", *ALL, "--output-tokens", "8", "--repeats", "1"),
        *("--requests", "12", "--concurrency", "2", "--set", "load.think_time_s=0", "--no-report"),
        *("--set", "verdict.cool_down_s=0"),
    )
    return cells(here), here


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    """Returns cells by API of a run in these APIs whose servers fail."""

    @cache
    def measured(*apis):
        here = tmp_path_factory.mktemp("failing")
        labels = [label_of("vllm", api) for api in apis]
        faults = ("error-event:every=3:after=2", "truncation:every=4:after=2", "malformed:every=5:after=2")
        bench_in(
            here,
            *("run", *LOAD, *ALL, "--api", ",".join(apis), "--requests", "24", "--concurrency", "4"),
            *(word for label in labels for one in faults for word in ("--simulate-fault", f"{label}={one}")),
            code=4,  # a state that is INVALID
        )
        return cells(here)

    return measured


@pytest.mark.parametrize("api", APIS)
def test_later_turns_carry_the_answers_before_them(chats, api):
    cell = chats[0][api]
    assert cell["requests"]["outcomes"] == {"ok": 12}
    assert cell["prefix_cache_hit_rate"] > 0.4  # later turns begin with the turns before them


@pytest.mark.long
def test_what_a_client_has_kept_in_the_cache_counts_as_prompt(tmp_path):
    """The scripted server counts what `cache_control` has it write, and reports prompts without it."""
    with running(ttft_ms=20, gap_ms=10) as server:
        bench_in(
            tmp_path,
            *("run", "--scenario", "shared-prefix", "--no-probe", "--no-report", "--repeats", "1"),
            *("--backends", f"truth={server.url},truth@messages={server.url}", "--output-tokens", "8"),
            *("--requests", "12", "--concurrency", "1", "--set", "load.think_time_s=0"),
            *("--set", "request.cache_control=true", "--set", "request.exact_output=false", "--anyway"),
        )
    found = cells(tmp_path)
    chat, messages = found["chat"], found["messages"]
    assert "cache_control" in chat["conditions"]["unsupported"]
    assert "cache_control" not in messages["conditions"]["unsupported"]
    of_chat, of_messages = prompts(tmp_path).values()
    assert of_messages == of_chat
    assert messages["prefix_cache_hit_rate"] == chat["prefix_cache_hit_rate"] > 0.4


KEPT = ("--set", "request.kept_turns=true")


def test_kept_turns_have_the_prompts_of_turns_that_are_sent_whole(chats, tmp_path):
    bench_in(
        tmp_path,
        *("run", "--scenario", "shared-prefix", "--launch", "simulate", "--backends", "vllm@responses"),
        *("--no-probe", "--output-tokens", "8", "--repeats", "1", "--requests", "12", "--concurrency", "2"),
        *("--set", "load.think_time_s=0", "--no-report", *KEPT),
    )
    kept, sent = cells(tmp_path)["responses"], prompts(chats[1])["vllm@responses"]
    assert kept["requests"]["outcomes"] == {"ok": 12}
    assert prompts(tmp_path)["vllm@responses"] == sent
    assert kept["prefix_cache_hit_rate"] > 0.4
    assert kept["conditions"]["sent_fields"]["store"] is True


def test_turns_that_nobody_keeps_are_one_line_ahead(tmp_path):
    asked = ("run", "--scenario", "shared-prefix", *KEPT, "--backends")
    done = bench_in(tmp_path, *asked, "llamacpp@responses", code=2)
    assert "request.kept_turns: llama.cpp keeps no turns in its Responses API" in done.stderr
    done = bench_in(tmp_path, *asked, "vllm", code=2)
    assert "request.kept_turns: vLLM keeps no turns in its Chat Completions API" in done.stderr
    with running(ttft_ms=20, gap_ms=10, dialect="vllm", no_kept_turns=True) as server:
        done = bench_in(tmp_path, *asked, f"vllm@responses={server.url}", code=3)
    assert "keeps no turns: POST /v1/responses answered 404" in done.stderr


@pytest.mark.parametrize("api", list(others_long(APIS, lambda api: api in EVENTFUL)))
def test_what_fails_in_chat_fails_in_every_api(failing, api):
    cell = failing(*(EVENTFUL if api in EVENTFUL else APIS))[api]
    assert set(cell["requests"]["outcomes"]) == {"ok", "stream_error", "truncated", "malformed"}
