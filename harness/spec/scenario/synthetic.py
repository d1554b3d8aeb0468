"""Tables of the generators whose prompts are made up, to the token, from a seed."""

from dataclasses import dataclass
from typing import Literal

from harness.errors import SpecError
from harness.spec.recordings import read_recordings
from harness.spec.scenario.limits import at_least, check_spread
from harness.spec.schemas import read_schemas

# Those that harness.workload.prompts.topics has words for.
Topic = Literal["sport", "weather", "food", "travel", "finance", "health", "music", "technology"]


@dataclass(frozen=True, slots=True)
class FixedLength:
    """Unique prompts of one length; nothing shared."""

    input_tokens: int
    output_tokens: int
    output_spread: float = 0.0  # answers are up to this share shorter or longer, by the seed; the mean stays
    generator: Literal["fixed-length"] = "fixed-length"

    def check(self, where: str) -> None:
        at_least(self, where, 1, "input_tokens", "output_tokens")
        check_spread(self.output_spread, where)


@dataclass(frozen=True, slots=True)
class LengthClass:
    name: str  # statistics are also given for its requests alone
    input_tokens: int
    output_tokens: int
    weight: float = 1.0  # share of the requests, against the other classes' weights


@dataclass(frozen=True, slots=True)
class Mix:
    """Unique prompts of several lengths, drawn by weight; nothing shared."""

    classes: tuple[LengthClass, ...]
    output_spread: float = 0.0  # answers are up to this share shorter or longer, by the seed; the mean stays
    generator: Literal["mix"] = "mix"

    def check(self, where: str) -> None:
        if not self.classes:
            raise SpecError("at least one class is needed", where=f"{where}.classes")
        for index, length_class in enumerate(self.classes):
            at_least(length_class, f"{where}.classes[{index}]", 1, "input_tokens", "output_tokens")
            if not length_class.weight > 0:
                raise SpecError(
                    f"must be above 0, not {length_class.weight}", where=f"{where}.classes[{index}].weight"
                )
        check_spread(self.output_spread, where)
        names = [length_class.name for length_class in self.classes]
        if len(set(names)) < len(names):
            raise SpecError("duplicate name", where=f"{where}.classes")

    @property
    def figures(self) -> tuple[str, ...]:
        """Paths of the figures of its classes: `by_kind.short`. A single class has none of its own."""
        names = tuple(f"by_kind.{length_class.name}" for length_class in self.classes)
        return names if len(names) > 1 else ()


@dataclass(frozen=True, slots=True)
class Classification:
    """Unique texts on one of the known topics, each to be labelled; the question comes last."""

    text_tokens: int
    output_tokens: int
    labels: tuple[Topic, ...]
    generator: Literal["classification"] = "classification"

    def check(self, where: str) -> None:
        at_least(self, where, 1, "text_tokens", "output_tokens")
        if len(self.labels) < 2 or len(set(self.labels)) < len(self.labels):
            raise SpecError("two or more different labels are needed", where=f"{where}.labels")


@dataclass(frozen=True, slots=True)
class SharedPrefix:
    """Chats under a few shared system prompts, each with unique questions; later turns carry the answers."""

    groups: int  # 0: as many as [load] working_set makes
    prefix_tokens: int
    question_tokens: int
    output_tokens: int
    zipf_exponent: float = 0.0  # popularity of the groups; 0: all alike
    order: Literal["drawn", "cyclic"] = "drawn"  # of the groups: by popularity, or one after the other
    turns: int = 1  # questions of a chat
    generator: Literal["shared-prefix"] = "shared-prefix"

    def check(self, where: str) -> None:
        at_least(self, where, 1, "prefix_tokens", "question_tokens", "output_tokens", "turns")
        at_least(self, where, 0, "groups", "zipf_exponent")
        if self.order == "cyclic" and self.zipf_exponent:
            raise SpecError(
                "is of groups that are drawn", where=f"{where}.zipf_exponent", hint="leave it out"
            )

    @property
    def held_tokens(self) -> int:
        """Tokens that a request leaves in a cache, chat template left out."""
        return self.prefix_tokens + self.question_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class FewShot:
    """Solved examples as earlier messages, the same for all requests of a task, then a unique question."""

    tasks: int
    examples: int
    example_tokens: int  # of each question and of each answer
    question_tokens: int
    output_tokens: int
    output_spread: float = 0.0  # answers are up to this share shorter or longer, by the seed; the mean stays
    generator: Literal["few-shot"] = "few-shot"

    def check(self, where: str) -> None:
        keys = ("tasks", "examples", "example_tokens", "question_tokens", "output_tokens")
        at_least(self, where, 1, *keys)
        check_spread(self.output_spread, where)


