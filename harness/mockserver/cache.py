"""A prefix cache as the engines keep one: whole blocks of prompt tokens, found from the start, LRU."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from harness.mockserver.ask import Token


class PrefixCache:
    """Counts in tokens, keeps `capacity_tokens // block_tokens` blocks; capacity 0 never hits."""

    def __init__(self, capacity_tokens: int, block_tokens: int) -> None:
        self._capacity_blocks = capacity_tokens // block_tokens
        self._block_tokens = block_tokens
        self._blocks: OrderedDict[int, None] = OrderedDict()  # oldest first

    def claim(self, prompt: Sequence[Token], salt: str = "") -> int:
        """Returns how many leading tokens of the prompt were cached; all its whole blocks are from now on.

        The last token is never served from the cache: its logits must be computed.
        """
        keys = list(self._keys(prompt, salt))
        hits = 0
        for key in keys[: (len(prompt) - 1) // self._block_tokens]:
            if key not in self._blocks:
                break
            hits += 1
        # From the tail, so that a prefix outlives what continues it.
        for key in reversed(keys):
            self._blocks[key] = None
            self._blocks.move_to_end(key)
        while len(self._blocks) > self._capacity_blocks:
            self._blocks.popitem(last=False)
        return hits * self._block_tokens

    def clear(self) -> None:
        self._blocks.clear()

    @property
    def used_share(self) -> float:
        return len(self._blocks) / self._capacity_blocks if self._capacity_blocks else 0.0

    def _keys(self, prompt: Sequence[Token], salt: str) -> Iterator[int]:
        """A block's key covers everything before it."""
        key = hash(salt)
        for at in range(0, len(prompt) - self._block_tokens + 1, self._block_tokens):
            key = hash((key, tuple(prompt[at : at + self._block_tokens])))
            yield key
