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


@pytest.mark.parametrize("order", ["3", "void", "/var/run/nvidia-container-devices", "none", "all"])
@pytest.mark.parametrize("started", [True, False])
def test_an_order_to_the_container_runtime_is_no_choice_of_the_engine(monkeypatch, order, started):
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", order)
    assert gpu_env({"env": {"NVIDIA_VISIBLE_DEVICES": order}} if started else {}) == {}


def engine(port, *urls, **facts):
    return SimpleNamespace(
        urls=urls or (f"http://127.0.0.1:{port}",), facts=facts, counter_sources=(), roles=()
    )


def test_engines_that_are_up_as_well_are_watched_as_partners():
    """The pid of an attached server is not known; it is no child of bench."""
    here, partner, attached = engine(1, pid=200), engine(2, pid=300), engine(3)
    away = engine(None, "http://192.0.2.1:4")
    watch = watch_of(here, 10.0, [here, partner, attached, away], duet=True)
    assert (watch.engine_pid, watch.partner_pids, watch.duet) == (200, (300,), True)
    assert watch.partner_ports == (3,)
    assert watch_of(here, 10.0, [here]).partner_pids == ()


def test_a_server_here_is_looked_for_at_the_port_of_its_scheme_where_its_url_has_none():
    """Without a port its processes would be nobody's, and other load on this machine not be seen."""
    attached = engine(None, "http://127.0.0.1", "https://localhost/v2", "http://127.0.0.1:8000")
    assert watch_of(attached, 10.0).engine_ports == (80, 443, 8000)
    assert watch_of(engine(None, "http://192.0.2.1"), 10.0).engine_ports == ()
