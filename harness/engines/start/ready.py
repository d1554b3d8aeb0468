"""Waiting until an engine serves, and saying why when it does not."""

import re
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from http import HTTPStatus

from harness.client.client import Client
from harness.client.limits import Limits
from harness.engines.provide.logged import Log, Reporter
from harness.engines.provide.shared_folders import Say
from harness.engines.start.started import Started
from harness.errors import SetupError
from harness.spec.backend import Failure
from harness.spec.backend import Server as ServerSpec

_POLL_S = 0.1
_LIMITS = Limits(total_s=5.0)
_TAIL_LINES, _TAIL_ERRORS = 15, 3
_READ_LINES = 400
# What vLLM puts before each line: the name of the process, and where it is logged time and place.
_BEFORE = r"(?:\(\w+ pid=\d+\) ?)?(?:ERROR \d\d-\d\d [\d:]+ \[[\w./]+:\d+\] ?)?"
# An exception as Python prints it. A worker of several logs its own, and no other process names that.
_RAISED = re.compile(_BEFORE + r"((?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception)(?:: .*)?)$")
# A library on the GPU ends its process in its own way, often behind a progress bar.
_ON_GPU = re.compile(r"((?:CUDA|HIP|NCCL|RCCL) error\b.*)")
# What argparse writes of wrong arguments, after pages of its usage.
_REFUSED = re.compile(_BEFORE + r"[\w./-]+(?: \w+)?: error: ")
_UNDERLINE = re.compile(_BEFORE + r"[\s^~]+$")

_LESS_MEMORY = "use a smaller model, or fewer --engine-set max_sequences or context_tokens"
# Only what every engine words alike, after the engine's own [[server.failures]].
_CAUSES = (
    Failure(
        r"out of memory|OutOfMemory|MemoryError|bad_alloc|Cannot allocate memory|No available memory"
        r"|killed for lack of memory",
        f"it ran out of memory: {_LESS_MEMORY}",
    ),
    Failure(
        r"killed by SIGKILL",
        f"SIGKILL is mostly the kernel's, for lack of memory (`dmesg`): {_LESS_MEMORY}",
    ),
    # As multiprocessing, torchrun and SGLang log it.
    Failure(
        r"exit ?code\W+-9\b|Signal 9 \(SIGKILL\)|failed with exitcode=9\b",
        f"SIGKILL ended one of its processes, mostly for lack of memory (`dmesg`): {_LESS_MEMORY}",
    ),
    Failure(
        r"[Aa]ddress already in use|couldn't bind|port is already allocated",
        "its port is taken: stop the other server, or set no port",
    ),
    Failure(
        r"No space left on device|killed by SIGBUS|Bus error",
        "a disk is full (`df -h`), or /dev/shm too small: that of a container is shm_size in its definition",
    ),
    Failure(
        r"couldn't connect to '\S+' to load|gated repo"
        r"|(GatedRepo|RepositoryNotFound|LocalEntryNotFound|HfHubHTTP)Error",
        "it cannot fetch the weights: check the network and HF_TOKEN, and accept their licence in the hub",
    ),
    Failure(
        r"failed to load model|error loading model|invalid magic|not a valid model|SafetensorError"
        r"|does not appear to have a file|Can't load the configuration",
        "the weights cannot be read: check the file given with --model, or delete it from the cache",
    ),
    Failure(
        r"unsatisfied condition: cuda|driver version is insufficient|NVIDIA driver on your system is too old"
        r"|driver not loaded|[Dd]river/library version mismatch",
        "the NVIDIA driver is too old for it, or not loaded (`nvidia-smi`): update it, or use NAME==VERSION",
    ),
    Failure(
        r"could not select device driver|nvidia-container-cli",
        "Docker cannot give a GPU to a container: install the NVIDIA Container Toolkit, or use --device cpu",
    ),
    Failure(
        r"exec format error|killed by SIGILL",
        "its build is for another processor: use another image or version of the engine",
    ),
    Failure(
        r"device kernel image is invalid|no kernel image is available",
        "its build has no kernels for this GPU: use another version of the engine, or a build for this GPU",
    ),
    Failure(
        r"error setting rlimit",
        "this Docker may not raise limits: set BENCH_ULIMIT_MEMLOCK to the bytes that `ulimit -l` allows",
    ),
    Failure(
        r"error while loading shared libraries|cannot open shared object|ImportError|ModuleNotFoundError",
        "its environment lacks something: bench engines install NAME --force, or another image",
    ),
    Failure(
        r"unrecognized arguments|unknown (flag|argument|option)"
        r"|(invalid|unexpected) argument:? '?-|No such option",
        "a flag of its definition, or of its variant, is unknown to this version of the engine",
    ),
)


