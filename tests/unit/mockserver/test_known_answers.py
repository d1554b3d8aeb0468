"""A server of known accuracy: right answers, and a share of wrong ones above a number in flight."""

import json

import pytest

from harness.mockserver.known_answers import WRONG, KnownAnswers, WrongShare, read_answers

RIGHT = {f"question {number}": str(number) for number in range(2000)}


def text(known, question, running):
    return "".join(known.to(question, running))


def test_a_fixed_share_is_wrong_only_above_the_number_in_flight():
    known = KnownAnswers(RIGHT, WrongShare(0.1, above=4))
    assert all(text(known, question, 4) == answer for question, answer in RIGHT.items())
    wrong = [question for question in RIGHT if text(known, question, 5) == WRONG]
    assert 150 < len(wrong) < 250
    assert wrong == [question for question in RIGHT if text(known, question, 99) == WRONG]
    assert known.to("another", 9) == ()


@pytest.mark.parametrize("given", ["2", "-0.1", "x", "0.1:below=3", "0.1:above", "0.1:above=x"])
def test_a_bad_share_is_refused(given):
    with pytest.raises(ValueError, match=r".+"):
        WrongShare.parse(given)
    assert WrongShare.parse("0.05:above=4") == WrongShare(0.05, 4)


def test_a_file_that_holds_no_answers(tmp_path):
    file = tmp_path / "answers.json"
    for raw in ("[]", "{", '{"a": 1}'):
        file.write_text(raw)
        with pytest.raises(ValueError, match=r"answers\.json"):
            read_answers(str(file))
    file.write_text(json.dumps(RIGHT))
    assert read_answers(str(file)) == RIGHT


def test_a_device_is_not_read_to_its_end():
    with pytest.raises(ValueError, match="/dev/zero cannot be read as JSON: it is a device"):
        read_answers("/dev/zero")
    with pytest.raises(ValueError, match=r"cannot be read as JSON: .*too long"):
        read_answers("x" * 300)
