import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.errors import SpecError
from harness.records.layout import UNKNOWN, Outcome, Phase
from harness.records.request_table import Expected, Part, RequestTable
from harness.store import RunFolder
from harness.workload.traces import clip, read_dataset, read_trace, window
from harness.workload.traces.rows import MAX_TOKENS, OUT_OF_ORDER, REPEATED
from harness.workload.traces.trace import relinked
from tests.factories.recorded import facts, records

S = 1_000_000_000
DATA = Path(__file__).parent / "trace_data"


@pytest.fixture
def file(tmp_path):
    def write(text, name="trace"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def plain(at_s, given=10, asked=5, **more):
    return json.dumps({"at_s": at_s, "input_tokens": given, "output_tokens": asked, **more})


def test_mooncake_times_are_milliseconds_and_blocks_are_kept():
    trace = read_trace(DATA / "mooncake.jsonl")
    assert trace.format == "mooncake"
    assert trace.at_ns.tolist() == [0, 0, 1_500_000_000, 3_000_000_000]
    assert trace.input_tokens.tolist() == [1024, 600, 1100, 512]
    assert trace.output_tokens.tolist() == [20, 5, 7, 1]
    assert trace.parts == (
        ((0, 512), (1, 512)),
        ((0, 512), (2, 88)),
        ((0, 512), (1, 512), (3, 76)),
        ((0, 512),),
    )
    assert trace.skipped == {}


def test_a_block_that_prompts_share_is_one_object():
    """Millions of them, an object each, were most of the memory of a trace."""
    first, second, third, _ = read_trace(DATA / "mooncake.jsonl").parts
    assert first[0] is second[0] is third[0]
    assert first[1] is third[1]


def test_azure_dates_become_offsets_to_the_fraction():
    trace = read_trace(DATA / "azure.csv")
    assert trace.format == "azure"
    assert trace.at_ns / S == pytest.approx([0, 4.314579, 4.5418769, 3600], abs=1e-6)
    assert trace.input_tokens.tolist() == [374, 396, 879, 91]
    assert trace.parts == ()


def test_burstgpt_failures_are_left_out_and_counted():
    trace = read_trace(DATA / "burstgpt.csv")
    assert trace.format == "burstgpt"
    assert trace.at_ns.tolist() == [0, 40 * S, 40 * S]
    assert trace.output_tokens.tolist() == [18, 150, 150]
    assert trace.skipped == {"no output token (a request that failed when it was recorded)": 1}
    assert trace.remarks == {REPEATED: 1}


def test_plain_lines_may_hold_blocks():
    trace = read_trace(DATA / "plain.jsonl", block_tokens=16)
    assert trace.format == "jsonl"
    assert trace.parts == (((7, 12),), ((7, 16), (8, 4)), ((9, 3),))
    assert trace.at_ns.tolist() == [0, S // 4, S // 2]


def test_everything_that_can_be_wrong_in_a_line_is_counted_by_its_reason(file):
    lines = [
        *(plain(i) for i in range(20)),
        plain(3.5),  # out of order
        plain(3.5),  # twice
        plain(-1),
        plain(4, given=-10),
        plain(4, asked=None),
        plain("soon"),
        plain(float("nan")),
        plain(float("inf")),
        plain(4, given=10**12),
        plain(4, given=0),
        plain(4, given=1.5),
        plain(4, asked=True),
        plain(1e14),
        '{"at_s": 1',
        "[1, 2]",
        '{"at_s": 1}',
        "",
    ]
    trace = read_trace(file("\n".join(lines)))
    assert len(trace) == 22
    assert trace.lines == 36
    assert dict(trace.skipped) == {
        "a negative time": 1,
        "a negative length": 1,
        "a value is missing": 2,
        "a value is not a number": 4,
        f"a length above {MAX_TOKENS:,} tokens": 1,
        "no input token": 1,
        "a length that is not whole": 1,
        "a time more than 400 days from the others": 1,
        "not JSON": 1,
        "not a JSON object": 1,
    }
    assert trace.remarks == {OUT_OF_ORDER: 1, REPEATED: 1}
    assert (np.diff(trace.at_ns) >= 0).all()


def test_a_plain_line_without_blocks_shares_nothing_with_those_that_have_some(file):
    lines = [plain(0, 20, blocks=[1, 2]), plain(1, 20), plain(2, 20, blocks=[1, 3]), plain(3, 20, blocks=[])]
    trace = read_trace(file("\n".join(lines)))
    assert trace.parts == (((1, 16), (2, 4)), (), ((1, 16), (3, 4)))
    assert trace.skipped == {"blocks of 16 tokens that do not add up to the input": 1}


def test_blocks_that_do_not_cover_the_input_are_counted(file):
    good = {"timestamp": 0, "input_length": 513, "output_length": 1, "hash_ids": [1, 2]}
    lines = [good, good | {"hash_ids": [1]}, good | {"hash_ids": [1, "2"]}, good, good]
    trace = read_trace(file("\n".join(map(json.dumps, lines))))
    assert len(trace) == 3
    assert dict(trace.skipped) == {
        "blocks of 512 tokens that do not add up to the input": 1,
        "blocks that are not a list of whole numbers": 1,
    }


def test_a_lone_quote_takes_one_line_with_it_and_not_the_rest(file):
    rows = ["TIMESTAMP,ContextTokens,GeneratedTokens", *(f"2023-11-16 18:15:{i},5,5" for i in range(10, 20))]
    rows[3] = '2023-11-16 18:15:12,"5,5'
    trace = read_trace(file("\r\n".join(rows)))
    assert len(trace) == 9
    assert trace.skipped == {"a value is not a number": 1}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("hello there", "format is not known from its first line: 'hello there'"),
        ('{"a": 1}', "format is not known"),
        ("Timestamp,Model,Tokens\n1,2,3", "format is not known"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n", "holds no request"),
        (f"{plain(-1)}\n{plain(-2)}\n{plain(1)}", "trace:1: 2 of 3 lines are not usable as jsonl; 2: a neg"),
        (b"\xff\xfe\x00", "is not UTF-8"),
    ],
)
def test_a_file_that_is_no_trace_is_one_clear_error(file, text, words):
    with pytest.raises(SpecError) as caught:
        read_trace(file(text))
    assert words in str(caught.value)


def test_a_missing_file_and_a_wrong_format_are_errors(tmp_path, file):
    with pytest.raises(SpecError, match="no such file"):
        read_trace(tmp_path / "none")
    with pytest.raises(SpecError, match="has no column ContextTokens, GeneratedTokens, TIMESTAMP"):
        read_trace(file(plain(0)), "azure")
    with pytest.raises(SpecError, match="is a folder"):
        read_trace(tmp_path, "azure")
    with pytest.raises(SpecError, match="not the folder of a run"):
        read_trace(tmp_path)


@pytest.mark.parametrize("most", [99, 100])
def test_a_pipe_is_read_to_a_limit_and_a_file_to_its_end(monkeypatch, file, most):
    """Only the pipe may have no end."""
    monkeypatch.setattr("harness.workload.traces.read.MOST_BYTES", most)
    assert read_trace(file(plain(1).ljust(200))).lines == 1
    reading, writing = os.pipe()
    os.write(writing, plain(1).ljust(100).encode())
    os.close(writing)
    pipe = Path(f"/dev/fd/{reading}")
    try:
        if most == 100:
            assert read_trace(pipe).lines == 1
        else:
            with pytest.raises(SpecError, match=f"{pipe}: is a pipe with more than"):
                read_trace(pipe)
    finally:
        os.close(reading)


@pytest.mark.parametrize("read", [read_trace, read_dataset])
@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero"])
def test_a_device_is_not_read_to_its_end(read, device):
    with pytest.raises(SpecError, match=f"{device}: is a device"):
        read(Path(device))
    with pytest.raises(SpecError, match="cannot be read: File name too long"):
        read(Path("x" * 300))


def test_a_window_is_cut_in_the_traces_own_time(file):
    trace = read_trace(file("\n".join(plain(i + 100, given=i + 1) for i in range(10))))
    part = window(trace, 2, 6)
    assert part.input_tokens.tolist() == [3, 4, 5, 6]
    assert part.offsets_ns.tolist() == [0, S, 2 * S, 3 * S]
    assert window(trace, 2, 6, max_requests=2).input_tokens.tolist() == [3, 4]
    with pytest.raises(SpecError, match="no request between 20 s and its end"):
        window(trace, 20)


def test_requests_that_a_window_or_a_number_leaves_out_are_counted(file):
    trace = read_trace(file("\n".join(plain(i) for i in range(10))))
    part = window(window(trace, 2, 8), max_requests=4)
    assert part.facts()["remarks"] == {
        "requests before start_s or from end_s on, left out": 4,
        "requests after the first 4, left out": 2,
    }
    assert (part.held, trace.held) == (6, 10)
    assert window(trace, max_requests=10).remarks == {}


def test_clipping_keeps_the_front_and_is_counted():
    trace = clip(read_trace(DATA / "mooncake.jsonl"), 1000, 6)
    assert trace.input_tokens.tolist() == [1000, 600, 1000, 512]
    assert trace.output_tokens.tolist() == [6, 5, 6, 1]
    assert trace.parts[0] == trace.parts[2] == ((0, 512), (1, 488))
    assert trace.facts()["remarks"] == {
        "prompts above 1000 tokens, cut (prompts.max_input_tokens)": 2,
        "answers above 6 tokens, cut (prompts.max_output_tokens)": 2,
    }


def test_a_recorded_run_is_replayed_as_it_was_meant_to_leave(tmp_path):
    folder = RunFolder.create(tmp_path, "x")
    made = records(
        {"intended": 0, "texts": [10, 20], "prompt": 129},
        {"intended": 5, "texts": [], "prompt": 129, "tokens": -1},
        {"intended": 250, "texts": [300], "prompt": 131},
        {"intended": 260, "texts": [300], "prompt": 130},
    )
    folder.write_cell(made, facts(cell="000-x-r4-r0", workload__content_tokens_mean=100.0))
    for place in (folder.path, folder.cell_path("000-x-r4-r0")):
        trace = read_trace(place)
        assert trace.format == "run"
        assert trace.at_ns.tolist() == [0, S // 4, 26 * S // 100]
        assert trace.input_tokens.tolist() == [99, 101, 100]
        assert trace.output_tokens.tolist() == [2, 1, 1]
        assert trace.skipped == {"not answered, or without token counts": 1}


def test_requests_whose_beginning_is_left_out_begin_like_each_other():
    """The prompts of two of one session begin with 5 and 7 tokens of a third one's."""
    begins, kept = np.array([-1, 0, 0]), np.array([0, 5, 7])
    found = relinked(np.array([1, 2]), begins, kept, np.array([0, 0]))
    assert [part.tolist() for part in found] == [[0, 1], [0, 5]]


values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.integers())
)
lines = st.one_of(
    st.text(max_size=40),
    st.fixed_dictionaries(
        {"timestamp": values, "input_length": values, "output_length": values, "hash_ids": values}
    ).map(json.dumps),
    st.builds(
        lambda at, ids: json.dumps(
            {"timestamp": at, "input_length": 512 * len(ids), "output_length": 3, "hash_ids": ids}
        ),
        st.integers(0, 10**7),
        st.lists(st.integers(), min_size=1, max_size=5),
    ),
)


