"""Which requests have to wait for their adapter, worked out by hand."""

from harness.metrics.adapters import loaded


def firsts(names, slots):
    named = ["base" if name == "." else name for name in names]
    return "".join("L" if first else "-" for first in loaded(named, slots))


def test_an_adapter_is_loaded_unless_it_is_one_of_the_last_so_many():
    assert firsts("abab", 2) == "LL--"
    assert firsts("abcabc", 2) == "LLLLLL"
    assert firsts("abacab", 2) == "LL-L-L"
    assert firsts("abcabc", 3) == "LLL---"


def test_the_base_model_takes_no_place():
    assert firsts("a.b..a.", 2) == "L-L----"
