"""A report says what is wrong and what is to be run next in the words of the terminal."""

import re
from html import unescape
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from harness.model import Capacity, TestedLoad
from harness.report.findings.conclude import WARNINGS, conclude
from harness.report.findings.next_steps import STEPS
from harness.report.html.answer import next_steps, own_command, wrong
from harness.report.html.tags import with_code
from harness.report.text import markdown_text
from harness.report.text.screen import next_lines, screen
from harness.report.text.table import markdown
from harness.verdicts import compare
from harness.verdicts.rules import Rules
from tests.factories.documents import changed
from tests.factories.summaries import cell, summary, verdict
from tests.unit.report.findings.test_sentences import summaries
from tests.unit.report.html.test_evidence import interleaved

RULES = Rules("ttft_ms.p50", ("ttft_ms.p50",))
COMMAND = ["bench", "run", "--scenario", "chat", "--repeats", "3", "--out=results"]
OPEN = "1 of 1 pair is undecided: the same command with --repeats auto"
HOPELESS = "1 of 1 pair is undecided, and more repeats would hardly help, but longer ones: the same command"
STATES = ("VALID", "SUSPECT", "INVALID")


def lines(part, made):
    """The points of a list of the page."""
    html = "".join(part(SimpleNamespace(summary=made, manifest=None)))
    return [_words(one) for one in re.findall("<li>(.*?)</li>", html)]


def _words(html):
    return " ".join(unescape(re.sub(r"<[^>]+>", "", html)).split())


def compared(*cells, **changes):
    return summary(*cells, **{**compare(cells, RULES)._asdict(), **changes})


def test_what_the_terminal_quotes_is_code_on_the_page():
    hint = "measure longer (of `bench URL`: --minutes), or `more"
    made = summary(cell(validity=verdict("SUSPECT", "too-short", "1", "2", hint.partition(", or")[0])))
    html = "".join(next_steps(SimpleNamespace(summary=made, manifest=None)))
    assert "(of <code>bench URL</code>: --minutes)" in html
    assert with_code(hint) == hint  # a lone backtick quotes nothing


def test_a_command_on_the_page_is_broken_between_its_parts_alone():
    """A browser breaks a line at each hyphen: `bench run -` ended one, and `-scenario` began the next."""
    quoted = with_code("`bench run --scenario rag -v a=http://x-1`: more-or-less")
    first, last = "<span>--scenario</span>", "<span>a=http://x-1</span>"
    assert quoted == f"<code>bench run {first} rag <span>-v</span> {last}</code>: more-or-less"


def test_a_dead_engine_stands_before_what_came_of_it():
    reasons = [
        reason
        for code in ("failed-requests", "too-few-samples", "engine-died")
        for reason in verdict("INVALID", code, "1", "0", "").reasons
    ]
    dead = cell("a", validity={"verdict": "INVALID", "reasons": reasons})
    first, *_ = conclude(summary(dead, cell("b"))).warnings
    assert first.text.startswith("INVALID a c4 r0: engine-died")


def test_a_capacity_search_is_not_told_to_repeat_what_it_refuses():
    cells = interleaved((10.0, 12.0, 11.0), (10.2, 11.5, 12.0))
    capacity = {"label": "a", "kind": "rate", "kept_by_search": [], "tested": []}
    assert any("--repeats auto" in step.do for step in conclude(compared(*cells)).next_steps)
    assert not any(
        "--repeats" in step.do for step in conclude(compared(*cells, capacity=[capacity])).next_steps
    )


WARNED = st.lists(
    st.fixed_dictionaries({
        "code": st.sampled_from(("cell-missing", "engine-died", "one-repeat", "different-tracks")),
        "text": st.sampled_from(("a thing", "another thing")),
        "hint": st.sampled_from(("", "do this")),
    }),
    max_size=5,
)  # fmt: skip


