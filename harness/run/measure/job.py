"""Turns a cell's requests into a load job: bytes in the engine's dialect, and the times they are due."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.apis import APIS, BLANK, Api, Message
from harness.engines.session import EngineSession
from harness.engines.speak.dialect import Chat, render_body
from harness.host import scratch
from harness.load.balance import round_robin
from harness.load.bodies import BodyFile, GrowingBodies, write_bodies, write_growing
from harness.load.bounds import answer_bytes
from harness.load.job import ClosedLoop, LoadJob, OpenLoop, Promised, Sessions
from harness.model import LoadPoint
from harness.plan import Cell, seed_for, slots_of, start_of, warmup_requests
from harness.records.layout import UNKNOWN
from harness.records.request_table import PREVIOUS, RequestTable
from harness.run.setup.prepare import Prepared
from harness.spec.scenario import Scenario
from harness.spec.scenario.images import Images
from harness.workload.arrivals import Profile, arrivals, due_within, replayed, think_times
from harness.workload.prompts import audio, images, structured
from harness.workload.prompts.calls import json_bytes
from harness.workload.prompts.request import ChatRequest, Picture
from harness.workload.prompts.workload import Workload
from harness.workload.typical import typical_seed


class Salt(NamedTuple):
    """What sets the prompts of a cell apart from equal ones: for the dialect's field, if it has one."""

    value: str = ""  # "": none
    in_front: bool = False  # it also stands in front of each prompt
    held: int | None = None  # sets what is no text apart that the server may hold, whatever was emptied


UNSALTED = Salt()


def make_job(
    prepared: Prepared,
    cell: Cell,
    workload: Workload,
    engine: EngineSession,
    scratch: Path,
    *,
    salt: Salt = UNSALTED,
) -> LoadJob:
    """Builds the job of a cell. Its bodies are in `scratch`, which must exist until the load has ended."""
    load, request = prepared.scenario.load, prepared.scenario.request
    sessions = _sessions(prepared, cell.load, cell.repeat, workload.requested)
    url, *other_urls = engine.api_urls
    by_load = prepared.options.balance == "least-outstanding"
    api, numbers = APIS[engine.definition.dialect.api], workload.requested.numbers
    sent = written(scratch / "bodies", workload, bodies(prepared, workload, engine, salt=salt))
    return LoadJob(
        url=url,
        other_urls=tuple(other_urls),
        replicas=None if by_load else round_robin(len(workload), sessions, 1 + len(other_urls)),
        access=engine.access,
        bodies=sent,
        schedule=_schedule(prepared, cell, workload.requested),
        sessions=sessions,
        items=workload.requested.items(),
        dimensions=request.dimensions,
        warmup_requests=warmup_requests(prepared.scenario, cell.load),
        patience_ns=_patience_ns(prepared, cell, len(workload)),
        duration_s=load.duration_s,
        request_timeout_s=request.timeout_s,
        drain_timeout_s=request.timeout_s,
        answer_bytes=answer_bytes(
            int(numbers["max_tokens"].max(initial=0)),
            int(numbers["items"].max(initial=0)),
            api.echoes * max(map(len, sent), default=0) if api.echoes else 0,
        ),
        promised=replace(promised(engine), answer_id=request.kept_turns),
        api=engine.definition.dialect.api,
        http2=prepared.options.http2,
    )


def written(path: Path, workload: Workload, datas: Iterable[bytes]) -> BodyFile | GrowingBodies:
    if not workload.requested.has_calls():
        return write_bodies(path, datas)
    calls = ((json_bytes(request.messages[0][1]), request.call) for request in workload.requests)
    links = ((own, call.base, call.kept_bytes) for own, call in calls if call is not None)
    return write_growing(path, datas, BLANK.encode(), links)


