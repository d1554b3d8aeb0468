"""Speed-up and queue of one backend over the load, where some of it is not known."""

import pytest

from harness.metrics.scaling import scaling
from tests.factories.summaries import cell


def point(load, speed, waiting=0.0, *, kind="concurrency", label="x", **more):
    server = None if waiting is None else {"waiting": {"mean": waiting, "max": waiting}}
    return cell(label, {"kind": kind, "value": load}, output_tokens_per_s=speed, server=server, **more)


def of(*cells):
    return scaling(cells)["x"]


def test_a_speed_that_is_not_known_has_no_speed_up_and_leaves_the_others_theirs():
    made = of(point(1, 100.0), point(2, None), point(4, 250.0))
    assert made.output_tokens_per_s == (100.0, None, 250.0)
    assert made.speedup == (1.0, None, 2.5)


@pytest.mark.parametrize("lowest", [None, 0.0])
def test_without_a_speed_at_the_lowest_load_there_is_no_speed_up(lowest):
    made = of(point(1, lowest), point(2, 180.0), point(4, 250.0))
    assert made.speedup == (None, None, None)
    assert made.speedup_base == 1


def test_repeats_count_by_their_median():
    """110, 100 and 900 at one, 200 and 240 at two; a repeat without a figure is left out."""
    made = of(
        *(point(1, speed, repeat=i) for i, speed in enumerate((110.0, 100.0, 900.0))),
        *(point(2, speed, repeat=i) for i, speed in enumerate((200.0, None, 240.0))),
    )
    assert made.output_tokens_per_s == (110.0, 220.0)
    assert made.speedup == (1.0, 2.0)


@pytest.mark.parametrize(
    ("waiting", "free"),
    [
        ((0.0, 0.49, 3.0), 2),
        ((0.0, 0.5, 3.0), 1),
        ((0.0, 0.0, 0.0), 4),
        ((1.0, 2.0, 3.0), None),
        ((0.0, None, 3.0), None),
    ],
)
def test_the_queue_begins_above_the_highest_load_at_which_less_than_half_a_request_waits(waiting, free):
    made = of(*(point(load, 100.0, queued) for load, queued in zip((1, 2, 4), waiting, strict=True)))
    assert made.in_flight_before_queueing == free
    assert made.waiting == waiting


def test_one_load_alone_does_not_scale():
    assert scaling([point(4, 100.0), point(4, 110.0, repeat=1)]) == {}


def test_open_loops_are_left_out_and_each_backend_is_by_itself():
    cells = [
        *(point(1, 100.0), point(4, 300.0)),
        *(point(1, 50.0, label="y"), point(4, 200.0, label="y")),
        *(point(2, 70.0, kind="rate"), point(8, 90.0, kind="rate")),
    ]
    made = scaling(cells)
    assert {label: one.speedup for label, one in made.items()} == {"x": (1.0, 3.0), "y": (1.0, 4.0)}
