"""The first screen of a run: verdict, one table, three warnings at most, and what to run next."""

import re
import shlex
from itertools import combinations

import pytest
from msgspec.structs import replace

from harness.model.lines import wrap
from harness.report.findings.capacity_words import capacity_lines
from harness.report.findings.conclude import conclude
from harness.report.text.screen import next_lines, screen
from harness.report.text.table import markdown
from tests.factories.documents import changed
from tests.factories.summaries import cell, summary, verdict

LOADS = [{"kind": "concurrency", "value": users} for users in (1, 8)]
RULES = {"primary": "ttft_ms.p50", "metrics": ["ttft_ms.p50"], "confidence": 0.95, "min_runs": 3}


def two(word="faster", ratio=(0.4, 0.5, 0.625), why="so it is", repeats=3, needed=9, **changes):
    """vllm and llamacpp at one and eight users, three repeats each."""
    cells = [
        cell(label, load, repeat, p50=p50)
        for repeat in range(repeats)
        for load in LOADS
        for label, p50 in (("vllm", 10.0), ("llamacpp", 20.0))
    ]
    comparison = [
        {"a": "vllm", "b": "llamacpp", "load": load, "metric": "ttft_ms.p50", "better": "lower",
         "ratio": list(ratio) if ratio else None, "runs": [3, 3], "verdict": word, "why": why,
         "runs_needed": needed if ratio and word == "not enough runs" else None, "primary": True}
        for load in LOADS
    ]  # fmt: skip
    return summary(*cells, **{"comparison": comparison, "verdict_rules": RULES, **changes})


def lines(made, columns=80):
    return screen(made, columns, color=False).splitlines()


def test_the_verdict_comes_before_the_table_and_the_table_before_the_warnings():
    doubtful = two()
    bad = verdict("SUSPECT", "contended", "50%", "10%", "stop what else runs")
    made = summary(*doubtful.cells[:-1], cell("llamacpp", LOADS[1], 2, p50=20.0, validity=bad),
                   comparison=doubtful.comparison, verdict_rules=RULES)  # fmt: skip
    text = "\n".join(lines(made))
    assert text.index("8 users  first token  vllm 2× faster (1.6 to 2.5)") < text.index("load     backend")
    assert text.index("in doubt     llamacpp: 1 of 3 repeats SUSPECT: contended") < text.index(
        "load     backend"
    )
    assert text.index("SUSPECT 1/3") < text.index("warning: SUSPECT llamacpp c8 r2: contended")


@pytest.mark.parametrize("columns", [60, 70, 80, 100, 160])
def test_there_is_one_table_with_a_row_per_load_and_backend(columns):
    found = lines(two(), columns)
    assert sum("validity" in line for line in found) == 1
    rows = [line for line in found if line.endswith("VALID")]
    assert [row.split()[0] for row in rows] == ["1", "llamacpp", "8", "llamacpp"]
    assert max(map(len, found)) <= columns


def test_columns_go_by_their_importance_and_the_page_says_which():
    narrow, wide = "\n".join(lines(two(), 60)), "\n".join(lines(two(), 160))
    assert "Not shown: " in narrow
    assert "ITL p50" in narrow.partition("Not shown: ")[2]
    assert "Not shown" not in wide
    for head in ("TTFT", "output", "validity"):
        assert head in narrow.partition("Not shown")[0]


def test_a_column_without_a_figure_makes_room_for_others():
    few = [replace(made, ttft_ms=replace(made.ttft_ms, p90=None)) for made in two().cells]
    for cells, kept, left_out in ((two().cells, "p90", "ITL p50"), (few, "ITL", "TTFT p90")):
        shown, _, others = "\n".join(lines(summary(*cells, verdict_rules=RULES), 76)).partition("Not shown: ")
        assert kept in shown
        assert left_out in others


@pytest.mark.parametrize(
    ("api", "per_s", "column"),
    [("embeddings", 805.0, True), ("transcriptions", None, False), ("chat", 805.0, False)],
)
def test_input_tokens_have_a_column_where_no_text_is_written_and_a_server_counts_them(api, per_s, column):
    made = [changed(each, conditions={"api": api}, input_tokens_per_s=per_s) for each in two().cells]
    assert any("input" in line for line in lines(summary(*made, verdict_rules=RULES), 160)) is column


