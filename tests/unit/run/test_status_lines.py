"""Lines that stay on the screen while a run goes on."""

from types import SimpleNamespace

from harness.run.execute import Run
from harness.run.status_lines import cell_line
from tests.factories.summaries import cell


def test_a_finished_cell_has_the_digits_of_the_table():
    found = cell_line("vllm, 4 in flight, repeat 1", cell(p50=5.04, output_tokens_per_s=1009.6))
    assert "TTFT p50 5.04 ms, TPOT p50 5.04 ms, 1010 tok/s, VALID" in found
    assert cell_line("a", cell(output_tokens_per_s=None)).endswith(" ms, n/a, VALID")


def test_a_finished_cell_that_is_invalid_says_why():
    reason = {
        "code": "failed-requests", "verdict": "INVALID", "measured": "40 of 40:\nconnect \x1b[2Jfailed",
        "limit": "1%", "hint": "",
    }  # fmt: skip
    validity = {"verdict": "INVALID", "reasons": [reason]}
    outcomes = {"planned": 40, "sent": 40, "failed": 40, "outcomes": {"connect_failed": 40}}
    found = cell_line("a", cell(validity=validity, requests={**outcomes, "ok": 0}))
    assert found == "a: 0/40 ok, INVALID: failed-requests, 40 of 40: connect \ufffd[2Jfailed"
    some = cell_line("a", cell(validity=validity, requests={**outcomes, "ok": 1}))
    assert " tok/s, INVALID: failed-requests, 40 of 40" in some


def test_a_cache_that_was_not_reset_is_named_with_the_repeat_that_the_screen_counts():
    found = []
    run = SimpleNamespace(
        repeats={}, manifest=SimpleNamespace(warn=lambda warning: found.append(warning.text)),
        prepared=SimpleNamespace(of=lambda _cell: SimpleNamespace(between="reset", label="vllm")),
    )  # fmt: skip
    engine = SimpleNamespace(reset_prefix_cache=lambda: SimpleNamespace(done=False, how="no endpoint"))
    Run._between_repeats(run, SimpleNamespace(backend=0, repeat=1), engine)
    assert found == ["vllm: not reset before repeat 2: no endpoint"]
