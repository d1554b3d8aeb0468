"""Finds the size of the KV cache, of which the working sets of a scenario are multiples."""

from harness.engines.session import EngineSession
from harness.errors import SpecError
from harness.spec.scenario import Load


def kv_tokens(load: Load, measured: int | None, engine: EngineSession) -> int | None:
    """Tokens of the KV cache: from the scenario, from the run so far (`measured`), or from the first engine.

    All backends get the same bytes, so a run has one number. None: the scenario has no working sets. Raises
    SpecError if the engine does not report it.
    """
    if not load.working_set:
        return None
    tokens = load.kv_tokens or measured or engine.kv_tokens()
    if tokens is None:
        info = engine.facts.get("info", {})
        reported = (str(info.get(key)) for key in engine.definition.server.kv_tokens)
        unlike = next((sizes for sizes in reported if " + " in sizes), None)
        raise SpecError(
            f"the KV caches of its replicas are of unlike sizes: {unlike}"
            if unlike
            else "the server does not say how many tokens its KV cache holds",
            where=engine.base_url,
            hint="--set load.kv_tokens=N sizes the working sets",
        )
    return tokens
