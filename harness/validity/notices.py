"""Warnings of a whole run, in summary.json and manifest.json."""

from collections.abc import Iterable
from dataclasses import dataclass

from harness.errors import DamagedError, page_address
from harness.model import UNSET, IssueCode, RunWarning, UnsetType, known
from harness.model.change import Flags, advised


@dataclass(frozen=True, slots=True)
class Notice:
    """`when` is for the documentation. `hint`: what to do; "" if nothing, or if it depends on the run."""

    code: IssueCode
    when: str
    hint: str = ""

    def warning(
        self,
        text: str,
        hint: str | None = None,
        backend: str | UnsetType = UNSET,
        change: Flags | UnsetType = UNSET,
    ) -> RunWarning:
        """`hint`: overrides the notice's own. `backend`: the label, where it is about one of them."""
        own = advised(self.hint if hint is None else hint, known(change) or {})
        return RunWarning(code=self.code, text=text, hint=own, backend=backend, change=change)


# What is missing
NOT_MEASURED = Notice(
    IssueCode.NOT_MEASURED,
    "an engine could not be started, or a running server could not be used",
    "see the log of its start, or that of the running server",
)
ENGINE_DIED = Notice(
    IssueCode.ENGINE_DIED,
    "an engine died, hung, was overloaded or refused requests in a cell: others of its repeat are missing",
)
MEASURED_AGAIN = Notice(
    IssueCode.MEASURED_AGAIN,
    "client, machine or other clients of the engine made a cell INVALID; it was measured again, and the "
    "spoiled one lies in `set-aside/`",
)
DURATION_NOT_REACHED = Notice(
    IssueCode.DURATION_NOT_REACHED,
    "a cell sent all requests before the `--duration` that was given without `--requests`",
)
CELL_MISSING = Notice(IssueCode.CELL_MISSING, "a cell was planned and never finished")
_DAMAGED = "its records are damaged: copy the run folder again, or measure the cell again"
CELL_DAMAGED = Notice(
    IssueCode.CELL_DAMAGED, "a file of a cell is not what its checksum says; the cell is left out", _DAMAGED
)
CELL_UNREADABLE = Notice(IssueCode.CELL_UNREADABLE, "a cell cannot be read, and is left out", _DAMAGED)
NO_MANIFEST = Notice(
    IssueCode.NO_MANIFEST, "the folder has no manifest", "the conditions of this run are not known"
)
TELEMETRY_GAP = Notice(
    IssueCode.TELEMETRY_GAP, "a source of telemetry failed or was slow: its figures are null, or of a part"
)
GPU_LOST = Notice(
    IssueCode.GPU_LOST,
    "a GPU stopped answering: its power, energy and memory are null",
    "see `dmesg` for Xid messages; reset the GPU or restart the machine, then measure again",
)
GPU_IDLE = Notice(
    IssueCode.GPU_IDLE,
    "the GPUs that an engine was started for stood idle under every load: it computed on the CPU",
    "see its log: a driver that it cannot use, or a build without GPU; --device cpu if that is meant",
)
GPUS_NOT_KNOWN = Notice(
    IssueCode.GPUS_NOT_KNOWN,
    "a machine has several GPUs, and which of them an engine used was neither given nor seen",
    "put CUDA_VISIBLE_DEVICES=… with the engine's GPUs before `bench`",
)
AGREEMENT_MISSING = Notice(
    IssueCode.AGREEMENT_MISSING,
    "an engine answered no agreement question, or none correctly",
    "see its log, and its answers in agreement/",
)

