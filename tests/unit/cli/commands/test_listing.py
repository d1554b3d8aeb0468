"""`bench list` on a terminal of 80 columns: a row per engine, and no word broken."""

import json

import pytest

from harness.cli.main import main


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def listed(capsys, *words):
    assert main(["list", *words]) == 0
    return capsys.readouterr().out


def test_an_engine_is_one_row_with_the_number_of_its_variants(capsys):
    every = [row["name"] for row in json.loads(listed(capsys, "backends", "--json"))["backends"]]
    lines = listed(capsys, "backends").splitlines()
    rows = [line.split() for line in lines if not line.startswith(" ")]  # no second line of a row
    found = {row[0]: row[1] for row in rows}
    assert "@" not in "".join(found)
    assert found["vllm"] == str(sum(name.startswith("vllm@") for name in every))


def test_every_variant_has_a_row_with_v(capsys):
    every = [row["name"] for row in json.loads(listed(capsys, "backends", "--json"))["backends"]]
    names = [line.split(" ")[0] for line in listed(capsys, "backends", "-v").splitlines()[1:]]
    assert [name for name in names if name] == every


def test_a_sentence_stands_below_its_row_where_its_column_would_be_too_narrow(capsys, monkeypatch):
    lines = listed(capsys, "scenarios").splitlines()
    row = next(index for index, line in enumerate(lines) if line.startswith("few-shot "))
    assert lines[row + 1].startswith("    The same solved examples before every short question")
    assert lines[0].split() == ["name", "load", "requests"]
    assert max(map(len, lines)) <= 80
    monkeypatch.setenv("COLUMNS", "140")
    assert listed(capsys, "scenarios").splitlines()[0].split() == ["name", "load", "requests", "purpose"]


def test_several_sentences_of_a_row_have_their_names(capsys):
    lines = listed(capsys, "issues").splitlines()
    row = next(index for index, line in enumerate(lines) if line.startswith("node-lost "))
    assert [line.split()[0] for line in lines[row + 1 : row + 3]] == ["about:", "hint:"]


@pytest.mark.parametrize("what", ["backends", "models", "suites"])
def test_eighty_columns_are_enough_and_words_stay_whole(capsys, monkeypatch, what):
    narrow = listed(capsys, what)
    assert max(map(len, narrow.splitlines())) <= 80
    monkeypatch.setenv("COLUMNS", "1000")
    assert set(narrow.split()) == set(listed(capsys, what).split())
