"""The vocabulary of a BERT model, as its GGUF file gets it."""

import sys
from types import SimpleNamespace

import pytest


@pytest.fixture
def words_of(monkeypatch):
    """Its environment has the package, ours does not."""
    types = ("GGUFWriter", "PoolingType", "TokenType")
    monkeypatch.setitem(sys.modules, "gguf", SimpleNamespace(**dict.fromkeys(types)))
    from harness.engines.shims.bert_to_gguf import words_of

    return words_of


def test_a_separator_of_unicode_is_a_word_and_parts_none(words_of):
    """It parted lines, so that every later word had the number of another one."""
    assert words_of("[PAD]\n\u2028\n\x85\n##a\n") == ["[PAD]", "\u2028", "\x85", "##a"]
    assert words_of("[PAD]\nno line feed") == ["[PAD]", "no line feed"]