def test_errors_are_shown_where_there_are_any_and_said_to_be_none_where_not():
    failing = cell(
        "vllm@with-a-variant-of-a-long-name",
        requests={"planned": 32, "failed": 3, "outcomes": {"ok": 29, "timeout": 3}},
    )
    assert "3/32" in "\n".join(lines(summary(failing, verdict_rules=RULES), 60))
    assert "No request failed." in "\n".join(lines(two(), 60))


@pytest.mark.parametrize(
    "figure",
    [
        "1.61%",
        "23.1 ms",
        "9 s",
        "5.58 req/s",
        "87.1 tok/s",
        "4 items/s",
        "0.31 J",
        "17 GiB",
        "60 ns",
        "8.4 points",
    ],
)
def test_no_line_ends_between_a_figure_and_its_unit(figure):
    for columns in range(12, 40):
        assert any(figure in line for line in wrap(f"of vllm and sglang: {figure} of the requests", columns))


def test_three_warnings_and_how_many_more():
    codes = ("contended", "loop-lag", "lockstep", "few-waves", "too-short")
    reasons = [
        {"code": code, "verdict": "SUSPECT", "measured": "1", "limit": "2", "hint": ""} for code in codes
    ]
    invalid = {"code": "client-busy", "verdict": "INVALID", "measured": "1", "limit": "2", "hint": ""}
    made = summary(
        cell(validity={"verdict": "SUSPECT", "reasons": reasons}),
        cell("vllm", validity={"verdict": "INVALID", "reasons": [invalid]}),
        verdict_rules=RULES,
    )
    found = [line for line in lines(made) if line.startswith("warning")]
    assert len(found) == 3
    assert found[0].startswith("warning: INVALID vllm c4 r0: client-busy")
    assert "3 more warnings: -v, or the report" in lines(made)


def test_an_engine_that_changed_comes_before_the_doubts_about_its_cells():
    invalid = verdict("INVALID", "client-busy", "98%", "90%", "")
    warning = {"code": "engine-changed", "text": "vllm changed during the run", "hint": ""}
    made = summary(cell("vllm", validity=invalid), warnings=[warning], verdict_rules=RULES)
    found = [line for line in lines(made) if line.startswith("warning")]
    assert found[0] == "warning: engine-changed: vllm changed during the run"


def test_one_ramp_is_one_warning_with_one_hint():
    ramps = [
        verdict(
            "SUSPECT",
            "ramp-kept",
            f"{count} requests",
            "10%",
            f"{count} more warm-up requests",
            requests_needed=count,
        )
        for count in (8, 11)
    ]
    warning = {
        "code": "ramp-kept",
        "text": "000-vllm-c4-r0: 11 requests",
        "hint": "--set load.warmup_requests=19",
    }
    cells = [cell("vllm", repeat=repeat, validity=ramp) for repeat, ramp in enumerate(ramps)]
    with_run = "\n".join(lines(summary(*cells, warnings=[warning], verdict_rules=RULES)))
    assert with_run.count("warning: SUSPECT 2 cells: ramp-kept, 8 requests; limit 10%") == 1
    assert "warning: ramp-kept" not in with_run
    assert "hint: --set load.warmup_requests=19" in with_run
    alone = "\n".join(lines(summary(*cells, verdict_rules=RULES)))
    assert "hint: 11 more warm-up requests" in alone
    assert "8 more warm-up" not in alone


def test_other_weights_are_explained_below_the_table():
    made = summary(
        cell("vllm", quantisation="bf16", track="bf16"), cell("llamacpp"), cell("mlx-lm"), verdict_rules=RULES
    )
    assert "* weights Q4_1, the others bf16: a difference may be theirs" in lines(made, 100)


def test_a_server_under_load_is_a_table_and_then_its_conclusion():
    cells = [
        cell("openai", load, p50=100.0, output_tokens_per_s=rate)
        for load, rate in zip(LOADS, (19.0, 155.0), strict=True)
    ]
    text = screen(summary(*cells, verdict_rules=RULES), 80, color=False, sketch=lambda _made, _width: "BARS")
    table, _, rest = text.partition("BARS")
    assert [line.split()[0] for line in table.splitlines() if line.endswith("VALID")] == ["1", "8"]
    said = " ".join(rest.split())
    assert "155 output tokens/s at 8 users, 19.0 at 1; the first token stays at 100 ms; the limit" in said


