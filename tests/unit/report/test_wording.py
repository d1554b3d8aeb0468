import pytest

from harness.report.wording import counted, listing, number, plain


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.00012, "0.00012"),
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


def test_foreign_text_is_one_harmless_line():
    assert plain("a\n\tb\x1b[31mred\x07") == "a b�[31mred�"
    assert plain("x" * 500) == "x" * 299 + "…"


def test_lists_and_counts_read_as_english():
    assert [listing(list(words)) for words in ("", "a", "ab", "abc")] == ["", "a", "a and b", "a, b and c"]
    assert [counted(1, "repeat"), counted(3, "repeat")] == ["1 repeat", "3 repeats"]
