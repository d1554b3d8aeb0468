import json
from random import Random

import pytest

from harness.mockserver.faults import KINDS, REFUSALS, Fault, refusal, strike_body, strike_wire
from harness.mockserver.script import Then, Write

WRITES = [
    Write(0, b"HEAD"),
    Write(10, b"one.", 1, 1),
    Write(20, b"two.", 1, 1),
    Write(30, b"three.", 1, 1, Then.END),
]
S = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("reset", Fault("reset")),
        ("stall:every=3:after=2", Fault("stall", every=3, after=2)),
        ("429:p=0.1:for=2", Fault("429", p=0.1, seconds=2.0)),
        ("die:at=0", Fault("die", at=0)),
        ("loading:for=1.5", Fault("loading", seconds=1.5)),
        ("503:at=4:times=3", Fault("503", at=4, times=3)),
    ],
)
def test_forms(text: str, fault: Fault) -> None:
    assert Fault.parse(text) == fault


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a fault"),
        ("explode", "'explode' is not a fault"),
        ("reset:often", "often is not one of"),
        ("reset:every", "'' is not a number"),
        ("reset:every=0", "at least 1"),
        ("reset:every=1.5", "'1.5' is not a whole number"),
        ("reset:p=1.1", "p at most 1"),
        ("reset:p=-0.1", "not negative"),
        ("reset:at=-1", "not negative"),
        ("reset:p=0.1:at=1", "choose one"),
        ("503:times=3", "times goes with at"),
        ("stall:for=nan", "finite"),
        ("stall:for=inf", "finite"),
        ("loading:every=2", "whole server"),
        ("refused:p=0.5", "whole server"),
    ],
)
def test_what_is_not_a_fault(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Fault.parse(text)


def struck(text: str, count: int = 12) -> list[int]:
    rng = Random(0)
    return [number for number in range(count) if Fault.parse(text).strikes(number, rng)]


def test_selectors() -> None:
    assert struck("reset") == list(range(12))
    assert struck("reset:every=4") == [3, 7, 11]
    assert struck("reset:at=5") == [5]
    assert struck("reset:p=0") == []
    assert struck("reset:p=1") == list(range(12))
    assert len(struck("reset:p=0.1", 10_000)) == pytest.approx(1000, rel=0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_answers_by_itself_and_other_kinds_do_not(kind: str) -> None:
    refused = refusal(Fault(kind))
    assert (refused is not None) == (kind in REFUSALS)
    if refused:
        status, data = refused
        assert data.startswith(b"HTTP/1.1 %d " % status)


def test_refusals_say_when_to_come_back() -> None:
    for kind in ("429", "503"):
        refused = refusal(Fault(kind, seconds=1.2))
        assert refused
        assert b"retry-after: 2\r\n" in refused[1]
    page = refusal(Fault("html-500"))
    assert page
    assert b"<html>" in page[1]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("reset", [Write(30, b"", then=Then.RESET)]),
        ("die", [Write(30, b"", then=Then.EXIT)]),
        ("stall", [Write(30, b"", then=Then.HANG)]),
        ("truncation", [Write(30, b"thr", then=Then.CLOSE)]),
        ("bad-chunk", [Write(30, b"zz\r\nthree.", then=Then.CLOSE)]),
    ],
)
def test_a_wire_fault_comes_after_so_many_whole_tokens(kind: str, expected: list[Write]) -> None:
    assert list(strike_wire(Fault(kind, after=2), iter(WRITES))) == WRITES[:3] + expected
    assert list(strike_wire(Fault(kind), iter(WRITES)))[:-1] == WRITES[:1]
    assert list(strike_wire(Fault(kind, after=3), iter(WRITES))) == WRITES


def test_a_stall_that_ends_delays_what_follows() -> None:
    stalled = list(strike_wire(Fault("stall", after=1, seconds=2), iter(WRITES)))
    assert [write.due_ns for write in stalled] == [0, 10, 20 + 2 * S, 30 + 2 * S]
    assert [write.data for write in stalled] == [write.data for write in WRITES]


def test_slow_headers_hold_back_only_what_is_due_before_them() -> None:
    writes = [*WRITES, Write(5 * S, b"late")]
    slow = strike_wire(Fault("slow-headers", seconds=3), iter(writes))
    assert [write.due_ns for write in slow] == [3 * S] * 4 + [5 * S]


def test_body_faults_end_the_answer_in_their_own_way() -> None:
    for kind in ("error-event", "malformed"):
        *before, last = strike_body(Fault(kind, after=1), iter(WRITES), stream=True)
        assert before == WRITES[:2]
        assert (last.due_ns, last.tokens, last.then) == (20, 0, Then.END)
        assert last.data.startswith(b"data: {")
        assert last.data.endswith(b"\n\ndata: [DONE]\n\n")
    (whole,) = strike_body(Fault("error-event"), iter(WRITES[1:2]), stream=False)
    assert whole.data.startswith(b'{"error": ')


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_another_model_is_named_however_an_api_writes_its_json(separators: tuple[str, str]) -> None:
    """Vectors and scores have a space after the colon."""
    document = json.dumps({"model": "m", "data": []}, separators=separators).encode()
    (write,) = strike_body(Fault("other-model"), iter([Write(0, document)]), stream=False)
    assert json.loads(write.data) == {"model": "other-m", "data": []}


@pytest.mark.parametrize("kind", ["wrong-usage", "429", "loading"])
def test_other_kinds_leave_the_writes_alone(kind: str) -> None:
    assert list(strike_body(Fault(kind), iter(WRITES), stream=True)) == WRITES
    assert list(strike_wire(Fault(kind), iter(WRITES))) == WRITES
