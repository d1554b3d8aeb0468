"""Energy, cost, contention and scaling from numbers that can be worked out on paper."""

import dataclasses

import numpy as np
import pytest

from harness.metrics import cost, cpu_use, energy
from harness.metrics.scaling import scaling
from harness.metrics.usage import _health, describe
from harness.metrics.view import Figures, RequestView
from harness.metrics.window import Window
from harness.model import (
    UNSET,
    CellResult,
    Cost,
    Gpu,
    HistogramIncrease,
    Host,
    LoadNode,
    LoadNodeUse,
    Price,
    Prices,
    Range,
    Sampled,
    SampledSource,
    Server,
    TelemetryHealth,
    as_json,
)
from harness.records.series import Samples, Telemetry
from harness.report.findings.notes import most_important, notes
from harness.report.html.machine_use import machine as machine_section
from harness.report.html.source import Source
from harness.report.plots.panels import panels
from harness.report.text.screen import screen
from harness.validity import Evidence, judge
from harness.validity.telemetry import gaps
from tests.factories import documents
from tests.factories.recorded import facts, records, summarise_cell
from tests.factories.summaries import cell, summary, verdict

S = 1_000_000_000
WINDOW = Window(0, 10 * S, "steady")
ALIVE = Telemetry({"host.memory_used_bytes": Samples(np.array([0]), np.array([1.0]))})
RATES = {"output_tokens_per_s": 50.0, "input_tokens_per_s": 450.0, "requests_per_s": 2.0}


def line(start, stop, first, last):
    """A straight line between two moments in seconds, ten samples a second."""
    at = np.linspace(start, stop, int((stop - start) * 10) + 1)
    return Samples((at * S).astype(np.int64), np.interp(at, [start, stop], [first, last]))


def test_energy_comes_from_the_counter_and_idle_power_is_taken_off():
    telemetry = Telemetry(
        {"gpu.0.energy_j": Samples(np.array([-3, 0, 10, 11]) * S, np.array([0.0, 180.0, 3180.0, 3240.0]))}
    )
    found, reason = energy.describe(telemetry, [0], RATES, WINDOW)
    assert reason == ""
    assert found.gpu_w == pytest.approx(300)
    assert found.gpu_idle_w == pytest.approx(60)
    assert found.joules == pytest.approx(3000)
    assert found.joules_per_output_token == pytest.approx(6.0)
    assert found.joules_per_output_token_above_idle == pytest.approx(4.8)
    assert found.joules_per_request == pytest.approx(150)
    assert found.output_tokens_per_s_per_watt == pytest.approx(50 / 300)
    assert found.cpu_w is None


def test_power_takes_the_place_of_a_counter_and_one_gpu_without_either_makes_the_sum_unknown():
    power = {"gpu.0.power_w": line(-3, 11, 100, 100), "gpu.1.power_w": line(-3, 11, 50, 50)}
    found, _ = energy.describe(Telemetry(power), [0, 1], RATES, WINDOW)
    assert found.gpu_w == pytest.approx(150)
    found, reason = energy.describe(
        Telemetry({"gpu.0.power_w": line(-3, 11, 100, 100)}), [0, 1], RATES, WINDOW
    )
    assert found is None
    assert "GPUs" in reason


