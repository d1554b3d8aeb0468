"""Whether vectors and rankings of two backends are the same ones."""

import pytest
from msgspec.structs import replace

from harness.agreement.values import LEAST_COSINE, compare_values, cosine, rank_correlation
from harness.conditions import unequal, with_manifest
from harness.model import Agreement, CellResult, Manifest, StoredValues
from tests.factories import documents
from tests.unit.verdicts.test_pairs import cells

ONE = {"a": (1.0, 0.0), "b": (0.6, 0.8)}


def stored(
    alone: dict[str, tuple[float, ...]], together: dict[str, tuple[float, ...]] | None = None, gives="vectors"
):
    return StoredValues(gives=gives, alone=alone, together=together or alone)


def alike(**asked: StoredValues) -> dict[tuple[str, str], bool]:
    return {(pair.a, pair.b): pair.alike for pair in compare_values(asked).pairs}


def test_a_cosine_does_not_see_the_length() -> None:
    assert cosine((1, 2), (2, 4)) == pytest.approx(1)
    assert cosine((1, 0), (0, 1)) == 0
    assert cosine((1, 0), (1, 0, 0)) is None
    assert cosine((0, 0), (1, 0)) is None


def test_only_the_order_of_scores_counts() -> None:
    assert rank_correlation((-3, 0, 9), (0.1, 0.2, 0.9)) == pytest.approx(1)
    assert rank_correlation((-3, 0, 9), (3, 2, 1)) == pytest.approx(-1)
    assert rank_correlation((1, 1), (1, 2)) is None
    assert rank_correlation((1, 2, 2, 3), (1, 2, 2, 3)) == pytest.approx(1)


def test_equal_vectors_are_alike() -> None:
    assert set(alike(x=stored(ONE), y=stored(ONE)).values()) == {True}


def test_one_text_below_the_limit_is_enough() -> None:
    found = compare_values({"x": stored(ONE), "y": stored(ONE | {"b": (0.9, 0.1)})})
    (pair,) = [one for one in found.pairs if one.a != one.b]
    assert not pair.alike
    assert pair.least is not None
    assert pair.least < LEAST_COSINE < 1
    assert "x and y: cosine down to" in pair.words


def test_what_is_below_the_limit_never_reads_as_the_limit() -> None:
    near = (0.9799, (1 - 0.9799**2) ** 0.5)
    pairs = compare_values({"x": stored({"a": (1.0, 0.0)}), "y": stored({"a": near})}).pairs
    (words,) = [pair.words for pair in pairs if pair.a != pair.b]
    assert words == "x and y: cosine down to 0.9799, at least 0.98 is needed"


def test_where_some_do_not_compare_the_others_are_not_the_reason() -> None:
    found = compare_values({"x": stored(ONE), "y": stored(ONE | {"b": (0.0, 0.0)})})
    (pair,) = [one for one in found.pairs if one.a != one.b]
    assert not pair.alike
    assert pair.words == "x and y: not all compare: sizes differ, or the values of one are all equal"


def test_vectors_of_another_size_are_never_alike() -> None:
    found = alike(x=stored(ONE), y=stored({"a": (1.0, 0.0, 0.0), "b": (0.0, 1.0, 0.0)}))
    assert found["x", "y"] is False


def test_vectors_that_change_in_a_batch_are_not_alike() -> None:
    found = alike(x=stored(ONE, {"a": (0.0, 1.0), "b": (0.6, 0.8)}), y=stored(ONE))
    assert found == {("x", "x"): False, ("y", "y"): True, ("x", "y"): True}


def test_nothing_in_common_is_not_alike() -> None:
    assert alike(x=stored(ONE), y=stored({"c": (1.0, 0.0)}))["x", "y"] is False


def _spoken() -> list[CellResult]:
    made = [*cells("a", 100, repeats=3), *cells("b", 50, repeats=3)]
    return [replace(cell, track=None, conditions=replace(cell.conditions, api="embeddings")) for cell in made]


def test_other_vectors_are_a_condition_that_refuses_every_metric() -> None:
    """Also where the weights have other names, as they do on attached servers."""
    found = Agreement(
        questions=0, kinds={}, backends={}, pairs=(),
        values=compare_values({"a": stored(ONE), "b": stored(ONE | {"b": (0.9, 0.1)})}),
    )  # fmt: skip
    stated = with_manifest(_spoken(), documents.made(Manifest, {"backends": {"a": {}, "b": {}}}), found)
    (entry,) = [one for one in unequal(stated) if one.code == "agreement"]
    assert (entry.matters, entry.metrics) == (True, ())
    assert "cosine down to" in entry.text


TURNED = ONE | {"b": (0.9, 0.1)}
LIBRARY = replace(stored(ONE), together={}, library="transformers")


def test_the_models_own_library_is_compared_and_has_no_batch() -> None:
    found = compare_values({"x": stored(ONE), "transformers": LIBRARY})
    assert found.reference == "transformers"
    assert [(pair.a, pair.b, pair.alike) for pair in found.pairs] == [
        ("x", "x", True), ("x", "transformers", True),
    ]  # fmt: skip


def test_agreement_is_one_line_and_silent_where_there_is_none() -> None:
    found = compare_values({"x": stored(ONE), "transformers": LIBRARY})
    assert found.words == "Vectors agree, also with transformers: cosine 1.00000."
    close = stored(ONE | {"b": (0.7, 0.7141)})
    assert compare_values({"x": stored(ONE), "y": close}).words == "Vectors agree: cosine 0.99131 or more."
    assert compare_values({"x": stored(ONE), "y": stored(TURNED)}).words == ""


def test_two_backends_that_share_an_error_are_refused_by_the_library() -> None:
    values = compare_values({"a": stored(TURNED), "b": stored(TURNED), "transformers": LIBRARY})
    found = Agreement(questions=0, kinds={}, backends={}, pairs=(), values=values)
    stated = with_manifest(_spoken(), documents.made(Manifest, {"backends": {"a": {}, "b": {}}}), found)
    (entry,) = [one for one in unequal(stated) if one.code == "agreement"]
    assert entry.matters
    assert "a and transformers: cosine down to" in entry.text


def test_length_and_truncation_are_shown_where_they_differ() -> None:
    long = {name: tuple(3 * number for number in vector) for name, vector in ONE.items()}
    values = compare_values(
        {"a": replace(stored(ONE), too_long="refused"), "b": replace(stored(long), too_long="cut")}
    )
    found = Agreement(questions=0, kinds={}, backends={}, pairs=(), values=values)
    stated = with_manifest(_spoken(), documents.made(Manifest, {"backends": {"a": {}, "b": {}}}), found)
    entries = {one.code: one for one in unequal(stated)}
    assert "agreement" not in entries
    assert not entries["normalisation"].matters
    assert "refused" in entries["truncation"].text
    assert "cut" in entries["truncation"].text
