"""The finish reasons that servers send, as one closed table."""

from enum import Enum


class Finish(Enum):
    WHOLE = "whole"
    CUT = "cut"  # by a limit on its length; it is as long as was allowed
    GIVEN_UP = "given up"  # the server ended it for a reason of its own: the answer is not all of it


_REASONS = {
    Finish.WHOLE: (
        "stop", "stopped", "eos", "eos_token", "end_turn", "end_of_text", "end_of_turn", "stop_sequence",
        "stop_token", "stop_string", "stop_words", "tool_calls", "tool_call", "tool_use", "function_call",
        "complete", "completed", "done", "finished", "success",
    ),
    Finish.CUT: (
        "length", "max_tokens", "max_new_tokens", "max_length", "max_output_tokens", "max_completion_tokens",
        "model_length", "context_length", "context_length_exceeded", "model_context_window_exceeded",
    ),
    Finish.GIVEN_UP: (
        "abort", "aborted", "cancel", "canceled", "cancelled", "content_filter", "content_filtered", "safety",
        "recitation", "blocklist", "prohibited_content", "spii", "sensitive", "refusal", "repetition",
        "timeout", "timed_out", "time_limit", "error", "failed", "failure", "internal_error", "network_error",
        "interrupted", "disconnected", "preempted", "evicted", "overloaded", "unavailable", "shutdown",
        "incomplete", "other", "insufficient_system_resource", "load", "unload", "guardrail_intervened",
        "model_armor", "malformed_model_output", "malformed_tool_use", "malformed_function_call",
        "malformed_response", "pause_turn", "function_call_filter",
    ),
}  # fmt: skip
_TABLE = {reason: finish for finish, reasons in _REASONS.items() for reason in reasons}


def finish_of(reason: str) -> Finish | None:
    """None for an unknown reason, and for "" (none was sent). Case and separators do not matter, nor what
    Gemini adds: `content_filter: RECITATION`.
    """
    return _TABLE.get(reason.partition(":")[0].strip().lower().replace("-", "_").replace(" ", "_"))
