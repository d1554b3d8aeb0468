"""What an engine that did not start is reported with."""

import pytest

from harness.engines.provide.logged import Log
from harness.engines.start.ready import failure
from harness.spec.backend_refs import load_backend

# As vLLM 0.26 logged it on a GPU.
LOG = """\
(EngineCore pid=12) Traceback (most recent call last):
(EngineCore pid=12)   File "/site/vllm/v1/attention/backends/flashinfer.py", line 12, in <module>
(EngineCore pid=12)     from flashinfer import fast_decode_plan
(EngineCore pid=12) ModuleNotFoundError: No module named 'flashinfer'
(APIServer pid=10) Traceback (most recent call last):
(APIServer pid=10)     raise RuntimeError(
(APIServer pid=10)     ^^^^^^^^^^^^^^^^^^^
(APIServer pid=10) RuntimeError: Engine core initialization failed. See root cause above.
"""


# As SGLang 0.5.16 logged it: the library's line stands behind a progress bar, its parent knows nothing.
ON_GPU = """\
Capturing:   0%|   | 0/8 [00:00<?, ?it/s]CUDA error (hopper/launch.h:52): device kernel image is invalid
Traceback (most recent call last):
    buf = self._recv(4)
EOFError
Traceback (most recent call last):
    raise _scheduler_died_error(i, scheduler_procs[i])
RuntimeError: Rank 0 scheduler died during initialization (exit code: 1).
"""


# As vLLM logs a worker of several: its exception stands behind time and place, and no other process has it.
WORKER = """\
(Worker_TP1 pid=31) ERROR 11-29 12:00:30 [multiproc_executor.py:953] WorkerProc failed to start.
(Worker_TP1 pid=31) ERROR 11-29 12:00:30 [multiproc_executor.py:953] Traceback (most recent call last):
(Worker_TP1 pid=31) ERROR 11-29 12:00:30 [multiproc_executor.py:953]     ^^^^^^^^^^^^^^
(Worker_TP1 pid=31) ERROR 11-29 12:00:30 [v1/worker/gpu.py:953] torch.OutOfMemoryError: CUDA out of memory.
(EngineCore pid=12) ERROR 11-29 12:00:31 [core.py:866] Exception: WorkerProc initialization failed
(EngineCore pid=12) Exception: WorkerProc initialization failed
"""


def below(error):
    """The lines of the log, without the sentence before and the hint after them."""
    return [line for line in str(error).splitlines() if line.startswith("  | ")]


def written(tmp_path, text):
    log = tmp_path / "engine.log"
    log.write_text(text)
    return Log(log)


def test_the_exception_of_the_process_that_failed_first_is_named_first(tmp_path):
    error = failure("ended while loading: exit code 1", "vllm", written(tmp_path, LOG))
    shown = below(error)
    assert shown[0] == "  | ModuleNotFoundError: No module named 'flashinfer'"
    assert shown[1].startswith("  | RuntimeError: Engine core initialization failed")
    assert not any(set(line) <= set(" |^~") for line in shown)
    assert not any("^^^" in line for line in shown)
    assert error.hint.startswith("its environment lacks something")


def test_the_exception_of_a_worker_is_named_though_it_is_logged_with_time_and_place(tmp_path):
    own = "".join(f"(APIServer pid=10)   File {number}\n" for number in range(15))
    error = failure("ended", "vllm", written(tmp_path, WORKER + own + LOG.splitlines()[-1]))
    assert below(error)[:3] == [
        "  | torch.OutOfMemoryError: CUDA out of memory.",
        "  | Exception: WorkerProc initialization failed",
        "  | RuntimeError: Engine core initialization failed. See root cause above.",
    ]
    assert error.hint.startswith("it ran out of memory")
    assert not any("^^^" in line for line in below(failure("ended", "vllm", written(tmp_path, WORKER))))


def test_what_a_library_on_the_gpu_says_is_the_cause(tmp_path):
    error = failure("ended while loading: exit code 1", "sglang", written(tmp_path, ON_GPU))
    shown = below(error)
    assert shown[0] == "  | CUDA error (hopper/launch.h:52): device kernel image is invalid"
    assert shown[1].startswith("  | RuntimeError: Rank 0 scheduler died")
    assert error.hint.startswith("its build has no kernels for this GPU")