def whole_bodies(
    prepared: Prepared,
    workload: Workload,
    engine: EngineSession,
    chosen: Iterable[int],
    *,
    salt: Salt = UNSALTED,
    max_tokens: int | None = None,
) -> list[bytes]:
    """The chosen bodies in `seq` order, each with all that its prompt begins with, for a job of their own."""
    with scratch.folder("chosen") as folder:
        datas = bodies(prepared, workload, engine, salt=salt, max_tokens=max_tokens)
        whole = written(folder / "bodies", workload, datas)
        return [whole[seq] for seq in sorted(chosen)]


def promised(engine: EngineSession) -> Promised:
    habits = engine.definition.dialect.habits
    return Promised(
        habits.done is not False, habits.finish_reason is True, habits.keeps_connection is not False
    )


def bodies(
    prepared: Prepared,
    workload: Workload,
    engine: EngineSession,
    *,
    salt: Salt = UNSALTED,
    max_tokens: int | None = None,
) -> Iterator[bytes]:
    """Yields the bodies of the requests in `seq` order. A recorded call has BLANK for what it begins with.

    `max_tokens` replaces each request's own, and then lengths are not forced, turns not kept, and answers not
    constrained. A recording is sent without the `salt`.
    """
    front = f"{salt.value} " if salt.in_front else ""
    request, api = prepared.scenario.request, APIS[engine.definition.dialect.api]
    salted = None if api.gives == "vectors" else 1  # messages: each text to embed is a prompt
    if max_tokens is not None:
        request = replace(request, exact_output=False, kept_turns=False)
    messages: list[Message] = []
    for asked_chat in _set_apart(workload.requests, salt.held):
        begins = asked_chat.call is not None or asked_chat.turn == 0
        if begins:
            messages = []
        elif request.kept_turns:
            messages = [message for message in messages if message["role"] == "system"]
        else:
            messages.append({"role": "assistant", "content": BLANK})
        turns = [_message(role, content) for role, content in asked_chat.messages]
        if asked_chat.call is not None:
            turns[0]["content"] = BLANK + turns[0]["content"]
        if begins:
            for turn in turns[:salted]:
                turn["content"] = front + turn["content"]
        messages += turns
        if asked_chat.images:
            parts = _parts(api, prepared.scenario.images, turns[-1]["content"], asked_chat.images)
            messages[-1] = {**turns[-1], "content": parts}
        if asked_chat.recording is not None:
            messages = [{"role": "user", "content": audio.wav_of(asked_chat.recording)}]
        tools = asked_chat.tools
        chat = Chat(
            messages,
            asked_chat.max_tokens if max_tokens is None else max_tokens,
            asked_chat.constraint if max_tokens is None else None,
            tools.definitions if tools else (),
            tools.choice if tools else "auto",
            salt.value,
            asked_chat.adapter,
            prepared.scenario.lora.adapters,
            later=asked_chat.turn > 0,
        )
        body = render_body(engine.definition, engine.served_name, chat, request)
        if not begins:
            for text, mark in api.marks:
                body = body.replace(text, mark)
        yield body


def _set_apart(requests: Iterable[ChatRequest], held: int | None) -> Iterator[ChatRequest]:
    """Requests whose images, recordings and schemas no server holds yet; as they are without `held`."""
    for request in requests:
        if held is None:
            yield request
        else:
            pictures = tuple(images.set_apart(picture, held) for picture in request.images or ())
            constraint = request.constraint and structured.set_apart(request.constraint, held)
            recording = request.recording and audio.set_apart(request.recording, held)
            yield replace(request, images=pictures, recording=recording, constraint=constraint)


def _parts(api: Api, spec: Images, text: str, pictures: Sequence[Picture]) -> list[object]:
    assert api.image is not None  # the scenario was checked for the API
    parts: list[object] = [api.image(images.url_of(picture)) for picture in pictures]
    parts.insert(0 if spec.place == "after" else len(parts), {"type": api.text_part, "text": text})
    return parts


