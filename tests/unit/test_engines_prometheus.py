import pytest

from harness.engines.prometheus import totals

TEXT = """\
# HELP vllm:prompt_tokens_total Number of prefill tokens processed.
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="a}b"} 12.0
vllm:prompt_tokens_total{engine="1",model_name="x y"} 3.5
vllm:prompt_tokens_created{engine="0"} 1.79e+09
vllm:prompt_tokens_total_other 99
llamacpp:requests_processing 0
stamped 4 1395066363000
up +Inf
broken_line
"""


def test_label_sets_are_summed_and_other_series_ignored():
    assert totals(
        TEXT, ["vllm:prompt_tokens_total", "llamacpp:requests_processing", "stamped", "absent"]
    ) == {
        "vllm:prompt_tokens_total": 15.5,
        "llamacpp:requests_processing": 0.0,
        "stamped": 4.0,
    }


def test_special_values_are_numbers_and_words_are_not():
    assert totals(TEXT, ["up"]) == {"up": float("inf")}
    with pytest.raises(ValueError, match="could not convert"):
        totals("up down\n", ["up"])