OWN = "SIGKILL is mostly the kernel's, for lack of memory (`dmesg`): use a smaller model"
WORKERS = "SIGKILL ended one of its processes, mostly for lack of memory (`dmesg`): use a smaller model"


@pytest.mark.parametrize(
    ("end", "log", "hint"),
    [
        ("killed by SIGKILL", "ready", OWN),
        ("hung", "Worker exited unexpectedly, exit code: -9", WORKERS),
        ("hung", "  exitcode  : -9 (pid: 79468)", WORKERS),
        ("hung", "Child process unexpectedly failed with exitcode=9. pid=2969", WORKERS),
        ("hung", "Child process unexpectedly failed with exitcode=256. pid=2969", "read the log"),
        ("hung", "exit code: -90", "read the log"),
    ],
)
def test_sigkill_is_mostly_a_lack_of_memory(tmp_path, end, log, hint):
    """A person may have sent it."""
    assert failure(end, "tool", written(tmp_path, f"{log}\n")).hint.startswith(hint)


def test_a_container_says_itself_that_memory_was_short(tmp_path):
    ended = failure("killed for lack of memory (exit code 137)", "vllm", written(tmp_path, "ready\n"))
    assert ended.hint.startswith("it ran out of memory: use a smaller model")


def test_one_exception_is_not_shown_twice(tmp_path):
    error = failure("ended", "tool", written(tmp_path, "Traceback\nValueError: no\n"))
    assert below(error) == ["  | Traceback", "  | ValueError: no"]


def test_an_empty_log_is_said(tmp_path):
    assert below(failure("ended", "tool", written(tmp_path, ""))) == ["  | (nothing was logged)"]


def test_one_exception_is_shown_where_later_lines_have_pushed_it_out_of_sight(tmp_path):
    later = "".join(f"INFO worker {number} shuts down\n" for number in range(40))
    log = written(tmp_path, "Traceback\nValueError: no kernel for this head size\n" + later)
    shown = below(failure("ended while loading: exit code 1", "tool", log))
    assert shown[0] == "  | ValueError: no kernel for this head size"
    assert shown[-1] == "  | INFO worker 39 shuts down"
    assert len(shown) == 16


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.9", "the NVIDIA"),
        ("nvidia-container-cli: initialization error: nvml error: driver not loaded", "the NVIDIA driver is"),
        ('could not select device driver "nvidia"', "Docker cannot give a GPU to a container"),
        ("RuntimeError: The NVIDIA driver on your system is too old (found version 12020).", "the NVIDIA dr"),
        ("exec /opt/venv/bin/python: exec format error", "its build is for another processor"),
    ],
)
def test_a_driver_or_a_processor_that_does_not_fit_is_no_lack_of_docker(tmp_path, line, hint):
    assert failure("ended", "vllm", written(tmp_path, line)).hint.startswith(hint)


# As vLLM 0.32 said it on a CPU, and as the 0.5.23 wheel of SGLang says it, each before its parent's line.
KV_ON_CPU = (
    "ValueError: Available memory on node 0 (18.76/23.54 GiB) on kv cache allocation is less than "
    "requested memory for kv (300.0 GiB). Decrease --kv-cache-memory-bytes, VLLM_CPU_KVCACHE_SPACE, "
    "or reduce CPU memory used by other processes."
)
WEIGHTS = (
    "ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.5. "
    "Raise --mem-fraction-static above 0.612 (minimum viable = 1 - available/pre = 0.6114)."
)
HYBRID = (
    "RuntimeError: Not enough GPU memory for hybrid (mamba/linear-attention) state cache. "
    "Try: (1) reduce --max-running-requests, (2) increase --mem-fraction-static"
)
CHILD = "\nReceived sigquit from a child process. It usually means the child failed."


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("vllm", KV_ON_CPU, "on a CPU the KV cache must fit into free memory"),
        ("ray-vllm", KV_ON_CPU, "on a CPU the KV cache must fit into free memory"),
        ("sglang", WEIGHTS + CHILD, "the model or its KV cache does not fit"),
        ("sglang", HYBRID + CHILD, "the model or its KV cache does not fit"),
        ("sglang", "RuntimeError: no kernel" + CHILD, "its scheduler process died"),
    ],
)
def test_a_lack_of_memory_is_known_by_the_newest_words_of_an_engine(tmp_path, name, text, hint):
    known = load_backend(name).server.failures
    assert failure("ended", name, written(tmp_path, text), known).hint.startswith(hint)


