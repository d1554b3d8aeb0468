"""The scripted server that stands in for an engine."""

import pytest

from harness.engines.simulate import simulated
from harness.errors import SpecError
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare
from harness.spec.backend_refs import parse_backend_list


def test_only_values_that_the_scripted_server_takes_are_kept_with_the_run():
    (ref,) = parse_backend_list("llamacpp", ("chat",))
    engine = simulated(ref, ()).definition.engine
    assert set(engine.values) == {"max_sequences", "cache_tokens", "lora_adapters"}
    assert set(engine.tunable) <= set(engine.values)


def test_a_value_without_effect_on_the_scripted_server_is_refused():
    taken = {"max_sequences": "4"}
    prepared = prepare(RunOptions("fixed-length", "vllm", launch="simulate", engine_values=taken))
    assert prepared.backends[0].engine_values == taken
    with pytest.raises(SpecError, match="no backend has an engine value 'dtype'"):
        prepare(RunOptions("fixed-length", "vllm", launch="simulate", engine_values={"dtype": "float32"}))