@pytest.mark.parametrize(
    ("made", "why", "do"),
    [
        (two(), "to see a later change", "bench compare"),
        (two("not enough runs"), "2 of 2 pairs are undecided", "--repeats auto --max-repeats 10"),
        (two("not enough runs", needed=None), "more repeats would hardly help", "with `--requests 128`"),
        (two(ratio=None, repeats=1, word="not enough runs"), "one repeat cannot tell", "--repeats auto"),
        (two(state="interrupted"), "the run was interrupted", "bench resume 2026"),
        (two(state="running"), "the run is unfinished", "bench resume 2026"),
        (
            summary(*(cell("vllm", load, output_tokens_per_s=10.0 * load["value"]) for load in LOADS)),
            "the limit was not reached",
            "--concurrency 16,32",
        ),
        (
            summary(cell("vllm", validity=verdict("SUSPECT", "too-short", "24", "100", "--requests 100"))),
            "1 of 1 cell is SUSPECT, too-short",
            "--requests 100",
        ),
    ],
)
def test_the_next_step_is_of_what_the_run_leaves_open(made, why, do):
    step = conclude(made).next_steps[0]
    assert why in step.why
    assert do in step.do
    assert why in " ".join(" ".join(next_lines(made, 80)).split())


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_command_with_the_run_is_not_broken(columns):
    path = f"results/{summary().run}-of-a-long-name"
    interrupted = summary(cell("vllm"), state="interrupted")
    _why, *command = next_lines(interrupted, columns, path)
    assert shlex.split("\n".join(command).replace("\\\n", "")) == ["bench", "resume", path]


def test_the_path_of_a_log_stays_as_it_is():
    log = f"its log: /runs/{summary().run}/logs/a.log"
    made = summary(cell(validity=verdict("INVALID", "engine-died", "1", "0", log)))
    assert log in " ".join(" ".join(next_lines(made, 200, f"/runs/{summary().run}")).split())


def test_a_run_whose_name_is_a_word_of_the_advice_leaves_it_as_it_is():
    hint = "requests left late: lower the load"
    made = summary(cell(validity=verdict("INVALID", "schedule-lag", "1", "0", hint)), run="l")
    assert hint in " ".join(" ".join(next_lines(made, 200, "results/l")).split())
    assert list(next_lines(summary(cell(), run="c"), 200, "a b/c"))[-1].endswith(
        "bench compare 'a b/c' 'a b/latest'"
    )


def test_advice_of_a_file_is_no_command():
    """A lone apostrophe in a hint that begins with `bench` was a traceback."""
    made = summary(cell(validity=verdict("INVALID", "engine-died", "1", "0", "bench logs has the engine's")))
    (step,) = conclude(made).next_steps
    assert not step.is_command
    assert list(next_lines(made, 80))[-1].endswith(f": {step.do}")


def test_what_is_undecided_says_what_would_decide_it():
    made = two("not enough runs")
    pairs = [replace(one, lacks="about 9 runs would decide", runs_needed=9) for one in made.comparison]
    text = "\n".join(lines(replace(made, comparison=tuple(pairs))))
    assert "1 user   first token  vllm 2× (1.6 to 2.5), undecided" in text
    assert "         undecided    about 9 runs would decide" in text


def test_a_refusal_says_why():
    found = " ".join(
        " ".join(lines(two("not comparable", why="CPU threads: 2 (vllm), 1 (llamacpp)"))).split()
    )
    assert "first token not comparable: CPU threads: 2 (vllm), 1 (llamacpp)" in found


def test_a_doubt_of_an_invalid_cell_is_no_reason_that_it_is_invalid():
    reasons = [
        {"code": "contended", "verdict": "SUSPECT", "measured": "50%", "limit": "10%", "hint": ""},
        {"code": "client-busy", "verdict": "INVALID", "measured": "97%", "limit": "90%", "hint": ""},
    ]
    found = "\n".join(lines(summary(cell(validity={"verdict": "INVALID", "reasons": reasons}))))
    assert "in doubt  llamacpp: 1 of 1 repeat INVALID: client-busy\n" in found
    assert "warning: SUSPECT llamacpp c4 r0: contended" in found
    assert "warning: INVALID llamacpp c4 r0: client-busy" in found


