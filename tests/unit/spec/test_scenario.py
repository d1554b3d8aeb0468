import re
import tomllib

import pytest

from harness.cli.main import main
from harness.errors import ExitCode, SpecError
from harness.host import paths
from harness.spec import files
from harness.spec.scenario import FixedLength, load_scenario, parse_scenario
from harness.spec.strict import nearest

SCENARIO = """
[scenario]
name = "x"
purpose = "a test"
[prompts]
generator = "fixed-length"
input_tokens = 8
output_tokens = 4
[load]
requests = 3
concurrency = [1]
"""


def parse(text):
    return parse_scenario(tomllib.loads(text), "x.toml")


def test_a_scenario_is_complete_in_itself():
    scenario = parse(SCENARIO)
    assert scenario.prompts == FixedLength(input_tokens=8, output_tokens=4)
    assert scenario.load.concurrency == (1,)


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        (("requests = 3", "requets = 3"), "x.toml:load: unknown key 'requets'", "did you mean 'requests'?"),
        (("requests = 3", ""), "x.toml:load: key 'requests' is missing", None),
        (("requests = 3", "requests = '3'"), "x.toml:load.requests: must be a whole number, not '3'", None),
        (("requests = 3", "requests = true"), "x.toml:load.requests: must be a whole number, not true", None),
        (("requests = 3", "requests = 0"), "x.toml:load.requests: must be at least 1, not 0", None),
        (("[1]", "[1, 0]"), "x.toml:load.concurrency: must be above 0, not 0", None),
        (("[1]", "[2, 2]"), "x.toml:load.concurrency: duplicate value", None),
        # One name would be one file of requests, and the same prompts.
        (("concurrency = [1]", "rate = [20, 20.00000000001]"), "x.toml:load.rate: duplicate value", None),
        (("[1]", "['a']"), "x.toml:load.concurrency[0]: must be a whole number", None),
        (("[1]", "1"), "x.toml:load.concurrency: must be a list", None),
        (
            ("[1]", "[1]\n[verdict]\nmetrics = 'ttft_ms.p50'"),
            "x.toml:verdict.metrics: must be a list, not 'ttft_ms.p50'",
            "such as ['ttft_ms.p50']",
        ),
        (("[1]", "[1]\nrate = [2]"), "exactly one of concurrency (closed loop), rate and replay_speed", None),
        (("[1]", "[1]\narrival = 'gauss'"), "x.toml:load.arrival: 'gauss' is not one of 'poisson'", None),
        (("[1]", "[1]\nduration_s = 0"), "x.toml:load.duration_s: must be above 0", None),
        (("[1]", "[1]\nwarmup_requests = -1"), "x.toml:load.warmup_requests: must not be negative", None),
        (("[1]", "[1]\nduration_s = inf"), "load.duration_s: must be a finite number above 0, not inf", None),
        (("concurrency = [1]", "rate = [inf]"), "load.rate: must be a finite number above 0, not inf", None),
        (("[1]", "[1]\nmin_seconds = inf"), "load.min_seconds: must be a finite number of at least 0", None),
        (("[1]", "[1]\nthink_time_s = inf"), "load.think_time_s: must be a finite number of at least", None),
        (("[1]", "[1]\nrest_s = inf"), "load.rest_s: must be a finite number of at least 0, not inf", None),
        (("[1]", "[1]\nmin_answers = 0"), "x.toml:load.min_answers: must be at least 1, not 0", None),
        (
            ("[1]", "[1]\n[request]\ngrammar = 'root ::= \"a\"'"),
            "exact_output conflicts with a grammar",
            "set request.exact_output to false",
        ),
        (("[1]", "[1]\n[request]\nthinking_budget = 4"), "request.thinking_budget: must be at least 0", None),
        (("[1]", "[1]\nmin_seconds = -1"), "x.toml:load.min_seconds: must not be negative", None),
        (("[1]", "[1]\nstart = 'slow'"), "x.toml:load.start: 'slow' is not one of 'spread'", None),
        (
            ("input_tokens = 8", "input_tokens = 8\noutput_spread = 1"),
            "x.toml:prompts.output_spread: must be from 0 to below 1, not 1",
            None,
        ),
        (
            ("[1]", "[1]\nprofile = [{ seconds = 1, start = 1, end = 1 }]"),
            "only applies to a rate",
            "--set load.profile=[] leaves it out",
        ),
        (("concurrency = [1]", "rate = [1]\nthink_time_s = 1"), "an open loop has think time", None),
        (
            ("concurrency = [1]", "rate = [1]\nburstiness = 0"),
            "x.toml:load.burstiness: must be at least 0.01, not 0",
            None,
        ),
        (
            ("concurrency = [1]", "rate = [1]\narrival = 'gamma'\nburstiness = 0.001"),
            "x.toml:load.burstiness: must be at least 0.01, not 0.001",
            None,
        ),
        (
            ("concurrency = [1]", "rate = [1]\nprofile = [{ seconds = 1, start = 1, end = 0 }]"),
            "x.toml:load.profile: the rate ends at 0",
            None,
        ),
        (
            ("concurrency = [1]", "rate = [1]\nprofile = [{ seconds = 0, start = 1, end = 1 }]"),
            "x.toml:load.profile[0]: seconds must be above 0",
            None,
        ),
        (("fixed-length", "fixd-length"), "unknown generator 'fixd-length'", "did you mean 'fixed-length'?"),
        (("input_tokens = 8", "input_tokens = 0"), "x.toml:prompts.input_tokens: must be at least 1", None),
        (('name = "x"', "name = 'a/b'"), "x.toml:scenario.name: must be 1 to 200 bytes without a '/'", None),
        (('name = "x"', 'name = "a\\nb"'), "x.toml:scenario.name: must be 1 to 200 bytes without", None),
        (('name = "x"', "name = ''"), "x.toml:scenario.name: must be 1 to 200 bytes without a '/'", None),
        (('name = "x"', f"name = '{'é' * 101}'"), "x.toml:scenario.name: must be 1 to 200 bytes", None),
        (("[1]", "[[1, true]]"), "load.concurrency[0]: must be a whole number, not [1, true]", None),
        (("[1]", "[1]\nstart = false"), "load.start: false is not one of 'spread', 'together'", None),
        (("[1]", "[1]\n[verdict]\ncool_down_s = 1e12"), "verdict.cool_down_s: must be at most 31,", None),
        (("input_tokens = 8", "groups = 8"), "x.toml:prompts: unknown key 'groups'", "known:"),
        (
            ("[load]", "[request]\nextra_body = 1\n[load]"),
            "x.toml:request: unknown key 'extra_body'",
            "any other field of the API is request.fields.NAME",
        ),
        (("[load]", "[request]\nstop = 1\n[load]"), "unknown key 'stop'", "API is request.fields.stop"),
        (("[load]", "[request]\nmax_tokens = 1\n[load]"), "unknown key 'max_tokens'", "--output-tokens N"),
        (("[load]", "[request]\ntemprature = 1\n[load]"), "'temprature'", "did you mean 'temperature'?"),
        (("[load]", "[laod]"), "x.toml: unknown key 'laod'", "did you mean 'load'?"),
        (("[prompts]", "[prompt]"), "x.toml: unknown key 'prompt'", "did you mean 'prompts'?"),
        (("generator", "#"), "x.toml: table [prompts] with a generator is missing", None),
    ],
)
def test_a_wrong_key_says_where_and_what(change, message, hint):
    with pytest.raises(SpecError, match=re.escape(message)) as caught:
        parse(SCENARIO.replace(*change))
    assert (hint or "") in (caught.value.hint or "")


