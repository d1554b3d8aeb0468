"""Each rule of the registry in a whole run: a server or machine that breaks it, and the printed sentence."""

import re
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from harness.mockserver import running
from harness.validity.registry import RULES
from tests.factories.sockets import PEM, accepting
from tests.integration import nvml
from tests.integration.full import has_compiler, library
from tests.integration.h2_gateway import gateway
from tests.integration.scripted import bench

HERE = Path(__file__).parent
CALM = {"dialect": "vllm", "ttft_ms": 100, "gap_ms": 20}
SIZE = ("--requests", "16", "--concurrency", "4")
RATE = ("--rate", "60", "--requests", "40", "--set", "load.arrival=constant")
CACHE = (
    "--set",
    "prompts.turns=1",
    "--set",
    "prompts.prefix_tokens=256",
    "--set",
    "prompts.question_tokens=16",
)
IMAGES = ("--set", 'images.sizes=["64x64"]', "--set", "images.distinct=2", "--input-tokens", "16")
SHAPES = ("--output-tokens", "60", "--set", "prompts.text_tokens=8", "--set", "prompts.free=false")
NOT_WARMED_UP = ("--set", "load.warmup_requests=0")
SUSPECT, INVALID = "SUSPECT", "INVALID"


@dataclass(frozen=True)
class Run:
    """`printed`: verdict, code and what was measured. `unrest`: uneasy.c lists it."""

    printed: tuple[tuple[str, str, str], ...]
    truth: dict[str, object] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    unrest: dict[str, float] | None = None
    scenario: str = "fixed-length"
    size: tuple[str, ...] = SIZE
    at: str = ""  # who is between bench and the server


