"""Finds how many tokens the KV cache holds, whose multiples the working sets of a scenario are."""

from harness.engines.session import EngineSession
from harness.errors import SpecError
from harness.spec.scenario import Load


def kv_tokens(load: Load, measured: int | None, engine: EngineSession) -> int | None:
    """Returns the scenario's number, that of the run so far (`measured`), or what the first engine says.

    All backends get the same bytes, so it is one number for a run. None: the scenario has no working sets.
    Raises SpecError where the engine does not say it.
    """
    if not load.working_set:
        return None
    tokens = load.kv_tokens or measured or engine.kv_tokens()
    if tokens is None:
        raise SpecError(
            "the server does not say how many tokens its KV cache holds",
            where=engine.base_url,
            hint="--set load.kv_tokens=N sizes the working sets",
        )
    return tokens
