from itertools import islice, pairwise
from random import Random
from statistics import fmean, median

import pytest

from harness.mockserver.script import Distribution, output_tokens, text, token_dues_ns

MS = 1_000_000


@pytest.mark.parametrize(
    ("form", "kind", "parameters"),
    [
        ("100", "fixed", (100.0,)),
        ("0", "fixed", (0.0,)),
        ("fixed:2.5", "fixed", (2.5,)),
        ("uniform:10:20", "uniform", (10.0, 20.0)),
        ("exponential:50", "exponential", (50.0,)),
        ("lognormal:50:0.5", "lognormal", (50.0, 0.5)),
    ],
)
def test_distribution_forms(form: str, kind: str, parameters: tuple[float, ...]) -> None:
    assert Distribution.parse(form) == Distribution(kind, parameters)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("", "'' is not a number"),
        ("ten", "'ten' is not a number"),
        ("-1", "not negative"),
        ("inf", "finite"),
        ("nan", "finite"),
        ("fixed", "'fixed' is not a number"),
        ("uniform:1", "is not a distribution"),
        ("uniform:2:1", "LOW is above HIGH"),
        ("lognormal:100:1000", "SIGMA is above 20"),
        ("1e303", r"a time is above 1e\+15 ms"),
        ("uniform:0:1e305", r"a time is above 1e\+15 ms"),
        ("exponential:1:2", "is not a distribution"),
        ("gamma:1:2", "is not a distribution"),
    ],
)
def test_what_is_not_a_distribution(form: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Distribution.parse(form)


def test_draws_have_the_stated_centre_and_range() -> None:
    def draws(form: str) -> list[float]:
        return [ns / MS for ns in Distribution.parse(form).draws_ns(20_000, Random(1))]

    uniform = draws("uniform:10:20")
    assert 10 <= min(uniform) < 10.1
    assert 19.9 < max(uniform) <= 20
    assert fmean(uniform) == pytest.approx(15, rel=0.01)
    assert fmean(draws("exponential:50")) == pytest.approx(50, rel=0.03)
    lognormal = draws("lognormal:50:0.5")
    assert median(lognormal) == pytest.approx(50, rel=0.03)
    assert min(lognormal) > 0
    assert set(draws("fixed:7")) == {7.0}
    assert set(draws("exponential:0")) == {0.0}


def test_the_schedule_is_absolute_and_seeded() -> None:
    ttft, gap = Distribution.parse("100"), Distribution.parse("50")
    assert list(token_dues_ns(ttft, gap, 3 * MS, 4, Random(0))) == [103 * MS, 153 * MS, 203 * MS, 253 * MS]
    assert list(token_dues_ns(ttft, gap, 0, 1, Random(0))) == [100 * MS]

    def scheme(seed: int) -> list[int]:
        return list(
            token_dues_ns(
                Distribution.parse("uniform:1:9"), Distribution.parse("exponential:5"), 0, 50, Random(seed)
            )
        )

    assert scheme(1) == scheme(1) != scheme(2)
    assert all(earlier <= later for earlier, later in pairwise(scheme(1)))


def test_a_long_answer_costs_nothing_until_it_is_played() -> None:
    gap = Distribution.parse("exponential:5")
    dues = token_dues_ns(gap, gap, 0, 10**9, Random(0))
    assert len(list(islice(dues, 3))) == 3


@pytest.mark.parametrize(
    ("limit", "minimum", "ignore_eos", "stop_after", "expected"),
    [
        (10, 0, False, None, (10, "length")),
        (10, 0, False, 4, (4, "stop")),
        (10, 0, True, 4, (10, "length")),
        (10, 6, False, 4, (6, "stop")),
        (10, 0, False, 10, (10, "length")),
        (10, 99, False, 4, (10, "length")),
    ],
)
def test_output_tokens(
    limit: int, minimum: int, ignore_eos: bool, stop_after: int | None, expected: tuple[int, str]
) -> None:
    assert output_tokens(limit, minimum, ignore_eos, stop_after) == expected


@pytest.mark.parametrize("vocabulary", ["ascii", "unicode"])
def test_text_is_cut_anywhere_without_changing(vocabulary: str) -> None:
    whole = text(vocabulary, 0, 600)
    assert whole == text(vocabulary, 0, 257) + text(vocabulary, 257, 600)


def test_every_ascii_token_is_five_bytes() -> None:
    assert len(text("ascii", 0, 1000).encode()) == 5000
    assert len(text("unicode", 0, 1000).encode()) > len(text("unicode", 0, 1000))
