"""Settings that the rules of a standard lock, as far as scenarios have keys for them."""

from harness.errors import SpecError
from harness.spec.scenario.generators import Prompts, TraceReplay
from harness.spec.scenario.load import Load

LEAST_S, LEAST_COVERAGE = 900, 0.95


def check_rules(rules: str, prompts: Prompts, load: Load, where: str) -> None:
    """Raises SpecError where a scenario breaks the rules of AgentX that it claims.

    They ask for recorded sessions as they are, each with a beginning of its own, for 15 minutes or more.
    """
    if not rules:
        return
    if not isinstance(prompts, TraceReplay):
        raise SpecError("the rules of AgentX are of recorded sessions", where=f"{where}:prompts.generator")
    locked = {
        "prompts.unique_sessions": (prompts.unique_sessions, "true"),
        "prompts.max_wait_s": (prompts.max_wait_s is None, "waits as recorded: leave it out"),
        "prompts.max_input_tokens": (prompts.max_input_tokens is None, "whole prompts: leave it out"),
        "prompts.max_output_tokens": (prompts.max_output_tokens is None, "whole answers: leave it out"),
        "load.duration_s": ((load.duration_s or 0) >= LEAST_S, f"{LEAST_S} s or more"),
        "load.min_coverage": (load.min_coverage >= LEAST_COVERAGE, f"{LEAST_COVERAGE:g} or more"),
    }
    for key, (kept, asked) in locked.items():
        if not kept:
            raise SpecError(f"the rules of AgentX ask for {asked}", where=f"{where}:{key}")
