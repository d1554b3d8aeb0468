"""What a comparison refused, in Python."""

from types import SimpleNamespace

from harness.python.comparison import Comparison

SAME = SimpleNamespace(verdict="same", why="within 5%")
OTHER = SimpleNamespace(verdict="not comparable", why="ttft_ms is not the same thing")


def refused(*findings, why=None):
    pair = SimpleNamespace(refused=why, findings=findings)
    return Comparison(SimpleNamespace(pairs=(pair,))).refused


def test_a_pair_without_a_comparable_figure_was_not_compared():
    assert refused(OTHER, OTHER) == ("ttft_ms is not the same thing",)
    assert refused(OTHER, SAME) == ()
    assert refused(OTHER, why="other GPUs") == ("other GPUs",)
    assert refused() == ("no load point in common",)
