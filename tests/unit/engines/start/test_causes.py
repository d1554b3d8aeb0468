"""What logs of engines on GPUs are read for, in the words of their public issues."""

import pytest

from harness.engines.start.causes import read_end, remedy
from harness.spec.backend_refs import load_backend

PARENT = "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above."
DSA = "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."
COUNT = "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions? "
NCCL = "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3384, unhandled cuda error"
DAEMON = "Error response from daemon: failed to create task for container: "

DRIVER, MEMORY = "the NVIDIA driver is too old for it", "it ran out of memory"
DISK, TOOLKIT = "a disk is full (`df -h`), or /dev/shm", "Docker cannot give a GPU to a container"


def hint(name, *lines):
    known = load_backend(name).server.failures
    return remedy("\n".join(read_end(lines, known)), known)


@pytest.mark.parametrize(
    ("line", "begins"),
    [
        (COUNT + "Error 802: system not yet initialized", "the GPUs are not ready"),
        (COUNT + "Error 803: system has unsupported display driver / cuda driver combination", DRIVER),
        (COUNT + "Error 804: forward compatibility was attempted on non supported HW", DRIVER),
        ("CUDA error: the provided PTX was compiled with an unsupported toolchain.", DRIVER),
        ("what():  CUDA driver version is insufficient for CUDA runtime version", DRIVER),
        ("RuntimeError: No CUDA GPUs are available", "it sees no GPU, or too few"),
        ("RuntimeError: Failed to infer device type, please set", "it sees no GPU, or too few"),
        ("CUDA error: CUDA-capable device(s) is/are busy or unavailable", "another process has that GPU"),
        ("CUDA error: uncorrectable ECC error encountered", "the GPU failed"),
        ("CUDA error: an illegal memory access was encountered", "a kernel of the engine failed"),
        ("CUDA error: device-side assert triggered", "a kernel of the engine failed"),
        ("CUDA error: unspecified launch failure", "a kernel of the engine failed"),
        ("CUDA error: no kernel image is available for execution on the device", "its build has no kernels"),
        (NCCL, "its GPUs could not reach one another"),
        (
            "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0.",
            "this GPU",
        ),
        (
            "Value error, Total number of attention heads (14) must be divisible by tensor parallel size",
            "tensor",
        ),
        (
            "Value error, User-specified max_model_len (8192) is greater than the derived max_",
            "the model does",
        ),
        (
            "ValueError: Model architectures ['Qwen9'] are not supported for now.",
            "this version of the engine",
        ),
        (
            "error loading model architecture: unknown model architecture: 'qwen9'",
            "this version of the engine",
        ),
        ("RuntimeError: Failed to find C compiler. Please specify via CC", "it compiles when it starts"),
        ("RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda'", "it compiles when it"),
        ("common_init: failed to allocate buffer for kv cache", MEMORY),
        ("Shard process was signaled to shutdown with signal 9 rank=0", "SIGKILL ended one of its processes"),
        ("Shard process was signaled to shutdown with signal 4 rank=0", "its build is for another processor"),
        ("error: failed to download model from https://huggingface.co/x.gguf", "it cannot fetch the weights"),
        (DAEMON + "mkdir /var/lib/docker/overlay2/ab: no space left on device", DISK),
        (
            DAEMON + "failed to inject CDI devices: unresolvable CDI devices nvidia.com/gpu=3",
            "Docker does not",
        ),
        ("nvidia-container-cli: device error: 3: unknown device: unknown", "Docker does not know that GPU"),
        ("Error response from daemon: unknown or invalid runtime name: nvidia", TOOLKIT),
    ],
)
def test_a_cause_on_a_gpu_is_known(line, begins):
    assert hint("vllm", line, DSA, PARENT).startswith(begins)


@pytest.mark.parametrize(
    ("line", "begins"),
    [
        ("torch.AcceleratorError: CUDA error: no kernel image is available", "its build has no kernels"),
        ("RuntimeError: The NVIDIA driver on your system is too old", DRIVER),
        (
            "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate",
            "the model or its KV",
        ),
        ("ValueError: The memory capacity is unbalanced. Some GPUs may be occupied", "something else holds"),
        ("[TP0] Watchdog timeout (self.watchdog_last_forward_ct=1)", "its scheduler process died"),
    ],
)
def test_the_last_line_of_a_parent_hides_no_cause(line, begins):
    died = "[2026-11-28 10:00:40] Received sigquit from a child process. It usually means the child failed."
    assert hint("sglang", line, DSA, died).startswith(begins)


