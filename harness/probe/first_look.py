"""A few short requests that tell how fast a server is: enough to choose a load for it, and no result."""

import random
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from harness.apis import API_NAMES
from harness.client.answer import REFUSALS, NoAnswer
from harness.engines.speak.access import key_hint
from harness.engines.speak.server import Server
from harness.errors import SetupError
from harness.probe.asker import FORCED, Asker, line_to
from harness.probe.exchange import Seen
from harness.probe.streaming import refusal
from harness.probe.together import side_by_side
from harness.workload.prompts.words import NOUNS

SIDE_BY_SIDE = 4
_PROMPT_WORDS = 100
_OUTPUT_TOKENS = 12
REDIRECTED, REFUSED, TOO_MANY, FAILED = 300, 400, 429, 500  # statuses, or the first of them
RATE_HINT = "a load needs more than its rate limit allows: raise it, or measure the engine behind it"
BUSY_HINT = "it may be too busy, or still load its model: look into its log, and try again"
_REST = 1 / 6  # of the limit: where one answer took longer, no more are asked for


@dataclass(frozen=True, slots=True)
class Look:
    ttft_s: float
    tpot_s: float
    slowdown: float  # of an answer among three others, against one alone
    unseen: str = ""  # why the slowdown is not known; it is then that of one thing at a time

    @property
    def together(self) -> str:
        """What is known of several answers at once, in words."""
        if self.unseen:
            return f"{self.unseen}, so it is taken to do one thing at a time"
        return f"with three others an answer takes {self.slowdown:.1f} times as long"

    def answer_s(self, output_tokens: int, concurrency: int = 1) -> float:
        """Each request in flight is taken to add what each of the three others did."""
        alone = self.ttft_s + (output_tokens - 1) * self.tpot_s
        return alone * (1 + (self.slowdown - 1) * (concurrency - 1) / (SIDE_BY_SIDE - 1))


def look(server: Server, limit_s: float) -> Look:
    """Raises SetupError where a first answer does not come whole, or not within the limit.

    The first one is not counted where there is time for another: it may have loaded the model.
    """
    began = time.monotonic()
    with closing(line_to(server, began + limit_s)) as line:
        asker = Asker(server, line, thorough=False)
        first = _ask(asker)
        if not _whole(first):
            raise _no_answer(server, first)
        if time.monotonic() - began > _REST * limit_s:
            return _judged([first], [], f"no others were asked for after {first.answer_s:.0f} s")
        again = [seen for seen in (_ask(asker), _ask(asker)) if _whole(seen)]
        return _judged(again or [first], side_by_side([partial(_ask, asker)] * SIDE_BY_SIDE))


def _ask(asker: Asker) -> Seen:
    """Asks with a prompt that is in no cache."""
    return asker.ask(" ".join(random.choices(NOUNS, k=_PROMPT_WORDS)), _OUTPUT_TOKENS, FORCED)


def _whole(seen: Seen) -> bool:
    return seen.ok and seen.text_events > 0


def _judged(alone: Sequence[Seen], together: Sequence[Seen], unseen: str = "") -> Look:
    """The slower one of a pair; what was not seen is taken for a server that does one thing at a time."""
    lost = [seen for seen in together if not _whole(seen)]
    if lost:
        unseen = f"{len(lost)} of {SIDE_BY_SIDE} requests at once got {refusal(lost[0])}"
    all_seen = together and not unseen
    slowdown = _slowest_s(together) / _slowest_s(alone) if all_seen else SIDE_BY_SIDE
    ttft_s, tpot_s = max(seen.ttft_s for seen in alone), max(seen.tpot_s for seen in alone)
    return Look(ttft_s, tpot_s, max(1.0, slowdown), unseen)


def _slowest_s(answers: Sequence[Seen]) -> float:
    return max(seen.answer_s for seen in answers)


def _no_answer(server: Server, seen: Seen) -> SetupError:
    what = f"a chat request got {refusal(seen)}" if seen.status else seen.error
    return SetupError(what, where=server.api_url, hint=_hint(server, seen))


def _hint(server: Server, seen: Seen) -> str:
    if seen.none_came is NoAnswer.UNREADABLE:
        return "its address may be that of something else, or a proxy before it changes its answers"
    if seen.none_came is NoAnswer.LOST:
        return "it closed the connection: look into its log, and into that of a proxy before it"
    if not seen.status:
        return "--minutes gives it more time"
    if seen.status in REFUSALS:
        return key_hint(server.access)
    if seen.parsed.malformed:
        return "is an OpenAI-compatible server running there? Its address is what comes before /v1"
    if seen.status == TOO_MANY:
        return RATE_HINT
    if seen.status >= FAILED or (seen.status < REDIRECTED and seen.error):
        return BUSY_HINT
    others = [name for name in API_NAMES[1:] if not server.refusal_of(name)] if seen.status >= REFUSED else []
    if others:
        return f"it answers {', '.join(others)}: bench run --api {others[0]} measures that"
    listed = f"; {server.base_url}/v1/models has the names" if seen.status >= REFUSED else ""
    return f"its model was asked for as '{server.served_name}'{listed}"
