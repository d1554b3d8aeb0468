"""Prompts in real text: exact lengths, different beginnings, and what a bad file says."""

import json
import re
from random import Random

import pytest

from harness.errors import SpecError
from harness.spec.scenario import Text, load_scenario
from harness.workload.prompts.content import content_of, pieces_of
from harness.workload.prompts.text import TextMaker


def tokens(texts):
    """Words of up to five letters, signs, and spaces that stand alone: about what a tokenizer makes."""
    return [len(re.findall(r"\s?\w{1,5}|\s?[^\w\s]|\s", text)) for text in texts]


@pytest.mark.parametrize("content", ["prose", "code", "json"])
@pytest.mark.parametrize("length", [1, 9, 40, 256, 1500])
def test_lengths_are_exact_in_every_content(content, length):
    assert tokens(TextMaker(tokens, Text(content)).make([length] * 20, Random(5))) == [length] * 20


@pytest.mark.parametrize("content", ["prose", "code", "json"])
def test_most_of_a_text_is_its_content_and_no_two_begin_alike(content):
    texts = TextMaker(tokens, Text(content)).make([400] * 20 + [40] * 180, Random(1))
    assert len({text[:40] for text in texts}) > 190
    source = "".join(pieces_of(Text(content)))
    for text in texts[:20]:
        middle = text[200:500]
        assert middle in source + source, middle


def test_json_is_made_of_records():
    for piece in pieces_of(Text("json")):
        assert json.loads(piece.strip().rstrip(","))["status"]


def test_equal_seeds_make_equal_texts():
    one, other = (TextMaker(tokens, Text("code")).make([300], Random(3)) for _ in range(2))
    assert one == other


def test_a_file_of_ones_own(tmp_path):
    file = tmp_path / "mine.txt"
    file.write_text("\n".join(f"line {number} of my own text" for number in range(50)))
    texts = TextMaker(tokens, Text(f"file:{file}")).make([100], Random(0))
    assert "of my own text\nline" in texts[0]
    scenario = load_scenario("fixed-length", {"text.content": f"file:{file}"})
    assert re.fullmatch("file [0-9a-f]{12}", content_of(scenario))


@pytest.mark.parametrize(
    ("raw", "said"),
    [(None, "cannot be read"), (b"\xff\xfe\x00", "is not UTF-8"), (b"too short", "has 1 sentences or lines")],
)
def test_a_bad_file_is_one_error(tmp_path, raw, said):
    file = tmp_path / "bad.txt"
    if raw is not None:
        file.write_bytes(raw)
    with pytest.raises(SpecError, match=said):
        pieces_of(Text(f"file:{file}"))


@pytest.mark.parametrize("end", ["\n", "\r\n", "  \n", "\t\r\n\r\n"])
def test_a_line_ends_where_its_text_does_whatever_stands_before_the_next(tmp_path, end):
    file = tmp_path / "lines.txt"
    file.write_text(end.join(f"line {number} of the file" for number in range(30)), newline="")
    first, *others = pieces_of(Text(f"file:{file}"))
    assert (first, others[0]) == ("\nline 0 of the file", f"{end}line 1 of the file")
    assert len(others) == 29


@pytest.mark.parametrize("content", ["poetry", "file:", ""])
def test_an_unknown_content_is_refused_with_its_key(content):
    with pytest.raises(SpecError, match="unknown content") as error:
        load_scenario("fixed-length", {"text.content": content})
    assert "text.content" in error.value.where


def test_prompts_of_a_file_have_their_own(tmp_path):
    assert content_of(load_scenario("prompt-file")) == "prompts of a file"
    with pytest.raises(SpecError, match="have their own content"):
        load_scenario("prompt-file", {"text.content": "code"})


def test_random_words_are_what_they_were():
    assert content_of(load_scenario("fixed-length")) == "random"
    assert pieces_of(Text()) == ()
    assert TextMaker(tokens).make([50], Random(2)) == TextMaker(tokens, Text("random")).make([50], Random(2))
