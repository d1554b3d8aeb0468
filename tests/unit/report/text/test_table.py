"""The table in full, as a person sees it."""

import re
from itertools import combinations
from pathlib import Path

import pytest

from harness.report.findings.backend_words import engine_words
from harness.report.text.screen import screen
from harness.report.text.table import markdown, terminal
from tests.factories.summaries import cell, summary, verdict

TEXTS = Path(__file__).parent / "report_texts"

RATE = {"kind": "rate", "value": 2.5}
OFF = "llamacpp@no-prefix-cache"
TWO = summary(
    cell(p50=14.2, load={"kind": "concurrency", "value": 1}),
    cell(OFF, p50=160.0, load={"kind": "concurrency", "value": 1}, prefix_cache_hit_rate=0.0),
    cell(p50=22.0),
    cell(OFF, p50=264.0, prefix_cache_hit_rate=0.0),
)


EVERYTHING_WRONG = summary(
    cell(
        "vllm",
        RATE,
        title="vLLM",
        track="bf16",
        engine_version=None,
        simulated=True,
        prefix_cache_hit_rate=None,
        null_reasons={"prefix_cache_hit_rate": "neither usage nor counters report it"},
        validity=verdict("SUSPECT", "loop-lag", "p99 7.1 ms", "5 ms", "leave the client a core of its own"),
        requests={
            "planned": 32,
            "failed": 1,
            "dropped": 2,
            "outcomes": {"ok": 29, "timeout": 1, "dropped": 2},
        },
    ),
    cell(
        "llamacpp",
        RATE,
        workload_sha256="00" * 32,
        validity=verdict("INVALID", "client-busy", "97% of a core", "90%", "use more --workers"),
    ),
    state="interrupted",
    warnings=[{"code": "approximate-lengths", "text": "the server offers no tokenizer", "hint": "see usage"}],
)
REPEATED = summary(
    cell(p50=14.2), cell(OFF, p50=160.0, simulated=True), cell(p50=15.0, repeat=1), cell(OFF, repeat=1)
)


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("two-backends-100.txt", terminal(TWO, 100, color=False)),
        ("everything-wrong-80.txt", terminal(EVERYTHING_WRONG, 80, color=False)),
        ("repeated.md", markdown(REPEATED)),
    ],
)
def test_the_whole_text(name, printed):
    assert printed == (TEXTS / name).read_text(encoding="utf-8")


def test_an_invalid_repeat_is_left_out_and_said():
    bad = verdict("INVALID", "client-busy", "97%", "90%", "")
    cells = (cell(p50=10.0), cell(p50=12.0, repeat=1), cell(p50=99.0, repeat=2, validity=bad))
    found = terminal(summary(*cells), 200, color=False)
    assert "99.0" not in found
    assert re.search(r"llamacpp +11\.0 .* INVALID 1/3", found)
    assert "±9%" in found
    assert "[10.0–12.0]" in markdown(summary(*cells)).replace("\\", "")
    assert "warning: INVALID llamacpp c4 r2: client-busy, 97%; limit 90%" in found


def test_repeats_do_not_break_a_table_of_a_hundred_columns():
    cells = [cell(name, p50=1234.5 + repeat, repeat=repeat) for name in ("vllm", OFF) for repeat in range(3)]
    found = terminal(summary(*cells), 100, color=False)
    assert found.count("validity") == 1
    assert max(map(len, found.splitlines())) <= 100


COMPARED = {
    "a": "llamacpp",
    "b": OFF,
    "load": {"kind": "concurrency", "value": 4},
    "metric": "ttft_ms.p50",
    "better": "lower",
    "ratio": [0.4, 0.5, 0.625],
    "runs": [5, 5],
    "verdict": "faster",
    "why": "50% lower over 5 pairs of runs, beyond the floor of 2%",
    "primary": True,
}
RULES = {"primary": "ttft_ms.p50", "confidence": 0.95}