# What makes backends or repeats unlike
TOO_MANY_BACKENDS = Notice(
    IssueCode.TOO_MANY_BACKENDS,
    "a run has more than 50 backends: no pair of them has a verdict",
    "import or measure those whose pairs are of interest, at most 50 at once",
)
ONE_REPEAT = Notice(
    IssueCode.ONE_REPEAT,
    "several backends, and one run of each",
    "leave --repeats out before calling one backend faster",
)
NOT_RESET = Notice(
    IssueCode.NOT_RESET,
    "the prefix cache was to be reset between repeats and was not",
    "its repeats found what the ones before had left",
)
ANOTHER_START = Notice(
    IssueCode.ANOTHER_START,
    "an engine that was to go on through all repeats was started again by `bench resume`, or a running "
    "server did not serve for a while between two cells",
    "measure again for runs of one start",
)
ENGINE_CHANGED = Notice(
    IssueCode.ENGINE_CHANGED,
    "another start of an engine, or a running server that was replaced, had another version, model, image "
    "or other packages, or reported another setting, such as a KV cache whose size differs by more than 5%",
    "its repeats are not of one engine: measure again, or read the cells of each alone",
)
DIFFERENT_TRACKS = Notice(
    IssueCode.DIFFERENT_TRACKS,
    "backends serve other weights",
    "a difference in speed may be the quantisation's, not the engine's",
)
TUNED_ELSEWHERE = Notice(
    IssueCode.TUNED_ELSEWHERE,
    "a tuned variant was tuned for another scenario, machine, model or version",
    "tune it here: `bench tune`",
)
BF16_IN_SOFTWARE = Notice(
    IssueCode.BF16_IN_SOFTWARE,
    "an engine computes in bf16 on a CPU that has no instructions for it",
    "measure it with --engine-set dtype=float32 too: prompts are processed faster, tokens more slowly",
)
NOT_AS_DECLARED = Notice(
    IssueCode.NOT_AS_DECLARED,
    "the conformance probe found an engine to do otherwise than its definition declares, and it matters",
)
FRONT = Notice(
    IssueCode.FRONT, "what was measured passes requests on to engines", "measure an engine without it too"
)
HOSTED = Notice(
    IssueCode.HOSTED,
    "what was measured is a hosted service",
    "compare it as a service, and repeat it at several times of day",
)
LIBRARY = Notice(
    IssueCode.LIBRARY,
    "what was measured is a library behind bench's own small server; says what that adds per token",
    "compare it with servers only where that is small against the times of both",
)
PROXIED = Notice(
    IssueCode.PROXIED,
    "requests go through a proxy that the environment names (`http_proxy`, `https_proxy`, `all_proxy`)",
    "set NO_PROXY=HOST to send straight to the server",
)
OF_KIND = {"front": FRONT, "hosted": HOSTED, "library": LIBRARY}  # of [backend] kind
ENGINE_STALLED = Notice(
    IssueCode.ENGINE_STALLED,
    "an engine with requests sent nothing for more than half a second, three times its TTFT (p90; E2E where "
    "answers come whole) and 2% of the cell, while the load generator went on; those that cut answers add up",
    "the figures have it, as a result of the engine or of the way to it: see its log",
)
RAMP_KEPT = Notice(
    IssueCode.RAMP_KEPT,
    "the first measured requests of a load point differ from the rest; names the warm-up that would do",
)

# What the requests are
APPROXIMATE_LENGTHS = Notice(
    IssueCode.APPROXIMATE_LENGTHS,
    "the server offers no tokenizer, so input lengths are counted in words",
    "compare per token, by the server's usage",
)
FREE_LENGTHS = Notice(
    IssueCode.FREE_LENGTHS,
    "an exact output length was requested, and the engine cannot force one through this API",
    "answers end where the model ends: compare per token, or use --api chat",
)
LONGER_THAN_CONTEXT = Notice(
    IssueCode.LONGER_THAN_CONTEXT,
    "prompt and answer are together longer than the engine's context",
    "shorter prompts or, if the model allows it, a longer context",
)
FILE_LINES_LEFT_OUT = Notice(
    IssueCode.FILE_LINES_LEFT_OUT,
    "lines of a trace or prompt file could not be used, or its prompts have other lengths than are asked for",
    f"{page_address('traces')} says what a line must hold",
)
TRACE_CHANGED = Notice(
    IssueCode.TRACE_CHANGED, "a trace was not used as it stands", f"see {page_address('traces')}"
)

# What the answers are
ANSWERS_HARMED = Notice(
    IssueCode.ANSWERS_HARMED,
    "load made answers fail, empty, cut, garbled or repeated",
    "its speed under load is not worth as much: agreement/ holds the answers",
)
ANSWERS_DIFFER = Notice(
    IssueCode.ANSWERS_DIFFER,
    "one backend is right more often than another, beyond chance",
    "the same model should not: other weights, another chat template, or a defect",
)
VALUES_DIFFER = Notice(
    IssueCode.ANSWERS_DIFFER,
    "backends give other vectors or another order, or one does in a batch",
    f"pooling, normalisation, truncation and weights must be the same: see {page_address('apis')}",
)


def of_cell(error: Exception) -> Notice:
    """The notice for an error that keeps a cell from being read."""
    return CELL_DAMAGED if isinstance(error, DamagedError) else CELL_UNREADABLE


def left_out(warnings: Iterable[RunWarning]) -> list[RunWarning]:
    """The warnings about cells that could not be read and are missing from the figures."""
    return [
        warning for warning in warnings if warning.code in (IssueCode.CELL_DAMAGED, IssueCode.CELL_UNREADABLE)
    ]


# A code with two meanings has a notice for each.
NOTICES = tuple(found for found in tuple(globals().values()) if isinstance(found, Notice))