def test_a_doubt_of_every_figure_is_warned_of_before_a_more_frequent_one_of_a_single_metric():
    merged = {"code": "itl-merged", "verdict": "SUSPECT", "measured": "2%", "limit": "1%", "hint": ""}
    unread = {"code": "images-unread", "verdict": "SUSPECT", "measured": "38", "limit": "39", "hint": ""}
    merged |= {"metrics": ["itl_ms"]}
    cells = [
        cell("a", validity={"verdict": "SUSPECT", "reasons": [merged, unread]}),
        cell("b", validity={"verdict": "SUSPECT", "reasons": [merged]}),
    ]
    first, second, *_ = conclude(summary(*cells)).warnings
    assert "images-unread" in first.text
    assert "SUSPECT 2 cells: itl-merged" in second.text


@pytest.mark.parametrize(("doubtful", "first"), [(12, "SUSPECT, contended"), (2, "pairs are undecided")])
def test_more_repeats_of_what_is_mostly_in_doubt_are_not_the_next_step(doubtful, first):
    made = two("not enough runs")
    bad = verdict("SUSPECT", "contended", "50%", "10%", "stop what else runs")
    cells = [replace(one, validity=bad) for one in made.cells[:doubtful]]
    steps = conclude(replace(made, cells=(*cells, *made.cells[doubtful:]))).next_steps
    assert first in steps[0].why
    assert {"stop what else runs", "the same command with `--repeats auto --max-repeats 10`"} <= {
        step.do for step in steps
    }


def limited(label, rate, share, **changes):
    limits = [{"metric": "e2e_ms", "share": "p95", "limit_ms": 1000, "within": share, "met": share >= 0.95}]
    slo = {"limits": limits, "met": share >= 0.95, "good": 30, "requests": 32, "attainment": share}
    return cell(label, goodput_requests_per_s=rate, slo=slo, **changes)


def test_what_was_answered_inside_the_limits_is_said_and_stands_in_the_table():
    made = summary(
        limited("llamacpp", 1.5, 0.4),
        limited("vllm", 3.7, 1.0),
        comparison=two().comparison,
        verdict_rules=RULES,
    )
    said = "inside E2E ≤ 1000 ms: vllm 3.70 req/s, 100%; llamacpp 1.50 req/s, 40% of the requests"
    assert said in " ".join(" ".join(lines(made)).split())
    assert any("goodput" in line and "validity" in line for line in lines(made))
    assert f"goodput: {said}" in markdown(made)
    (found,) = conclude(made).goodput
    assert [(one.label, one.requests_per_s, one.share) for one in found.places] == [
        ("vllm", 3.7, 1.0),
        ("llamacpp", 1.5, 0.4),
    ]


def test_of_one_server_goodput_is_said_at_each_load():
    made = summary(
        *(limited("openai", rate, 1.0, load=load) for load, rate in zip(LOADS, (1.0, 6.0), strict=True)),
        verdict_rules=RULES,
    )
    text = "\n".join(lines(made))
    assert "8 users  goodput  inside E2E ≤ 1000 ms: openai 6.00 req/s, 100%" in text
    assert not conclude(two()).goodput


def test_the_currency_of_a_cost_stands_below_the_table():
    price = {"per_hour": 3.8, "currency": "USD", "covers": "1 × H200", "source": "--price-per-gpu-hour"}
    text = "\n".join(lines(summary(cell(cost_per_million_output_tokens=0.79, cost={"price": price})), 100))
    assert "cost in USD: 3.8 per hour for 1 × H200 (--price-per-gpu-hour)" in text.splitlines()
    assert "cost in" not in "\n".join(lines(summary(cell())))


