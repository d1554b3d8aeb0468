"""What a cell keeps of the engine that it was measured on."""

import hashlib
from types import SimpleNamespace

import numpy as np
import pytest

from harness.records.layout import Phase
from harness.run.measure.cell_facts import _found, _is_dummy, answered_models
from tests.factories.recorded import records


def test_an_upgrade_of_one_package_is_another_environment():
    """Their order is none, and a running server has none of ours."""
    first, again, later = (
        _found({"packages": packages}).packages_sha256
        for packages in (
            {"torch": "2.9", "vllm": "1"},
            {"vllm": "1", "torch": "2.9"},
            {"torch": "2.10", "vllm": "1"},
        )
    )
    assert first == again == hashlib.sha256(b"torch==2.9\nvllm==1\n").hexdigest()
    assert later not in (first, None)
    assert [_found(facts).packages_sha256 for facts in ({}, {"packages": None})] == [None, None]


def test_an_environment_made_again_with_another_pip_is_the_same():
    first, again = (_found({"packages": {"torch": "2.9", "pip": pip}}).packages_sha256 for pip in ("6", "7"))
    assert first == again == hashlib.sha256(b"torch==2.9\n").hexdigest()


def test_models_are_those_of_measured_answers_alone():
    """Next to these, answers to users who hang up looked like several names in one answer."""
    phases = [Phase.WARMUP, Phase.MEASURE, Phase.IMPATIENT, Phase.MEASURE]
    load = SimpleNamespace(
        records=records(*({"sent": 1000 * n, "phase": phase} for n, phase in enumerate(phases))),
        models={"a": np.array([0, 2, 3]), "b": np.array([1])},
    )
    prepared = SimpleNamespace(scenario=SimpleNamespace(lora=SimpleNamespace(adapters=())))
    found = answered_models(load, prepared, None, "m")
    assert [(model.answered, model.requests) for model in found] == [("b", 1), ("a", 1)]


@pytest.mark.parametrize(
    ("command", "dummy"),
    [
        (("vllm", "serve", "m", "--load-format", "dummy"), True),
        (("sglang", "--load-format=dummy"), True),
        (("trtllm-serve", "m", "--load_format", "dummy"), True),
        (("vllm", "serve", "m", "--load-format", "auto", "--served-model-name", "dummy"), False),
        ((), False),
    ],
)
def test_weights_that_an_engine_was_asked_to_draw(command, dummy):
    assert _is_dummy(command) is dummy
