"""[prompts]: one dataclass per generator, chosen by the table's `generator`.

A new generator is a dataclass here or in `synthetic`, named in `Prompts`, and its maker in
`harness.workload.prompts.generate`.
"""

from dataclasses import dataclass, fields
from typing import Literal, get_args

from harness.errors import SpecError
from harness.spec.scenario import synthetic
from harness.spec.scenario.limits import Count, NotNegative
from harness.spec.scenario.synthetic import Generator


@dataclass(frozen=True, slots=True)
class TraceReplay(Generator):
    """Requests as recorded: lengths, what they share, and when. At most as many as the file holds.

    Sessions are replayed whole, as many as have that many calls in all.
    """

    file: str
    format: Literal["auto", "mooncake", "azure", "burstgpt", "jsonl", "weka", "tracelab", "otel", "run"] = (
        "auto"
    )
    start_s: NotNegative = 0.0  # window, in the trace's own time from its first request on
    end_s: float | None = None
    max_input_tokens: Count | None = None  # longer ones are cut, at the end of the prompt; sessions before it
    max_output_tokens: Count | None = None
    max_wait_s: NotNegative | None = None  # of sessions: longer waits for tools and people are cut to it
    unique_sessions: bool = False  # a text of its own in front of every session, so that no two begin alike
    block_tokens: Count = 16  # of the blocks of a jsonl trace; Mooncake's are of 512
    generator: Literal["trace"] = "trace"

    def check(self, where: str) -> None:
        if self.end_s is not None and not self.end_s > self.start_s:
            raise SpecError(f"must be above start_s, not {self.end_s:g}", where=f"{where}.end_s")


@dataclass(frozen=True, slots=True)
class PromptFile(Generator):
    """Prompts from a file, each once: conversations of ShareGPT's form, lines of JSON, or CSV."""

    file: str
    format: Literal["auto", "sharegpt", "jsonl", "csv"] = "auto"
    turns: Count = 1  # user turns of a conversation that are sent, with the file's own answers between
    categories: tuple[str, ...] = ()  # of the file that are sent; (): all
    order: Literal["shuffled", "file"] = "shuffled"
    output_tokens: Count | None = None  # of every answer; else as the file asks, else as long as its answer
    unknown_output_tokens: Count = 128  # where the file says neither
    min_input_tokens: Count = 1  # others are left out
    max_input_tokens: Count | None = None
    max_output_tokens: Count | None = None  # more is cut
    generator: Literal["prompt-file"] = "prompt-file"

    def check(self, where: str) -> None:
        asked, most = self.output_tokens, self.max_output_tokens
        if asked and most and asked > most:
            raise SpecError(
                f"{asked} is more than max_output_tokens, {most}, to which answers are cut",
                where=f"{where}.output_tokens",
                hint=f"--set prompts.max_output_tokens={asked}",
            )


Prompts = (
    synthetic.FixedLength
    | synthetic.Mix
    | synthetic.Classification
    | synthetic.CopyAndWrite
    | synthetic.SharedPrefix
    | synthetic.FewShot
    | synthetic.Rag
    | synthetic.Agent
    | synthetic.Structured
    | TraceReplay
    | PromptFile
    | synthetic.Documents
    | synthetic.Rerank
    | synthetic.Victim
    | synthetic.Audio
)


def has_times(prompts: Prompts) -> bool:
    """Whether requests have times of their own, which a load point replays at a multiple of their pace."""
    return isinstance(prompts, TraceReplay | synthetic.Victim)


def turns_of(prompts: Prompts) -> int:
    """Number of requests in a session, each waiting for the answer before it; 1: none waits."""
    return prompts.turns if isinstance(prompts, synthetic.SharedPrefix | synthetic.Agent) else 1


def _name(kind: type[Prompts]) -> str:
    return next(str(field.default) for field in fields(kind) if field.name == "generator")


GENERATORS: dict[str, type[Prompts]] = {_name(kind): kind for kind in get_args(Prompts)}