def test_flags_replace_scenario_keys():
    scenario = load_scenario(
        "fixed-length", {"load.rate": [2.5], "load.concurrency": [], "prompts.input_tokens": 7}
    )
    assert scenario.load.rate == (2.5,)
    assert scenario.prompts == FixedLength(input_tokens=7, output_tokens=64)


def test_an_override_of_a_key_that_does_not_exist_is_refused():
    with pytest.raises(SpecError, match="unknown key 'groups'"):
        load_scenario("fixed-length", {"prompts.groups": 3})
    with pytest.raises(SpecError, match=r"^load\.requests\.x: 'requests' is not a table"):
        load_scenario("fixed-length", {"load.requests.x": 3})


def test_a_value_from_the_command_line_is_not_blamed_on_the_file():
    with pytest.raises(SpecError, match=r"^load\.requests, as given: must be at least 1, not 0$"):
        load_scenario("fixed-length", {"load.requests": 0})


def test_a_beginning_suggests_the_shortest_names_that_have_it():
    hint = nearest("ttft", ["ttft_answer_ms.p50", "ttft_ms.p50", "ttft_ms.mean"])
    assert hint.startswith("did you mean 'ttft_ms.p50'?")


def test_a_slip_of_one_letter_is_nearer_than_a_name_that_begins_so():
    names = ["ttft_answer_ms", "ttft_ms", "ttft_service_ms"]
    assert nearest("ttft_s", names).startswith("did you mean 'ttft_ms'?")


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(SpecError, match="unknown scenario 'shared-prefx'") as caught:
        load_scenario("shared-prefx")
    assert "did you mean 'shared-prefix'?" in caught.value.hint


