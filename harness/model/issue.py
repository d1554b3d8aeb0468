"""Codes for what may be wrong with a cell or a run; harness/validity says what each means."""

from enum import StrEnum
from typing import Self


class IssueCode(StrEnum):
    """What may be wrong with a cell or a run: docs/validity.md."""

    # Of cells, in the order in which a cell lists them.
    NODE_LOST = "node-lost"
    NODE_STALLED = "node-stalled"
    NODE_CLOCK = "node-clock"
    NODE_DIFFERS = "node-differs"
    WORKER_LOST = "worker-lost"
    CLIENT_BUSY = "client-busy"
    LOOP_LAG = "loop-lag"
    STAMP_UNCERTAINTY = "stamp-uncertainty"
    SCHEDULE_LAG = "schedule-lag"
    RATE_MISSED = "rate-missed"
    ARRIVALS_DIFFER = "arrivals-differ"
    MERGED_EVENTS = "merged-events"
    ITL_MERGED = "itl-merged"
    FORM_REFUSED = "form-refused"
    FAILED_REQUESTS = "failed-requests"
    DROPPED_REQUESTS = "dropped-requests"
    TOO_FEW_SAMPLES = "too-few-samples"
    TOO_SHORT = "too-short"
    FEW_WAVES = "few-waves"
    ENGINE_DIED = "engine-died"
    OUTPUT_LENGTH = "output-length"
    CACHE_NOT_COLD = "cache-not-cold"
    CACHE_NOT_WARM = "cache-not-warm"
    CACHE_NOT_PRIMED = "cache-not-primed"
    CONTENDED = "contended"
    GPU_BUSY = "gpu-busy"
    GPU_SHARED = "gpu-shared"
    GPU_THROTTLED = "gpu-throttled"
    ENGINE_RESTARTED = "engine-restarted"
    NOT_STEADY = "not-steady"
    SLOT_IDLE = "slot-idle"
    LOCKSTEP = "lockstep"
    RAMP_KEPT = "ramp-kept"
    FIRST_EVENT_TOKENS = "first-event-tokens"
    CLOCK_STEP = "clock-step"
    PACKET_LOSS = "packet-loss"
    REQUESTS_RESENT = "requests-resent"
    USAGE_MISSING = "usage-missing"
    TOKENS_PER_EVENT = "tokens-per-event"
    THINKING_NOT_OFF = "thinking-not-off"
    STRUCTURED_IGNORED = "structured-ignored"
    STRUCTURED_INVALID = "structured-invalid"
    STRUCTURED_CUT = "structured-cut"
    DOES_NOT_ADD_UP = "does-not-add-up"
    LEDGER_MISMATCH = "ledger-mismatch"
    # Of runs.
    NOT_MEASURED = "not-measured"
    MEASURED_AGAIN = "measured-again"
    CELL_MISSING = "cell-missing"
    CELL_DAMAGED = "cell-damaged"
    CELL_UNREADABLE = "cell-unreadable"
    NO_MANIFEST = "no-manifest"
    ONE_REPEAT = "one-repeat"
    NOT_RESET = "not-reset"
    ANOTHER_START = "another-start"
    DIFFERENT_TRACKS = "different-tracks"
    TUNED_ELSEWHERE = "tuned-elsewhere"
    NOT_AS_DECLARED = "not-as-declared"
    FRONT = "front"
    HOSTED = "hosted"
    LIBRARY = "library"
    APPROXIMATE_LENGTHS = "approximate-lengths"
    LONGER_THAN_CONTEXT = "longer-than-context"
    FILE_LINES_LEFT_OUT = "file-lines-left-out"
    TRACE_CHANGED = "trace-changed"
    TELEMETRY_GAP = "telemetry-gap"
    AGREEMENT_MISSING = "agreement-missing"
    ANSWERS_HARMED = "answers-harmed"
    ANSWERS_DIFFER = "answers-differ"

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        """A code that another version wrote is read as it is, and no rule knows it."""
        if not isinstance(value, str):
            return None
        code = str.__new__(cls, value)
        code._name_ = code._value_ = value
        return code