@pytest.mark.parametrize("page", [lambda made: terminal(made, 100, color=False), markdown])
def test_the_verdicts_stand_at_the_beginning(page):
    found = page(summary(cell(), cell(OFF), comparison=[COMPARED], verdict_rules=RULES))
    claim = re.search(r"first token:? +llamacpp 2× faster \(1\.6 to 2\.5\)", found)
    assert claim.start() < found.index("validity")
    assert "In brackets: 95% intervals of the geometric mean over 5 runs." in found
    assert "No verdict" not in found


@pytest.mark.parametrize("page", [lambda made: terminal(made, 100, color=False), markdown])
def test_brackets_are_explained_only_where_a_pair_has_an_interval(page):
    """One backend failed in every run: that was tested, and there is nothing to bracket."""
    failed = {**COMPARED, "ratio": None, "runs": [5, 0], "failed": [0, 5]}
    alone = page(summary(cell(), cell(OFF), comparison=[failed], verdict_rules=RULES))
    assert "In brackets" not in alone
    further = {**COMPARED, "metric": "tpot_ms.p50", "primary": False}
    both = page(summary(cell(), cell(OFF), comparison=[failed, further], verdict_rules=RULES))
    assert "In brackets: 95% intervals of the geometric mean over 5 runs." in both


@pytest.mark.parametrize(("unit", "warned"), [("runs of one start", True), ("starts", False)])
def test_intervals_of_running_servers_say_which_noise_they_leave_out(unit, warned):
    """Of two equal ones whose speed wanders for longer than a run, one is soon "faster"."""
    rules = {**RULES, "unit": unit}
    found = screen(summary(cell(), cell(OFF), comparison=[COMPARED], verdict_rules=rules), 100, color=False)
    said = "over 5 runs of one start. Noise that outlasts a run makes them too narrow; --pairing blocks"
    assert (said in " ".join(found.split())) == warned


@pytest.mark.parametrize(("ratio", "explained"), [([0.7, 0.8, 0.96], True), ([0.7, 0.8, 1.01], False)])
def test_an_undecided_pair_whose_interval_excludes_equality_is_explained(ratio, explained):
    undecided = {**COMPARED, "verdict": "not enough runs", "ratio": ratio}
    found = screen(summary(cell(), cell(OFF), comparison=[undecided], verdict_rules=RULES), 100, color=False)
    assert "llamacpp 1.25× (" in found
    assert ("Undecided though 1× lies outside: the difference may be" in " ".join(found.split())) == explained


def test_brackets_are_explained_on_the_pages_that_print_an_interval():
    """Of three backends without a winner the first screen prints none: its brackets hold ideal hit rates.
    The whole table spells out each pair."""
    names = ("a", "b", "c")
    pairs = [
        {**COMPARED, "a": a, "b": b, "verdict": "not enough runs", "ratio": [0.9, 1.0, 1.1]}
        for a, b in combinations(names, 2)
    ]
    made = summary(*map(cell, names), comparison=pairs, verdict_rules=RULES)
    first = screen(made, 100, color=False)
    assert "93 (94)" in first
    assert "Not separated from b and c after 1 repeat." in first
    assert "In brackets" not in first
    for whole in (terminal(made, 100, color=False), markdown(made)):
        assert "(0.909 to 1.11), undecided" in whole
        assert "In brackets: 95% intervals of the geometric mean over 5 runs." in whole


def test_brackets_of_something_else_are_no_intervals():
    """Of four backends without a winner no pair is spelled out, and a condition has brackets of its own."""
    names = ("a", "b", "c", "d")
    pairs = [
        {**COMPARED, "a": a, "b": b, "verdict": "not enough runs", "ratio": [0.9, 1.0, 1.1]}
        for a, b in combinations(names, 2)
    ]
    apart = {"code": "threads", "labels": ["a", "b"], "text": "threads (2 to 4)", "matters": True}
    made = summary(*map(cell, names), comparison=pairs, verdict_rules=RULES, unequal=[apart])
    for whole in (terminal(made, 100, color=False), markdown(made)):
        assert "threads (2 to 4)" in whole
        assert "In brackets" not in whole


