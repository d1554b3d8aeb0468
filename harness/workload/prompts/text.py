"""Makes texts of an exact number of tokens: sentences of common words, or real text, cut to the token.

A tokenizer that splits at spaces gives a text the sum of the tokens of its words, so words are counted once
and texts are composed by adding. The sum is checked with the tokenizer itself; if it is wrong (words that
merge across a space), the text is corrected one word at a time.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import cache
from itertools import accumulate, chain, islice
from random import Random
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from harness.errors import SetupError
from harness.spec.scenario import Text
from harness.workload.prompts.content import pieces_of
from harness.workload.prompts.request import TokenCounter
from harness.workload.prompts.words import ADJECTIVES, NOUNS, OPENERS, PLACES, VERBS

_PREFIX = "and"  # pieces are counted after a word, as in a text
_MENDING_ROUNDS = 12
_CHECK_BATCH = 512
_TRUSTED, _SAMPLED = 2048, 32
_NEW_TRIES = 16
_LETTERS = 4  # of a token, about, in a word that no tokenizer counted
_KNOWN = 4096  # sentences that texts are composed of
_WORD = re.compile(r"\s*\S+")

T = TypeVar("T")


class TextMaker:
    """Makes texts for one tokenizer. Without a `counter`, a word counts as a token: `exact` is then False."""

    def __init__(self, counter: TokenCounter | None, text: Text = Text()) -> None:  # noqa: B008  # frozen
        pieces = _pieces()
        if counter is None:
            self._cost = dict.fromkeys(pieces, 1)
        else:
            base, *lengths = counter([_PREFIX, *(_PREFIX + piece for piece in pieces)])
            self._cost = {piece: length - base for piece, length in zip(pieces, lengths, strict=True)}
            self._prefix_tokens = base
        self._counter = counter
        self._remembers = False
        self._sentences, words, starts = _known_sentences()
        costs = np.array([self._cost[piece] for piece in pieces])
        self._sentence_costs: list[int] = np.add.reduceat(costs[words], starts).tolist()
        self._real = self._measured(pieces_of(text))
        # Short words, so that each is one token even for a tokenizer that counts letters.
        self._fillers = [f" {word}" for word in NOUNS if len(word) == 3 and self._cost[f" {word}"] == 1]
        if not self._fillers:
            raise SetupError(
                "the tokenizer holds none of the vocabulary's words whole",
                hint="exact lengths cannot be made for this model",
            )

    def _measured(self, pieces: Sequence[str]) -> list[tuple[str, int]]:
        """Each piece with the number of tokens that it adds to a text."""
        base, *counts = self.count([_PREFIX, *(_PREFIX + piece for piece in pieces)])
        least = 0 if self._counter is None else base
        return [(piece, max(count - least, 1)) for piece, count in zip(pieces, counts, strict=True)]

    def remembered(self) -> "TextMaker":
        """The same for when its tokenizer is gone: words have as many tokens as it gave them, and no text is
        checked.
        """
        other = copy(self)
        other._counter, other._remembers = None, True
        return other

    @property
    def exact(self) -> bool:
        return self._counter is not None

    def count(self, texts: Sequence[str]) -> list[int]:
        """Number of tokens of each text; without a tokenizer, of words."""
        if self._remembers:
            return [sum(self._tokens_of(word) for word in text.split()) for text in texts]
        if self._counter is None:
            return [len(text.split()) for text in texts]
        return list(self._counter(texts)) if texts else []

    def _tokens_of(self, word: str) -> int:
        """Counts a word as the tokenizer did, with a full stop after it; guesses if it did not."""
        bare = word.removesuffix(".")
        known = self._cost.get(f" {bare}", -(-len(bare) // _LETTERS))
        return known + (self._cost["."] if bare != word else 0)

    def make(self, lengths: Sequence[int], random: Random) -> list[str]:
        """One text of exactly each length in tokens. Raises SetupError."""
        return self.settle(self.draft(lengths, random), lengths, random)

    def draft(self, lengths: Sequence[int], random: Random) -> list[str]:
        """Texts that begin with a space, of about these lengths when joined; `settle` corrects them."""
        return [self._draft(length, random) for length in lengths]

    def settle(
        self, drafts: Sequence[str], lengths: Sequence[int], random: Random, *, continuing: bool = False
    ) -> list[str]:
        """Checks texts with the tokenizer, and corrects the end of those that are too long or too short.

        `continuing` texts follow another one: they keep their space, and are counted after a word. Raises
        SetupError.
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
        """Yields texts like `make`, for any number, a batch at a time.

        None comes twice if its length allows that. After _TRUSTED texts in a row that needed no correction,
        only one in _SAMPLED is checked, until one needs it. `continuing` is that of `settle`.
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
        """Yields each item with the tokens of its text, counted a batch at a time."""
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
        """A new sentence, so that texts differ from the start, and then as many known ones as fit."""
        pieces: list[str] = []
        used = self._add(_sentence(random), pieces, 0, length)
        if self._real and used < length:
            used = self._add_real(pieces, used, length, random)
        while used < length:
            chosen = int(random.random() * _KNOWN)
            if used + self._sentence_costs[chosen] <= length:
                pieces.append(self._sentences[chosen])
                used += self._sentence_costs[chosen]
            else:
                used = self._add(_sentence(random), pieces, used, length)
                while used < length:
                    pieces.append(random.choice(self._fillers))
                    used += 1
        return "".join(pieces)

    def _add_real(self, pieces: list[str], used: int, length: int, random: Random) -> int:
        """Adds real text from a random place of the source on, the last piece cut to about what fits.

        Returns the tokens used, which `settle` corrects.
        """
        position = random.randrange(len(self._real))
        while used < length:
            text, cost = self._real[position % len(self._real)]
            position += 1
            words = _WORD.findall(text) if used + cost > length else [text]
            room = len(words) * (length - used) // cost if len(words) > 1 else 1
            pieces += words[:room]
            used = min(used + cost, length)
        return used

    def _add(self, sentence: list[str], pieces: list[str], used: int, length: int) -> int:
        """Adds as much of the sentence as fits, and returns the tokens used."""
        for piece in sentence:
            if used + self._cost[piece] > length:
                break
            pieces.append(piece)
            used += self._cost[piece]
        return used

    def _cut(self, text: str, length: int, excess: int) -> str:
        """Cuts about `excess` tokens off the end: as many random words, or a share of real words."""
        if not self._real:
            return " ".join(text.split(" ")[:-excess])
        words = _WORD.findall(text)
        return "".join(words[: -max(1, excess * len(words) // (length + excess))])

    def _mend(
        self, texts: list[str], lengths: Sequence[int], random: Random, *, continuing: bool
    ) -> list[str]:
        """Removes and adds words at the end of texts until every length is right. Raises SetupError."""
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
def _pieces() -> list[str]:
    """All that sentences are made of."""
    pools = (ADJECTIVES, NOUNS, VERBS, PLACES, OPENERS, ("the", "a"))
    return sorted({f" {word}" for pool in pools for word in pool} | {"."})


@cache
def _known_sentences() -> tuple[list[str], NDArray[np.intp], list[int]]:
    """The sentences, the positions of all their pieces in a row, and where in that row each begins."""
    fixed = Random(0)
    sentences = [_sentence(fixed) for _ in range(_KNOWN)]
    position = {piece: at for at, piece in enumerate(_pieces())}
    pieces = np.array([position[piece] for piece in chain.from_iterable(sentences)])
    starts = [0, *accumulate(map(len, sentences))][:-1]
    return ["".join(words) for words in sentences], pieces, starts


def _sentence(random: Random) -> list[str]:
    def noun_phrase() -> list[str]:
        adjective = random.choice(ADJECTIVES)
        article = " a" if random.random() < 0.4 and adjective[0] not in "aeiou" else " the"
        return [article, f" {adjective}", f" {random.choice(NOUNS)}"]

    words = [f" {random.choice(OPENERS)}", *noun_phrase(), f" {random.choice(VERBS)}", *noun_phrase()]
    if random.random() < 0.5:
        words += [f" {random.choice(PLACES)}", *noun_phrase()]
    return [*words, "."]
