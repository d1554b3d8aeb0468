"""Flags of a new run, put together of several advices."""

import pytest

from harness.model.change import alters, number, united, words


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ([{"--requests": 100}, {"--requests": 120}, {"--requests": 90}], {"--requests": 120}),
        ([{"--rate": (4.0, 8.0)}, {"--rate": (2.0, 8.0)}], {"--rate": (2.0, 4.0, 8.0)}),
        ([{"--repeats": "auto"}, {"--repeats": 6}], {"--repeats": "auto"}),  # it ends after as many at most
        ([{"--repeats": 6}, {"--repeats": "auto"}], {"--repeats": "auto"}),
        ([{"--seed": 8}, {"--seed": None}], {"--seed": 8}),
        ([{"--seed": None}, {"--seed": 8}], {"--seed": 8}),
        ([{"--workers": 2}, {}, {"--repeats": 3}], {"--workers": 2, "--repeats": 3}),
    ],
)
def test_several_changes_are_the_most_of_each_and_all_loads(changes, found):
    assert united(changes) == found


def test_a_change_is_written_as_it_is_typed():
    change = {"--set load.warmup_requests": 9, "--budget": 60, "--seed": None, "--rate": (2.0, 4.5)}
    assert words({"--repeats": "auto", **change}) == [
        *("--rate", "2,4.5", "--repeats", "auto"),
        *("--set", "load.warmup_requests=9", "--budget", "60s", "--seed", "N"),
    ]
    assert (number(change, "--budget"), number(change, "--rate"), number({}, "--rate")) == (60, 0, 0)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"--requests": 9, "--concurrency": (1.0,), "--budget": 9}, False),
        ({"--requests": 9, "--engine-set context_tokens": 9}, True),
        ({"--set load.warmup_requests": 9}, False),
        ({"--set prompts.output_spread": 0.2}, True),
    ],
)
def test_what_would_be_measured_of_something_else(change, found):
    assert alters(change) is found
