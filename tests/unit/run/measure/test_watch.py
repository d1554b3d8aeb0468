"""What the sampler is to watch: the GPUs that an engine was given, and which processes are nobody's load."""

from types import SimpleNamespace

import pytest

from harness.run.measure.watch import gpu_env, watch_of


@pytest.mark.parametrize("own", [{}, {"HIP_VISIBLE_DEVICES": "1,2"}])
def test_a_variable_that_compose_passes_on_has_the_value_that_it_has_here(monkeypatch, own):
    for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("HIP_VISIBLE_DEVICES", raising=False)
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    facts = {
        "container": {"device": "rocm", "gpus": []},
        "env": {"HIP_VISIBLE_DEVICES": None, "HF_HOME": "/"},
    }
    assert gpu_env(facts) == own


def engine(port, **facts):
    return SimpleNamespace(urls=(f"http://127.0.0.1:{port}",), facts=facts, counter_sources=(), roles=())


def test_engines_that_are_up_as_well_are_watched_as_partners():
    """The pid of an attached server is not known; it is no child of bench."""
    here, partner, attached = engine(1, pid=200), engine(2, pid=300), engine(3)
    watch = watch_of(here, 10.0, [here, partner, attached], duet=True)
    assert (watch.engine_pid, watch.partner_pids, watch.duet) == (200, (300,), True)
    assert watch_of(here, 10.0, [here]).partner_pids == ()
