from harness.report.wording import listing, plain


def test_foreign_text_is_one_harmless_line():
    assert plain("a\n\tb\x1b[31mred\x07") == "a b�[31mred�"
    assert plain("x" * 500) == "x" * 299 + "…"


def test_lists_read_as_english():
    assert [listing(list(words)) for words in ("", "a", "ab", "abc")] == ["", "a", "a and b", "a, b and c"]