def test_a_capacity_and_a_knee_say_what_each_load_would_repeat():
    capacity = {"label": "openai", "kind": "rate", "kept_by_search": [], "tested": []}
    cells = [limited("openai", 6.0, 1.0, load=load) for load in LOADS]
    assert "goodput  inside" in "\n".join(lines(summary(*cells)))
    assert "goodput  inside" not in "\n".join(lines(summary(*cells, capacity=[capacity])))
    knee = {"label": "openai", "value": 1.4, "interval": [1.0, 2.0], "repeats": 3, "crossed": 3,
            "largest": 4.0, "fits": 0.9, "ideal": 0.95, "unrelated": 0.0}  # fmt: skip
    sizes = [cell("openai", {"kind": "working-set", "value": size}) for size in (1, 8)]
    assert "first token after" in "\n".join(lines(summary(*sizes)))
    assert "first token after" not in "\n".join(lines(summary(*sizes, knees=[knee])))


def test_a_search_says_how_fast_the_load_is_that_it_found_and_asks_for_no_repeats():
    loads = [{"kind": "concurrency", "value": users} for users in (1, 2, 4, 8)]
    cells = [cell(label, load) for label in ("vllm", "llamacpp") for load in loads]
    compared = {"a": "vllm", "b": "llamacpp", "metric": "ttft_ms.p50", "better": "lower", "primary": True}
    few = {"runs": [1, 1], "verdict": "not enough runs", "why": "1 run each, 3 are needed"}
    pairs = [{**compared, **few, "load": load} for load in loads]
    capacities = [
        {"label": label, "kind": "concurrency", "value": value, "kept_by_search": [], "tested": []}
        for label, value in (("vllm", 5.0), ("llamacpp", 2.0))
    ]
    found = "\n".join(lines(summary(*cells, comparison=pairs, verdict_rules=RULES, capacity=capacities)))
    before_the_table = found.partition("p50")[0]
    assert re.findall(r"^(\d+) users? ", before_the_table, re.M) == ["2", "4"]
    assert "undecided" not in before_the_table
    assert "No verdict" not in found
    assert "No verdict" in "\n".join(lines(summary(*cells, comparison=pairs, verdict_rules=RULES)))


def test_of_many_backends_the_least_and_the_most_goodput_are_said():
    made = summary(
        *(limited(label, rate, 0.5) for label, rate in zip("abcd", (1.0, 4.0, 2.0, 3.0), strict=True))
    )
    text = " ".join(" ".join(lines(made)).split())
    assert "goodput least and most inside E2E ≤ 1000 ms: a 1.00 req/s, 50%; b 4.00 req/s, 50%" in text


def test_of_several_limits_goodput_names_the_loosest_that_a_good_request_keeps():
    asked = (("ttft_ms", "p50", 500), ("ttft_ms", "p95", 2000), ("e2e_ms", "max", 9000))
    limits = [
        {"metric": metric, "share": share, "limit_ms": limit_ms, "within": 1.0, "met": True}
        for metric, share, limit_ms in asked
    ]
    slo = {"limits": limits, "met": True, "good": 32, "requests": 32, "attainment": 1.0}
    text = markdown(summary(*(changed(limited(label, 3.7, 1.0), slo=slo) for label in ("vllm", "tgi"))))
    assert "inside TTFT ≤ 2000 ms and E2E ≤ 9000 ms: vllm 3.70 req/s, 100%" in text


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_two_backends_of_long_names_have_names_of_their_own(columns):
    labels = [f"llamacpp@no-prefix-cache-and-a-long-name-{how}" for how in ("eager", "flash", "eager-flash")]
    text = screen(summary(*map(cell, labels)), columns, color=False)
    rows = [line for line in text.splitlines() if line.endswith(" VALID")]
    assert len({re.search(r"llamacpp@\S+", row)[0] for row in rows}) == len(rows) == 3


@pytest.mark.parametrize("state", ["complete", "interrupted"])
def test_the_name_of_a_run_from_elsewhere_is_no_command_of_its_own(state):
    """The page and the terminal show the next step to be copied into a shell."""
    made = summary(cell("vllm"), state=state, run="$(id)")
    steps = [step.do for step in conclude(made).next_steps if "$(id)" in step.do]
    assert steps
    assert all(shlex.quote("$(id)") in step for step in steps)
    assert "'results/$(id)'" in list(next_lines(made, 200, "results/$(id)"))[-1]