RUNS = {
    "machine in doubt": Run(
        (
            (
                SUSPECT,
                "contended",
                r"\d+\.\d+ of \d+ cores \([234]\d%\) kept busy by other work, \d+\.\d+ of it taken",
            ),
            (SUSPECT, "stolen-time", r"\d+\.\d+ of \d+ cores \(12%\)"),
            (SUSPECT, "stamp-uncertainty", r"0\.2\d\d ms"),
            (
                SUSPECT,
                "packet-loss",
                r"16 segments retransmitted, 0 out of order, in 16 of 16 requests \(100\.0%\)",
            ),
        ),
        unrest={"CPU_BUSY": 0.3, "CPU_STOLEN": 0.12, "CLOCK_US": 420, "RESENT": 1},
    ),
    "clock set": Run(
        (
            (INVALID, "clock-step", r"[23]\.\d+ ms"),
            (INVALID, "stolen-time", r"\d+\.\d+ of \d+ cores \(25%\)"),
        ),
        unrest={"AFTER_S": 0.2, "STEP_MS": 3, "CPU_STOLEN": 0.25},
    ),
    "no sockets": Run(
        (
            (INVALID, "no-sockets", r"16 of 16: the load generator has no more open files \(ulimit -n\)"),
            (INVALID, "too-few-samples", "0 answered"),
        ),
        unrest={"SOCKETS": 3},
    ),
    "client that wakes up late": Run(
        (
            (SUSPECT, "loop-lag", r"p\d+ 1\d\.\d ms"),
            (INVALID, "merged-events", r"\d\d% of the events read together by a late look"),
            (SUSPECT, "slot-idle", r"\d\.\d% idle: 3\.\d+ of 4 slots in use"),
        ),
        unrest={"LATE_MS": 14},
    ),
    "client that computes, suspended": Run(
        (
            ("(SUSPECT|INVALID)", "client-busy", r"[789]\d(\.\d+)?% of a core"),
            (INVALID, "suspended", r"0\.800 s"),
        ),
        unrest={"SPIN_MS": 8, "AFTER_S": 0.2, "SUSPENDED_MS": 800},
    ),
    "client that is stopped": Run(
        (
            (
                INVALID,
                "client-stalled",
                r"0\.[56]\d s \(\d\d\.\d%\) lost, .* a load process stood still; the sampler went on",
            ),
        ),
        unrest={"AFTER_S": 0.3, "STALL_MS": 600},
        size=RATE,
    ),
    "client that sends late": Run(
        ((INVALID, "schedule-lag", r"p90 [34]\d\.\d ms"),), unrest={"LATE_MS": 40}, size=RATE
    ),
    "client that pauses at the end": Run(
        ((INVALID, "rate-missed", r"[45]\d\.\d\d/s sent; limit 60\.00/s ± 5%"),),
        flags=NOT_WARMED_UP,
        unrest={"AFTER_S": 0.3, "STALL_MS": 90},
        size=("--rate", "60", "--requests", "20", "--set", "load.arrival=constant"),
    ),
    "several tokens in an event": Run(
        ((SUSPECT, "tokens-per-event", r"\d\.\d\d tokens per event"),), {"tokens_per_event": 4}
    ),
    "client that is killed": Run(
        ((INVALID, "worker-lost", "1 worker died"),), unrest={"AFTER_S": 0.3, "KILLED": 1}
    ),
    "rate above what is served": Run(
        (
            (
                INVALID,
                "held-at-cap",
                r"\d\d of \d\d requests waited at the in-flight cap: [78]\.\d\d/s could be sent",
            ),
        ),
        {"max_running": 2},
        size=(*RATE, "--set", "load.max_in_flight=2"),
    ),
    "arrivals that the cap held back": Run(
        (
            (
                SUSPECT,
                "arrivals-differ",
                r"[^;]*KS distance 0\.[2-6]\d*; limit [^;]*KS distance 0 to 0\.1\d+ \(Poisson\)",
            ),
        ),
        size=("--rate", "60", "--requests", "120", "--set", "load.max_in_flight=4"),
    ),
    "requests over the cap": Run(
        ((INVALID, "dropped-requests", r"[23]\d of 40"),),
        size=(*RATE, "--set", "load.max_in_flight=2", "--set", "load.over_cap=drop"),
    ),
    "odd forms": Run(
        (
            (SUSPECT, "not-streamed", "12 of 16 answers of several tokens came as one event"),
            (SUSPECT, "finish-reason-unknown", r'4 of 16 answers: 4 "halted"'),
        ),
        {"fault": ["odd-finish:every=4", "not-streamed"]},
    ),
    "first events of six tokens": Run(
        (
            (
                SUSPECT,
                "first-event-tokens",
                r"about 6\.0 tokens in first arrivals, by their letters: TPOT may be 20% low",
            ),
        ),
        {"first_event_tokens": 6},
        ("--output-tokens", "26"),
    ),
    "no usage": Run(
        (
            (SUSPECT, "usage-missing", "16 of 16 answers without a usage block"),
            (SUSPECT, "thinking-not-off", "16 answers with reasoning text"),
        ),
        {"usage": "never", "reasoning_tokens": 4},
        ("--set", "request.thinking=off"),
    ),
    "wrong usage, no thinking": Run(
        (
            (
                SUSPECT,
                "usage-implausible",
                r"16 of 16 answers with more tokens than were allowed: 17\.0 where 8\.0",
            ),
            (SUSPECT, "output-length", "16 of 16 answers not of 8 tokens"),
            (SUSPECT, "thinking-missing", "16 of 16 answers without reasoning"),
            (INVALID, "does-not-add-up", "output tokens: by the engine's counters = in its answers: "),
        ),
        {"fault": "wrong-usage"},
        ("--set", "request.thinking=on"),
    ),
    "answers of many lengths": Run(
        ((SUSPECT, "few-waves", r"2 waves of answers whose times vary by \d\d%"),),
        {"ttft_ms": "exponential:200"},
        size=("--requests", "16", "--concurrency", "8"),
    ),
    "connections that are not kept": Run(
        ((SUSPECT, "connecting", r"\d+\.\d%, in 16 of 16 requests"),),
        {"hang_up": True, "tls_pem": PEM, "ttft_ms": 12, "gap_ms": 2},
        ("--ca-cert", str(PEM)),
    ),
    "a connection that is left": Run(
        ((SUSPECT, "requests-resent", "1 of 8"),),
        flags=("--http2", "--ca-cert", str(PEM), *NOT_WARMED_UP),
        size=("--requests", "8", "--concurrency", "1"),
        at="gateway",
    ),
    "a slow start": Run(
        (
            (
                SUSPECT,
                "ramp-kept",
                r"the first 1\d of 40 measured requests differ from the rest: ramp: E2E is higher by",
            ),
        ),
        {"ttft_ms": 60, "gap_ms": 20, "fault": "stall:at=0:times=14:for=0.6"},
        NOT_WARMED_UP,
        size=("--requests", "40", "--concurrency", "2"),
    ),
    "slower from the middle on": Run(
        ((SUSPECT, "not-steady", r"step: E2E is higher by \d+% from second"),),
        {"ttft_ms": 60, "gap_ms": 30, "fault": "stall:at=20:times=90:for=0.3"},
        NOT_WARMED_UP,
        size=("--requests", "40", "--concurrency", "2"),
    ),
    "images that nobody looks at": Run(
        ((SUSPECT, "images-unread", "22 prompt tokens with 0 images, 22 with 2"),),
        {"image_tokens": 0},
        IMAGES,
        scenario="images-in",
    ),
    "a cache that keeps nothing": Run(
        ((SUSPECT, "cache-not-primed", r"hit rate 0\.0%"),),
        {"no_prefix_cache": True},
        ("--set", "cache.state=primed", *CACHE),
        scenario="shared-prefix",
    ),
    "shapes kept in part": Run(
        ((SUSPECT, "structured-invalid", r"\d\d% of the whole answers are valid \(\w+\)"),),
        {"fault": "error-text:every=5"},
        SHAPES,
        scenario="structured-output",
    ),
    "shapes that are ignored": Run(
        ((SUSPECT, "structured-ignored", r"0% of the whole answers are valid \(\w+\)"),),
        {"fault": "error-text"},
        SHAPES,
        scenario="structured-output",
    ),
    "shapes that are refused": Run(
        ((SUSPECT, "form-refused", "4 of 16"),),
        {"fault": "error-event:every=4"},
        SHAPES,
        scenario="structured-output",
    ),
    "answers cut before their shape ends": Run(
        ((SUSPECT, "structured-cut", r"8 of 8 answers end at the token limit \(json_schema\)"),),
        flags=(*SHAPES, "--output-tokens", "2"),
        scenario="structured-output",
    ),
    "GPUs of others": Run(
        (
            (SUSPECT, "gpu-busy", "99% busy before the first request"),
            (SUSPECT, "gpu-shared", r"2\.0 GiB of GPU memory held by other processes"),
            (SUSPECT, "gpu-throttled", "GPU 0: hardware thermal 100%"),
        ),
        at="gpus",
    ),
    "counters that fall": Run(
        ((INVALID, "engine-restarted", r"its counters fell \d times?, \d\.\d to \d\.\d s"),),
        at="counters",
    ),
}
# Just below its limits nothing is said of a machine.
UNEASY = {"CPU_BUSY": 0.01, "CPU_STOLEN": 0.08, "CLOCK_US": 60, "STEP_MS": 0.05, "AFTER_S": 0.2}
# Other tests run these, and see them printed.
ELSEWHERE = {
    "replica-failed": "test_replicas",
    "replica-slower": "test_replicas",
    "machine-stalled": "test_frozen",
    "itl-merged": "test_cell_doubts",
    "lockstep": "test_cell_doubts",
    "too-short": "test_cell_doubts",
    "errors-as-answers": "test_cell_doubts",
    "answers-same": "test_cell_doubts",
    "one-token-repeated": "test_cell_doubts",
    "tokens-without-text": "test_cell_doubts",
    "prompt-echoed": "test_cell_doubts",
    "failed-requests": "test_verdicts",
    "coverage-short": "test_sessions_run",
    "engine-died": "test_run",
    "model-changed": "test_engine_changed",
    "cache-not-cold": "test_cache_state",
    "cache-not-warm": "test_cache_state",
    "client-unverified": "cli/test_import",
    "node-lost": "../cluster/test_chaos",
    "node-stalled": "../cluster/test_chaos",
}
NO_RUN = {
    "node-clock": "needs a cluster whose network is slow to one node only while clocks are compared",
    "node-differs": "needs thirty answers of each of two nodes; unit tests have the records of such a load",
    "ledger-mismatch": "of `bench doctor` alone, where client or scripted server would have a defect",
}


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    return tmp_path_factory.mktemp("built")


