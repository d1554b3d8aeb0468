import argparse

import pytest

from harness.cli.flags.argument_types import (
    address,
    apis,
    depths,
    duration_s,
    numbers,
    percent,
    repeats,
    wait_s,
    whole_numbers,
)


@pytest.mark.parametrize(
    ("text", "seconds"), [("2h", 7200), ("45m", 2700), ("90s", 90), ("1h30m", 5400), ("0.5m", 30), ("0s", 0)]
)
def test_durations(text, seconds):
    assert duration_s(text) == seconds


@pytest.mark.parametrize(
    ("kind", "text", "says"),
    [
        (duration_s, "", "is not a duration"),
        (duration_s, "90", "is not a duration"),
        (duration_s, "2x", "is not a duration"),
        (duration_s, "h", "is not a duration"),
        (duration_s, "1.5", "is not a duration"),
        (duration_s, "1h 30m", "is not a duration"),
        (duration_s, "-1s", "is not a duration"),
        (duration_s, "1hx", "is not a duration"),
        (address, "65536", "is not a port"),
        (address, "host:", "is not a port"),
        (address, "host", "is not a port"),
        (repeats, "3.5", "neither auto nor a whole number"),
        (repeats, "1" * 400, "is not a whole number below 2\\*\\*63"),
        (percent, "-0.1", "is not a percentage"),
        (percent, "-100", "is not a percentage"),
        (percent, "nan", "is not a percentage"),
        (percent, "inf", "is not a percentage"),
        (wait_s, "-1", "is not a number of seconds from 0 on"),
        (wait_s, "nan", "is not a number of seconds from 0 on"),
        (wait_s, "inf", "is not a number of seconds from 0 on"),
        (percent, "5%", "is not a percentage"),
        (apis, "chat,speech", "'speech' is not one of chat"),
        (apis, "chat,chat", "names one of them twice"),
        (depths, "4k,", "is not a list of different numbers of tokens"),
        (depths, "0", "is not a list of different numbers of tokens"),
        (whole_numbers, "1,a", "^'a' is not a whole number; a list is like 1,8,32$"),
        (whole_numbers, f"1,{2**63}", "is not a whole number below 2\\*\\*63"),
        (numbers, "1/s", "^'1/s' is not a number; a list"),
        (whole_numbers, "", "^'' holds no number; a list is like 1,8,32$"),
        (numbers, ",", "^',' holds no number; a list"),
        (depths, "4k,4k", "is not a list of different numbers of tokens"),
    ],
)
def test_what_a_flag_cannot_be_is_said(kind, text, says):
    with pytest.raises(argparse.ArgumentTypeError, match=says):
        kind(text)


def test_what_a_flag_can_be():
    assert repeats("auto") == "auto"
    assert repeats("3") == 3
    assert whole_numbers("1,8,") == [1, 8]
    assert numbers("0.5,2") == [0.5, 2.0]
    assert [percent(text) for text in ("0", "2.5", "200")] == [0.0, 2.5, 200.0]
    assert [wait_s(text) for text in ("0", "2.5")] == [0.0, 2.5]
    assert address("9400") == ("127.0.0.1", 9400)
    assert address("[::1]:0") == ("[::1]", 0)
    assert apis("responses, chat") == ("responses", "chat")
    assert depths("512,4k") == [("512", 512), ("4k", 4096)]