@settings(max_examples=2 * settings().max_examples)
@example(given=(DATA / "mooncake.jsonl").read_text("utf-8").splitlines()[::-1], named="mooncake")
@example(given=[plain(9), "[", plain(4, 0), plain(4), plain(5, asked=1)], named="jsonl")
@given(given=st.lists(lines, max_size=12), named=st.sampled_from(["mooncake", "azure", "burstgpt", "jsonl"]))
def test_no_file_breaks_a_reader(tmp_path_factory, given, named):
    """Every line is used or counted, or the file is refused with a SpecError."""
    path = tmp_path_factory.mktemp("any") / "trace"
    text = "\n".join(line.replace("\n", " ").replace("\r", " ") for line in given)
    path.write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
    try:
        trace = read_trace(path, named)
    except SpecError:
        return
    assert len(trace) + sum(trace.skipped.values()) == trace.lines
    assert (np.diff(trace.at_ns) >= 0).all()
    assert (trace.input_tokens > 0).all()
    assert (trace.output_tokens > 0).all()
    assert len(trace.parts) in (0, len(trace))
    for path, length in zip(trace.parts, trace.input_tokens.tolist(), strict=False):
        assert sum(part.tokens for part in path) == length


def test_a_recorded_run_keeps_what_its_requests_shared(tmp_path):
    folder = RunFolder.create(tmp_path, "x")
    rows = [
        # max_tokens, content_tokens, session, turn, at_ns, expected
        ((9, 50, -1, 0, -1, -1), "", (Part(3, 40),)),
        ((9, 60, 7, 0, -1, -1), "", (Part(3, 40),)),
        ((9, 10, 7, 1, -1, -1), "", ()),
    ]
    made = records(*({"intended": at, "texts": [at + 1, at + 2], "prompt": 77} for at in (0, 10, 20)))
    file = folder.write_requested("c1-r0", RequestTable.of(rows, []))
    folder.write_cell(made, facts(workload__file=file))
    trace = read_trace(folder.path)
    assert trace.input_tokens.tolist() == [50, 60, 60 + 2 + 10]
    assert trace.parts[0] == ((3, 40),)
    assert trace.parts[1][0] == (3, 40)
    assert trace.parts[2][:2] == trace.parts[1]
    assert [part.tokens for part in trace.parts[2]] == [40, 20, 2, 10]


