"""Text of an exact token length: grammatical sentences of our own words, or real text, cut to the token.

A tokenizer that splits at spaces gives a text the sum of its words' lengths, so words are measured once
and texts are then made by adding up. The sum is checked with the tokenizer itself; where it is wrong
(words that merge across a space) the text is mended one word at a time.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from random import Random
from typing import TypeVar

from harness.errors import SetupError
from harness.spec.scenario import Text
from harness.workload.prompts.content import pieces_of
from harness.workload.prompts.request import TokenCounter
from harness.workload.prompts.words import ADJECTIVES, NOUNS, OPENERS, PLACES, VERBS

_PREFIX = "and"  # pieces are measured behind a word, as they stand in a text
_MENDING_ROUNDS = 12
_CHECK_BATCH = 512
_TRUSTED, _SAMPLED = 2048, 32
_NEW_TRIES = 16
_KNOWN = 4096  # sentences that texts are put together of
_WORD = re.compile(r"\s*\S+")

T = TypeVar("T")


class TextMaker:
    """`counter` None: one token a word, declared approximate."""

    def __init__(self, counter: TokenCounter | None, text: Text = Text()) -> None:  # noqa: B008  # frozen
        pieces = sorted(
            {
                f" {word}"
                for pool in (ADJECTIVES, NOUNS, VERBS, PLACES, OPENERS, ("the", "a"))
                for word in pool
            }
            | {"."}
        )
        if counter is None:
            self._cost = dict.fromkeys(pieces, 1)
        else:
            base, *lengths = counter([_PREFIX, *(_PREFIX + piece for piece in pieces)])
            self._cost = {piece: length - base for piece, length in zip(pieces, lengths, strict=True)}
            self._prefix_tokens = base
        self._counter = counter
        self._known = [
            ("".join(words), sum(self._cost[word] for word in words)) for words in _known_sentences()
        ]
        self._real = self._measured(pieces_of(text))
        # Short words, so that each is one token also for a tokenizer that counts letters.
        self._fillers = [f" {word}" for word in NOUNS if len(word) == 3 and self._cost[f" {word}"] == 1]
        if not self._fillers:
            raise SetupError(
                "the tokenizer holds none of the vocabulary's words whole",
                hint="exact lengths cannot be made for this model",
            )

    def _measured(self, pieces: Sequence[str]) -> list[tuple[str, int]]:
        """Each with its tokens behind another one."""
        base, *counts = self.count([_PREFIX, *(_PREFIX + piece for piece in pieces)])
        least = 0 if self._counter is None else base
        return [(piece, max(count - least, 1)) for piece, count in zip(pieces, counts, strict=True)]

    @property
    def exact(self) -> bool:
        return self._counter is not None

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each; without a tokenizer its words."""
        if self._counter is None:
            return [len(text.split()) for text in texts]
        return list(self._counter(texts)) if texts else []

    def make(self, lengths: Sequence[int], random: Random) -> list[str]:
        """One text per length, none twice where the length leaves room for difference."""
        return self.settle(self.draft(lengths, random), lengths, random)

    def draft(self, lengths: Sequence[int], random: Random) -> list[str]:
        """Each begins with a space: put together they are as long as their sum, up to what `settle` mends."""
        return [self._draft(length, random) for length in lengths]

    def settle(
        self, drafts: Sequence[str], lengths: Sequence[int], random: Random, *, continuing: bool = False
    ) -> list[str]:
        """Checked with the tokenizer, mended at the end where one is not as long as it should be.

        `continuing`: each goes behind another text. It keeps its space, and is counted behind a word.
        """
        texts = list(drafts)
        if self._counter is not None:
            for start in range(0, len(texts), _CHECK_BATCH):
                stop = start + _CHECK_BATCH
                texts[start:stop] = self._mend(
                    texts[start:stop], lengths[start:stop], random, continuing=continuing
                )
        return texts if continuing else [text.removeprefix(" ") for text in texts]

    def stream(self, lengths: Iterable[int], random: Random, *, continuing: bool = False) -> Iterator[str]:
        """`make` for any number of texts, a batch at a time; none twice where the length leaves room.
        `continuing`: as `settle` says.

        After _TRUSTED texts in a row that needed no mending, one in _SAMPLED is checked; one that needed it
        takes the trust away.
        """
        seen: set[int] = set()
        trusted = 0
        pending = iter(lengths)
        while batch := list(islice(pending, _CHECK_BATCH)):
            drafts = [self._new_draft(length, random, seen) for length in batch]
            step = 1 if self._counter is None or trusted < _TRUSTED else _SAMPLED
            space = "" if continuing else " "
            checked = self.settle(drafts[::step], batch[::step], random, continuing=continuing)
            if any(space + text != draft for text, draft in zip(checked, drafts[::step], strict=True)):
                trusted = 0
                if step > 1:
                    checked = self.settle(drafts, batch, random, continuing=continuing)
                yield from checked
            else:
                trusted += len(batch)
                yield from (draft.removeprefix(space) for draft in drafts)

    def counted(self, items: Iterable[T], text_of: Callable[[T], str]) -> Iterator[tuple[T, int]]:
        """Each with the tokens of its text, counted a batch at a time."""
        pending = iter(items)
        while batch := list(islice(pending, _CHECK_BATCH)):
            yield from zip(batch, self.count([text_of(item) for item in batch]), strict=True)

    def _new_draft(self, length: int, random: Random, seen: set[int]) -> str:
        for _ in range(_NEW_TRIES):
            draft = self._draft(length, random)
            if hash(draft) not in seen:
                break
        seen.add(hash(draft))
        return draft

    def _draft(self, length: int, random: Random) -> str:
        """A sentence of its own, so that texts differ from the start; then known ones, as many as fit."""
        pieces: list[str] = []
        used = self._add(_sentence(random), pieces, 0, length)
        if self._real and used < length:
            used = self._add_real(pieces, used, length, random)
        while used < length:
            sentence, cost = self._known[int(random.random() * _KNOWN)]
            if used + cost <= length:
                pieces.append(sentence)
                used += cost
            else:
                used = self._add(_sentence(random), pieces, used, length)
                while used < length:
                    pieces.append(random.choice(self._fillers))
                    used += 1
        return "".join(pieces)

    def _add_real(self, pieces: list[str], used: int, length: int, random: Random) -> int:
        """Adds real text from a random place of the source on; of the last piece the words that will fit,
        by their share.
        """
        randrange = random.randrange(len(self._real))
        while used < length:
            text, cost = self._real[randrange % len(self._real)]
            randrange += 1
            words = _WORD.findall(text) if used + cost > length else [text]
            room = len(words) * (length - used) // cost if len(words) > 1 else 1
            pieces += words[:room]
            used = min(used + cost, length)
        return used

    def _add(self, sentence: list[str], pieces: list[str], used: int, length: int) -> int:
        """Adds as much of the sentence as fits; tokens used then."""
        for piece in sentence:
            if used + self._cost[piece] > length:
                break
            pieces.append(piece)
            used += self._cost[piece]
        return used

    def _cut(self, text: str, length: int, excess: int) -> str:
        """Cuts a text at its end, by so many tokens: of random words as many words, else about as many as
        hold them.
        """
        if not self._real:
            return " ".join(text.split(" ")[:-excess])
        words = _WORD.findall(text)
        return "".join(words[: -max(1, excess * len(words) // (length + excess))])

    def _mend(
        self, texts: list[str], lengths: Sequence[int], random: Random, *, continuing: bool
    ) -> list[str]:
        """Texts whose real length differs lose or gain words until it fits. Raises SetupError."""
        assert self._counter is not None
        texts = list(texts)
        open_positions = list(range(len(texts)))
        for _ in range(_MENDING_ROUNDS):
            if continuing:
                behind = self._counter([_PREFIX + texts[i] for i in open_positions])
                counted = [count - self._prefix_tokens for count in behind]
            else:
                counted = list(self._counter([texts[i].removeprefix(" ") for i in open_positions]))
            wrong = [
                (i, lengths[i] - got)
                for i, got in zip(open_positions, counted, strict=True)
                if got != lengths[i]
            ]
            if not wrong:
                return texts
            for i, missing in wrong:
                texts[i] = self._cut(texts[i], lengths[i], -missing) if missing < 0 else texts[i]
                texts[i] += "".join(random.choice(self._fillers) for _ in range(max(missing, 0)))
            open_positions = [i for i, _ in wrong]
        raise SetupError(
            f"no text of exactly {lengths[open_positions[0]]} tokens could be made",
            hint="this tokenizer merges words; please report the model",
        )


@cache
def _known_sentences() -> list[list[str]]:
    fixed = Random(0)
    return [_sentence(fixed) for _ in range(_KNOWN)]


def _sentence(random: Random) -> list[str]:
    def noun_phrase() -> list[str]:
        adjective = random.choice(ADJECTIVES)
        article = " a" if random.random() < 0.4 and adjective[0] not in "aeiou" else " the"
        return [article, f" {adjective}", f" {random.choice(NOUNS)}"]

    words = [f" {random.choice(OPENERS)}", *noun_phrase(), f" {random.choice(VERBS)}", *noun_phrase()]
    if random.random() < 0.5:
        words += [f" {random.choice(PLACES)}", *noun_phrase()]
    return [*words, "."]
