"""Where the labels of the points of a chart stand."""

from harness.report.charts.axes import loads
from harness.report.charts.point_labels import LETTER, Box, Segment, apart, placed

AREA = Box(0, 0, 400, 200)


def boxes(points, lines=()):
    found = []
    for (x, y, text), label in zip(points, placed(points, AREA, lines), strict=True):
        if label is None:
            continue
        wide = LETTER * len(text)
        left = x + label.dx - {"start": 0, "middle": wide / 2, "end": wide}[label.anchor]
        found.append(Box(left, y + label.dy - 12, left + wide, y + label.dy))
    return found


def test_every_point_has_its_label_and_none_covers_another():
    points = [(100.0 + 9 * place, 100.0, f"c{place}") for place in range(3)]
    made = boxes(points)
    assert len(made) == 3
    assert all(one.overlap(other) == 0 for one in made for other in made if one is not other)


def test_a_label_stays_inside_the_chart():
    (box,) = boxes([(398.0, 3.0, "llamacpp")])
    assert box.right <= AREA.right
    assert box.top >= AREA.top


def test_boxes_that_touch_do_not_overlap():
    assert Box(0, 0, 10, 10).overlap(Box(10, 0, 20, 10)) == 0
    assert Box(0, 0, 10, 10).overlap(Box(5, 5, 20, 20)) == 25


def test_points_of_one_load_that_lie_together_share_a_label():
    points = [(100.0 + 2 * place, 100.0, "c4") for place in range(7)]
    labels = list(placed(points, AREA))
    assert 1 <= sum(label is not None for label in labels) < 7
    far = [(100.0, 100.0, "c4"), (300.0, 100.0, "c4")]
    assert None not in list(placed(far, AREA))


def test_names_of_many_backends_that_lie_together_do_not_cover_each_other():
    points = [(150.0 + 7 * place, 100.0 + 3 * place, f"backend-{place}") for place in range(12)]
    made = boxes(points)
    assert 3 <= len(made) < 12
    assert all(one.overlap(other) == 0 for one in made for other in made if one is not other)


def test_a_label_leaves_the_line_that_rises_from_its_point_free():
    lines = [Segment(100, 100, 200, 40), Segment(60, 100, 140, 100)]
    (box,) = boxes([(100.0, 100.0, "c1")], lines)
    assert [box.length_of(line) for line in lines] == [0, 0]


def test_the_length_of_a_line_in_a_box_is_that_between_its_edges():
    box = Box(0, 0, 10, 10)
    assert box.length_of(Segment(-5, 5, 15, 5)) == 10
    assert box.length_of(Segment(2, 2, 5, 6)) == 5
    assert box.length_of(Segment(5, 20, 5, -20)) == 10
    assert box.length_of(Segment(-5, 0, 0, 15)) == 0
    assert box.length_of(Segment(12, 1, 12, 9)) == 0


def test_a_tick_that_would_touch_the_one_before_it_has_no_text():
    axis = loads("concurrency", (1, 64, 100, 256))
    assert [text for _, text in apart(axis, 240)] == ["1", "64", "256"]
    assert [text for _, text in apart(axis, 2400)] == ["1", "64", "100", "256"]


def test_so_many_points_that_no_label_has_room_have_none():
    """Each would be compared with all others."""
    points = [(float(place % 400), float(place % 199), f"c{place}") for place in range(401)]
    assert any(placed(points[:400], AREA))
    assert list(placed(points, AREA)) == [None] * 401
