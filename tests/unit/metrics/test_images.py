"""What images cost before the first token, of latencies that can be worked out on paper."""

import pytest

from harness.metrics import images
from harness.records.layout import Outcome
from harness.summary import view_of
from tests.factories.recorded import facts, records, requested

FRESH, AGAIN, LARGE = "512x512 jpeg, fresh", "512x512 jpeg, repeated", "1024x1024 png, fresh"


def cell(*rows, **more):
    """Each row: images (-1: of a cell without any), bytes, their sort, and TTFT in ms (None: it failed;
    an outcome: it was never sent)."""
    asked = requested(
        *(
            (f"{count} x {sort}" if count > 0 else "no image", {"images": count, "image_bytes": size})
            for count, size, sort, _ttft in rows
        )
    )
    made = [_sent(ttft) for *_, ttft in rows]
    return view_of(records(*made), facts(**more), asked).of(images.compute)


def _sent(ttft):
    if isinstance(ttft, Outcome):
        return {"sent": None, "outcome": ttft}
    return {"outcome": Outcome.HTTP_ERROR} if ttft is None else {"texts": [ttft]}


def test_an_image_costs_the_difference_of_medians_by_the_difference_of_counts():
    """None 50 ms, one 90 and 110, three 230: (230 - 50) / 3; repeated ones (60 - 50) / 1."""
    found = cell(
        *((0, 0, "", 50), (1, 10, FRESH, 90), (1, 10, FRESH, 110), (3, 30, FRESH, 230)), (1, 10, AGAIN, 60)
    )
    assert found.images.ms_by_sort == {FRESH: pytest.approx(60), AGAIN: pytest.approx(10)}
    assert found.image_ms == pytest.approx(60)
    assert (found.images.sent, found.images.sent_bytes) == (6, 60)
    assert not found.nulls


def test_the_cost_of_a_fresh_image_is_the_mean_over_its_sorts():
    found = cell((0, 0, "", 50), (2, 20, FRESH, 90), (1, 99, LARGE, 250), (1, 10, AGAIN, 51))
    assert found.images.ms_by_sort == {
        FRESH: pytest.approx(20),
        LARGE: pytest.approx(200),
        AGAIN: pytest.approx(1),
    }
    assert found.image_ms == pytest.approx(110)


def test_one_count_alone_has_no_cost():
    found = cell((2, 20, FRESH, 90), (2, 20, FRESH, 95))
    assert found.images.ms_by_sort == {FRESH: None}
    assert found.image_ms is None
    assert found.nulls == {"image_ms": "no fresh images, or only one count of them, were answered"}


def test_requests_that_failed_cost_nothing_and_were_sent():
    """Of three images none was answered: one against two is what is left."""
    found = cell((1, 10, FRESH, 100), (2, 20, FRESH, 140), (3, 30, FRESH, None))
    assert found.image_ms == pytest.approx(40)
    assert (found.images.sent, found.images.sent_bytes) == (6, 60)


def test_images_of_requests_that_were_never_sent_are_not_sent():
    found = cell((1, 10, FRESH, 100), (2, 20, FRESH, Outcome.DROPPED), (3, 30, FRESH, Outcome.CONNECT_FAILED))
    assert (found.images.sent, found.images.sent_bytes) == (1, 10)


def test_repeated_images_alone_say_nothing_of_fresh_ones():
    found = cell((0, 0, "", 50), (1, 10, AGAIN, 60))
    assert found.image_ms is None
    assert found.images.ms_by_sort == {AGAIN: pytest.approx(10)}


def test_without_images_there_is_no_figure_and_it_says_so():
    found = cell((-1, -1, "", 50))
    assert (found.image_ms, found.images) == (None, None)
    assert found.nulls == {"image_ms": "no requests with images"}


@pytest.mark.parametrize(
    ("counters", "share"),
    [
        ({"image_hits": 3.0, "image_queries": 12.0}, 0.25),
        ({"image_hits": 0.0, "image_queries": 12.0}, 0.0),
        ({"image_hits": 0.0, "image_queries": 0.0}, None),
        ({"image_queries": 12.0}, None),
        (None, None),
    ],
)
def test_the_cache_of_images_is_read_from_the_counters_of_the_engine(counters, share):
    found = cell((0, 0, "", 50), (1, 10, FRESH, 60), server_counters=counters)
    assert found.images.cache_hit_rate == share
