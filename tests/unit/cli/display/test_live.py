"""The view on a terminal, drawn on a small screen that understands what it writes."""

import io
import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.cli.display.live import BARS, REDRAW_S, LiveView, frame, size_of, sparkline, wrapped
from harness.cli.display.output import PlainLines
from harness.cli.display.progress import State
from harness.load.job import Progress
from harness.model import LoadPoint
from harness.plan import Cell
from harness.run.status_lines import cell_line, cell_words
from tests.factories import summaries
from tests.factories.progress import CELL, EIGHT, MEASURED, progress, run


def texts(state, now=60.0, width=79, ttft_ms=()):
    return [text for _style, text in frame(state, ttft_ms, now, width)]


def test_it_shows_position_load_and_a_mark_per_cell():
    state = State(0.0, run(*MEASURED), load=(CELL, progress(failed=2)))
    assert texts(state, ttft_ms=[100, 200, 400]) == [
        "1:00  first-look: 3 of at most 20 cells, about 6 min left at most",
        "llamacpp, 8 in flight, repeat 1  ███░░░░░░░░░ 16/64  8 now  2 failed",
        "▃▅█  TTFT 228 ms  412 tok/s  24 s left",
        "  vllm      c8 ●◐",
        "  llamacpp  c8 ●▸",
        "  ● VALID  ◐ SUSPECT  ✕ INVALID",
    ]


def test_the_load_that_is_measured_is_seen_behind_many_others():
    cells = [summaries.cell("vllm", {"kind": "rate", "value": 10.25 * number}) for number in range(1, 12)]
    now = Cell("011-vllm-r9.5-r0", 0, LoadPoint("rate", 9.5), 0)
    rows = texts(State(0.0, run(*cells, labels=("vllm",)), load=(now, progress())))
    (row,) = [text for text in rows if text.startswith("  vllm")]
    assert row.startswith("  vllm  …")
    assert row.endswith("r112.75 ●  r9.5 ▸")
    assert len(row) == 79


def test_a_duration_ends_a_load_before_all_that_is_planned_becomes_due():
    """Of 500 planned requests 16 are done when four of eight seconds are over."""
    now = Progress(4.0, 500, 24, 16, 0, 8, None, None, duration_s=8.0, measured_s=4.0)
    assert texts(State(0.0, run(), load=(CELL, now)))[1:3] == [
        "llamacpp, 8 in flight, repeat 1  ██████░░░░░░ 16 of at most 500  8 now",
        "4 s left",
    ]


def test_a_duration_begins_after_the_warm_up():
    """After twelve seconds, six of them warm-up, two of eight are left; in the warm-up all eight are."""
    warm, measured = (
        Progress(elapsed_s, 500, 24, 16, 0, 8, None, None, duration_s=8.0, measured_s=measured_s)
        for elapsed_s, measured_s in ((4.0, 0.0), (12.0, 6.0))
    )
    assert texts(State(0.0, run(), load=(CELL, warm)))[2] == "8 s left"
    assert texts(State(0.0, run(), load=(CELL, measured)))[2] == "2 s left"


def test_a_finished_cell_counts_what_became_due():
    cell = summaries.cell(
        "vllm", EIGHT, requests={"planned": 500, "ok": 25, "outcomes": {"ok": 25, "timeout": 1}}
    )
    assert cell_line("vllm", cell).startswith("vllm: 25/26 ok, ")


def test_the_page_shows_a_load_as_the_view_does():
    page = (Path(__file__).parents[4] / "docs" / "watching.md").read_text(encoding="utf-8")
    cell = Cell("001-truth-c4-r0", 0, LoadPoint("concurrency", 4), 0)
    going = cell, Progress(3.6, 72, 38, 34, 0, 4, 27.0, 720.0)
    _, load, speed, *_ = texts(State(0.0, run(labels=("truth", "truth@slow")), load=going), ttft_ms=[27] * 6)
    assert f"\n{load}\n{speed}\n" in page


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (run(), "first-look: 0 of at most 20 cells"),
        (run(*MEASURED, looks=(), planned=4), "first-look: 3 of 4 cells, about 20 s left"),
        (
            run(*MEASURED, last_look="decided 1 of 3 pairs"),
            "first-look: 3 of at most 20 cells, decided 1 of 3 pairs",
        ),
        (run(*MEASURED, search=True), "first-look: 3 cells measured"),
        (run(*MEASURED[:1], search=True), "first-look: 1 cell measured"),
    ],
)
def test_what_is_known_of_the_time_left(made, words):
    assert State(0.0, made).words(60.0) == words


def test_cells_of_before_a_resumption_do_not_make_it_quicker():
    assert State(0.0, run(*MEASURED, planned=5), already=2).left_s(60.0) == 120.0
    assert State(0.0, run(*MEASURED), already=3).left_s(60.0) is None


def test_installing_and_downloading_do_not_make_the_cells_slower():
    assert State(0.0, run(*MEASURED[:1], planned=12, provided_s=600.0)).left_s(660.0) == 660.0
    assert State(0.0, run(provided_s=None)).left_s(660.0) is None


@pytest.mark.parametrize("width", [20, 40, 79])
def test_no_line_is_wider_than_the_screen(width):
    labels = tuple(f"an-engine-with-a-very-long-name-{number}@and-a-variant" for number in range(12))
    state = State(0.0, run(*MEASURED, labels=labels), load=(CELL, progress()))
    lines = texts(state, width=width, ttft_ms=[1.0] * BARS)
    assert max(map(len, lines)) <= width
    assert "  and 4 more" in lines