@pytest.mark.parametrize(
    "line",
    [
        "error: invalid argument: --kv-unified",  # llama.cpp
        "error: unexpected argument '--max-batch' found",  # clap: TGI, mistral.rs
        "Error: No such option: --max-length",  # click: MAX
        "api_server.py: error: unrecognized arguments: --swap-space",
    ],
)
def test_a_flag_that_the_engine_does_not_know_is_one_however_it_says_so(tmp_path, line):
    error = failure("ended while loading: exit code 1", "tool", written(tmp_path, line))
    assert error.hint.startswith("a flag of its definition, or of its variant, is unknown")


def test_a_usage_hides_no_cause(tmp_path):
    usage = "".join(f"                    [--flag-{number} N]\n" for number in range(30))
    wrong = "api_server.py: error: unrecognized arguments: --swap-space"
    log = written(tmp_path, f"WARNING: no GPU\nusage: api_server.py [-h]\n{usage}{wrong}\n")
    shown = below(failure("ended while loading: exit code 2", "vllm", log))
    assert shown == ["  | WARNING: no GPU", f"  | {wrong}"]


def test_a_progress_bar_hides_no_cause(tmp_path):
    """tqdm writes `\\r` before each of its states, others after it."""
    states = "".join(f"\rCapturing {number}/500" for number in range(500))
    log = written(tmp_path, f"ValueError: no kernel\r\n{states}\nfetched 1\rfetched 2\r")
    shown = below(failure("ended while loading: killed by SIGSEGV", "tool", log))
    assert shown == ["  | ValueError: no kernel", "  | Capturing 499/500", "  | fetched 2"]


def test_a_cause_is_found_in_a_log_with_colours(tmp_path):
    """As vLLM 0.11 names its processes, on a terminal or not."""
    plain = failure("ended", "vllm", written(tmp_path, LOG))
    coloured = LOG.replace("(EngineCore pid=12)", "\x1b[1;36m(EngineCore pid=12)\x1b[0;0m")
    assert str(failure("ended", "vllm", written(tmp_path, coloured))) == str(plain)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("OSError: We couldn't connect to 'https://huggingface.co' to load the files", "it cannot fetch the"),
        ("GatedRepoError: 401 Client Error.", "it cannot fetch the weights"),
        ("Bus error (core dumped)", "a disk is full (`df -h`), or /dev/shm too small"),
        ("OSError: [Errno 28] No space left on device", "a disk is full (`df -h`), or /dev/shm too small"),
    ],
)
def test_weights_that_cannot_be_fetched_or_stored_are_no_damaged_file(tmp_path, line, hint):
    """As transformers words it, whose last exception names a configuration that cannot be loaded."""
    log = written(tmp_path, f"{line}\nOSError: Can't load the configuration of 'Qwen/Qwen3-8B'.\n")
    assert failure("ended", "vllm", log).hint.startswith(hint)


def test_what_an_earlier_start_wrote_is_no_cause_of_this_one(tmp_path):
    earlier = written(tmp_path, LOG).path
    begun = Log.continued(earlier)
    with earlier.open("a") as file:
        file.write("INFO loading weights\n")
    assert below(failure("ended", "vllm", begun)) == ["  | INFO loading weights"]


def test_a_line_of_a_log_moves_no_cursor_and_sets_no_title(tmp_path):
    """It is shown while the engine loads; llama.cpp prints what a model's file says of itself."""
    log = written(tmp_path, "10%\r50% \x1b[32mname\x1b[0m = \x1b]0;title\x07\x1b[2J\u202eend\n")
    assert log.last_line() == "50% name = \N{REPLACEMENT CHARACTER}]0;title" + 2 * "\ufffd" + "[2J\ufffdend"