def wait_ready(
    started: Started,
    spec: ServerSpec,
    log: Log,
    say: Say,
    label: str,
    generates: Callable[[], None] | None = None,
) -> None:
    """Waits until the readiness path answers 200, and `generates` no longer raises SetupError.

    Raises SetupError when the engine dies or takes too long.
    """
    url, limit_s = started.base_url + spec.ready_path, started.startup_timeout_s
    loading = f"; while loading: {spec.loading}" if spec.loading else ""
    say(f"{label}: waiting for {url}, at most {limit_s:.0f} s{loading}")
    reporter = Reporter(say, f"{label}: loading", log.last_line)
    state: str | None = "no connection"
    with closing(Client(started.base_url)) as client:
        while reporter.elapsed_s < limit_s:
            ending = started.life.exited()
            if ending:
                raise failure(f"ended while loading: {ending}", label, log, spec.failures)
            state = _unready(client, spec, generates)
            if state is None:
                return
            reporter.tick()
            time.sleep(_POLL_S)
    what = f"not ready after {limit_s:.0f} s; {spec.ready_path} last gave: {state}"
    raise failure(what, label, log, spec.failures)


def _unready(client: Client, spec: ServerSpec, generates: Callable[[], None] | None) -> str | None:
    """Returns what is missing; None once it is ready."""
    try:
        answer = client.ask("GET", spec.ready_path, limits=_LIMITS)
    except SetupError as error:
        return error.what
    state = f"{answer.status} {answer.said[:100]}"
    if answer.status != HTTPStatus.OK:
        return state
    try:
        if generates:
            generates()
    except SetupError as error:
        return f"{state}, but {error}"
    return None


def failure(
    what: str, label: str, log: Log, known: Sequence[Failure] = (), otherwise: str = "read the log"
) -> SetupError:
    """Builds the error with the last lines of the engine's log and, where the cause is a known one, what
    to do; `otherwise` is the hint where it is not.

    Where one exception followed another, the last three come first: the process that ends last rarely has
    the cause. So does one that later lines have pushed out of sight. One without a message, such as EOFError
    from a process whose child died, is no cause.
    """
    written = _without_usage(log.tail(_READ_LINES).splitlines())
    found = (_RAISED.match(line) or _ON_GPU.search(line) for line in written)
    raised = dict.fromkeys(match[1] for match in found if match and ": " in match[1])
    last = [line for line in written if not _UNDERLINE.match(line)][-_TAIL_LINES:]
    seen = len(raised) == 1 and any(next(iter(raised)) in line for line in last)
    lines = last if seen else [*list(raised)[-_TAIL_ERRORS:], *last]
    shown = "\n".join(f"  | {line}" for line in lines) or "  | (nothing was logged)"
    reported = "\n".join((what, *lines))
    causes = (cause.hint for cause in (*known, *_CAUSES) if re.search(cause.pattern, reported))
    hint = next(causes, otherwise)
    return SetupError(what, where=label, hint=f"{hint}; log: {log.path}", below=shown)


def _without_usage(lines: Sequence[str]) -> list[str]:
    kept: list[str] = []
    for line in lines:
        if _REFUSED.match(line):
            while kept and kept[-1].startswith((" ", "usage: ")):
                kept.pop()
        kept.append(line)
    return kept
