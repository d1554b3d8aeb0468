"""The loads, and what about a machine is to be changed."""

import pytest

from harness.doctor.loads import LOADS, PROMPT_LENGTHS, QUICK, Load
from harness.doctor.machine import machine_hints
from harness.load.job import ClosedLoop, OpenLoop
from harness.metrics.distribution import samples_needed
from harness.model import DoctorResult
from tests.factories import documents


def test_every_load_has_enough_requests_for_its_p99():
    assert all(load.requests >= samples_needed(99) for load in (*LOADS, *QUICK))


def test_loads_become_jobs():
    closed = Load("concurrency", 4, gap_ms=10, tokens=8, requests=80).job("http://h")
    assert isinstance(closed.schedule, ClosedLoop)
    assert closed.schedule.think_ns[3] > 0
    assert not closed.schedule.think_ns[4:].any()
    assert len({len(body) for body in closed.bodies}) == PROMPT_LENGTHS
    opened = Load("rate", 50, gap_ms=10, tokens=8, requests=80).job("http://h")
    assert isinstance(opened.schedule, OpenLoop)
    assert len(opened.schedule.intended_ns) == len(opened.bodies) == 80


def hints_of(**changes):
    facts = {
        "host": {"cpus_usable": 4, "cpu_governor": "performance"},
        "clock": {"source": "tsc", "kernel_receive_stamps": True},
    }
    for dotted, value in changes.items():
        table, _, key = dotted.partition("__")
        facts[table][key] = value
    found = documents.made(DoctorResult, facts)
    return machine_hints(found.host, found.clock)


def test_a_good_machine_needs_no_hint():
    assert hints_of() == []
    assert hints_of(host__cpu_governor=None, clock__source=None) == []


@pytest.mark.parametrize(
    ("fact", "value", "hint"),
    [
        ("host__cpus_usable", 1, "only one core"),
        ("host__cpu_governor", "powersave", "the CPU governor is powersave"),
        ("clock__source", "hpet", "the clock source is hpet"),
        ("clock__kernel_receive_stamps", False, "no receive timestamps"),
    ],
)
def test_what_to_change_about_a_machine(fact, value, hint):
    (found,) = hints_of(**{fact: value})
    assert hint in found
