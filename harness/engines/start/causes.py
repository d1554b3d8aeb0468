"""The end of an engine's log: the lines that say most, and what to do about causes that are known."""

import re
from collections.abc import Iterator, Sequence

from harness.spec.backend import Failure

# What engines put before each line: the rank or the name of the process, then time and place.
_BEFORE = (
    r"(?:\[rank\d+\]: ?)?(?:\([\w =]+ pid=\d+(?:, [\w=.]+)*\) ?)?"
    r"(?:ERROR \d\d-\d\d [\d:]+ \[[\w./]+:\d+\] ?)?"
)
# An exception as Python prints it. A worker of several logs its own, and no other process names that.
_RAISED = re.compile(_BEFORE + r"((?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception): .+)$")
_LIBRARIES = re.compile(
    # A library on the GPU ends its process in its own way, often behind a progress bar.
    r"((?:CUDA|HIP|NCCL|RCCL) error\b.*: .*|Cuda failure .*|\S+: GGML_ASSERT\(.*\) failed.*"
    r"|Error while creating shared memory segment .*)"
    r"|terminate called after .*|^\s*what\(\): +(.+)|(\[TensorRT-LLM\]\[ERROR\] (?!\[TensorRT-LLM\]).+)"
    # What pydantic found in the arguments, without all the values that it was given.
    r"|\bValue error, (.+?)(?: \[type=\w+, .*)?$"
)
# What argparse writes of wrong arguments, after pages of its usage.
_REFUSED = re.compile(_BEFORE + r"[\w./-]+(?: \w+)?: error: ")
# Marks below code, and frames of a stack, as torch, gdb, TensorRT-LLM, Open MPI and rich print them.
_FRAME = re.compile(
    _BEFORE
    + r"(?:[\s^~]+$|frame #\d+: |#\d+ +0x|\[New LWP |\d+ +0x[\da-f]+ |\[[\w.-]+:\d+\] \[ *\d+\] |[│╭╰]|-{20})"
)
# What an engine that raises nothing writes.
_COMPLAINT = re.compile(r"\b(ERROR|FATAL|[Ff]atal|[Ee]rror:|[Ff]ailed|panicked|[Cc]annot|[Cc]ould not)\b")
_LAST_LINES, _MOST_TELLING = 15, 5