@given(
    made=summaries(validities=STATES),
    warnings=WARNED,
    state=st.sampled_from(("complete", "interrupted", "invalid", "running")),
    columns=st.sampled_from((60, 80, 120)),
)
def test_report_terminal_page_and_document_have_one_source(made, warnings, state, columns):
    made = replace(made, state=state, warnings=summary(warnings=warnings).warnings)
    found = conclude(made)
    steps = [f"{one.why}: {one.do}" for one in found.next_steps]
    assert len(steps) <= STEPS
    assert lines(next_steps, made) == [" ".join(step.replace("`", "").split()) for step in steps]
    labelled = " ".join(f"{'also' if number else 'next'}: {step}" for number, step in enumerate(steps))
    assert " ".join(" ".join(next_lines(made, columns)).replace(" \\ ", " ").split()) == labelled
    for number, step in enumerate(found.next_steps):
        do = f"`{step.do}`" if step.is_command else step.do  # to be copied
        label = "**also:** " if number else "**next:** "
        assert label + markdown_text.with_code(f"{step.why}: {do}") in markdown(made)
    on_page, said = lines(wrong, made), [one.text for one in found.warnings[:WARNINGS]]
    assert on_page[: len(said)] == said
    assert any("hints" in line for line in on_page[len(said) :]) or not any(
        one.hint for one in found.warnings
    )
    below = " ".join(screen(made, columns, color=False).split())
    for one in found.warnings[:WARNINGS]:
        assert f"warning: {one.text}{f' hint: {one.hint}' if one.hint else ''}" in below
    more = len(found.warnings) - WARNINGS
    assert (f"{more} more warning" in below) == (more > 0)


@pytest.mark.parametrize(("load", "advised"), [(8, True), (9, False)])
def test_a_lower_load_is_advised_only_where_it_should_be_carried(load, advised):
    """A search has to ask for more, and said `lower the load` of it."""
    found = {
        "label": "vllm", "kind": "concurrency", "value": 8, "interval": (8, 8, 9), "searches": 3,
        "kept_by_search": (8,), "saturated_from": None, "tested": (),
    }  # fmt: skip
    refused = verdict("INVALID", "failed-requests", "30%", "1%", "lower the load")
    probe = cell("vllm", {"kind": "concurrency", "value": load}, validity=refused)
    made = compared(cell("vllm"), probe, capacity=(Capacity(**found),))
    assert ("lower the load" in " ".join(lines(next_steps, made))) == advised


@pytest.mark.parametrize(
    ("kind", "lowest", "within", "in_system", "advised"),
    [
        ("rate", 2, 0.0, 0.8, False),  # of requests that come alone 45% and more meet no other one
        ("rate", 2, 0.3, 0.8, False),
        ("rate", 2, 0.5, 0.8, True),
        ("rate", 2, 0.0, 8.0, True),  # each met another one
        ("rate", 0.5, 0.5, 0.8, True),
        ("concurrency", 4, 0.0, 4.0, True),
        ("concurrency", 1, 0.0, 1.0, False),
    ],
)
def test_a_search_goes_on_below_a_load_only_where_less_may_keep_the_limits(
    kind, lowest, within, in_system, advised
):
    """Where requests that meet no other one miss them, no rate keeps them."""
    tried = {
        "value": lowest, "runs": 1, "kept": 0, "attainment": within, "requests_per_s": 2.0,
        "saturated": False, "why": "ttft p95", "spoiled": False,
    }  # fmt: skip
    found = {
        "label": "a", "kind": kind, "value": None, "interval": (None, None, 2.1), "searches": 3,
        "kept_by_search": (None,), "saturated_from": None, "tested": (TestedLoad(**tried),), "highest": 40.0,
    }  # fmt: skip
    limit = {"metric": "ttft_ms", "share": "p95", "limit_ms": 150.0, "within": within, "met": False}
    backlog = {
        "probed_s": 30.0, "window_s": 29.0, "arrivals": 58, "answered": 58,
        "in_system_mean": in_system, "in_system_first": in_system, "in_system_last": in_system,
    }  # fmt: skip
    probe = cell(
        "a",
        {"kind": kind, "value": lowest},
        slo={"limits": [limit], "attainment": within, "requests": 58},
        backlog=backlog if kind == "rate" else None,
    )
    steps = " ".join(lines(next_steps, compared(probe, capacity=(Capacity(**found),))))
    assert ("a missed them at the lowest" in steps) == advised