def test_nothing_is_known_above_an_idle_power_that_is_no_less_than_that_under_load():
    """Something else computed before the first request: 0 J per token would be a figure."""
    power = Samples(np.arange(-30, 110) * (S // 10), np.repeat([320.0, 300.0], [30, 110]))
    found, _ = energy.describe(Telemetry({"gpu.0.power_w": power}), [0], RATES, WINDOW)
    assert (found.gpu_w, found.gpu_idle_w) == pytest.approx((300, 320))
    assert found.joules_per_output_token == pytest.approx(6.0)
    assert found.joules_per_output_token_above_idle is None


def test_without_a_gpu_the_cpu_packages_count():
    telemetry = Telemetry({"cpu.0.energy_j": line(-3, 11, 0, 700), "cpu.1.energy_j": line(-3, 11, 0, 140)})
    found, _ = energy.describe(telemetry, [], RATES, WINDOW)
    assert found.scope == "cpu"
    assert found.cpu_w == pytest.approx(60)


def test_a_dollar_ninety_nine_at_fifty_tokens_a_second():
    """$11.06 and not the $11.16 that was once published for it."""
    assert cost.per_million(1.99, 50) == pytest.approx(11.0556, abs=1e-4)
    assert cost.per_million(1.99, None) is None
    assert cost.per_million(1.99, 0.0) is None


def prices(**given):
    return Prices("USD", "list", **given)


def test_a_cost_charges_the_whole_hour_to_its_own_tokens():
    priced, _ = cost.price(prices(machine_per_hour=1.8), None)
    found = cost.describe(priced, RATES, good_tokens_per_s=RATES["output_tokens_per_s"] / 2)
    assert found.per_million_output_tokens == pytest.approx(10.0)
    assert found.per_million_input_tokens == pytest.approx(10 / 9)
    assert found.per_million_tokens == pytest.approx(1.0)
    assert found.per_million_good_output_tokens == pytest.approx(20.0)
    assert found.output_tokens_per_day == 50 * 86400
    unknown = cost.describe(priced, dict.fromkeys(RATES), good_tokens_per_s=None)
    assert unknown == documents.made(Cost, price=priced)


def test_a_price_is_of_the_gpus_that_were_used_or_not_known():
    names = ["A", "A", "B"]
    devices = [{"index": i, "name": n} for i, n in enumerate(names)]
    gpu = documents.made(Gpu, devices=devices, engine_gpus=[0, 1])
    priced, _ = cost.price(prices(gpu_per_hour={"A": 2.0}), gpu)
    assert priced == Price(per_hour=4.0, currency="USD", covers="2 × A", source="list")
    assert cost.price(prices(gpu_per_hour={"*": 1.0}), gpu)[0].per_hour == 2.0
    assert cost.price(prices(gpu_per_hour={"B": 1.0}), gpu) == (None, "no price for A; there is one for B")
    assert cost.price(prices(gpu_per_hour={"B": 1.0}), None)[0] is None
    assert cost.price(None, gpu) == (None, cost.NO_PRICE)
    own = prices(backend_per_hour={"a": 3.8, "b": 2.1})
    assert [cost.price(own, gpu, label)[0].per_hour for label in "ab"] == [3.8, 2.1]
    assert cost.price(own, gpu, "c") == (None, "no price for c; there is one for a, b")


def test_each_load_node_used_what_it_sampled_of_itself():
    there = {
        "host.cpu_busy_s": line(-1, 11, 0, 12),
        "client.cpu_s": line(-1, 11, 0, 6),
        "host.memory_used_bytes": line(-1, 11, 2e9, 2e9),
        "host.net_received_bytes": line(-1, 11, 0, 12e6),
        "host.net_sent_bytes": line(-1, 11, 0, 24e6),
        "host.cpu_stolen_s": line(-1, 11, 0, 3),
    }
    here = {"host.cpu_busy_s": line(-1, 11, 0, 3)}
    telemetry = Telemetry(here | {f"node.10.0.0.2.{name}": one for name, one in there.items()})
    nodes = [documents.made(LoadNode, address=f"10.0.0.{number}", cpus=4) for number in (1, 2)]
    silent, used = cpu_use.load_nodes(telemetry, nodes, WINDOW)
    assert silent == documents.made(LoadNodeUse, address="10.0.0.1", cpus=4)
    assert used.busy_cores == pytest.approx(1.0)
    assert used.client_cores == pytest.approx(0.5)
    assert used.stolen_cores == pytest.approx(0.25)
    assert used.memory_used_bytes.max == pytest.approx(2e9)
    assert used.net_received_bytes_per_s == pytest.approx(1e6)
    assert used.net_sent_bytes_per_s == pytest.approx(2e6)


def test_load_nodes_are_drawn_on_the_clock_of_the_cell_and_listed():
    address = "10.0.0.2"
    telemetry = Telemetry({f"node.{address}.host.cpu_busy_s": line(-1, 11, 0, 12)})
    use = documents.made(LoadNodeUse, name="b", address=address, cpus=4, busy_cores=1.0)
    (panel,) = panels(cell(load_nodes=(use,)), telemetry, 10.0)
    (curve,) = panel.curves
    assert curve.name == address
    assert curve.seconds.min() >= 0
    assert curve.values == pytest.approx(1.0)
    page = str(machine_section(page_of(summary(cell(load_nodes=(use,))))))
    assert "b (10.0.0.2)" in page


def host(others, cpus=2, stolen=0.0):
    return watched(host=documents.made(Host, cpus=cpus, other_cores=others, stolen_cores=stolen))


def watched(**parts):
    health = documents.made(TelemetryHealth)
    return Figures(**{"telemetry": health, "gpu": None, "server": None, "host": None} | parts)


def found(usage, **changes):
    about = facts(workload__output_tokens=1, **changes)
    answers = records(*({"sent": 10 * i, "intended": 10 * i, "texts": [10 * i + 10]} for i in range(5)))
    return {
        reason.code: reason for reason in judge(Evidence(RequestView(answers), about, watched=usage)).reasons
    }


def test_other_work_makes_a_cell_suspect_with_its_share():
    assert found(host(0.19)) == {}
    contended = found(host(0.5, stolen=0.25))["contended"]
    assert contended.verdict == "SUSPECT"
    assert contended.measured.startswith("0.50 of 2 cores (25%) kept busy by other work, 0.25 of it taken")
    assert found(host(1.5, cpus=16)) == {}
    assert found(host(None)) == {}


@pytest.mark.parametrize(
    ("stolen", "verdict"), [(0.19, None), (0.2, "SUSPECT"), (0.39, "SUSPECT"), (0.4, "INVALID"), (None, None)]
)
def test_cores_that_a_hypervisor_took_make_a_doubt_of_their_own(stolen, verdict):
    codes = found(host(None, stolen=stolen))
    assert {code: one.verdict for code, one in codes.items()} == ({"stolen-time": verdict} if verdict else {})


@pytest.mark.parametrize(
    ("stolen", "words"), [(2.0, "2.00 of 10 cores (20%)"), (1.996, "2.00 of 10 cores (19.96%)")]
)
def test_a_share_that_was_taken_reads_as_its_limit_only_where_it_is(stolen, words):
    assert found(host(None, cpus=10, stolen=stolen))["stolen-time"].measured == words


def test_a_gpu_that_is_not_ours_alone():
    device = {"index": 0, "throttled_share": {"hardware thermal": 0.2, "power cap": 1.0}}
    gpu = {
        "idle_utilisation_pct": 43.0,
        "other_memory_bytes": {"mean": 1.0, "max": float(12 << 30)},
        "engine_gpus": [0],
        "devices": [device],
    }
    codes = found(watched(gpu=documents.made(Gpu, gpu)))
    assert set(codes) == {"gpu-busy", "gpu-shared", "gpu-throttled"}
    assert codes["gpu-busy"].measured == "43% busy before the first request"
    assert codes["gpu-shared"].measured == "12.0 GiB of GPU memory held by other processes"
    assert codes["gpu-throttled"].measured == "GPU 0: hardware thermal 20%"
    little = {**gpu, "idle_utilisation_pct": 5.3}
    assert found(watched(gpu=documents.made(Gpu, little)))["gpu-busy"].measured.startswith("5.3% busy")
    quiet = {**gpu, "idle_utilisation_pct": 0.0, "other_memory_bytes": {"mean": 0.0, "max": 0.0}}
    quiet["devices"] = [{**device, "throttled_share": {"power cap": 1.0}}]
    assert found(watched(gpu=documents.made(Gpu, quiet))) == {}


def test_an_engine_that_began_anew_is_found_out():
    once = found(None, counter_restarts=1)["engine-restarted"]
    assert (once.verdict, once.measured) == ("INVALID", "its counters fell 1 time")
    assert "several engines answer at one metrics URL" in once.hint


@pytest.mark.parametrize(
    ("falls", "measured"),
    [
        (((3.14, 9.8),), "its counters fell 1 time, 3.1 to 9.8 s into the load"),
        (
            ((1.0, 1.5), (3.0, 3.5), (7.0, 7.5), (9.0, 9.5)),
            "its counters fell 4 times, 1.0 to 1.5 s, 3.0 to 3.5 s, 7.0 to 7.5 s into the load and later",
        ),
    ],
)
def test_a_restart_says_when_it_was(falls, measured):
    given = {"counter_restarts": len(falls), "counter_falls_s": falls}
    assert found(None, **given)["engine-restarted"].measured == measured


def source(**changes):
    return {
        "reads": 5,
        "failing_since_s": None,
        "last_failure": "",
        "unavailable": "",
        "about": {},
        **changes,
    }


LOST = source(about={"lost": {"gpu.1": {"why": "GPU is lost", "at_ns": 1}}})


def gap(one):
    (warning,) = gaps([sampled("0", nvidia=one)])
    return warning.text


def sampled(name, **sources):
    return documents.made(CellResult, cell=name, telemetry={"problem": None, "sources": sources})


def test_a_dead_exporter_is_a_warning_once_per_reason():
    dead = source(failing_since_s=3.2, last_failure="refused")
    warnings = gaps([sampled("000-x", engine=dead), sampled("001-x", engine=dead)])
    (warning,) = warnings
    assert warning.text == "the engine's metrics stopped answering: refused (000-x, 001-x)"
    assert warning.hint == "its figures are null, or of a part"
    assert gap(dead | {"reads": 0}).startswith("NVML did not answer: refused")
    assert "mismatch" in gap(source(unavailable="NVML: version mismatch", about={"broken": True}))
    hints = [
        gaps([sampled("0", **{name: source(unavailable="fault", about={"broken": True})})])[0].hint
        for name in ("nvidia-slow", "amd")
    ]
    assert ["nvidia-smi" in hint for hint in hints] == [True, False]
    assert "gpu.1 was lost" in gap(LOST)
    assert gaps([sampled("0", engine=source())]) == []


def test_a_lost_gpu_is_a_warning_of_its_own_that_comes_before_a_busy_machine():
    """Without it the column of energy was gone, and the reason behind `1 more warning`."""
    (warning,) = gaps([sampled(name, nvidia=LOST, **{"nvidia-slow": LOST}) for name in ("000-x", "001-x")])
    where = "(000-x, 001-x); power, energy and memory of the GPUs are null there"
    assert (warning.code, warning.text) == ("gpu-lost", f"gpu.1 was lost: GPU is lost {where}")
    gpu = {"engine_gpus": [0], "devices": [{"index": 0}]}
    (before,) = gaps([documents.changed(sampled("000-x", nvidia=LOST), gpu=gpu)])
    assert before.text == "gpu.1 was lost: GPU is lost (000-x); figures of the GPUs are of the others there"
    during = {"engine_gpus": [0, 1], "devices": [{"index": 0}, {"index": 1}]}
    assert gaps([documents.changed(sampled("000-x", nvidia=LOST), gpu=during)])[0].text.endswith("null there")
    busy = verdict("SUSPECT", "contended", "1.9 of 2 cores", "10%", "stop what else runs")
    made = summary(cell("x", validity=busy), warnings=[as_json(warning)])
    assert [note.code for note in most_important(made)] == ["gpu-lost", "contended"]


@pytest.mark.parametrize(
    ("changes", "warned"),
    [
        ({}, True),
        ({"launch": "process"}, True),
        ({"ok": 0}, False),  # it hung, or died, before it computed
        ({"launch": "attach"}, False),  # a server may run on a CPU next to them
        ({"busiest": (0, 3.0)}, False),
        ({"busiest": (0, None)}, False),  # not read
        ({"busiest": ()}, False),  # --device cpu
        ({"named": False}, False),  # no GPU was given to it
    ],
)
def test_an_engine_that_was_started_for_gpus_and_computes_on_the_cpu_is_a_warning(changes, warned):
    """llama.cpp does so where its build, or the driver, knows no GPU."""
    given = {"launch": "compose", "busiest": (0.0, 0.9), "named": True, "ok": 8, **changes}
    ranges = [None if most is None else {"mean": 0.0, "max": most} for most in given["busiest"]]
    devices = [{"index": 2 + at, "utilisation_pct": found} for at, found in enumerate(ranges)]
    telemetry = {"problem": None, "sources": {"nvidia": source(about={"named": given["named"]})}}
    cells = [
        documents.made(
            CellResult,
            cell=name,
            label="llamacpp",
            launch=given["launch"],
            requests={"ok": given["ok"]},
            gpu={"engine_gpus": [], "seen_using_them": True, "devices": devices},
            telemetry=telemetry,
        )
        for name in "ab"
    ]
    found = [(warning.code, warning.text) for warning in gaps(cells)]
    assert found == [("gpu-idle", "llamacpp: GPU 2, 3 ran nothing under any load")] * warned


@pytest.mark.parametrize(
    ("named", "seen", "there", "warned"),
    [
        (False, False, 8, True),
        (True, False, 8, False),
        (None, False, 8, False),  # an older version did not record it
        (False, True, 8, False),
        (False, False, 1, False),
    ],
)
def test_figures_of_gpus_that_may_be_others_are_a_warning_once_per_backend(named, seen, there, warned):
    devices = [{"index": index} for index in range(there)]
    gpu = {"engine_gpus": [0, 3], "seen_using_them": seen, "devices": devices}
    telemetry = {"problem": None, "sources": {"nvidia": source(about={"named": named})}}
    cells = [
        documents.made(CellResult, cell=name, label="vllm", gpu=gpu, telemetry=telemetry) for name in "ab"
    ]
    texts = [(warning.code, warning.text, warning.backend) for warning in gaps(cells)]
    text = (
        "vllm: which of the 8 GPUs it used is not known: power, energy and all else of its GPUs are of those "
        "that anybody used (0, 3)"
    )
    assert texts == [("gpus-not-known", text, "vllm")] * warned


def test_gpus_that_cannot_be_read_do_not_make_a_machine_of_cpus_alone():
    """Joules of the CPU packages per token would look like a thrifty GPU."""
    telemetry = Telemetry({"cpu.0.energy_j": line(-3, 11, 0, 700), "server.cpu_s": line(-1, 11, 0, 12)})
    mismatch = source(unavailable="NVML: Driver/library version mismatch", about={"broken": True})
    for nvidia, joules, limited in (
        (mismatch, None, None),
        (source(unavailable="no library", about={}), 1.0, "load"),
    ):
        sources = {"nvidia": nvidia, "system": source(about={"cpus": 2})}
        given = facts(telemetry={"requested": True, "problem": None, "sources": sources})
        made = describe(telemetry, given, RATES, WINDOW)
        assert made.joules_per_output_token == (None if joules is None else pytest.approx(joules))
        assert (made.limiter and made.limiter.code) == limited
        if joules is None:
            assert made.nulls["energy"] == "NVML: Driver/library version mismatch"
            assert made.nulls["limiter"] == "how busy the engine's GPUs were could not be read"


@pytest.mark.parametrize(
    ("reads", "failures", "found"), [(90, 0, 0), (90, 10, 0), (90, 11, 1), (90, 90, 1), (4, 2, 0), (4, 3, 1)]
)
def test_a_source_that_fails_again_and_again_is_a_warning(reads, failures, found):
    """Its last read worked, and its figures are of the reads between those that failed."""
    flaky = documents.made(
        Sampled, sources={"engine": {"reads": reads, "failures": failures, "last_failure": "503"}}
    )
    one = documents.made(CellResult, cell="0", telemetry=as_json(_health(flaky)))
    words = ["the engine's metrics often did not answer: 503 (0)"] * found
    assert [warning.text for warning in gaps([one])] == words


@pytest.mark.parametrize(
    ("reads", "longest_ms", "failures", "wall_s", "words"),
    [
        (45, 480, 0, 22.5, "so slowly that it was read less than half as often as intended (0)"),
        (113, 480, 0, 22.5, ""),  # just above half
        (5, 480, 0, 1.9, ""),  # too short to tell
        (12, 480, 1, 22.5, ""),  # one that failed is asked less often
        (45, 90, 0, 22.5, ""),  # opened late: its first figures are null
    ],
)
def test_a_driver_that_answers_slowly_is_a_warning(reads, longest_ms, failures, wall_s, words):
    """At 10 Hz."""
    nvml = {"reads": reads, "longest_read_ms": longest_ms, "failures": failures, "period_s": 0.1}
    slow = {"nvidia": {**nvml, "failing_since_s": None}}
    watched = documents.made(Sampled, sources=slow, sampler={"cpu_s": 1.0, "wall_s": wall_s}, problem=None)
    one = documents.made(CellResult, cell="0", telemetry=as_json(_health(watched)))
    assert [warning.text for warning in gaps([one])] == [f"NVML answered {words}"] * bool(words)
    assert gaps([sampled("0", system=source(about={"read_hz": 1.0}))]) == [], "nobody chooses how often"


@pytest.mark.parametrize(("stall_ms", "found"), [(None, 0), (1000.0, 0), (1001.0, 1)])
def test_a_sampler_that_stood_still_leaves_a_hole(stall_ms, found):
    """None: an older version did not record it."""
    told = {} if stall_ms is None else {"longest_stall_ms": stall_ms}
    one = documents.made(CellResult, cell="0", telemetry={"problem": None, "sources": {}, **told})
    assert [warning.code for warning in gaps([one])] == ["telemetry-gap"] * found


@pytest.mark.parametrize(
    ("recorded", "longest_ms"),
    [
        ({}, UNSET),
        ({"stalls": []}, 0.0),
        ({"stalls": [{"at_s": 1.0, "lasted_ms": 80.0}, {"at_s": 5.0, "lasted_ms": 300.0}]}, 300.0),
    ],
)
def test_the_longest_stall_of_the_sampler_is_in_the_summary(recorded, longest_ms):
    given = facts(telemetry={"requested": True, "problem": None, "sources": {}, **recorded})
    assert describe(Telemetry({}), given, RATES, WINDOW).telemetry.longest_stall_ms == longest_ms


def test_whose_cores_were_whose():
    telemetry = Telemetry(
        {
            "host.cpu_busy_s": line(-1, 11, 0, 18),
            "server.cpu_s": line(-1, 11, 5, 11),
            "client.cpu_s": line(-1, 11, 0, 3),
            "sampler.cpu_s": line(-1, 11, 0, 0.12),
            "host.cpu_stolen_s": line(-1, 11, 0, 1.2),
            "host.memory_used_bytes": line(0, 10, 1e9, 3e9),
            "host.disk_read_bytes": line(-1, 11, 0, 12e6),
            "host.disk_written_bytes": line(-1, 11, 0, 24e6),
            "host.net_received_bytes": line(-1, 11, 0, 36e6),
            "host.net_sent_bytes": line(-1, 11, 0, 48e6),
        }
    )
    sources = {"system": documents.made(SampledSource, about={"cpus": 2})}
    made = cpu_use.host(telemetry, sources, WINDOW)
    assert (made.cpus, cpu_use.host(telemetry, {}, WINDOW).cpus) == (2, None)
    assert made.busy_cores == pytest.approx(1.5)
    assert made.server_cores == pytest.approx(0.5)
    assert made.client_cores == pytest.approx(0.25)
    assert made.stolen_cores == pytest.approx(0.1)
    assert made.other_cores == pytest.approx(1.5 - 0.5 - 0.25 - 0.01)
    assert made.memory_used_bytes == Range(mean=2e9, max=3e9)
    disk, net = (
        (made.disk_read_bytes_per_s, made.disk_written_bytes_per_s),
        (made.net_received_bytes_per_s, made.net_sent_bytes_per_s),
    )
    assert (*disk, *net) == pytest.approx((1e6, 2e6, 3e6, 4e6))
    without = {name: samples for name, samples in telemetry.series.items() if name != "server.cpu_s"}
    assert cpu_use.host(Telemetry(without), sources, WINDOW).other_cores is None, "whose it is is not known"
    duet = Telemetry({**telemetry.series, "partner.cpu_s": line(-1, 11, 0, 6)})
    made = cpu_use.host(duet, sources, WINDOW)
    assert made.other_cores == pytest.approx(1.5 - 0.5 - 0.25 - 0.01 - 0.5), "the partner is expected"


def test_each_owner_of_cpu_time_has_a_curve_and_other_work_is_what_is_left():
    used = {"server": 6, "client": 3, "partner": 2}
    telemetry = Telemetry(
        {"host.cpu_busy_s": line(-1, 11, 0, 18)}
        | {f"{name}.cpu_s": line(-1, 11, 0, seconds) for name, seconds in used.items()}
    )
    (panel,) = panels(cell(), telemetry, 10.0)
    assert {curve.name: float(curve.values.mean()) for curve in panel.curves} == pytest.approx(
        {"engine": 6 / 12, "load generator": 3 / 12, "engine of the same duet": 2 / 12, "other work": 7 / 12}
    )


def test_the_busiest_process_of_the_engine_is_named():
    series = {"server.process.7.cpu_s": line(-1, 11, 0, 3), "server.process.12.cpu_s": line(-1, 11, 0, 9)}
    telemetry = Telemetry({**series, "server.cpu_s": line(-1, 11, 0, 12)})
    named = {
        "processes": documents.made(SampledSource, about={"engine_processes": {"7": "api", "12": "core"}})
    }
    made = cpu_use.server(telemetry, named, WINDOW, Server(), {})
    busiest = made.busiest_process
    assert (busiest.pid, busiest.name, busiest.cores) == (12, "core", pytest.approx(0.75))
    assert made.cpu_cores == pytest.approx(1.0)
    assert cpu_use.server(telemetry, {}, WINDOW, Server(), {}).busiest_process.name is None
    assert cpu_use.server(ALIVE, {}, WINDOW, Server(), {}).busiest_process is None


def test_what_the_engine_holds_reads_and_says_of_itself():
    series = {
        "server.rss_bytes": line(0, 10, 1e9, 3e9),
        "server.threads": line(0, 10, 4, 8),
        "server.read_bytes": line(-1, 11, 0, 12e6),
        "server.written_bytes": line(-1, 11, 0, 24e6),
        "engine.running": line(0, 10, 0, 8),
        "engine.waiting": line(0, 10, 0, 2),
        "engine.kv_use": line(0, 10, 0, 0.5),
        "engine.cache_hit_rate": line(0, 10, 0, 1),
    }
    made = cpu_use.server(Telemetry(series), {}, WINDOW, Server(), {})
    assert made.rss_bytes == Range(mean=2e9, max=3e9)
    assert made.threads == Range(mean=6, max=8)
    assert (made.read_bytes_per_s, made.written_bytes_per_s) == pytest.approx((1e6, 2e6))
    assert made.running == Range(mean=4, max=8)
    assert made.waiting == Range(mean=1, max=2)
    assert made.kv_use == Range(mean=0.25, max=0.5)
    assert made.cache_hit_rate == Range(mean=0.5, max=1)


def shapes(increases):
    made = {name: documents.made(HistogramIncrease, one) for name, one in increases.items()}
    return cpu_use.server(ALIVE, {}, WINDOW, Server(), made).histograms


def test_a_histogram_of_the_engine_is_read_between_its_buckets():
    made = shapes(
        {"ttft": {"buckets": [[0.1, 0.0], [0.2, 10.0], [0.4, 20.0], [None, 20.0]], "sum": 4.0, "count": 20.0}}
    )
    approx = {"p50": pytest.approx(200), "p90": pytest.approx(360), "p99": pytest.approx(396)}
    assert made["ttft_ms"] == {"count": 20.0, "mean": 200.0, **approx}
    within_first = {"buckets": [[0.3, 15.0], [0.5, 20.0], [None, 20.0]], "sum": 1.0, "count": 20.0}
    first = shapes({"queue": within_first})
    assert first["queue_ms"]["p50"] is None, "9 us, or 290 ms"
    assert first["queue_ms"]["p90"] == pytest.approx(420)
    beyond = shapes({"e2e": {"buckets": [[0.1, 1.0], [None, 20.0]], "sum": 4.0, "count": 20.0}})
    assert beyond["e2e_ms"]["p90"] is None


def test_scaling_says_how_much_more_and_from_where_on_requests_queue():
    def point(load, speed, waiting, memory, verdict="VALID", **gpu):
        server = {
            "waiting": {"mean": waiting, "max": waiting},
            "rss_bytes": {"mean": 1, "max": memory},
            "running": {"mean": load / 2, "max": load},
        }
        return documents.made(
            CellResult,
            label="x",
            load={"kind": "concurrency", "value": load},
            validity={"verdict": verdict},
            output_tokens_per_s=speed,
            server=server,
            gpu={name: {"mean": 1, "max": most} for name, most in gpu.items()},
        )

    made = scaling(
        [
            point(8, 300.0, 0.1, 30, memory_used_bytes=9),
            point(1, 100.0, 0.0, 20, memory_used_bytes=7, engine_memory_bytes=5),
            point(32, 330.0, 20.0, 50),
            point(64, 999.0, 0.0, 99, "INVALID"),
        ]
    )["x"]
    assert made.concurrency == (1, 8, 32)
    assert made.speedup == (1.0, 3.0, 3.3)
    assert made.in_flight_before_queueing == 8
    assert made.peak_process_memory_bytes == (20, 30, 50)
    assert made.peak_gpu_memory_bytes == (5, 9, None), "the engine's own where it can be told"
    assert (made.running, made.waiting) == ((0.5, 4, 16), (0, 0.1, 20))
    assert (made.output_tokens_per_s, made.speedup_base) == ((100, 300, 330), 1)


def test_a_cell_without_samples_says_why_in_every_place():
    made = summarise_cell(records(*[{"texts": [5, 9, 12]}] * 6), facts(), None)
    for key in ("gpu", "host", "energy", "cost", "limiter", "joules_per_output_token"):
        assert getattr(made, key) is None
        assert made.null_reasons[key], key


def test_every_part_of_a_cell_is_of_its_window():
    device = {"index": 0, "name": "A", "uuid": "u", "memory_bytes": 80, "power_limit_w": 300.0, "mig": []}
    sources = {
        "nvidia": source(about={"devices": [device], "chosen": "all"}),
        "system": source(about={"cpus": 2}),
    }
    given = facts(
        telemetry={"requested": True, "problem": None, "sources": sources},
        prices=prices(gpu_per_hour={"A": 1.8}),
    )
    telemetry = Telemetry(
        {
            "gpu.0.power_w": line(-10, 20, 0, 300),
            "gpu.0.utilisation_pct": line(-10, 20, 40, 40),
            "host.cpu_busy_s": line(-1, 11, 0, 12),
            "server.cpu_s": line(-1, 11, 0, 6),
        }
    )
    made = describe(telemetry, given, RATES, WINDOW)
    assert (made.gpu.power_w.mean, made.gpu.power_w.max) == pytest.approx((150, 200))
    assert (made.host.busy_cores, made.server.cpu_cores) == pytest.approx((1, 0.5))
    assert (made.energy.gpu_w, made.joules_per_output_token) == pytest.approx((150, 3))
    assert made.cost.price == Price(per_hour=1.8, currency="USD", covers="1 × A", source="list")
    assert made.cost_per_million_output_tokens == pytest.approx(10)
    assert (made.limiter.code, made.telemetry.sources["nvidia"].reads, made.nulls) == ("load", 5, {})
    made = describe(telemetry, given, dict.fromkeys(RATES), WINDOW)
    per_token = ("cost_per_million_output_tokens", "joules_per_output_token")
    assert made.nulls == {
        **dict.fromkeys(per_token, "the server reports no token counts"),
        "cost_per_thousand_requests": "no answer to count",
    }
    assert (made.energy.gpu_w, made.cost.price.per_hour) == pytest.approx((150, 1.8))


@pytest.mark.parametrize(("quotas", "code"), [({}, "load"), ({"cpu_quotas": {"server": 0.5}}, "cpu")])
def test_the_limit_of_the_engine_s_cpu_time_is_all_that_it_may_use(quotas, code):
    sources = {"system": source(about={"cpus": 2}), "processes": source(about=quotas)}
    given = facts(telemetry={"requested": True, "problem": None, "sources": sources})
    telemetry = Telemetry({"host.cpu_busy_s": line(-1, 11, 0, 12), "server.cpu_s": line(-1, 11, 0, 6)})
    assert describe(telemetry, given, RATES, WINDOW).limiter.code == code


def test_no_token_at_all_has_no_price_though_the_server_counts():
    prices = Prices(currency="USD", source="list", machine_per_hour=3.6)
    made = records(*({"texts": [10, 20], "tokens": 0} for _ in range(6)))
    found = summarise_cell(made, facts(planned=6, prices=prices), None)
    assert (found.output_tokens_per_s, found.cost_per_million_output_tokens) == (0.0, None)
    why = found.null_reasons["cost_per_million_output_tokens"]
    assert why == "the server counts no output token in the window"


def test_answers_have_a_price_of_their_own():
    """Two answers a second at 3.6 an hour: a thousand take 500 s. Of vectors no token has a price."""
    prices = Prices(currency="USD", source="list", machine_per_hour=3.6)
    cells = [{"texts": [500 * n + 10, 500 * n + 490], "sent": 500 * n} for n in range(8)]
    found = summarise_cell(records(*cells), facts(planned=8, prices=prices), None)
    assert found.cost_per_thousand_requests == pytest.approx(1e3 / found.requests_per_s * 3.6 / 3600)
    priceless = summarise_cell(records(*cells), facts(planned=8), None)
    assert priceless.cost_per_thousand_requests is None
    assert priceless.null_reasons["cost_per_thousand_requests"] == cost.NO_PRICE


def test_tokens_of_requests_that_kept_the_limits_cost_more_than_all():
    rows = [{"texts": [5, 9, 12]}] * 6 + [{"texts": [500, 505, 510, 515, 520, 525]}]
    given = facts(prices=prices(machine_per_hour=3.6), slo={"ttft_ms": {"p90": 100.0}})
    made = summarise_cell(records(*rows), given, None)
    assert made.slo.good_token_share == 18 / 24
    cost_of = made.cost
    assert cost_of.per_million_good_output_tokens == pytest.approx(
        cost_of.per_million_output_tokens * 24 / 18
    )


def page_of(made):
    """Of a page only what this section looks at."""
    empty = {field.name: {} for field in dataclasses.fields(Source)}
    return Source(**{**empty, "summary": made})


def test_the_report_says_what_limited_a_cell_and_what_it_cost():
    steady = {"mean": 2.0, "max": 8.0}
    watched = {
        "limiter": {"code": "queue", "sentence": "the engine's queue: <2> waited", "numbers": {}},
        "host": {"cpus": 2, "other_cores": 0.05, "client_cores": 0.1},
        "server": {
            "waiting": steady,
            "running": steady,
            "kv_use": {"mean": 0.1, "max": 0.5},
            "cpu_cores": 1.5,
            "rss_bytes": {"mean": 1.0, "max": float(3 << 30)},
        },
        "cost": cost.describe(cost.price(prices(machine_per_hour=1.8), None)[0], RATES, None),
    }
    low = cell(load={"kind": "concurrency", "value": 1}, **watched)
    made = summary(low, cell(**watched), scaling=scaling([low, cell(**watched)]))
    page = str(machine_section(page_of(made)))
    assert "the engine&#x27;s queue: &lt;2&gt; waited" in page
    assert "take the place of GPU utilisation" in page
    for words in ("engine, CPU cores", "KV cache, peak %", "50.0", "1.8 USD per hour for the machine (list)"):
        assert words in page, words
    texts = [note.text for note in notes(made)]
    assert "limited by: queue (llamacpp c1 and llamacpp c4)" in texts
    assert "cost in USD: 1.8 per hour for the machine (list)" in texts
    assert machine_section(page_of(summary(cell()))) is None


def test_a_price_of_millions_is_as_it_was_given():
    dong = cost.price(Prices("VND", "list", machine_per_hour=1234567.5), None)[0]
    texts = [note.text for note in notes(summary(cell(cost=cost.describe(dong, RATES, None))))]
    assert "cost in VND: 1234567.5 per hour for the machine (list)" in texts


def test_each_price_of_a_run_names_the_backends_that_it_is_charged_to():
    devices = [{"index": index, "name": "A"} for index in range(2)]
    paid = [
        cost.price(prices(gpu_per_hour={"A": 2.0}), documents.made(Gpu, devices=devices, engine_gpus=used))[0]
        for used in ([0], [0, 1], [1])
    ]
    cells = [
        cell(label, cost=cost.describe(price, RATES, None)) for label, price in zip("abc", paid, strict=True)
    ]
    made = summary(*cells)
    page = str(machine_section(page_of(made)))
    assert "2 USD per hour for 1 × A (list): a and c; 4 USD per hour for 2 × A (list): b. Each" in page
    assert [note.text for note in notes(made) if note.text.startswith("cost")] == [
        "cost in USD: 2 per hour for 1 × A: a and c; 4 per hour for 2 × A: b (list)"
    ]


def test_a_price_that_leads_to_no_cost_says_why():
    of_gpus = prices(gpu_per_hour={"A": 2.0})
    reasons = {
        label: cost.price(given, None)[1]
        for label, given in zip("abc", (of_gpus, of_gpus, None), strict=True)
    }
    made = summary(*(cell(label, null_reasons={"cost": why}) for label, why in reasons.items()))
    assert [note.text for note in notes(made) if "cost" in note.text] == [
        "no cost, a and b: a price per GPU was given and the engine was not seen on one; bench report RUN "
        "--price-per-hour gives one"
    ]
    assert "no cost, a and b: a price per GPU" in screen(made, 120, color=False)


def test_speculation_is_told_by_what_was_kept():
    counted = {"draft_tokens": 40.0, "accepted_tokens": 30.0}
    made = summarise_cell(records(*[{"texts": [5, 9, 12]}] * 6), facts(server_counters=counted), None, ALIVE)
    assert made.server.acceptance_rate == 0.75
    for unknown in ({"draft_tokens": 0.0, "accepted_tokens": 0.0}, {"draft_tokens": 40.0}):
        none = facts(server_counters=unknown)
        made = summarise_cell(records(*[{"texts": [5, 9, 12]}] * 6), none, None, ALIVE)
        assert made.server.acceptance_rate is None


@pytest.mark.parametrize(("each_ms", "limits"), [(50, "load"), (200, None)])
def test_a_load_that_was_not_kept_up_with_does_not_limit_its_server(each_ms, limits):
    """Forty requests, ten a second, at a server that takes one after the other and shows no queue."""
    ends, free = [], 0
    for due in range(0, 4000, 100):
        free = max(free, due) + each_ms
        ends.append({"intended": due, "sent": due, "texts": [free]})
    given = facts(
        load={"kind": "rate", "value": 10, "arrival": "constant", "over_cap": "wait"},
        telemetry={"requested": True, "problem": None, "sources": {"system": source(about={"cpus": 2})}},
    )
    busy = {"host.cpu_busy_s": line(-1, 11, 0, 6), "server.cpu_s": line(-1, 11, 0, 3)}
    found = summarise_cell(records(*ends), given, None, Telemetry(busy))
    assert (found.limiter and found.limiter.code) == limits
    assert ("limiter" in found.null_reasons) == (limits is None)
