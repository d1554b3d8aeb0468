"""Brings the prefix cache into the state that the scenario declares, before the window of a cell."""

import threading
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from harness.apis import APIS
from harness.engines.session import EngineSession
from harness.errors import SetupError
from harness.load import run_load
from harness.load.job import ClosedLoop, LoadJob
from harness.metrics.prefix import first_of_each_prefix, first_turns, reusable
from harness.model import CachePreparation
from harness.plan import Cell, seed_for
from harness.records.layout import Outcome
from harness.run.measure.job import UNSALTED, Salt, promised, whole_bodies
from harness.run.setup.prepare import BackendPlan, Prepared
from harness.workload.prompts.workload import Workload

Method = Literal["none", "off", "reset", "restart", "salt"]

_PRIMING = 4  # requests in flight while a cache is filled
# A number of five digits: few tokens of a prompt, and two runs seldom draw the same one.
_LEAST, _NUMBERS = 10_000, 90_000


class Attempt(NamedTuple):
    """One try to measure a cell. No other one sends its prompts."""

    run: str  # sets this run apart from others
    number: int  # 0: the first


@dataclass(frozen=True, slots=True)
class CacheState:
    """The state as prepared: emptied by `method`, then filled again by `primed` requests."""

    requested: str
    method: Method
    description: str
    salt: Salt = UNSALTED  # of every request of the cell
    primed: int = 0

    @property
    def preparation(self) -> CachePreparation:
        """The part of it that cell.json keeps."""
        return CachePreparation(
            requested=self.requested,
            method=self.method,
            reset=self.method == "reset",
            description=self.description,
            salted=bool(self.salt.value),
            salt=self.salt.value,
            primed=self.primed,
        )


def bring_about(
    prepared: Prepared,
    cell: Cell,
    workload: Workload,
    engine: EngineSession,
    attempt: Attempt,
    stop: threading.Event,
) -> CacheState:
    """Empties the cache; for `warm`, sends everything that requests share once, for `primed` every request.

    It is emptied by the engine's own reset. If that fails, the restart just before this cell does it, or a
    salt that sets the cell's prefixes apart. `any` leaves it as it is. A salt then sets prompts that share
    nothing apart from those of earlier runs. Images, recordings and schemas are set apart where a server of
    the run may hold them: no reset empties those caches, and all backends get the same. Raises SetupError
    if a request that fills the cache fails, and KeyboardInterrupt if `stop` is set meanwhile.
    """
    requested, number = prepared.scenario.cache.state, _number(prepared, cell, attempt)
    attached = any(backend.launch.mode == "attach" for backend in prepared.backends)
    held = int(number) if attached or _may_hold(engine, again=attempt.number > 0) else None
    if APIS[engine.definition.dialect.api].gives == "transcripts":
        return CacheState(requested, "none", "nothing is emptied for recordings", Salt(held=held))
    if requested == "any" and reusable(workload.requested)[0].any():
        return CacheState(requested, "none", "not asked for", Salt(held=held))
    in_front = len(prepared.backends) > 1 and any(map(_may_need_front, prepared.backends))
    state = _emptied(requested, engine, number, again=attempt.number > 0, in_front=in_front)
    state = replace(state, salt=state.salt._replace(held=held))
    if requested in ("any", "cold"):
        return state
    chosen = (
        first_of_each_prefix(workload.requested) if requested == "warm" else first_turns(workload.requested)
    )
    return replace(state, primed=_send(prepared, workload, engine, set(chosen), state.salt, stop))


def _number(prepared: Prepared, cell: Cell, attempt: Attempt) -> str:
    """Every backend gets the same, but for those that reach the server of an earlier one."""
    urls = set(prepared.of(cell).ref.urls)
    earlier = sum(not urls.isdisjoint(other.ref.urls) for other in prepared.backends[: cell.backend])
    position = attempt.run, cell.load.label, cell.repeat, attempt.number, earlier
    return str(_LEAST + seed_for(prepared.options.seed, "salt", *position) % _NUMBERS)


def _may_need_front(backend: BackendPlan) -> bool:
    """Whether it is attached, and a salt in front of its prompts may be all that sets them apart.

    Its reset may fail after others were measured. So all get that salt from the start, and the same prompts.
    """
    definition = backend.ref.definition
    cache = definition.prefix_cache
    if backend.launch.mode != "attach" or cache.enabled is False:
        return False
    return bool(cache.keeps) or not definition.dialect.cache_salt


def _emptied(
    requested: str, engine: EngineSession, number: str, *, again: bool, in_front: bool
) -> CacheState:
    """Empties the cache, or sets prompts apart by a salt.

    `again`: the cell was measured before. `in_front`: some backend may need the salt in front of its prompts.
    """
    definition = engine.definition
    method, how = _method(requested, engine, again=again)
    if method != "salt" and not in_front:
        return CacheState(requested, method, how)
    # Whether a tier that the reset leaves heeds the field is not known.
    in_front = in_front or not definition.dialect.cache_salt or bool(definition.prefix_cache.keeps)
    own = "a number of its own in front of each prompt" if in_front else "a salt of its own"
    return CacheState(requested, method, f"{how}; {own}", Salt(number, in_front))


def _may_hold(engine: EngineSession, *, again: bool) -> bool:
    """Whether it may have had these very requests. A fresh one had none, whatever an engine before it had."""
    return not engine.fresh and (again or not engine.started_here)


def _method(requested: str, engine: EngineSession, *, again: bool) -> tuple[Method, str]:
    """The method, and what it did in words."""
    cache = engine.definition.prefix_cache
    if cache.enabled is False:
        return "off", "this backend runs without a prefix cache"
    seen = _may_hold(engine, again=again)
    if requested == "any":
        return ("salt", "not emptied") if seen else ("none", "not asked for")
    reset = engine.reset_prefix_cache()
    if reset.done and not (seen and cache.keeps):
        return "reset", reset.how
    if engine.fresh:
        return "restart", f"{reset.how}; this engine was started for this cell"
    return "salt", f"{reset.how}, but leaves {cache.keeps}" if reset.done else reset.how


def _send(
    prepared: Prepared,
    workload: Workload,
    engine: EngineSession,
    chosen: set[int],
    salt: Salt,
    stop: threading.Event,
) -> int:
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
        records = run_load(replace(job, url=url), stop=stop).records
        if stop.is_set():
            raise KeyboardInterrupt
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