def test_the_last_words_of_a_library_stand_behind_its_exception():
    raised = f"(Worker_TP1 pid=8) ERROR 10-15 08:32:28 [multiproc_executor.py:597] {NCCL}"
    lines = (raised, "ncclSystemError: System call failed.", "Last error:", SHM, PARENT)
    assert read_end(lines)[:3] == [NCCL, "ncclSystemError: System call failed.", SHM]
    assert hint("vllm", *lines).startswith(DISK)


SHM = "Error while creating shared memory segment /dev/shm/nccl-gD0G7o (size 33030528)"
LATE = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1) ran for 600043 milliseconds"


def frames(form):
    return [form.format(number, number=number) for number in range(30)]


@pytest.mark.parametrize(
    ("end", "form"),
    [
        (f"  what():  [Rank 1] {LATE}", "frame #{}: c10d::Watchdog::run() + 0x1 (0x7f in x.so)"),
        ("[TensorRT-LLM][ERROR] Assertion failed: no FP8", "{}       0x7f0a throwRuntimeError() + 82"),
        ("fattn.cu:320: GGML_ASSERT(Q->ne[0] == K->ne[0]) failed", "#{}  0x00007f0a in ggml_abort () from x"),
        ("OutOfMemoryError: CUDA out of memory. Tried to", "│ ❱ {} │   server.serve(        │"),
        ("RuntimeError: no", "[box:00001] [ {}] /lib/libc.so.6(+0x45320)[0x7f]"),
    ],
)
def test_the_frames_of_a_stack_hide_no_cause(end, form):
    assert read_end(["loading", end, *frames(form)]) == ["loading", end]


@pytest.mark.parametrize(
    "name", ["VllmWorker rank=1 pid=24", "VllmWorker TP0 pid=12", "Ray pid=1, ip=10.0.0.1"]
)
def test_a_worker_is_known_however_it_is_named(name):
    line = f"({name}) ERROR 04-08 19:59:10 [multiproc_executor.py:435] ValueError: no"
    assert read_end([line, *frames("INFO {}")])[0] == "ValueError: no"
    assert read_end(["[rank0]: ValueError: no", *frames("INFO {}")])[0] == "ValueError: no"


def test_pydantic_is_quoted_without_what_it_was_given():
    lines = (
        "(APIServer pid=1) pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig",
        "(APIServer pid=1)   Value error, no such head. [type=value_error, input_value=ArgsKwargs(())]",
    )
    assert read_end(lines)[1] == "no such head."


def test_of_many_causes_the_last_five_are_quoted():
    raised = [f"ValueError: no {number}" for number in range(7)]
    assert read_end([*raised, *frames("INFO {}")])[:6] == [*raised[2:], *frames("INFO {}")[-15:][:1]]


def test_one_cause_is_quoted_once():
    error = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
    lines = (error, "  what():  CUDA error: an illegal memory access was encountered")
    assert read_end(lines) == list(lines)
    lines = ("ValueError: no", "RuntimeError: the engine ended: ValueError: no")
    assert read_end(lines) == list(lines)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("llamacpp", "ggml_backend: allocating 15317.02 MiB on device 0: cudaMalloc failed: out of memory"),
        (
            "tgi",
            "ERROR launcher: Shard process was signaled to shutdown with signal 4 rank=0",
        ),
        ("vllm", "thread 'main' panicked at src/main.rs:7:5"),
        ("vllm", "FATAL: no such device"),
    ],
)
def test_the_line_of_an_engine_that_raises_nothing_is_at_the_beginning(name, line):
    lines = [*frames("INFO layer {}"), "loading", line, *frames("INFO {}")[:9]]
    assert read_end(lines, load_backend(name).server.failures)[:2] == ["loading", line]


def test_a_log_without_a_complaint_is_shown_as_it_ends():
    assert read_end(frames("INFO {}")) == frames("INFO {}")[-15:]
