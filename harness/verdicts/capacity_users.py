"""Says what a capacity means for people: how many users one server carries, and how many servers all take."""

import math
from collections.abc import Sequence

from harness.model import Capacity, CellResult, Limit, Price, known
from harness.model.measures import measure
from harness.model.numbers import as_given, counted, short
from harness.verdicts.capacity import may_be_higher

USER_EVERY_S = 30


def sentence(capacity: Capacity, limits: Sequence[Limit], probe: CellResult) -> str | None:
    """`Within TTFT p95 ≤ 2000 ms, vllm serves about 450 users who send a request every 30 s; 64 requests/s,
    divided evenly, take 5 such servers, 19 USD per hour.`

    `probe`: any, for how its users send, and for the price of a server. None without an answer.
    """
    _, value, _ = capacity.interval
    if value is None or not limits:
        return None
    within = " and ".join(
        measure(f"{limit.metric}.{limit.share}").at_most(limit.limit_ms) for limit in limits
    )
    more = " or more" if may_be_higher(capacity) else ""
    serves = _users(value, more) if capacity.kind == "rate" else _at_once(int(value), more, probe)
    price = probe.cost.price if probe.cost else None
    return f"Within {within}, {capacity.label} serves {serves}{_servers(capacity, value, price)}."


def _users(rate: float, more: str) -> str:
    count = float(f"{rate * USER_EVERY_S:.2g}")
    users = f"{count:,.0f}" if count >= 10 else short(count, 2)
    noun, send = ("user", "sends") if count == 1 else ("users", "send")
    return f"about {users} {noun}{more} who {send} a request every {USER_EVERY_S} s"


def _at_once(count: int, more: str, probe: CellResult) -> str:
    """Users of a closed loop wait for their answers: how long they think decides how many there can be."""
    if probe.sessions is not None:
        return f"{counted(count, 'recorded session')}{more} at once"
    thinks_s = known(probe.load.think_time_s)
    pause = f"{as_given(thinks_s)} s after an answer, on average" if thinks_s else "as soon as an answer ends"
    noun, send = ("user", "sends") if count == 1 else ("users", "send")
    return f"{count} {noun}{more} at once who {send} the next request {pause}"


def _servers(capacity: Capacity, value: float, price: Price | None) -> str:
    """The servers that the highest load of the search takes; "" where one is enough."""
    if capacity.highest is None or capacity.highest <= value:
        return ""
    count = math.ceil(capacity.highest / value)
    unit = "requests/s" if capacity.kind == "rate" else "of them"
    at_most = "at most " if may_be_higher(capacity) else ""
    cost = f", {as_given(round(count * price.per_hour, 2))} {price.currency} per hour" if price else ""
    return f"; {as_given(capacity.highest)} {unit}, divided evenly, take {at_most}{count} such servers{cost}"
