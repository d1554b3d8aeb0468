"""Brings the prefix cache into the state that the scenario declares, before the window of a cell."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from harness.engines.session import EngineSession
from harness.errors import SetupError
from harness.load import run_load
from harness.load.job import ClosedLoop, LoadJob
from harness.metrics.prefix import first_of_each_prefix
from harness.model import CachePreparation
from harness.records.layout import Outcome
from harness.records.request_table import RequestTable
from harness.run.measure.job import promised, whole_bodies
from harness.run.setup.prepare import Prepared
from harness.workload.prompts.workload import Workload

Method = Literal["none", "off", "reset", "restart", "salt"]

_PRIMING = 4  # requests in flight while a cache is filled


@dataclass(frozen=True, slots=True)
class CacheState:
    """The state as prepared: emptied by `method`, then filled again by `primed` requests."""

    requested: str
    method: Method
    description: str
    salt: str = ""  # sent with every request of the cell; "": none
    primed: int = 0

    @property
    def preparation(self) -> CachePreparation:
        """The part of it that cell.json keeps."""
        return CachePreparation(
            requested=self.requested,
            method=self.method,
            reset=self.method == "reset",
            description=self.description,
            salted=bool(self.salt),
            primed=self.primed,
        )


def bring_about(prepared: Prepared, workload: Workload, engine: EngineSession) -> CacheState:
    """Empties the cache; for `warm`, sends everything that requests share once, for `primed` every request.

    It is emptied by the engine's own reset. If that fails, the restart just before this cell does it, or a
    salt that sets the cell's prefixes apart. Raises SetupError if a request that fills the cache fails.
    """
    requested = prepared.scenario.cache.state
    if requested == "any":
        return CacheState(requested, "none", "not asked for")
    state = _emptied(requested, engine, twice=prepared.options.aa)
    if requested == "cold":
        return state
    chosen = (
        first_of_each_prefix(workload.requested) if requested == "warm" else first_turns(workload.requested)
    )
    return replace(state, primed=_send(prepared, workload, engine, set(chosen), state.salt))


def _emptied(requested: str, engine: EngineSession, *, twice: bool) -> CacheState:
    """Empties the cache, or sets prompts apart by a salt.

    `twice`: another label sends the same prompts to the server. If nothing empties its cache, they then get a
    salt even without a field for it.
    """
    if engine.definition.prefix_cache.enabled is False:
        return CacheState(requested, "off", "this backend runs without a prefix cache")
    reset = engine.reset_prefix_cache()
    if reset.done:
        return CacheState(requested, "reset", reset.how)
    if engine.fresh:
        return CacheState(requested, "restart", f"{reset.how}; this engine was started for this cell")
    if engine.definition.dialect.cache_salt:
        return CacheState(requested, "salt", f"{reset.how}; a salt of its own", secrets.token_hex(8))
    if twice:
        how = f"{reset.how}; a number of its own in front of each prompt"
        return CacheState(requested, "salt", how, str(secrets.randbelow(9_000_000) + 1_000_000))
    return CacheState(requested, "none", reset.how)


def first_turns(requested: RequestTable) -> Iterator[int]:
    """Requests that can be sent apart from the cell: later turns carry answers that are not known yet."""
    return iter(np.flatnonzero(requested.numbers["turn"] <= 0).tolist())


def _send(prepared: Prepared, workload: Workload, engine: EngineSession, chosen: set[int], salt: str) -> int:
    """Sends each chosen request for one token, to leave its prompt in the cache. Returns their number."""
    picked = whole_bodies(prepared, workload, engine, chosen, salt=salt, max_tokens=1)
    if not picked:
        return 0
    limit_s = prepared.scenario.request.timeout_s
    job = LoadJob(
        url=engine.api_url,
        access=engine.access,
        bodies=picked,
        schedule=ClosedLoop(min(_PRIMING, len(picked))),
        request_timeout_s=limit_s,
        drain_timeout_s=limit_s,
        promised=promised(engine),
        api=engine.definition.dialect.api,
        workers=1,
    )
    for url in engine.api_urls:  # a replica has a cache of its own, and any request may come to it
        records = run_load(replace(job, url=url)).records
        # An answer of one token may have no text: an end, or half a character.
        failed = ~np.isin(records.requests["outcome"], (Outcome.OK, Outcome.EMPTY))
        if failed.any():
            first = records.errors[int(np.argmax(failed))]
            raise SetupError(
                f"{np.count_nonzero(failed)} of {len(picked)} requests to fill the prefix cache failed: "
                f"{first}",
                where=url,
            )
    return len(picked)