@pytest.mark.parametrize(
    ("first", "second", "step"),
    [
        ((10.0, 11.0, 10.5), (11.5, 12.6, 10.9), OPEN),
        ((10.0, 11.0), (20.0, 21.0), OPEN),
        ((10.0, 40.0, 20.0), (41.0, 10.5, 20.0), HOPELESS),
        ((10.0, 11.0, 10.5), (20.0, 22.5, 21.0), "to see a later change: bench compare"),
    ],
)
def test_what_was_measured_decides_what_comes_first(first, second, step):
    made = compared(*interleaved(first, second))
    assert lines(next_steps, made)[0].startswith(step), lines(next_steps, made)


def test_files_are_not_measured_again():
    """`bench import` has no repeats to raise."""
    file = {"tool": "aiperf", "file": "r.json", "sha256": "0" * 64, "level": "summary", "took": ""}
    for first, second, step in (
        ((10.0, 11.0, 10.5), (11.5, 12.6, 10.9), "1 of 1 pair is undecided: import more files of each"),
        (
            (10.0,),
            (20.0,),
            "one repeat cannot tell a difference from noise: import three files of each or more",
        ),
    ):
        cells = [changed(one, imported=file) for one in interleaved(first, second)]
        found = [f"{one.why}: {one.do}" for one in conclude(compared(*cells)).next_steps]
        assert step in found
        assert not any("--" in one for one in found)


def test_the_command_of_the_run_stands_below_where_it_is_known():
    made = compared(*interleaved((10.0, 11.0, 10.5), (11.5, 12.6, 10.9)))
    for command, there in ((COMMAND, True), (None, False)):
        source = SimpleNamespace(summary=made, manifest=SimpleNamespace(command=command))
        html = _words("".join(own_command(source)))
        assert ("This run: bench run --scenario chat --repeats 3 --out=results" in html) == there


def test_what_is_wrong_is_counted():
    doubtful = changed(cell("a"), validity=verdict("SUSPECT", "lockstep", "0.7", "0.5", "spread the start"))
    text = _words("".join(wrong(SimpleNamespace(summary=summary(doubtful, cell("b"))))))
    assert "2 cells: 1 VALID and 1 SUSPECT. All 64 requests were answered." in text
    assert text.endswith("SUSPECT a c4 r0: lockstep, 0.7; limit 0.5hints for these")
    assert "No warning." in "".join(wrong(SimpleNamespace(summary=summary(cell("a")))))


def test_a_rule_is_named_of_the_cells_that_break_it():
    """Two of three cells failed requests; the third is INVALID for another reason, and twice so."""

    def broken(*codes):
        reasons = [
            {"code": code, "verdict": "INVALID", "measured": "1", "limit": "0", "hint": f"see {code}"}
            for code in codes
        ]
        return {"verdict": "INVALID", "reasons": reasons}

    died = [cell(name, validity=broken("failed-requests", "engine-died")) for name in "ab"]
    first = conclude(summary(*died)).next_steps[0]
    assert (first.why, first.do) == ("2 of 2 cells are INVALID, engine-died", "see engine-died")
    twice = broken(*["does-not-add-up"] * 3)
    cells = [cell("a", validity=twice), *(cell(name, validity=broken("failed-requests")) for name in "bc")]
    first = conclude(summary(*cells)).next_steps[0]
    assert (first.why, first.do) == ("2 of 3 cells are INVALID, failed-requests", "see failed-requests")


def test_a_warning_and_a_step_ask_for_as_many_requests():
    """The cell that needs the most is INVALID for another reason: it needs them all the same."""

    def waves(requests, *others):
        few = {"code": "few-waves", "verdict": "SUSPECT", "measured": "2", "limit": "3", "metrics": []}
        few |= {"hint": f"measure longer: --requests {requests}", "requests_needed": requests}
        return {"verdict": "INVALID" if others else "SUSPECT", "reasons": [few, *others]}

    idle = verdict("INVALID", "slot-idle", "9%", "5%", "add --workers").reasons
    cells = [cell("a", validity=waves(116)), cell("b", validity=waves(90))]
    made = conclude(summary(*cells, cell("c", validity=waves(122, *idle))))
    (step,) = [step.do for step in made.next_steps if "few-waves" in step.why]
    (hint,) = [warning.hint for warning in made.warnings if "few-waves" in warning.text]
    assert hint == "measure longer: --requests 122"
    assert "--requests 122" in step