def test_a_percentile_that_the_scenario_limits_has_a_column_and_keeps_it_in_a_narrow_table():
    """A run was asked for TTFT p95, and its tables had p50, p90 and p99."""
    limits = [{"metric": "ttft_ms", "share": "p95", "limit_ms": 1000.0}]
    latency = {"p50": 678.0, "p90": 799.0, "p95": 882.0, "p99": 990.0}
    found = summary(cell(ttft_ms=latency, slo={"attainment": 0.976, "limits": limits}))
    table = [line.split() for line in lines(found, 60)[6:10]]
    assert table[1][:4] == ["p50", "p95", "p50", "p50"]
    assert table[3][:5] == ["4", "users", "678", "882", "20.0"]
    assert lines(found, 140)[5].split()[:4] == ["p50", "p90", "p95", "p99"]
    assert re.search(r"TTFT p90[^|]*\| TTFT p95[^|]*\| TTFT p99", markdown(found))
    unknown = summary(cell(ttft_ms={**latency, "p95": None}, slo={"attainment": 0.976, "limits": limits},
                           null_reasons={"ttft_ms.p95": "32 samples; p95 needs 59"}))  # fmt: skip
    assert "n/a, TTFT p95: 32 samples; p95 needs 59" in markdown(unknown)


def test_the_capacities_of_nine_backends_are_ranked_on_the_first_screen():
    """An answer and a verdict each had lines of their own: 45 of them at 80 columns."""
    values = dict(zip("abcdefghi", (2.0, 5.5, 20.0, 9.9, 19.5, None, 14.0, 7.0, 12.0), strict=True))
    limit = {"limits": [{"metric": "ttft_ms", "share": "p95", "limit_ms": 2000.0}], "attainment": 1.0}
    cells = [cell(label, {"kind": "rate", "value": 1}, slo=limit) for label in values]
    capacities = [
        {"label": label, "kind": "rate", "value": value, "kept_by_search": [value], "searches": 3,
         "highest": 64, "interval": [value and 0.95 * value, value, value and 1.05 * value],
         "tested": [{"value": 1, "runs": 4, "kept": 4}]}
        for label, value in values.items()
    ]  # fmt: skip
    pairs = [
        {"a": "c", "b": label, "verdict": "more", "ratio": [0.9 * 20 / value, 20 / value, 1.1 * 20 / value]}
        for label, value in values.items() if label not in "cef" and value
    ]  # fmt: skip
    pairs += [{"a": "c", "b": label, "verdict": "undecided", "ratio": [0.9, 1.0, 1.1]} for label in "ef"]
    shown = lines(summary(*cells, capacity=capacities, capacity_pairs=pairs))
    text = " ".join(" ".join(shown[: next(i for i, line in enumerate(shown) if "p50" in line)]).split())
    ranked = text.partition("capacity in requests/s (95% interval): ")[2]
    assert ranked.startswith("c 20 (19 to 21), e 19.5 (18.525 to 20.475), g 14 (13.3 to 14.7), i 12 ")
    assert text.count("capacity f: ") == text.count("capacity ") - 1 == 1
    assert "Within TTFT p95 ≤ 2000 ms, c serves about 600 users" in text
    assert text.count("Within TTFT") == 1
    assert "c carries more than a (10 times), b (3.64 times), d (2.02 times), g (1.43 times)" in text
    assert "undecided whether c carries more or less than e and f" in text
    assert next(i for i, line in enumerate(shown) if line.startswith("1 req/s")) < 16