def test_a_recorded_run_is_replayed_with_its_users_who_hang_up(tmp_path):
    """Those who left in the middle ask for the whole answer."""
    folder = RunFolder.create(tmp_path, "x")
    made = records(
        {"intended": 0, "texts": [1], "phase": Phase.WARMUP},
        {"intended": 10, "texts": [11]},
        {"intended": 20, "texts": [21, 22], "phase": Phase.IMPATIENT},
        {"intended": 30, "tokens": -1, "phase": Phase.IMPATIENT, "outcome": Outcome.ABANDONED},
    )
    file = folder.write_requested("c1-r0", RequestTable.of([((9, 50, -1, 0, -1, -1), "", ())] * 4, []))
    folder.write_cell(made, facts(workload__file=file))
    trace = read_trace(folder.path)
    assert trace.output_tokens.tolist() == [1, 2, 9]
    assert trace.skipped == {}


def test_a_recorded_run_whose_warm_up_failed_is_replayed(tmp_path):
    """Warm-up is no part of the trace: what failed there is no line that cannot be used."""
    folder = RunFolder.create(tmp_path, "x")
    failed = {"texts": [], "tokens": -1, "outcome": Outcome.HTTP_ERROR, "phase": Phase.WARMUP}
    made = records({"intended": 0, **failed}, {"intended": 5, **failed}, {"intended": 9, "texts": [10]})
    rows = [((9, 60, -1, 0, -1, -1), "", ())] * 3
    file = folder.write_requested("c1-r0", RequestTable.of(rows, []))
    folder.write_cell(made, facts(workload__file=file))
    trace = read_trace(folder.path)
    assert (trace.input_tokens.tolist(), trace.skipped) == ([60], {})