def test_errors_are_of_the_requests_that_became_due():
    """A time limit ended the load after 25 of 100 requests, all of which failed."""
    counts = {"planned": 100, "ok": 0, "failed": 25, "outcomes": {"timeout": 25}}
    assert re.search(r"25/25\b", terminal(summary(cell("vllm", requests=counts)), 100, color=False))


def test_a_condition_that_refuses_everything_is_why_there_is_no_verdict():
    apart = {"code": "agreement", "labels": ["llamacpp", OFF], "text": "answers disagree: cosine down to 0.3"}
    other = {**apart, "code": "dtype", "text": "number type"}
    made = summary(cell(), cell(OFF), unequal=[{**apart, "matters": True}, {**other, "matters": False}])
    assert "No verdict: answers disagree: cosine down to 0.3." in terminal(made, 100, color=False)


@pytest.mark.parametrize(("repeats", "general"), [(2, True), (3, False)])
def test_runs_that_were_left_out_are_why_nothing_was_tested(repeats, general):
    why = "2 runs each, 3 are needed; llamacpp: 1 of 3 runs left out: ramp kept"
    left_out = {
        **COMPARED,
        "ratio": None,
        "runs": [2, 2],
        "verdict": "not enough runs",
        "why": why,
        "lacks": why,
    }
    cells = [cell(label, repeat=repeat) for repeat in range(repeats) for label in ("llamacpp", OFF)]
    found = " ".join(
        terminal(
            summary(*cells, comparison=[left_out], verdict_rules={**RULES, "min_runs": 3}), 100, False
        ).split()
    )
    assert (f"{repeats} repeats per backend; whether a difference is more than" in found) == general
    assert (f"undecided {why}" in found) != general


def test_of_three_backends_each_pair_has_a_sentence():
    pairs = [{**COMPARED, "b": other} for other in (OFF, "vllm")]
    made = summary(cell(), cell(OFF), cell("vllm"), comparison=pairs, verdict_rules=RULES)
    assert "c4: llamacpp is faster than vllm, 2× (1.6 to 2.5)" in terminal(made, 100, False)


def test_columns_appear_with_their_values():
    plain = terminal(summary(cell()), 200, False)
    assert "goodput" not in plain
    known = cell(
        ttft_ms={"p50": 1.0, "p90": 2.0, "p99": 3.21},
        goodput_requests_per_s=2.5,
        structured_valid_rate=0.5,
        cost_per_million_output_tokens=0.31,
        joules_per_output_token=0.8,
    )
    rich = terminal(summary(known), 200, False)
    for text in ("goodput", "2.50", "valid", "50.0", "cost", "0.310", "energy", "0.800", "3.21"):
        assert text in rich


@pytest.mark.parametrize(("why", "shown"), [("12 of 12 requests never got there", True), ("none", False)])
def test_a_column_of_what_requests_never_reached_says_so(why, shown):
    """Where every answer ended in its reasoning; it was left out, as one of engines that do not reason."""
    text = terminal(summary(cell(null_reasons={"ttft_answer_ms.p50": why})), 200, False)
    assert ("TTFT answer" in text) is shown
    assert (f"n/a, TTFT answer p50: {why}" in text) is shown


def test_a_share_below_the_whole_is_no_hundred_in_a_column():
    rates = {"prefix_cache_hit_rate": 0.9997, "prefix_cache_ideal": 0.9999, "structured_valid_rate": 0.9996}
    shown = terminal(summary(cell(**rates)), 200, False)
    for text in ("99.97 (99.99)", "99.96"):
        assert text in shown
    assert "0.4 (100)" in terminal(
        summary(cell(prefix_cache_hit_rate=0.004, prefix_cache_ideal=1.0)), 200, False
    )


def test_a_percentile_that_one_repeat_is_too_short_for_is_that_of_all():
    short = {"p50": 14.2, "p90": None, "p99": None}
    cells = [cell(ttft_ms=short, repeat=repeat) for repeat in range(3)]
    estimate = {"label": "llamacpp", "load": cells[0].point, "metric": "ttft_ms.p90", "runs": 3}
    told = summary(*cells, estimates=[{**estimate, "interval": [30.5, 33.3, 36.4], "method": "pooled"}])
    found = terminal(told, 100, False)
    assert "33.3" in found
    assert "note: pooled, TTFT p90: over the requests of all repeats" in found
    assert r"33.3 \[pooled, 95%: 30.5–36.4\]" in markdown(told)
    one = {**estimate, "interval": [None, 33.3, None], "method": "pooled", "runs": 1}
    assert "33.3" not in terminal(summary(*cells, estimates=[one]), 100, False)