@contextmanager
def falling():
    """A metrics page of vLLM whose counters begin again with every third look."""
    looks = count()

    def page(sock, _number):
        with sock:
            sock.recv(65536)
            body = f"vllm:generation_tokens_total {1000 + next(looks) % 3}\n"
            sock.sendall(
                f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n{body}".encode()
            )

    with accepting(page) as address:
        yield f"http://{address}"


def printed(run, built, folder):
    """All that a run prints, in one line, and the environment that it had."""
    environment, flags = {}, run.flags
    with ExitStack() as stack:
        server = stack.enter_context(running(**CALM | run.truth))
        url = server.url
        if run.at == "gateway":
            url = stack.enter_context(gateway(url, leaves=True)).url
        elif run.at == "counters":
            flags += ("--metrics-url", stack.enter_context(falling()))
        elif run.at == "gpus":
            gpus = nvml.Machine(folder / "gpus")
            for name, text in {
                "busy": "",
                "throttled-0": "64",
                "processes": f"0 {server.pid} {30 << 30}\n0 1 {2 << 30}\n",
            }.items():
                gpus.set(name, text)
            environment |= {
                "LD_LIBRARY_PATH": str(nvml.build(built).parent),
                "NVML_STUB": str(folder / "gpus"),
            }
        if run.unrest is not None:
            unrest = {"CPU_BUSY": 0.01} | run.unrest
            environment |= {f"UNEASY_{name}": str(value) for name, value in unrest.items()}
            environment["LD_PRELOAD"] = str(library(built, HERE / "uneasy.c"))
        done = bench(
            *("run", "--scenario", run.scenario, "--backends", f"vllm={url}", "--no-probe", "--no-report"),
            *(
                "--no-agreement",
                "--repeats",
                "1",
                "-v",
                "--output-tokens",
                "8",
                "--set",
                "load.warmup_requests=2",
            ),
            *("--set", "verdict.cool_down_s=0", *run.size, *flags),
            code=(0, 4),
            **environment,
        )
    return " ".join(done.stdout.split())


@pytest.mark.long
@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
@pytest.mark.parametrize("name", RUNS)
def test_a_broken_rule_is_printed_with_its_size(name, here, built):
    (here / "gpus").mkdir()
    text = printed(RUNS[name], built, here)
    missing = [
        line for line in RUNS[name].printed if not re.search("{} vllm \\S+ r0: {}, {}".format(*line), text)
    ]
    assert not missing, text


@pytest.mark.long
@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
def test_just_below_its_limits_a_machine_is_not_in_doubt(here, built):
    text = printed(Run((), unrest=UNEASY), built, here)
    codes = {"contended", "stolen-time", "stamp-uncertainty", "clock-step", "suspended", "packet-loss"}
    assert not {code for code in codes if code in text}, text


def test_every_rule_has_a_run_or_the_reason_why_none_is_possible():
    in_runs = {code for run in RUNS.values() for _verdict, code, _measured in run.printed}
    assert in_runs | ELSEWHERE.keys() | NO_RUN.keys() == set(RULES)
    assert len({*in_runs}) + len(ELSEWHERE) + len(NO_RUN) == len(RULES)
    for code, file in ELSEWHERE.items():
        assert code in (HERE / f"{file}.py").read_text(), file