def test_long_names_are_cut_so_that_none_is_like_another():
    labels = tuple(f"an-engine-with-a-very-long-name-{number}" for number in range(8))
    rows = texts(State(0.0, run(*MEASURED, labels=labels)))[1:-1]
    assert len(set(rows)) == len(rows) == 8
    assert all("…" in row for row in rows)


@pytest.mark.parametrize("width", [59, 79])
def test_a_long_name_hides_neither_the_bar_nor_the_counts(width):
    labels = ("vllm", "an-engine-with-a-long-name-of-sixty-characters@and-a-variant")
    line = texts(State(0.0, run(labels=labels), load=(CELL, progress(failed=2))), width=width)[1]
    assert line.startswith("an-engine-with-")
    assert line.endswith("…  ███░░░░░░░░░ 16/64  8 now  2 failed")
    assert len(line) == width


def test_a_rate_is_as_it_was_given():
    cell = Cell("001-vllm-r1000.254-r0", 0, LoadPoint("rate", 1000.254), 0)
    assert cell_words("vllm", cell) == "vllm, 1000.254 requests/s, repeat 1"


@pytest.mark.parametrize(("speed", "words"), [(1, "at its own pace"), (1.5, "1.5 times as fast")])
def test_a_replay_at_the_pace_of_its_trace_is_no_multiple(speed, words):
    assert (
        cell_words("vllm", Cell("a", 0, LoadPoint("trace", speed), 0)) == f"vllm, replayed {words}, repeat 1"
    )


def test_a_slow_engine_is_not_one_that_does_nothing():
    state = State(0.0, run(), load=(CELL, Progress(4.0, 64, 24, 16, 0, 8, 0.4, 0.04)))
    assert texts(state)[2].startswith("TTFT 0.4 ms  0.04 tok/s")


def test_a_sparkline_starts_at_nothing():
    assert sparkline([0, 50, 100]) == "▁▅█"
    assert sparkline([]) == sparkline([0]) == ""


class Screen(io.StringIO):
    """Rows as a terminal would show them."""

    def rows(self):
        rows, at = [], 0
        for part in re.split(r"(\x1b\[\??[\d;]*[A-Za-z]|\n)", self.getvalue()):
            if part == "\n":
                at += 1
            elif up := re.fullmatch(r"\x1b\[(\d+)F", part):
                at -= int(up[1])
            elif part == "\x1b[J":
                del rows[at:]
            elif part and not part.startswith("\x1b"):
                rows[at:] = [part]
        return rows


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def view():
    clock = Clock()
    made = LiveView(Screen(), size=lambda: (80, 24), clock=clock)
    made.clock, made.screen = clock, made._stream
    return made


def test_notes_stay_above_and_nothing_of_the_view_remains(view):
    view.stage("vllm: starting")
    view.note("vllm: 0.32 at http://127.0.0.1:8000")
    view.load(CELL, progress())
    view.note("a cell")
    shown = view.screen.rows()
    assert shown[:2] == ["vllm: 0.32 at http://127.0.0.1:8000", "a cell"]
    assert shown[2:4] == ["0:00", "001-llamacpp-c8-r0  ███░░░░░░░░░ 16/64  8 now"]
    view.close()
    assert view.screen.rows() == shown[:2]


def test_a_flag_stays_with_its_value_and_apart_from_other_flags():
    flags = "--sleep-on-idle --no-mmap --max-total-tokens 4096 --seed -1"
    lines = ["--sleep-on-idle --no-mmap", "  --max-total-tokens 4096", "  --seed -1"]
    assert wrapped(flags, 29).splitlines() == lines


def test_long_notes_break_between_words_and_paths_stay_whole(view):
    path = "/" + "x" * 100
    view.note(f"{'word ' * 30}\nits log is {path}")
    shown = view.screen.rows()
    assert max(map(len, shown[:2])) < 80
    assert shown[1].startswith("  word")
    assert any(path in row for row in shown)


def test_it_draws_a_few_times_a_second_however_often_it_is_told(view):
    view.stage("making prompts")
    before = len(view.screen.getvalue())
    for _ in range(10):
        view.stage("making prompts (1 s)")
    assert len(view.screen.getvalue()) == before
    view.clock.now += REDRAW_S
    view.stage("making prompts (2 s)")
    assert view.screen.rows() == ["0:00", "making prompts (2 s)"]


def test_a_small_screen_gets_fewer_lines():
    view = LiveView(Screen(), size=lambda: (30, 3), clock=Clock())
    view.follow(run(*MEASURED))
    view.load(CELL, progress())
    assert len(view._stream.rows()) == 2


def test_without_colour_no_style_is_written(view):
    view.load(CELL, progress())
    assert "\x1b[1m" not in view.screen.getvalue()
    coloured = LiveView(Screen(), color=True, size=lambda: (80, 24), clock=Clock())
    coloured.load(CELL, progress())
    assert "\x1b[1m" in coloured._stream.getvalue()


def test_a_log_gets_a_line_when_something_begins_and_every_ten_seconds(capsys):
    log, clock = PlainLines(), Clock()
    log._clock, log.state.began = clock, 0.0
    log.stage("loading (1 s)")
    for clock.now in (1.0, 5.0, 12.0):
        log.stage(f"loading ({clock.now:.0f} s)")
    log.load(CELL, progress())
    log.note("done")
    assert capsys.readouterr().err.splitlines() == [
        "[   0.0s] loading (1 s)",
        "[  12.0s] loading (12 s)",
        "[  12.0s] done",
    ]


def test_a_terminal_that_does_not_know_its_size_has_the_usual_one(monkeypatch):
    monkeypatch.setattr(os, "get_terminal_size", lambda _descriptor: (0, 0))
    assert size_of(SimpleNamespace(fileno=lambda: 2)) == (80, 24)