@pytest.mark.parametrize(
    ("word", "why", "expected"),
    [
        ("undecided", "1 search on each side, 3 are needed",
         ["undecided which backend carries more, in 6 pairs; 1 search on each side, 3 are needed"]),
        ("not comparable", "unequal work",
         ["the capacities of a and b are not comparable: unequal work; so are 5 more pairs"]),
    ],
)  # fmt: skip
def test_capacities_of_which_none_is_ahead_are_said_to_be_so_once(word, why, expected):
    capacities = [
        {"label": label, "kind": "concurrency", "value": 4, "kept_by_search": [4], "searches": 1,
         "interval": [4, 4, 5], "tested": []}
        for label in "abcd"
    ]  # fmt: skip
    pairs = [
        {"a": a, "b": b, "verdict": word, "ratio": [None, None, None], "why": why}
        for a, b in combinations("abcd", 2)
    ]
    made = summary(*map(cell, "abcd"), capacity=capacities, capacity_pairs=pairs)
    assert list(capacity_lines(made))[-1:] == expected
    assert "capacity in users (95% interval): a 4 (4 to 5), b 4 (4 to 5)" in "\n".join(capacity_lines(made))
    pairs[1:] = [pair | {"verdict": "undecided"} for pair in pairs[1:]]
    mixed = list(capacity_lines(summary(*map(cell, "abcd"), capacity=capacities, capacity_pairs=pairs)))
    assert [line for line in mixed if "not comparable" in line] == [
        line.partition("; so are")[0] for line in expected if "not comparable" in line
    ]
    nothing = [each | {"value": None, "interval": [None, None, None]} for each in capacities]
    unknown = list(capacity_lines(summary(*map(cell, "abcd"), capacity=nothing)))
    assert [line.partition(":")[0] for line in unknown[:3]] == ["capacity a", "capacity b", "capacity c"]
    assert unknown[3:] == ["1 more backend without an answer: see the report"]
    open_ended = [each | {"interval": [None, 4, None]} for each in capacities]
    first, *_ = capacity_lines(replace(made, capacity=summary(capacity=open_ended).capacity))
    assert first == "capacity in users: a 4 or more, b 4 or more, c 4 or more, d 4 or more"


def test_of_two_that_carry_more_than_as_many_others_the_higher_answer_leads():
    """Truths of 1 to 4 slots: c and d each carry more than a and b, and 3 and 4 are undecided."""
    capacities = [
        {"label": label, "kind": "concurrency", "value": value, "kept_by_search": [value], "searches": 3,
         "interval": [value, value, value + 1], "tested": []}
        for value, label in enumerate("abcd", 1)
    ]  # fmt: skip
    pairs = [
        {
            "a": a,
            "b": b,
            "verdict": "undecided" if a + b in ("ab", "cd") else "fewer",
            "ratio": [0.3, 0.5, 0.7],
        }
        for a, b in combinations("abcd", 2)
    ]
    found = [*capacity_lines(summary(*map(cell, "abcd"), capacity=capacities, capacity_pairs=pairs))][-3:]
    assert found == [
        "d carries more than a: 2 times the load (1.43 to 3.33)",
        "d carries more than b: 2 times the load (1.43 to 3.33)",
        "undecided whether c carries more or less than d: 0.5 times the load (0.3 to 0.7)",
    ]
    pairs = [
        pair | {"verdict": "fewer" if pair["b"] == "c" or pair["a"] + pair["b"] == "ad" else "undecided"}
        for pair in pairs
    ]
    found = [*capacity_lines(summary(*map(cell, "abcd"), capacity=capacities, capacity_pairs=pairs))][-3:]
    assert sum(line.startswith("c carries more than") for line in found) == 2, "d is ahead of one alone"


def test_a_backend_that_carries_less_than_another_does_not_lead():
    """The work of y is like that of all; that of z is like that of y alone."""
    values = dict(zip("abcdefyz", (1.0, 1.0, 1.1, 1.1, 1.2, 1.2, 4.0, 8.0), strict=True))
    capacities = [
        {"label": label, "kind": "rate", "value": value, "kept_by_search": [value], "searches": 3,
         "interval": [0.9 * value, value, 1.1 * value], "tested": []}
        for label, value in values.items()
    ]  # fmt: skip
    pairs = [
        {"a": a, "b": b, "verdict": "not comparable", "ratio": [None, None, None], "why": "unequal work"}
        if b == "z" and a != "y"
        else {"a": a, "b": b, "verdict": "fewer" if b in "yz" else "undecided", "ratio": [0.3, 0.5, 0.7]}
        for a, b in combinations(values, 2)
    ]
    found = [*capacity_lines(summary(*map(cell, values), capacity=capacities, capacity_pairs=pairs))]
    assert found[-2:] == [
        "z carries more than y (2 times)",
        "the capacities of a and z are not comparable: unequal work; so are 5 more pairs",
    ]