def test_load_points_are_in_order_and_closed_and_open_loop_are_apart():
    loads = [("rate", 2), ("concurrency", 32), ("concurrency", 4), ("rate", 0.5)]
    found = terminal(
        summary(*(cell(load={"kind": kind, "value": value}) for kind, value in loads)), 100, False
    )
    headings = [line.partition("  ")[0] for line in found.splitlines() if "loop" in line]
    assert headings == [
        "closed loop, concurrency 4",
        "closed loop, concurrency 32",
        "open loop, 0.5 requests/s",
        "open loop, 2 requests/s",
    ]


@pytest.mark.parametrize("width", range(60, 161, 10))
def test_no_line_is_wider_than_the_terminal(width):
    long = cell("sglang@" + "very-" * 20, title="T" * 90, engine_version="v" * 90)
    found = terminal(summary(cell(), long, cell(repeat=1, p50=123456.0)), width, color=False)
    assert [line for line in found.splitlines() if len(line) > width] == []


def test_colour_adds_nothing_but_colour():
    bad = verdict("INVALID", "x", "1", "2", "")
    found = summary(cell(simulated=True), cell("vllm", validity=bad), cell(repeat=1, p50=21.0))
    coloured = terminal(found, 100, color=True)
    assert "\033[31m" in coloured
    assert re.sub(r"\033\[[\d;]*m", "", coloured) == terminal(found, 100, color=False)


def test_foreign_text_cannot_reach_the_terminal_or_open_markdown():
    evil = "\033]0;title\007|<b>"
    found = summary(
        cell(
            "x" + evil,
            engine_version=evil,
            title=evil,
            track=evil,
            null_reasons={"prefix_cache_hit_rate": evil},
            prefix_cache_hit_rate=None,
            validity=verdict("SUSPECT", evil, evil, evil, evil),
        ),
        scenario=evil,
        warnings=[{"code": evil, "text": evil, "hint": evil}],
    )
    for text in (terminal(found, 100, color=False), markdown(found)):
        assert not {"\033", "\007"} & set(text)
    assert "<b>" not in markdown(found)
    assert all(
        row.replace("\\|", "").count("|") == 12 for row in markdown(found).splitlines() if row.startswith("|")
    )


def test_a_simulated_backend_cannot_open_markdown_by_its_name():
    found = markdown(summary(cell("<b>*~$", simulated=True), cell("vllm")))
    assert found.count(r"**SIMULATED IN PART: &lt;b>\*\~\$**") == 2


def test_an_empty_run_says_so_and_does_not_fail():
    found = terminal(summary(state="failed"), 100, False)
    assert "warning: the state of this run is failed" in found
    assert markdown(summary(state="failed"))


def test_a_rule_that_many_cells_break_is_one_warning() -> None:
    cells = [
        cell(
            repeat=repeat, validity=verdict("SUSPECT", "contended", f"{share}%", "10%", "stop what else runs")
        )
        for repeat, share in enumerate((91, 95, 96, 97, 98))
    ]
    text = " ".join(terminal(summary(*cells), 100, False).split())
    assert text.count("contended, 91%") == 1
    assert (
        "SUSPECT llamacpp c4 r0, llamacpp c4 r1 and 3 more cells: contended, 91%; limit 10% "
        "(others similar) hint: stop what else runs"
    ) in text
    alone = " ".join(terminal(summary(cells[0]), 100, False).split())
    assert "SUSPECT llamacpp c4 r0: contended, 91%; limit 10% hint" in alone


