"""A price is what the user says it is, or an error that says what is wrong."""

from pathlib import Path

import pytest

from harness.errors import SpecError
from harness.spec.prices import check_priced, given_prices


def file(tmp_path, text):
    path = tmp_path / "prices.toml"
    path.write_text(text)
    return path


def test_a_price_is_of_the_machine_or_of_a_gpu():
    assert given_prices(None, None, None) is None
    machine = given_prices("1.99", None, None)
    assert (machine.machine_per_hour, machine.currency) == (1.99, "USD")
    assert machine.source == "--price-per-hour"
    gpu = given_prices(None, "3.60 eur", None)
    assert (gpu.gpu_per_hour, gpu.currency) == ({"*": 3.6}, "EUR")


@pytest.mark.parametrize("text", ["", "free", "-1", "0", "1.99 dollars", "nan", "1,99", "9" * 400])
def test_what_is_no_price_is_refused(text):
    with pytest.raises(SpecError, match="not a price above 0"):
        given_prices(text, None, None)


def test_a_file_names_its_source_and_its_gpus(tmp_path):
    text = 'currency = "USD"\nsource = "list of today"\n[gpu_per_hour]\n"NVIDIA H200" = 3.8\n'
    assert given_prices(None, None, file(tmp_path, text)).gpu_per_hour == {"NVIDIA H200": 3.8}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('currency = "USD"\n', "'source' is missing"),
        ('currency = "USD"\nsource = "x"\n', "has none of machine_per_hour, gpu_per_hour, backend_per_hour"),
        (
            'currency = "USD"\nsource = "x"\nmachine_per_hour = 30.4\n[gpu_per_hour]\nA = 1\n',
            "both machine_per_hour and gpu_per_hour",
        ),
        ('currency = "USD"\nsource = "x"\nmachine_per_hour = 0\n', "must be above 0"),
        ('currency = "USD"\nsource = "x"\nmachine_per_hour = inf\n', "not valid TOML"),
        ('currency = "USD"\nsource = "x"\ngpu_per_hour = { A = -1 }\n', "must be above 0"),
        ('currency = "USD"\nsource = "x"\nper_hour = 1\n', "unknown key 'per_hour'"),
        ("currency = USD", "not valid TOML"),
        (
            'currency = "USD"\nsource = "x"\n[gpu_per_hour]\nA = 1\nmachine_per_hour = 30.4\n',
            "gpu_per_hour.machine_per_hour: is a key of the file, not a name that has a price",
        ),
        (
            'currency = "USD"\nsource = "x"\n[backend_per_hour]\nvllm = 1\nmachine_per_hour = 30.4\n',
            "backend_per_hour.machine_per_hour: is a key of the file",
        ),
    ],
)
def test_a_wrong_file_is_one_clear_error(tmp_path, text, words):
    with pytest.raises(SpecError, match=words):
        given_prices(None, None, file(tmp_path, text))


def test_two_prices_are_one_too_many(tmp_path):
    with pytest.raises(SpecError, match="exclude each other"):
        given_prices("1", "2", None)


def test_a_file_without_an_end_is_not_read_to_it():
    with pytest.raises(SpecError, match="is longer than 1,048,576 characters"):
        given_prices(None, None, Path("/dev/zero"))


def test_each_backend_may_be_on_a_machine_of_its_own(tmp_path):
    """One price for an H100 and an L40S made the engine on the cheap one look dear."""
    made = given_prices("vllm==0.26.0=3.80eur, sglang=2.10EUR", None, None)
    assert (made.currency, made.machine_per_hour) == ("EUR", None)
    assert made.backend_per_hour == {"vllm==0.26.0": 3.8, "sglang": 2.1}
    text = 'currency = "USD"\nsource = "x"\n[backend_per_hour]\nvllm = 3.8\n'
    listed = given_prices(None, None, file(tmp_path, text))
    assert listed.backend_per_hour == {"vllm": 3.8}
    check_priced(listed, ["vllm", "sglang"])
    check_priced(None, [])
    with pytest.raises(SpecError, match=r"no backend 'vllm' to have a price"):
        check_priced(listed, ["sglang"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("vllm=1,sglang=2EUR", "in one currency"),
        ("vllm=1,vllm=2", "not one price for each backend"),
        ("vllm=1,2", "not one price for each backend"),
        ("vllm=1,sglang=", "not a price above 0"),
        ("vllm=0", "not a price above 0"),
    ],
)
def test_prices_of_backends_that_are_none_are_one_clear_error(text, words):
    with pytest.raises(SpecError, match=words):
        given_prices(text, None, None)
