"""No library: tokens at a known pace, for measuring what the shim adds to it."""

import time
from collections.abc import Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.engines.shims.library_server import Job, Settings


STEP_NS = 1_000_000  # harness.engines.check.shim_cost asks `bench truth` for the same gap


class Library:
    version = "scripted"

    def __init__(self, settings: "Settings") -> None:
        del settings
        self.effective: dict[str, str] = {}

    def encode(self, text: str) -> list[int]:
        return [ord(letter) for letter in text]

    def prompt(self, messages: Sequence[dict[str, str]]) -> list[int]:
        return self.encode("".join(message["content"] for message in messages))

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(f" t{token}" for token in tokens)

    def serve(self, waiting: "SimpleQueue[Job]") -> None:
        """A step begins when the token before it has been written, as a real library's does."""
        while True:
            job = waiting.get()
            for number in range(job.asked.max_tokens):
                ends = time.perf_counter_ns() + STEP_NS
                while time.perf_counter_ns() < ends:  # a sleep would end late
                    pass
                job.put([number])
            job.end("length")
