"""Makes prompts that begin alike: with system prompts, solved examples, retrieved documents."""

from bisect import bisect
from collections.abc import Iterator
from itertools import accumulate, chain, repeat
from random import Random

from harness.records.request_table import Part
from harness.spec.scenario.synthetic import FewShot, Rag, SharedPrefix
from harness.workload.prompts.lengths import spread
from harness.workload.prompts.request import ChatRequest, Message
from harness.workload.prompts.text import TextMaker

SHARED, OWN = "shared", "own"  # classes of chats, by their system prompt, where some have their own
_GOLDEN = (5**0.5 - 1) / 2
_TRIES = 1000  # draws for a rank that is not drawn yet; more cost more than weights without those that are


class Zipf:
    """Draws ranks from 0 with probabilities proportional to 1 / (rank + 1) ** exponent."""

    def __init__(self, ranks: int, exponent: float) -> None:
        self._ranks, self._exponent = ranks, exponent
        self._weights = list(accumulate((rank + 1) ** -exponent for rank in range(ranks)))

    def draw(self, random: Random) -> int:
        return bisect(self._weights, random.random() * self._weights[-1])

    def several(self, count: int, random: Random) -> list[int]:
        """Draws `count` different ranks, in the order drawn."""
        drawn: dict[int, None] = {}
        for _ in range(_TRIES * count):
            if len(drawn) == count:
                break
            drawn[self.draw(random)] = None
        while len(drawn) < count:  # almost all the weight is drawn already: the others are drawn by theirs
            left = [rank for rank in range(self._ranks) if rank not in drawn]
            # Relative to the first of them, so that not all weights are rounded to 0.
            weights = [((rank + 1) / (left[0] + 1)) ** -self._exponent for rank in left]
            drawn[random.choices(left, weights)[0]] = None
        return list(drawn)


def shared_prefix(
    spec: SharedPrefix, count: int, random: Random, texts: TextMaker, *, each_first: bool = False
) -> Iterator[ChatRequest]:
    """Yields chats one after another, each with its turns; the last may be cut short.

    `each_first`: every group comes once before any is drawn, the most popular last, as a cache keeps them.
    """
    systems = texts.make([spec.prefix_tokens] * spec.groups, random)
    groups, choice = Zipf(spec.groups, spec.zipf_exponent), Random(random.random())
    own_systems = _own_systems(spec, -(-count // spec.turns), random, texts)
    group, system, kind = 0, "", ""
    for index, question in enumerate(texts.stream(repeat(spec.question_tokens, count), random)):
        session, turn = divmod(index, spec.turns)
        first = turn == 0
        if first:
            own = next(own_systems)
            if spec.order == "cyclic":
                group = session % spec.groups
            elif own is None:
                once = each_first and session < spec.groups
                group = spec.groups - 1 - session if once else groups.draw(choice)
            system = systems[group] if own is None else own
            kind = "" if not spec.own_share else SHARED if own is None else OWN
        yield ChatRequest(
            (("system", system), ("user", question)) if first else (("user", question),),
            spec.output_tokens,
            (spec.prefix_tokens if first else 0) + spec.question_tokens,
            kind=kind,
            shared=(Part(group, spec.prefix_tokens),) if first and kind != OWN else (),
            session=session if spec.turns > 1 else -1,
            turn=turn,
        )


def _own_systems(spec: SharedPrefix, chats: int, random: Random, texts: TextMaker) -> Iterator[str | None]:
    """The own system prompt of each chat; None where it has a shared one.

    Any stretch of chats has the share that is asked for, but for a chat or two, and no period.
    """
    if not spec.own_share:
        return repeat(None)
    start = random.random()
    own = bytes((start + chat * _GOLDEN) % 1 < spec.own_share for chat in range(chats))
    systems = texts.stream(repeat(spec.prefix_tokens, sum(own)), Random(start))
    return (next(systems) if its_own else None for its_own in own)


def few_shot(spec: FewShot, count: int, random: Random, texts: TextMaker) -> Iterator[ChatRequest]:
    tasks: list[tuple[Message, ...]] = []
    for _ in range(spec.tasks):
        examples = texts.make([spec.example_tokens] * (2 * spec.examples), random)
        tasks.append(tuple(zip(chain(*repeat(("user", "assistant"), spec.examples)), examples, strict=True)))
    choice, shared = Random(random.random()), 2 * spec.examples * spec.example_tokens
    lengths = spread(repeat(spec.output_tokens, count), spec.output_spread, random)
    questions = texts.stream(repeat(spec.question_tokens, count), random)
    for output, question in zip(lengths, questions, strict=True):
        task = choice.randrange(spec.tasks)
        yield ChatRequest(
            (*tasks[task], ("user", question)),
            output,
            shared + spec.question_tokens,
            shared=(Part(task, shared),),
        )


def rag(spec: Rag, count: int, random: Random, texts: TextMaker) -> Iterator[ChatRequest]:
    """Yields prompts of documents and a question. The empty line after a document is part of it."""
    (instruction,) = texts.make([spec.instruction_tokens], random)
    documents = [f"{text}\n\n" for text in texts.make([spec.document_tokens] * spec.documents, random)]
    first = Part(-1, spec.instruction_tokens)
    parts = [Part(rank, tokens) for rank, tokens in enumerate(texts.count(documents))]
    ranks, choice = Zipf(spec.documents, spec.zipf_exponent), Random(random.random())
    lengths = spread(repeat(spec.output_tokens, count), spec.output_spread, random)

    def messages() -> Iterator[tuple[list[int], str]]:
        for question in texts.stream(repeat(spec.question_tokens, count), random):
            retrieved = ranks.several(spec.retrieved, choice)
            yield retrieved, "".join(documents[rank] for rank in retrieved) + question

    counted = texts.counted(messages(), lambda prompts: prompts[1])
    for output, ((retrieved, message), tokens) in zip(lengths, counted, strict=True):
        yield ChatRequest(
            (("system", instruction), ("user", message)),
            output,
            spec.instruction_tokens + tokens,
            shared=(first, *(parts[rank] for rank in retrieved)),
        )
