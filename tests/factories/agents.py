"""Sessions of agents from a seed, as a file in Weka's form: contexts that grow, tools, agents in parallel."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any


@dataclass(frozen=True)
class Shape:
    """`growth`: tokens that each call adds; `agents`: started by every third call, each with two calls."""

    sessions: int = 24
    calls: int = 6
    opening: int = 384
    growth: int = 96
    output: int = 16
    agents: int = 2
    tool_s: float = 0.4
    think_s: float = 1.0
    gap_s: float = 1.5  # between the starts of two sessions
    block: int = 16


def write_weka(path: Path, shape: Shape, seed: int = 0) -> Path:
    random = Random(seed)
    with path.open("w", encoding="utf-8") as file:
        for number in range(shape.sessions):
            begins_s = number * shape.gap_s * random.uniform(0.8, 1.2)
            requests = list(_requests(shape, random, begins_s))
            head = {"id": f"s{number}", "models": ["m"], "block_size": shape.block, "hash_id_scope": "local"}
            file.write(json.dumps({**head, "requests": requests}, separators=(",", ":")) + "\n")
    return path


def _requests(shape: Shape, random: Random, at_s: float) -> Iterator[dict[str, Any]]:
    tokens = random.randint(shape.opening // 2, shape.opening * 3 // 2)
    for number in range(shape.calls):
        tool = (number + 1) % 3 != 0
        wait_s = (shape.tool_s if tool else shape.think_s) * random.uniform(0.5, 1.5)
        brings = "text" if number % 3 == 0 else "tool_result"
        yield _call(at_s, tokens, shape, 0, stop="tool_use" if tool else "end_turn", input_types=[brings])
        at_s += 0.5
        if number % 3 == 1:
            for agent in range(shape.agents):
                own = 1_000_000 * (1 + agent) + 10_000 * number
                first = _call(0.0, shape.opening // 2, shape, own, type="n")
                again = _call(0.8, shape.opening // 2 + shape.growth, shape, own, type="n")
                yield {
                    "t": round(at_s + 0.1, 3),
                    "type": "subagent",
                    "agent_id": f"a{number}{agent}",
                    "subagent_type": "Explore",
                    "models": ["m"],
                    "status": "completed",
                    "requests": [first, again],
                }
            at_s += 1.4 if shape.agents else 0.0
        at_s += wait_s
        tokens += random.randint(shape.growth // 2, shape.growth * 3 // 2)


def _call(at_s: float, tokens: int, shape: Shape, first_id: int, **more: object) -> dict[str, Any]:
    ids = list(range(first_id + 1, first_id + 1 + tokens // shape.block))
    times = {"t": round(at_s, 3), "type": "s", "model": "m", "api_time": 0.5}
    return {**times, "in": tokens, "out": shape.output, "hash_ids": ids, **more}