def test_a_recorded_run_says_what_a_replay_leaves_out(tmp_path):
    folder = RunFolder.create(tmp_path, "x")
    cell = facts(workload__images="2 of 64 kB", request={"shapes": ["json_schema"], "tools": True})
    folder.write_cell(records({"intended": 0, "texts": [1], "prompt": 9}), cell)
    assert read_trace(folder.path).remarks == {
        "requests as their text alone, without the images, constraints, tools of the run": 1
    }


def test_chats_of_a_recorded_run_are_sessions_with_their_waits(tmp_path):
    folder = RunFolder.create(tmp_path, "x")
    call = Expected("tool_call", {}, "tool_call")
    rows = [
        ((9, 60, 7, 0, -1, 0), "", (Part(3, 40),)),
        ((9, 10, 7, 1, -1, -1), "", ()),
        ((9, 5, 7, 2, -1, -1), "", ()),
        ((9, 50, 8, 0, -1, -1), "", (Part(3, 40),)),
        ((9, 7, 8, 1, -1, -1), "", ()),
        ((9, 7, 8, 2, -1, -1), "", ()),
    ]
    made = records(
        {"intended": 0, "texts": [5, 10]},
        {"intended": 14, "texts": [20]},
        {"intended": 50, "texts": [60]},
        {"intended": 8, "texts": [9]},
        {"intended": 20, "texts": [], "outcome": Outcome.RESET},
        {"intended": 30, "texts": [31]},
    )
    file = folder.write_requested("c1-r0", RequestTable.of(rows, [call]))
    folder.write_cell(made, facts(workload__file=file))
    trace = read_trace(folder.path)
    assert trace.input_tokens.tolist() == [60, 60 + 2 + 10, 72 + 1 + 5, 50]
    assert trace.calls.session.tolist() == [0, 0, 0, 1]
    assert trace.calls.kept.tolist() == [0, 60, 72, 40]
    assert trace.calls.tool_ns.tolist() == [0, 4_000_000, 0, 0]
    assert trace.calls.think_ns.tolist() == [0, 0, 30_000_000, 0]
    assert trace.skipped == {
        "not answered, or without token counts": 1,
        "of a chat of which an earlier turn is left out": 1,
    }


@pytest.mark.parametrize("counts", [True, False])
def test_reasoning_of_a_recorded_chat_is_not_in_its_next_turn(tmp_path, counts):
    """Where the server does not count it, its part of the letters tells."""
    folder = RunFolder.create(tmp_path, "x")
    rows = [((9, 20, 7, turn, -1, -1), "", ()) for turn in range(2)]
    made = records(
        {"intended": 0, "texts": [5, 6, 7], "thoughts": 2}, {"intended": 9, "texts": [10, 11], "thoughts": 1}
    )
    if not counts:
        made.requests["reasoning_tokens"] = UNKNOWN
    file = folder.write_requested("c1-r0", RequestTable.of(rows, []))
    folder.write_cell(made, facts(workload__file=file))
    trace = read_trace(folder.path)
    assert trace.input_tokens.tolist() == [20, 20 + 1 + 20]
    assert trace.output_tokens.tolist() == [3, 2]