_LESS_MEMORY = "use a smaller model, or fewer --engine-set max_sequences or context_tokens"
# Only what every engine words alike, after the engine's own [[server.failures]].
_CAUSES = (
    Failure(
        r"out of memory|OutOfMemory|MemoryError|bad_alloc|Cannot allocate memory|No available memory"
        r"|killed for lack of memory|(failed|unable) to allocate (\w+ )?buffer",
        f"it ran out of memory: {_LESS_MEMORY}",
    ),
    Failure(
        r"killed by SIGKILL",
        f"SIGKILL is mostly the kernel's, for lack of memory (`dmesg`): {_LESS_MEMORY}",
    ),
    # As multiprocessing, torchrun, SGLang and TGI log it.
    Failure(
        r"exit ?code\W+-9\b|Signal 9 \(SIGKILL\)|failed with exitcode=9\b|to shutdown with signal 9\b",
        f"SIGKILL ended one of its processes, mostly for lack of memory (`dmesg`): {_LESS_MEMORY}",
    ),
    Failure(
        r"[Aa]ddress already in use|couldn't bind|port is already allocated",
        "its port is taken: stop the other server, or set no port",
    ),
    Failure(
        r"[Nn]o space left on device|killed by SIGBUS|Bus error|creating shared memory segment",
        "a disk is full (`df -h`), or /dev/shm too small: that of a container is shm_size in its definition",
    ),
    Failure(
        r"couldn't connect to '\S+' to load|gated repo|failed to download model"
        r"|(GatedRepo|RepositoryNotFound|LocalEntryNotFound|HfHubHTTP)Error",
        "it cannot fetch the weights: check the network and HF_TOKEN, and accept their licence in the hub",
    ),
    Failure(
        r"unknown model architecture|does not recognize this architecture"
        r"|[Mm]odel architectures? .*(is|are) not supported",
        "this version of the engine does not know this architecture: use a newer one, or another model",
    ),
    Failure(
        r"failed to load model|error loading model|invalid magic|not a valid model|SafetensorError"
        r"|does not appear to have a file|Can't load the configuration",
        "the weights cannot be read: check the file given with --model, or delete it from the cache",
    ),
    Failure(
        r"unsatisfied condition: cuda|driver version is insufficient|NVIDIA driver on your system is too old"
        r"|driver not loaded|[Dd]river/library version mismatch|compiled with an unsupported toolchain"
        r"|unsupported display driver|forward compatibility was attempted",
        "the NVIDIA driver is too old for it, or not loaded (`nvidia-smi`): update it, or use NAME==VERSION",
    ),
    Failure(
        r"system not yet initialized",
        "the GPUs are not ready: on a machine with NVSwitch, nvidia-fabricmanager has to run"
        " (`nvidia-smi -q`, Fabric)",
    ),
    Failure(
        r"No CUDA GPUs are available|no CUDA-capable device|Failed to infer device type"
        r"|invalid device ordinal",
        "it sees no GPU, or too few: check `nvidia-smi`, --gpus and --engine-set tensor_parallel",
    ),
    Failure(
        r"busy or unavailable",
        "another process has that GPU for itself: `nvidia-smi` names it and the compute mode",
    ),
    Failure(
        r"uncorrectable ECC|GPU is lost|fallen off the bus",
        "the GPU failed (`dmesg`, Xid): reset it or restart the machine, or leave it out with --gpus",
    ),
    Failure(
        r"unresolvable CDI devices|nvidia-container-cli: device error",
        "Docker does not know that GPU: check --gpus, and renew its list with `nvidia-ctk cdi generate`",
    ),
    Failure(
        r"could not select device driver|nvidia-container-cli|runtime name: nvidia",
        "Docker cannot give a GPU to a container: install the NVIDIA Container Toolkit, or use --device cpu",
    ),
    Failure(
        r"exec format error|killed by SIGILL|to shutdown with signal 4\b",
        "its build is for another processor: use another image or version of the engine",
    ),
    Failure(
        r"device kernel image is invalid|no kernel image is available",
        "its build has no kernels for this GPU: use another version of the engine, or a build for this GPU",
    ),
    Failure(
        r"illegal memory access|device-side assert triggered|misaligned address|unspecified launch failure",
        "a kernel of the engine failed: use another version of it, or another of its variants",
    ),
    Failure(
        r"NCCL error|nccl\w+Error|DistBackendError|collective operation timeout",
        "its GPUs could not reach one another: see `nvidia-smi topo -m`, and use"
        " --engine-set tensor_parallel=1 or other --gpus; a process logs more with NCCL_DEBUG=INFO",
    ),
    Failure(
        r"only supported on GPUs with compute capability",
        "this GPU is too old for it: use --engine-set dtype=float16, or another variant",
    ),
    Failure(
        r"must be divisible by (the )?`?(tensor|num_shards)",
        "tensor_parallel has to divide the heads of the model: --engine-set tensor_parallel=N",
    ),
    Failure(
        r"greater than the derived",
        "the model does not go that far: lower --engine-set context_tokens",
    ),
    Failure(
        r"Failed to find C compiler|Could not find nvcc|CUDA_HOME environment variable is not set"
        r"|Python\.h: No such file|directory: '(ninja|nvcc|gcc|cc)'",
        "it compiles when it starts and lacks a tool: install a C compiler, Python's headers, ninja or nvcc",
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
    # SGLang's parent knows no more than that.
    Failure(
        r"Received sigquit|[Ww]atchdog.*timeout",
        "its scheduler process died: the cause is further up in the log",
    ),
)


def read_end(lines: Sequence[str], known: Sequence[Failure] = ()) -> list[str]:
    """The lines that say most of what ended an engine, then the last ones, without frames of a stack.

    Where one exception followed another, the first has the cause: the process that ends last rarely knows it.
    One without a message, such as EOFError from a process whose child died, is no cause. Where a single line
    says most and is among the last, these begin just before it: a screen shows the beginning alone.
    """
    written = _without_usage(lines)
    telling: list[str] = []
    for text in _telling(written):
        if not any(text in other or text.endswith(other) for other in telling):
            telling.append(text)
    last = [line for line in written if not _FRAME.match(line)][-_LAST_LINES:]
    if len(telling) > 1 or (telling and not any(telling[0] in line for line in last)):
        return [*telling[-_MOST_TELLING:], *last]
    causes = [line for line in last if remedy(line, known) or any(text in line for text in telling)]
    first = next(iter(causes or filter(_COMPLAINT.search, last)), None)
    return last if first is None else last[max(0, last.index(first) - 1) :]


def remedy(text: str, known: Sequence[Failure]) -> str | None:
    """What to do about a known cause; None: there is none in it. `known`: what the engine itself declares."""
    return next((cause.hint for cause in (*known, *_CAUSES) if re.search(cause.pattern, text)), None)


def _telling(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        if found := _RAISED.match(line) or _LIBRARIES.search(line):
            yield from filter(None, found.groups())


def _without_usage(lines: Sequence[str]) -> list[str]:
    kept: list[str] = []
    for line in lines:
        if _REFUSED.match(line):
            while kept and kept[-1].startswith((" ", "usage: ")):
                kept.pop()
        kept.append(line)
    return kept
