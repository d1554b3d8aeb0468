"""Numbers as people read them: never in scientific notation from 1,000 on, and never more than is true."""

import math

import pytest

from harness.model import Interval, Speedup
from harness.model.measures import measure
from harness.model.numbers import (
    apart,
    as_given,
    counted,
    digits_apart,
    duration,
    number,
    percent,
    percent_apart,
    percent_figure,
    percent_of_all,
    short,
    signed,
)
from tests.factories.documents import made


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.00012, "0.00012"),
        (0.00949, "0.0095"),
        (0.0095, "0.0095"),
        (0.00951, "0.010"),
        (0.0123, "0.012"),
        (0.9994, "0.999"),
        (0.9996, "1.00"),
        (9.994, "9.99"),
        (9.996, "10.0"),
        (99.94, "99.9"),
        (99.96, "100"),
        (1234.5, "1234"),
        (-12.34, "-12.3"),
        (1e6, "1000000"),
    ],
)
def test_numbers_have_three_digits(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (2.0, "2"), (6.204, "6.2"), (999.4, "999"), (999.6, "1000"), (1024, "1024"),
     (2990.2, "2990"), (-1024, "-1024"), (1e6, "1000000")],
)  # fmt: skip
def test_short_numbers_have_three_digits_at_most_and_no_exponent(value, text):
    assert short(value) == text


def test_more_or_fewer_digits_have_no_exponent_either():
    assert [short(value, 4) for value in (79.2, 9999.6, 12044.3)] == ["79.2", "10000", "12044"]
    assert [short(value, 2) for value in (1.23, 99.6, 496.1)] == ["1.2", "100", "496"]


def test_loads_are_as_they_were_given():
    assert [as_given(load) for load in (8, 0.5, 2048, 100.25, 100.4, 1234567.25)] == [
        "8", "0.5", "2048", "100.25", "100.4", "1234567.25"
    ]  # fmt: skip


def test_percentages_have_two_digits_and_from_a_hundred_on_are_whole():
    shares = {0.997: "100", 0.0312: "3.1", 1.054: "105", 12.34: "1234", 12345.0: "1234500"}
    assert [percent(share) for share in shares] == list(shares.values())


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0"), (0.004, "0.4"), (0.98, "98"), (0.9951, "99.5"), (0.99964, "99.96"), (0.9999999, "99.99999"),
     (1 - 2**-53, "99.99999999999999"), (1, "100")],
)  # fmt: skip
def test_only_all_is_a_hundred_per_cent(share, text):
    assert percent_of_all(share) == text


@pytest.mark.parametrize(
    ("share", "limits", "text"),
    [(0, (), "0"), (0.003, (), "0.3"), (0.0349, (), "3"), (0.997, (), "99.7"), (1, (), "100"),
     (1.2, (), "120"), (0.976, (0.98,), "97.6"), (0.97996, (0.98,), "97.996"), (0.98, (0.98,), "98"),
     (0.1 + 0.2, (0.3,), "30"), (0.013, (0.01, 0.1), "1.3"), (0.104, (0.01, 0.1), "10.4"),
     (0.2, (0.01, 0.1), "20")],
)  # fmt: skip
def test_a_share_does_not_read_as_a_limit_that_it_is_not(share, limits, text):
    assert percent_apart(share, *limits) == text


@pytest.mark.parametrize(
    ("value", "limit", "decimals", "texts"),
    [(7.25, 5.0, 1, ("7.2", "5.0")), (5.04, 5.0, 1, ("5.04", "5.00")), (5.0, 5.0, 1, ("5.0", "5.0")),
     (0.1 + 0.2, 0.3, 2, ("0.30", "0.30")), (9.97, 10, 1, ("9.97", "10.00")),
     (math.inf, 5.0, 1, ("inf", "5.0"))],
)  # fmt: skip
def test_a_figure_and_its_limit_read_alike_only_where_they_are(value, limit, decimals, texts):
    assert apart(value, limit, decimals) == texts


def test_significant_digits_tell_apart_too():
    assert digits_apart(20.01, 20.04, least=3, shown=short) == 4
    assert digits_apart(16.0, 20.4, least=3, shown=short) == 3


@pytest.mark.parametrize(
    ("share", "limit", "text"),
    [(0.9496, 0.95, "94.96"), (0.943, 0.95, "94.3"), (0.95, 0.95, "95"), (0.9504, 0.95, "95"),
     (0.98996, 0.99, "98.996")],
)  # fmt: skip
def test_a_share_below_its_limit_never_reads_as_the_limit(share, limit, text):
    assert percent_of_all(share, limit) == text


@pytest.mark.parametrize(
    ("value", "limit", "text"),
    [
        (140.4, 100, "140"),
        (100.3, 100, "100.3"),
        (100.0004, 100, "100.0004"),
        (5.004, 5, "5.004"),
        (99, 100, "99.0"),
    ],
)
def test_a_number_does_not_read_as_a_limit_that_it_is_not(value, limit, text):
    assert number(value, limit) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0"), (0.5, "50.0"), (0.9, "90.0"), (0.9997, "99.97"), (1.0, "100"), (1.2, "120")],
)
def test_a_figure_of_a_share_is_that_of_a_table_and_never_all_where_it_is_not(share, text):
    assert percent_figure(share) == measure("tool_time_share").figure(share) == text


def test_a_figure_that_is_no_share_is_a_number():
    assert measure("output_tokens_per_s").figure(99.97) == "100"


def test_a_change_of_nothing_has_no_minus():
    shown = [signed(value) for value in (-0.04, 0.0, 0.04, -0.06, -10.0, 8.13)]
    assert shown == ["+0.0", "+0.0", "+0.0", "-0.1", "-10.0", "+8.1"]


def test_counts_read_as_english():
    assert [counted(count, "repeat") for count in (0, 1, 3)] == ["0 repeats", "1 repeat", "3 repeats"]


def test_durations():
    shown = [duration(seconds) for seconds in (7, 89, 90, 149, 150, 600, 7200)]
    assert shown == ["7 s", "89 s", "1.5 min", "2.5 min", "2.5 min", "10 min", "2.0 h"]


def test_a_speed_up_of_thousands_is_a_plain_number():
    pair = made(Speedup, state="separated", times=Interval(999.7, 2990.2, 12345.6))
    assert pair.span == "2990× (1000 to 12346)"


def test_a_value_of_many_seconds_is_a_plain_number():
    found = measure("ttft_ms.p50")
    assert [found.words(ms) for ms in (79.25, 12044.3)] == ["TTFT p50 79.25 ms", "TTFT p50 12044 ms"]