@pytest.mark.parametrize(
    ("code", "seconds", "step"),
    [
        ("client-busy", 1_801.0, "free its core; only a new run measures a cell of over 30 min again"),
        ("client-busy", 1_800.0, "free its core"),
        ("failed-requests", 1_801.0, "free its core"),
    ],
)
def test_a_long_cell_that_the_client_spoiled_needs_a_new_run(code, seconds, step):
    """A shorter one was measured again twice, and one that the engine failed is a result."""
    spoiled = cell("a", validity=verdict("INVALID", code, "95%", "80%", "free its core"))
    first = conclude(summary(changed(spoiled, sample={"seconds": seconds}))).next_steps[0]
    assert (first.why, first.do) == (f"1 of 1 cell is INVALID, {code}", step)


def doubted(label, *reasons):
    """A cell that several rules doubt: each a code, a hint and the change that it asks for."""
    keys = ("code", "hint", "change")
    given = [dict(zip(keys, reason, strict=True)) for reason in reasons]
    given = [{"verdict": "SUSPECT", "measured": "1", "limit": "2", **reason} for reason in given]
    return cell(label, validity={"verdict": "SUSPECT", "reasons": given})


SHORT = ("too-short", "measure longer: --requests 100", {"--requests": 100})
RAMP = ("ramp-kept", "more: --set load.warmup_requests=9", {"--set load.warmup_requests": 9})
STEP = ("lockstep", "spread them: --set prompts.output_spread=0.2", {"--set prompts.output_spread": 0.2})


def test_the_advice_of_all_rules_is_one_command_but_for_other_requests():
    """These are a command of their own, and ask for the same too: who runs it does not run the other."""
    cells = [doubted("a", SHORT, RAMP, STEP), doubted("b", SHORT, STEP), doubted("c", STEP)]
    first, second = conclude(summary(*cells[:1], *cells)).next_steps
    assert first.why == "4 of 4 cells are SUSPECT, lockstep; this changes what is measured"
    same = "--requests 100 --set load.warmup_requests=9"
    assert first.do == f"the same command with `--set prompts.output_spread=0.2 {same}`"
    assert second.why == "3 of 4 cells are SUSPECT, 3 too-short and 2 ramp-kept"
    assert second.do == f"the same command with `{same}`"


def test_a_search_chooses_its_sizes_and_a_file_is_not_measured_again():
    capacity = [{"label": "a", "kind": "rate", "kept_by_search": [], "tested": []}]
    (step,) = conclude(summary(doubted("a", SHORT), capacity=capacity)).next_steps
    assert (step.do, step.is_command) == ("measure longer: --requests 100", False)
    (step,) = conclude(summary(doubted("a", SHORT, RAMP), capacity=capacity)).next_steps[1:]
    assert step.do == "the same command with `--set load.warmup_requests=9`"
    file = {"tool": "aiperf", "file": "r.json", "sha256": "0" * 64, "level": "summary", "took": ""}
    (step,) = conclude(summary(changed(doubted("a", SHORT), imported=file))).next_steps
    assert step.do == "measure longer: --requests 100"


def test_a_summary_of_an_earlier_version_has_the_sentence_alone():
    made = summary(cell(validity=verdict("SUSPECT", "too-short", "24", "100", SHORT[1])))
    (step,) = conclude(made).next_steps
    assert (step.do, step.is_command, step.expected_s) == (SHORT[1], False, None)


@pytest.mark.parametrize(
    ("scenario", "added"), [("first-look", " (of `bench URL`: --minutes)"), ("chat", "")]
)
def test_bench_url_has_a_flag_of_its_own_for_the_size_of_a_run(scenario, added):
    (warned,) = conclude(summary(doubted("a", SHORT), scenario=scenario)).warnings
    assert warned.hint == f"{SHORT[1]}{added}"
    (warned,) = conclude(summary(doubted("a", RAMP), scenario=scenario)).warnings
    assert warned.hint == RAMP[1]