def test_a_file_that_is_not_toml_or_not_there(tmp_path):
    broken = tmp_path / "a.toml"
    broken.write_text("[scenario\n")
    with pytest.raises(SpecError, match="not valid TOML"):
        load_scenario(str(broken))
    with pytest.raises(SpecError, match="no such file"):
        load_scenario(str(tmp_path / "b.toml"))
    broken.write_bytes(b"\xff\xfe")
    folder = tmp_path / "c.toml"
    folder.mkdir()
    with pytest.raises(SpecError, match="is not UTF-8 text") as caught:
        load_scenario(str(broken))
    assert caught.value.hint == "save it as UTF-8"
    with pytest.raises(SpecError, match="is a folder"):
        load_scenario(str(folder))


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_file_of_another_system_is_the_same(tmp_path, ends):
    """Notepad begins a file with a mark of its encoding."""
    file = tmp_path / "x.toml"
    file.write_bytes(b"\xef\xbb\xbf" + SCENARIO.replace("\n", ends).encode())
    assert load_scenario(str(file)) == parse(SCENARIO)


def test_definitions_beside_the_working_directory_override_the_shipped(tmp_path, monkeypatch):
    folder = tmp_path / "workloads"
    folder.mkdir()
    (folder / "rag.toml").write_text(SCENARIO.replace('"x"', '"rag"'))
    monkeypatch.chdir(tmp_path)
    assert load_scenario("rag").scenario.purpose == "a test"
    assert "shared-prefix" in paths.definitions("workloads")


def test_the_fingerprint_is_of_the_content_not_of_the_layout():
    one = parse(SCENARIO)
    other = parse(
        "# a comment\n"
        + SCENARIO.replace("requests = 3\nconcurrency = [1]", "concurrency = [1]\nrequests = 3")
    )
    assert files.fingerprint(one) == files.fingerprint(other)
    assert files.fingerprint(one) != files.fingerprint(
        parse(SCENARIO.replace("requests = 3", "requests = 4"))
    )


def test_the_data_folders_hold_no_python():
    """A .py file there breaks editable installs of a package with mapped folders."""
    for kind in ("workloads", "backends", "compose"):
        assert not list((paths.CHECKOUT / kind).rglob("*.py"))


@pytest.mark.parametrize("name", sorted(paths.definitions("workloads")))
def test_every_shipped_scenario_is_named_like_its_file(name):
    assert load_scenario(name).name == name