def _message(role: str, content: str) -> dict[str, str]:
    if role == "tool":
        return {"role": role, "tool_call_id": BLANK, "content": content}
    return {"role": role, "content": content}


def _schedule(prepared: Prepared, cell: Cell, requested: RequestTable) -> ClosedLoop | OpenLoop:
    point, repeat, load = cell.load, cell.repeat, prepared.scenario.load
    if slots := slots_of(load, point):
        think = None if requested.has_sessions() else think_ns(prepared, point, repeat, len(requested))
        if load.rest_s:
            think = np.zeros(len(requested), np.int64) if think is None else think
            think[warmup_requests(prepared.scenario, point)] += int(load.rest_s * 1e9)
        return ClosedLoop(slots, think, spread=start_of(prepared.scenario, point) == "spread")
    intended_ns = send_times(
        prepared.scenario, prepared.options.seed, point, repeat, requested, typical=cell.probe is not None
    )
    return OpenLoop(intended_ns, load.max_in_flight, load.over_cap)


def send_times(
    scenario: Scenario,
    run_seed: int,
    point: LoadPoint,
    repeat: int,
    requested: RequestTable,
    *,
    typical: bool = False,
) -> NDArray[np.int64]:
    """Times in ns from t0 at which requests of an open loop are due; for sessions, their first turns.

    Sessions begin so often that all their turns together make the rate. The rate is as asked in the warm-up,
    in the measured part, and in what of that is sent before the duration ends. `typical` arrivals represent
    the long run of their process, as a capacity search needs them.
    """
    load, warmup = scenario.load, warmup_requests(scenario, point)
    first_turns = requested.numbers["turn"] <= 0
    if point.kind == "trace":
        return replayed(requested.numbers["at_ns"][first_turns], point.value)
    starts = int(np.count_nonzero(first_turns))
    rate = point.value * starts / len(requested)
    profile = Profile(load.profile, load.repeat_profile)
    parts = [int(np.count_nonzero(first_turns[:warmup]))]
    if load.duration_s is not None:
        parts.append(due_within(rate, starts, load.duration_s, profile, after=parts[0]))
    seed = seed_for(run_seed, "arrivals", point.label, repeat)
    if typical:
        seed = typical_seed(load.arrival, starts, seed, load.burstiness)
    return arrivals(
        load.arrival, rate, starts, seed, burstiness=load.burstiness, profile=profile, parts=parts
    )


def _sessions(prepared: Prepared, point: LoadPoint, repeat: int, requested: RequestTable) -> Sessions | None:
    if not requested.has_sessions():
        return None
    named = requested.numbers["session"].astype(np.int32)
    if requested.has_calls():
        return Sessions(named, requested.waits_ns(), requested.after or (PREVIOUS,) * len(requested))
    think = think_ns(prepared, point, repeat, len(requested))
    return Sessions(named, np.zeros(len(requested), np.int64) if think is None else think)


def _patience_ns(prepared: Prepared, cell: Cell, count: int) -> NDArray[np.int64] | None:
    """The same users of every backend hang up; none does in the warm-up."""
    load = prepared.scenario.load
    if not load.abandon_share:
        return None
    drawn = np.random.default_rng(seed_for(prepared.options.seed, "abandon", cell.load.label, cell.repeat))
    hangs_up = drawn.random(count) < load.abandon_share
    hangs_up[: warmup_requests(prepared.scenario, cell.load)] = False
    return np.where(hangs_up, int(load.abandon_after_s * 1e9), UNKNOWN)


def think_ns(prepared: Prepared, point: LoadPoint, repeat: int, count: int) -> NDArray[np.int64] | None:
    """Think times before requests; None where the scenario has none."""
    load = prepared.scenario.load
    if not load.think_time_s:
        return None
    seed = seed_for(prepared.options.seed, "think", point.label, repeat)
    return think_times(load.think_time_s, load.think_time == "exponential", count, seed)