@dataclass(frozen=True, slots=True)
class Rag:
    """An instruction, some documents of a corpus, the most relevant first, and a unique question.

    Two prompts share their beginning up to the first document in which they differ.
    """

    documents: int
    document_tokens: int
    retrieved: int  # documents per question
    instruction_tokens: int
    question_tokens: int
    output_tokens: int
    zipf_exponent: float = 1.0  # popularity of the documents; 0: all alike
    output_spread: float = 0.0  # answers are up to this share shorter or longer, by the seed; the mean stays
    generator: Literal["rag"] = "rag"

    def check(self, where: str) -> None:
        keys = ("documents", "document_tokens", "retrieved", "instruction_tokens", "question_tokens")
        at_least(self, where, 1, *keys, "output_tokens")
        at_least(self, where, 0, "zipf_exponent")
        check_spread(self.output_spread, where)
        if self.retrieved > self.documents:
            raise SpecError("more than there are documents", where=f"{where}.retrieved")


@dataclass(frozen=True, slots=True)
class Agent:
    """Sessions of an agent with tools: a system prompt that all share, a task that some share, then turns.

    Every turn expects a tool call; the next one brings its result.
    """

    system_tokens: int
    tasks: int
    task_tokens: int
    turns: int
    result_tokens: int  # of each tool's result
    output_tokens: int
    zipf_exponent: float = 1.0  # popularity of the tasks; 0: all alike
    tool_choice: Literal["auto", "required"] = "required"
    generator: Literal["agent"] = "agent"

    def check(self, where: str) -> None:
        keys = ("system_tokens", "tasks", "task_tokens", "turns", "result_tokens", "output_tokens")
        at_least(self, where, 1, *keys)
        at_least(self, where, 0, "zipf_exponent")


@dataclass(frozen=True, slots=True)
class Structured:
    """The same questions free and constrained; the constraints in turn, each several times.

    The run has four stretches: free, constrained, constrained, free. No stretch mixes the two, and a drift of
    the machine affects both alike.
    """

    text_tokens: int
    output_tokens: int
    shapes: tuple[Literal["json_schema", "regex", "choice"], ...] = ("json_schema", "regex", "choice")
    schemas: str = ""  # folder of *.json files, also in folders below; "": the shipped ones
    schema_in_prompt: bool = True  # else the constraint alone says it
    free: bool = True  # also ask without a constraint
    generator: Literal["structured"] = "structured"

    def check(self, where: str) -> None:
        at_least(self, where, 1, "text_tokens", "output_tokens")
        if not self.shapes:
            raise SpecError("at least one shape is needed", where=f"{where}.shapes")
        if "json_schema" in self.shapes:
            read_schemas(self.schemas)


@dataclass(frozen=True, slots=True)
class Documents:
    """Unique texts of one length to embed, `items` in each request."""

    items: int  # texts of a request
    item_tokens: int
    generator: Literal["documents"] = "documents"

    def check(self, where: str) -> None:
        at_least(self, where, 1, "items", "item_tokens")


@dataclass(frozen=True, slots=True)
class Rerank:
    """A query and `documents` documents in each request, all unique."""

    query_tokens: int
    documents: int
    document_tokens: int
    generator: Literal["rerank"] = "rerank"

    def check(self, where: str) -> None:
        at_least(self, where, 1, "query_tokens", "document_tokens")
        at_least(self, where, 2, "documents")


@dataclass(frozen=True, slots=True)
class Audio:
    """A recording in each request, to be transcribed. The made ones are no speech."""

    seconds: tuple[float, ...]  # lengths of the made ones, each a class of requests, equally often
    folder: str = ""  # of *.wav files, which have lengths of their own; "": recordings are made from the seed
    generator: Literal["audio"] = "audio"

    def check(self, where: str) -> None:
        for length in self.seconds:
            if not 0.1 <= length <= 3600:
                raise SpecError(f"must be from 0.1 to 3600, not {length:g}", where=f"{where}.seconds")
        if not self.seconds or len(set(self.seconds)) < len(self.seconds):
            raise SpecError("must be one or more different lengths", where=f"{where}.seconds")
        if self.folder:
            read_recordings(self.folder)


@dataclass(frozen=True, slots=True)
class CopyAndWrite:
    """Half of the requests repeat a given passage, half continue it: easy and hard to speculate on."""

    passage_tokens: int
    output_tokens: int
    output_spread: float = 0.0  # answers are up to this share shorter or longer, by the seed; the mean stays
    generator: Literal["copy-and-write"] = "copy-and-write"

    def check(self, where: str) -> None:
        at_least(self, where, 1, "passage_tokens", "output_tokens")
        check_spread(self.output_spread, where)


@dataclass(frozen=True, slots=True)
class Victim:
    """A light steady stream, in four stretches: alone, next to heavy requests, next to them again, alone.

    Requests have times of their own, which `[load] replay_speed` replays. Those of the last stretch that come
    within `settle_s` of the heavy ones are a class of their own.
    """

    input_tokens: int
    output_tokens: int
    every_s: float
    heavy_input_tokens: int
    heavy_output_tokens: int
    heavy_every_s: float
    settle_s: float = 2.0
    generator: Literal["victim"] = "victim"

    def check(self, where: str) -> None:
        keys = ("input_tokens", "output_tokens", "heavy_input_tokens", "heavy_output_tokens")
        at_least(self, where, 1, *keys)
        at_least(self, where, 0.001, "every_s", "heavy_every_s")
        at_least(self, where, 0, "settle_s")
