"""Tables of the generators whose prompts are made up, to the token, from a seed."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from harness.apis import Gives
from harness.errors import SpecError
from harness.spec.recordings import read_recordings
from harness.spec.scenario.limits import Count, CountOrZero, NotNegative, Share, at_least
from harness.spec.schemas import read_schemas

# Those that harness.workload.prompts.topics has words for.
Topic = Literal["sport", "weather", "food", "travel", "finance", "health", "music", "technology"]

Interval = Annotated[float, at_least(0.001)]  # seconds from one request to the next


class Generator:
    __slots__ = ()
    gives: ClassVar[Gives] = "text"  # what answers to such prompts are

    def check(self, where: str) -> None:
        """Raises SpecError for values that do not go together; limits of a single one are in its type."""


@dataclass(frozen=True, slots=True)
class FixedLength(Generator):
    """Unique prompts of one length; nothing shared."""

    input_tokens: Count
    output_tokens: Count
    output_spread: Share = 0.0  # answers are up to this share shorter or longer, by the seed; the mean stays
    generator: Literal["fixed-length"] = "fixed-length"


@dataclass(frozen=True, slots=True)
class LengthClass:
    name: str  # statistics are also given for its requests alone
    input_tokens: Count
    output_tokens: Count
    weight: float = 1.0  # share of the requests, against the other classes' weights


@dataclass(frozen=True, slots=True)
class Mix(Generator):
    """Unique prompts of several lengths, drawn by weight; nothing shared."""

    classes: tuple[LengthClass, ...]
    output_spread: Share = 0.0  # answers are up to this share shorter or longer, by the seed; the mean stays
    generator: Literal["mix"] = "mix"

    def check(self, where: str) -> None:
        if not self.classes:
            raise SpecError("at least one class is needed", where=f"{where}.classes")
        for index, length_class in enumerate(self.classes):
            if not length_class.weight > 0:
                raise SpecError(
                    f"must be above 0, not {length_class.weight}", where=f"{where}.classes[{index}].weight"
                )
        names = [length_class.name for length_class in self.classes]
        if len(set(names)) < len(names):
            raise SpecError("duplicate name", where=f"{where}.classes")

    @property
    def figures(self) -> tuple[str, ...]:
        """Paths of the figures of its classes: `by_kind.short`. A single class has none of its own."""
        names = tuple(f"by_kind.{length_class.name}" for length_class in self.classes)
        return names if len(names) > 1 else ()


@dataclass(frozen=True, slots=True)
class Classification(Generator):
    """Unique texts on one of the known topics, each to be labelled; the question comes last."""

    text_tokens: Count
    output_tokens: Count
    labels: tuple[Topic, ...]
    generator: Literal["classification"] = "classification"

    def check(self, where: str) -> None:
        if len(self.labels) < 2 or len(set(self.labels)) < len(self.labels):
            raise SpecError("two or more different labels are needed", where=f"{where}.labels")


@dataclass(frozen=True, slots=True)
class SharedPrefix(Generator):
    """Chats under a few shared system prompts, each with unique questions; later turns carry the answers."""

    groups: CountOrZero  # 0: as many as [load] working_set makes
    prefix_tokens: Count
    question_tokens: Count
    output_tokens: Count
    zipf_exponent: NotNegative = 0.0  # popularity of the groups; 0: all alike
    order: Literal["drawn", "cyclic"] = "drawn"  # of the groups: by popularity, or one after the other
    turns: Count = 1  # questions of a chat
    own_share: Share = 0.0  # of the chats: their system prompt is their own, so that no cache has it
    generator: Literal["shared-prefix"] = "shared-prefix"

    def check(self, where: str) -> None:
        for key in ("zipf_exponent", "own_share") if self.order == "cyclic" else ():
            if getattr(self, key):
                raise SpecError("is of groups that are drawn", where=f"{where}.{key}", hint="leave it out")
        if self.own_share and not self.groups:
            raise SpecError(
                "would take more of the cache than [load] working_set says",
                where=f"{where}.own_share",
                hint="leave it out",
            )

    @property
    def held_tokens(self) -> int:
        """Tokens that a request leaves in a cache, chat template left out."""
        return self.prefix_tokens + self.question_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class FewShot(Generator):
    """Solved examples as earlier messages, the same for all requests of a task, then a unique question."""

    tasks: Count
    examples: Count
    example_tokens: Count  # of each question and of each answer
    question_tokens: Count
    output_tokens: Count
    output_spread: Share = 0.0  # answers are up to this share shorter or longer, by the seed; the mean stays
    generator: Literal["few-shot"] = "few-shot"


@dataclass(frozen=True, slots=True)
class Rag(Generator):
    """An instruction, some documents of a corpus, the most relevant first, and a unique question.

    Two prompts share their beginning up to the first document in which they differ.
    """

    documents: Count
    document_tokens: Count
    retrieved: Count  # documents per question
    instruction_tokens: Count
    question_tokens: Count
    output_tokens: Count
    zipf_exponent: NotNegative = 1.0  # popularity of the documents; 0: all alike
    output_spread: Share = 0.0  # answers are up to this share shorter or longer, by the seed; the mean stays
    generator: Literal["rag"] = "rag"

    def check(self, where: str) -> None:
        if self.retrieved > self.documents:
            raise SpecError("more than there are documents", where=f"{where}.retrieved")


@dataclass(frozen=True, slots=True)
class Agent(Generator):
    """Sessions of an agent with tools: a system prompt that all share, a task that some share, then turns.

    Every turn expects a tool call; the next one brings its result.
    """

    system_tokens: Count
    tasks: Count
    task_tokens: Count
    turns: Count
    result_tokens: Count  # of each tool's result
    output_tokens: Count
    zipf_exponent: NotNegative = 1.0  # popularity of the tasks; 0: all alike
    tool_choice: Literal["auto", "required"] = "required"
    generator: Literal["agent"] = "agent"


@dataclass(frozen=True, slots=True)
class Structured(Generator):
    """The same questions free and constrained; the constraints in turn, each several times.

    The run has four stretches: free, constrained, constrained, free. No stretch mixes the two, and a drift of
    the machine affects both alike.
    """

    text_tokens: Count
    output_tokens: Count
    shapes: tuple[Literal["json_schema", "regex", "choice"], ...] = ("json_schema", "regex", "choice")
    schemas: str = ""  # folder of *.json files, also in folders below; "": the shipped ones
    schema_in_prompt: bool = True  # else the constraint alone says it
    free: bool = True  # also ask without a constraint
    generator: Literal["structured"] = "structured"

    def check(self, where: str) -> None:
        if not self.shapes:
            raise SpecError("at least one shape is needed", where=f"{where}.shapes")
        if "json_schema" in self.shapes:
            read_schemas(self.schemas)


@dataclass(frozen=True, slots=True)
class Documents(Generator):
    """Unique texts of one length to embed, `items` in each request."""

    gives: ClassVar[Gives] = "vectors"
    items: Count  # texts of a request
    item_tokens: Count
    generator: Literal["documents"] = "documents"


@dataclass(frozen=True, slots=True)
class Rerank(Generator):
    """A query and `documents` documents in each request, all unique."""

    gives: ClassVar[Gives] = "scores"
    query_tokens: Count
    documents: Annotated[int, at_least(2)]
    document_tokens: Count
    generator: Literal["rerank"] = "rerank"


@dataclass(frozen=True, slots=True)
class Audio(Generator):
    """A recording in each request, to be transcribed. The made ones are no speech."""

    gives: ClassVar[Gives] = "transcripts"
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
class CopyAndWrite(Generator):
    """Half of the requests repeat a given passage, half continue it: easy and hard to speculate on."""

    passage_tokens: Count
    output_tokens: Count
    output_spread: Share = 0.0  # answers are up to this share shorter or longer, by the seed; the mean stays
    generator: Literal["copy-and-write"] = "copy-and-write"


@dataclass(frozen=True, slots=True)
class Victim(Generator):
    """A light steady stream, in four stretches: alone, next to heavy requests, next to them again, alone.

    Requests have times of their own, which `[load] replay_speed` replays. Those of the last stretch that come
    within `settle_s` of the heavy ones are a class of their own.
    """

    input_tokens: Count
    output_tokens: Count
    every_s: Interval
    heavy_input_tokens: Count
    heavy_output_tokens: Count
    heavy_every_s: Interval
    settle_s: NotNegative = 2.0
    generator: Literal["victim"] = "victim"