def test_a_warning_of_the_run_joins_the_command():
    warning = {
        "code": "duration-not-reached",
        "hint": "more",
        "change": {"--requests": 300, "--duration": 20},
    }
    warnings = [warning | {"text": text} for text in ("all 20 were sent", "all 30 were sent")]
    (step,) = conclude(summary(doubted("a", SHORT), warnings=warnings)).next_steps
    assert step.why == "1 of 1 cell is SUSPECT, too-short; all 20 were sent (1 more like it)"
    assert step.do == "the same command with `--requests 300 --duration 20`"


def test_of_rules_in_as_many_cells_one_about_all_metrics_is_named():
    reasons = [
        {"code": code, "verdict": "SUSPECT", "measured": "1", "limit": "0", "hint": f"see {code}"}
        for code in ("itl-merged", "contended")
    ]
    reasons[0]["metrics"] = ["itl_ms"]
    first = conclude(summary(cell("a", validity={"verdict": "SUSPECT", "reasons": reasons}))).next_steps[0]
    assert (first.why, first.do) == ("1 of 1 cell is SUSPECT, contended", "see contended")


def test_of_hints_the_one_that_needs_the_most_requests_is_given():
    """Whatever other numbers stand in the words."""
    hints = [("--requests 2000", 2000), ("its file holds only 30 requests", 4000), ("log of 20261129", 0)]
    cells = [
        cell(label, validity=verdict("SUSPECT", "too-short", "1", "2", hint, **needs))
        for label, (hint, most) in zip("abc", hints, strict=True)
        for needs in [{"requests_needed": most} if most else {}]
    ]
    assert conclude(summary(*cells)).next_steps[0].do == "its file holds only 30 requests"


@pytest.mark.parametrize(
    ("label", "state", "missing"),
    [
        ("b", "complete", True),
        ("b: 2", "complete", True),
        ("a", "complete", False),
        ("b", "interrupted", False),
    ],
)
def test_a_backend_that_was_never_measured_comes_first(label, state, missing):
    """A verdict wants its runs among those of the others. One that was measured once has its own steps."""
    warning = {"code": "not-measured", "text": f"{label}: http://h:1: refused", "hint": "", "backend": label}
    made = summary(cell("a"), warnings=[warning, warning], state=state)
    steps = [(one.why, one.do) for one in conclude(made).next_steps]
    why = f"{label} was not measured: mend the cause first (`bench resume` gives figures without a verdict)"
    assert (steps[0] == (why, "the same command")) == missing
    assert any("was not measured" in why for why, _ in steps) == missing


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        (
            {"planned": 4400, "unsent": 3992, "sent": 408, "ok": 408},
            "408 of 4400 requests were answered; 3992 never became due. No warning.",
        ),
        (
            {"planned": 100, "unsent": 92, "sent": 6, "ok": 3, "failed": 4, "dropped": 2, "cancelled": 1},
            "3 of 100 requests were answered; 4 failed, 2 were due and not sent, 1 was cancelled and 90 "
            "never became due.",
        ),
        (
            {"planned": 3, "sent": 1, "ok": 1, "dropped": 1, "cancelled": 1},
            "1 of 3 requests was answered; 1 was due and not sent and 1 was cancelled.",
        ),
        (
            {"planned": 9, "sent": 9, "ok": 6, "outcomes": {"ok": 6, "abandoned": 3}},
            "6 of 9 requests were answered; 3 were hung up on.",
        ),
        ({"planned": 1, "sent": 1, "failed": 1}, "The one request was not answered; it failed."),
        ({"planned": 1, "unsent": 1, "sent": 0}, "The one request was not answered; it never became due."),
        ({"planned": 1, "sent": 1, "ok": 1}, "The one request was answered."),
    ],
)
def test_requests_that_never_became_due_are_neither_answered_nor_failed(counts, words):
    text = _words("".join(wrong(SimpleNamespace(summary=summary(cell("a", requests=counts))))))
    assert words in text