def test_requests_that_failed_otherwise_are_not_called_similar() -> None:
    cells = [
        cell(
            label,
            validity=verdict("INVALID", "failed-requests", measured, "1%", "see the log", failure=failure),
        )
        for label, measured, failure in (
            ("a", "3 of 24: HTTP 401, no such key", "HTTP 401"),
            ("b", "4 of 24: HTTP 500, <html>", "HTTP 500"),
            ("c", "5 of 24, 4 of them: HTTP 401, no such key", "HTTP 401"),
        )
    ]
    text = " ".join(terminal(summary(*cells), 100, False).split())
    assert "INVALID a c4 r0 and c c4 r0: failed-requests, 3 of 24: HTTP 401, no such key; limit 1% (o" in text
    assert "INVALID b c4 r0: failed-requests, 4 of 24: HTTP 500, <html>; limit 1% hint: see the log" in text


def test_a_rule_that_one_cell_breaks_twice_names_the_cell_once() -> None:
    reasons = [
        {"code": "structured-invalid", "verdict": "SUSPECT", "measured": shape, "limit": "0", "hint": ""}
        for shape in ("regex", "choice")
    ]
    both = cell(validity={"verdict": "SUSPECT", "reasons": reasons})
    text = " ".join(terminal(summary(both), 100, False).split())
    assert "SUSPECT llamacpp c4 r0: structured-invalid, regex; limit 0 (others similar)" in text


def test_what_is_unequal_stands_in_the_terminal():
    differences = [
        {"code": "x", "labels": ["a", "b"], "text": "tokens per answer: 40 (a), 50 (b)", "matters": True,
         "metrics": ["e2e_ms", "output_tokens_per_s"]},
        {"code": "y", "labels": ["a", "b"], "text": "characters per token: 4 (a), 4.1 (b)", "matters": False,
         "metrics": ["tpot_ms"], "apart": 0.021},
        {"code": "z", "labels": ["a", "b"], "text": "kernel: 1 (a), 2 (b)", "matters": False},
    ]  # fmt: skip
    found = terminal(summary(cell("a"), cell("b"), unequal=differences), width=200, color=False)
    assert "unequal: tokens per answer: 40 (a), 50 (b); no verdict on E2E, output tokens/s\n" in found
    assert "unequal: characters per token: 4 (a), 4.1 (b); the floor of TPOT is 2.1% wider\n" in found
    assert "unequal without an effect on a verdict: 1 condition, in the report\n" in found


def _looked(answers, seconds):
    return {"sample": {"answers": answers, "seconds": seconds, "min_answers": 32, "min_seconds": 2}}


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        ([_looked(24, 30.0), _looked(200, 30.0)], "a first look: cells of 24 answers and 30 s at the least"),
        ([_looked(200, 4.0)], "a first look: cells of 200 answers and 4 s at the least"),
        ([_looked(100, 10.0)], ""),
        ([_looked(120, 60.0)], ""),
    ],
)
def test_a_first_look_is_of_cells_with_less_than_the_default(cells, text):
    made = summary(*(cell(repeat=repeat, **changes) for repeat, changes in enumerate(cells)))
    found = terminal(made, 200, color=False)
    assert ("a first look" in found) == bool(text)
    assert text in found


def test_what_a_running_server_does_not_report_has_the_name_of_the_glossary():
    attached = cell(engine_version=None, track=None, launch="attach")
    words = engine_words(summary(attached))["llamacpp"]
    assert words.endswith(" version not reported, weights not reported, launch attach")


def test_an_engine_that_changed_is_listed_with_every_version_that_was_measured():
    versions = ("0.32.0", "0.33.0", "0.32.0")
    cells = (cell("vllm", repeat=repeat, engine_version=one) for repeat, one in enumerate(versions))
    found = terminal(summary(*cells, cell("sglang", engine_version="0.5")), 200, color=False)
    assert "vllm: llama.cpp 0.32.0 and 0.33.0, gguf-q4_1" in found
    assert "sglang: llama.cpp 0.5, gguf-q4_1" in found


def test_of_a_run_without_a_cell_nothing_is_counted():
    first, *_ = terminal(summary(), 200, color=False).splitlines()
    assert first.endswith(": nothing measured")
    assert screen(summary(), 200, color=False).splitlines()[0].endswith(": nothing measured")