def test_a_scenario_that_is_found_by_one_name_and_has_another_is_refused(tmp_path, monkeypatch, capsys):
    """A copy of rag.toml in ./workloads/. Elsewhere its path names it, and --set may name a variation."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "workloads").mkdir()
    for place in ("workloads/mine.toml", "copy.toml"):
        (tmp_path / place).write_text(paths.definitions("workloads")["rag"].read_text())
    for name in ("mine", "workloads/mine.toml"):
        with pytest.raises(SpecError, match=r"mine\.toml: calls itself 'rag', and is found as 'mine'"):
            load_scenario(name)
    assert main(["validate", "workloads/mine.toml"]) == ExitCode.USAGE
    assert "calls itself 'rag'" in capsys.readouterr().err
    assert load_scenario("copy.toml").name == "rag"
    assert load_scenario("rag", {"scenario.name": "longer"}).name == "longer"


def test_first_requests_are_measured_after_a_start_alone_and_without_warm_up():
    assert load_scenario("cold-start").begins_cold
    assert not load_scenario("cold-start", {"load.warmup_requests": 1}).begins_cold
    assert not load_scenario("offline-batch", {"load.concurrency": [1]}).begins_cold


def test_answers_that_a_prompt_file_would_cut_are_refused():
    """`--output-tokens 400` asked for 256, the most of the scenario, and said nothing."""
    with pytest.raises(SpecError, match=r"output_tokens.*: 400 is more than max_output_tokens, 256") as error:
        load_scenario("prompt-file", {"prompts.output_tokens": 400})
    assert error.value.hint == "--set prompts.max_output_tokens=400"
    load_scenario("prompt-file", {"prompts.output_tokens": 256})
    load_scenario("prompt-file", {"prompts.output_tokens": 400, "prompts.max_output_tokens": 400})


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("load.duration_s", 600, "ask for 900 s or more"),
        ("load.min_coverage", 0.9, "ask for 0.95 or more"),
        ("prompts.unique_sessions", False, "ask for true"),
        ("prompts.max_wait_s", 5, "ask for waits as recorded"),
        ("prompts.max_input_tokens", 100, "ask for whole prompts"),
        ("prompts.max_output_tokens", 8, "ask for whole answers"),
        ("request.exact_output", False, "lock it to true"),
    ],
)
def test_what_agentx_locks_cannot_be_set_otherwise(key, value, message):
    assert load_scenario("agentx", {"load.duration_s": 900}).scenario.rules == "agentx"
    with pytest.raises(SpecError, match=message) as error:
        load_scenario("agentx", {key: value})
    assert error.value.where == f"{key}, as given"


def test_a_coverage_is_of_a_duration():
    with pytest.raises(SpecError, match="is of duration_s"):
        load_scenario("agent-sessions", {"load.min_coverage": 0.95})


@pytest.mark.parametrize("metric", ["by_kind.*.output_tokens_per_s", "by_kind.4k", "by_kind.*"])
def test_a_class_has_no_verdict_on_what_it_does_not_have(metric):
    with pytest.raises(SpecError, match="unknown metric"):
        load_scenario("context-depth", {"verdict.metrics": [metric]})
    with pytest.raises(SpecError, match="unknown metric"):
        load_scenario("context-depth", {"verdict.primary": "by_kind.*.ttft_ms.p50"})


@pytest.mark.parametrize("name", ["fixed-length", "rag", "few-shot", "short-classification"])
def test_a_class_of_requests_that_are_all_alike_is_refused_before_anything_starts(name):
    for metric in ("by_kind.short.ttft_ms.p50", "by_turn.1.ttft_ms.p50"):
        with pytest.raises(SpecError, match="the requests give no figures of 'by_") as caught:
            load_scenario(name, {"verdict.metrics": [metric]})
        assert caught.value.hint == "all requests of this workload are of one class"
    assert load_scenario(name, {"verdict.metrics": ["by_kind.*.ttft_ms.p50"]})


def test_adapters_and_images_make_classes_of_requests_that_are_alike():
    for name, metric in (
        ("lora-mix", "by_kind.adapter-1.ttft_ms.p50"),
        ("images-in", "by_kind.x.ttft_ms.p50"),
    ):
        assert load_scenario(name, {"verdict.metrics": [metric]})


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("concurrency", "load.concurrency"),
        ("think_time_s", "load.think_time_s"),
        ("temperature", "request.temperature"),
        ("timeout_s", "request.timeout_s"),
        ("input_tokens", "prompts.input_tokens"),
        ("content", "text.content"),
        ("ttft_ms.p95", "slo.ttft_ms"),
    ],
)
def test_a_key_without_its_table_is_named_with_it(given, meant):
    with pytest.raises(SpecError, match="unknown key") as caught:
        load_scenario("fixed-length", {given: 4})
    assert caught.value.hint == f"did you mean '{meant}'?"
    with pytest.raises(SpecError, match="unknown key 'groups'") as caught:
        load_scenario("fixed-length", {"groups": 4})  # of another generator
    assert "prompts" not in (caught.value.hint or "").partition("known")[0]


@pytest.mark.parametrize(("key", "value"), [("load.concurrency", 4), ("load.rate", 2), ("load.rate", 0.5)])
def test_a_number_in_the_place_of_a_list_is_shown_in_one(key, value):
    with pytest.raises(SpecError, match="must be a list") as caught:
        load_scenario("fixed-length", {key: value})
    assert caught.value.hint == f"such as [{value}]"


def test_a_profile_is_chosen_by_its_flag_alone():
    for name in ("ramp", "fixed-length"):
        with pytest.raises(SpecError, match="is no key of a scenario") as caught:
            load_scenario(name, {"profile": "gpu"})
        assert (caught.value.where, caught.value.hint) == ("profile, as given", "--profile gpu|cpu")


def test_no_rest_is_between_the_turns_of_a_chat():
    given = {"load.concurrency": [1], "load.rest_s": 60}
    assert load_scenario("fixed-length", given).load.rest_s == 60
    with pytest.raises(SpecError, match=r"load\.rest_s, as given: is of prompts with one turn"):
        load_scenario("shared-prefix", given)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("timeout_s", 0, "must be above 0, not 0"),
        ("timeout_s", float("inf"), "must be a finite number above 0, not inf"),
        ("timeout_s", 1e10, r"must be at most 31,536,000, not 1e\+10"),
        ("temperature", -5, "must not be negative, not -5"),
        ("temperature", float("nan"), "must be a finite number of at least 0, not nan"),
        ("top_p", 0, "must be above 0 and at most 1, not 0"),
        ("top_p", 7, "must be above 0 and at most 1, not 7"),
        ("dimensions", 0, "must be at least 1, not 0"),
    ],
)
def test_a_value_that_no_request_can_have_is_refused(key, value, message):
    with pytest.raises(SpecError, match=rf"^request\.{key}, as given: {message}$"):
        load_scenario("fixed-length", {f"request.{key}": value})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("arrival = 'gamma'", "arrival: only applies to a rate"),
        ("burstiness = 0.5", "burstiness: only applies to a rate"),
        ("repeat_profile = true", "repeat_profile: only applies to a profile"),
        ("max_in_flight = 8", "max_in_flight: only applies to an open loop"),
        ("over_cap = 'drop'", "over_cap: only applies to an open loop"),
        ("kv_tokens = 8", "kv_tokens: only applies to working_set"),
        ("think_time = 'constant'", "think_time: only applies to think_time_s"),
    ],
)
def test_a_key_that_no_such_load_reads_is_refused(line, message):
    key = line.partition(" = ")[0]
    with pytest.raises(SpecError, match=rf"^x\.toml:load\.{message}"):
        parse(SCENARIO + line)
    with pytest.raises(SpecError, match=rf"^load\.{key}, as given: only applies to"):
        load_scenario("fixed-length", {f"load.{key}": tomllib.loads(line)[key], "load.concurrency": [2]})


def test_a_given_key_that_no_such_load_reads_is_refused_at_its_default_too():
    with pytest.raises(SpecError, match=r"^load\.arrival, as given: only applies to a rate"):
        load_scenario("fixed-length", {"load.arrival": "poisson"})


@pytest.mark.parametrize(("key", "values"), [("rate", [1]), ("replay_speed", [1]), ("concurrency", [1, 2])])
def test_the_load_that_a_working_set_cannot_have_is_named(key, values):
    with pytest.raises(SpecError, match=rf"^load\.{key}, as given: a working set needs one value of"):
        load_scenario("kv-working-set", {"load.concurrency": [], f"load.{key}": values})


def test_users_who_hang_up_need_a_time_until_they_do():
    with pytest.raises(SpecError, match=r"^load\.abandon_share, as given: needs abandon_after_s") as refused:
        load_scenario("fixed-length", {"load.abandon_share": 0.5})
    assert "--set load.abandon_after_s=2" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("scenario", "key", "value"),
    [
        ("fixed-length", "request.dimensions", 64),
        ("fixed-length", "request.language", "de"),
        ("embed-queries", "request.temperature", 0.5),
        ("rerank-top-100", "request.encoding_format", "base64"),
        ("audio-in", "request.grammar", "root ::= x"),
        ("embed-queries", "slo.ttft_ms.p95", 500),
    ],
)
def test_a_key_that_no_such_request_has_is_refused(scenario, key, value):
    where = key.removesuffix(".p95")
    with pytest.raises(SpecError, match=rf"^{where}, as given: (has no effect on requests|is of generated)"):
        load_scenario(scenario, {key: value})


@pytest.mark.parametrize("load", [{"concurrency": [4]}, {"replay_speed": [2.0]}])
def test_the_hint_of_a_profile_that_no_such_load_reads_works(load):
    asked = {"load.rate": [], **{f"load.{key}": value for key, value in load.items()}}
    with pytest.raises(SpecError, match="only applies to a rate") as refused:
        load_scenario("ramp", asked)
    assert refused.value.hint == "--set load.profile=[] leaves it out"
    if "concurrency" in load:
        assert load_scenario("ramp", {**asked, "load.profile": []}).load.profile == ()


def test_only_a_closed_loop_has_a_start():
    assert parse(SCENARIO + "start = 'together'").load.start == "together"
    with pytest.raises(SpecError, match=r"^x\.toml:load\.start: only applies to a closed loop"):
        parse(SCENARIO.replace("concurrency = [1]", "rate = [1]\nstart = 'together'"))


def test_only_gamma_arrivals_have_a_burstiness():
    rate = SCENARIO.replace("concurrency = [1]", "rate = [1]\nburstiness = 0.5")
    assert parse(rate + "arrival = 'gamma'").load.burstiness == 0.5
    with pytest.raises(SpecError, match=r"burstiness: only applies to a rate with arrival = \"gamma\""):
        parse(rate)


def test_a_load_on_the_command_line_takes_the_keys_of_the_other_one_away(tmp_path):
    file = tmp_path / "mine.toml"
    open_loop = "rate = [1]\narrival = 'gamma'\nburstiness = 0.5\nmax_in_flight = 8\nover_cap = 'drop'"
    file.write_text(SCENARIO.replace("concurrency = [1]", open_loop))
    closed = load_scenario(str(file), {"load.rate": [], "load.concurrency": [2]}).load
    assert (closed.arrival, closed.burstiness) == ("poisson", 1)
    assert (closed.max_in_flight, closed.over_cap) == (4096, "wait")
    assert load_scenario(str(file), {"load.arrival": "constant"}).load.burstiness == 1
    assert load_scenario(str(file), {"load.rate": [3]}).load.burstiness == 0.5


@pytest.mark.parametrize(
    ("given", "requests"),
    [
        ({"load.rate": [4, 8], "load.duration_s": 60.0}, 480),
        ({"load.rate": [4], "load.duration_s": 60.0, "load.requests": 16}, 16),
        ({"load.rate": [0.1], "load.duration_s": 20.0}, 32),  # never fewer than the scenario's
        ({"load.rate": [4]}, 32),
        ({"load.concurrency": [4], "load.duration_s": 60.0}, 32),
    ],
)
def test_a_rate_sends_for_as_long_as_the_command_line_says(given, requests):
    loop = {"load.concurrency": []} if "load.rate" in given else {}
    assert load_scenario("fixed-length", given | loop, "cpu").load.requests == requests


@pytest.mark.parametrize("name", ["structured-output", "victim-probe"])
def test_no_duration_ends_a_load_whose_stretches_are_numbers_of_requests(name):
    """Of structured output, ten seconds ended inside the first stretch, and nothing was constrained."""
    with pytest.raises(SpecError, match="before all four stretches") as refused:
        load_scenario(name, {"load.duration_s": 10.0}, "cpu")
    assert "load.duration_s" in (refused.value.where or "")
    alone = {"prompts.free": False, "load.duration_s": 10.0}
    if name == "structured-output":
        assert load_scenario(name, alone, "cpu").load.duration_s == 10.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rate": [1e308], "duration_s": 30}, "rate, as given: must be at most 1,000,000, not 1e+308"),
        ({"rate": [1e-300]}, "rate, as given: must be at least 0.001, not 1e-300"),
        ({"rate": [5], "duration_s": 1e300}, "duration_s, as given: must be at most 31,536,000, not 1e+300"),
        (
            {"rate": [1000], "duration_s": 1e6},
            "duration_s, as given: a rate of 1000 sends more than 10,000,000",
        ),
        ({"requests": 10_000_001}, "requests, as given: must be at most 10,000,000, not 10,000,001"),
        ({"warmup_requests": 10**12}, "warmup_requests, as given: must be at most 10,000,000"),
        ({"concurrency": [10**12]}, "concurrency, as given: must be at most 1,000,000, not 1e+12"),
        ({"concurrency": [1], "rest_s": 1e10}, "rest_s, as given: must be at most 31,536,000"),
        ({"concurrency": [2], "rest_s": 1}, "rest_s, as given: needs concurrency = [1] and warmup_requests"),
        ({"think_time_s": 1e10}, "think_time_s, as given: must be at most 31,536,000"),
        (
            {"rate": [1], "repeat_profile": True, "profile": [{"seconds": 1e-9, "start": 1, "end": 1}]},
            "profile[0].seconds, as given: must be at least 0.001",
        ),
    ],
)
def test_a_load_that_no_schedule_can_have_is_refused(given, message):
    overrides = {f"load.{key}": value for key, value in given.items()}
    if "rate" in given:
        overrides["load.concurrency"] = []
    with pytest.raises(SpecError, match=rf"^load\.{re.escape(message)}"):
        load_scenario("fixed-length", overrides)


@pytest.mark.parametrize(
    ("scenario", "key"), [("fixed-length", "prompts.input_tokens"), ("agent-sessions", "prompts.max_wait_s")]
)
def test_prompts_that_could_not_be_made_are_refused(scenario, key):
    with pytest.raises(SpecError, match=rf"^{key}, as given: must be at most 10,000,000, not 1e\+12$"):
        load_scenario(scenario, {key: 10**12})


@pytest.mark.parametrize(("key", "value"), [("slo", 5), ("slo.ttft_ms", 500), ("slo.ttft_ms.p95", "0.5s")])
def test_a_limit_that_is_none_has_an_example(key, value):
    with pytest.raises(SpecError, match="must be a ") as caught:
        load_scenario("fixed-length", {key: value})
    assert caught.value.hint == "a limit is like slo.ttft_ms.p95=500, in ms"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("images.formats", ["gif"], "images.formats[0], as given: 'gif' is not one of"),
        ("slo.x.p50", 1, "slo.x, as given: unknown latency 'x'"),
        ("a.b", 1, "a, as given: unknown key 'a'"),
        ("load", 1, "load, as given: must be a table"),
        ("verdict.repeats", [1], "verdict.repeats, as given: must be a whole number or 'auto', not [1]"),
        ("engine_values.x", [1], "engine_values.x, as given: must be a whole number or a number or a string"),
    ],
)
def test_what_is_wrong_in_or_around_a_value_from_the_command_line_is_its_fault(key, value, message):
    with pytest.raises(SpecError, match=f"^{re.escape(message)}"):
        load_scenario("fixed-length", {key: value})


def test_fields_of_requests_are_any_json_but_one_answer():
    fields = {"request.fields.top_k": 20, "request.fields.chat_template_kwargs.preserve": True}
    assert load_scenario("fixed-length", fields).request.fields == {
        "top_k": 20,
        "chat_template_kwargs": {"preserve": True},
    }
    with pytest.raises(SpecError, match="one answer a request is measured"):
        load_scenario("fixed-length", {"request.fields.n": 2})
    with pytest.raises(SpecError, match="has no effect on requests for transcripts"):
        load_scenario("audio-in", {"request.fields.top_k": 2})
