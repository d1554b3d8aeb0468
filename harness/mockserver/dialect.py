"""A dialect: what a client sees of one engine's server. The data are in dialects/ and backends/."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.mockserver.event_style import MessagesStyle, ResponsesStyle
from harness.mockserver.habits import Habits
from harness.mockserver.shape import Shape
from harness.mockserver.values import RankStyle, VectorStyle

Kind = Literal["json_schema", "json_object", "regex", "choice", "grammar"]
Path = tuple[str, ...]

SLOTS = 8  # of an engine that keeps one prompt in each: what the KV cache holds is so many times a slot's

# Histograms of times are in seconds; the rest counts tokens or requests, or is a share from 0 to 1.
Quantity = Literal[
    "running",
    "waiting",
    "kv_use",
    "hit_rate",
    "prompt",
    "uncached",
    "cached",
    "device_cached",
    "host_cached",
    "image_queries",
    "image_hits",
    "generated",
    "finished",
    "ttft",
    "itl",
    "tpot",
    "e2e",
    "queue",
    "transfer",
    "input_lengths",
    "output_lengths",
    "zero",
    "whole",
]


@dataclass(frozen=True, slots=True)
class Series:
    name: str
    kind: Literal["counter", "gauge", "histogram"]
    quantity: Quantity
    label: str = ""  # of its own, besides those of all series


@dataclass(frozen=True, slots=True)
class Errors:
    """`body` of an error answer: "{message}", "{type}", "{code}" and "{field}" stand for the values."""

    body: Mapping[str, object] = field(
        default_factory=lambda: {
            "error": {"message": "{message}", "type": "{type}", "param": None, "code": "{code}"}
        }
    )
    # Body of a 404 for a path; {}: as other errors.
    no_route: Mapping[str, object] = field(default_factory=dict)
    invalid: int = 400  # status of a body that does not fit
    unknown_model: int = 0  # 404 where another name is refused; 0: any name will do


@dataclass(frozen=True, slots=True)
class Structure:
    """The places of a body in which a constraint may stand.

    `formats`: `response_format.type` to kind and place inside response_format; None there: no constraint.
    """

    formats: Mapping[str, tuple[Kind, Path] | None] = field(default_factory=dict)
    fields: Mapping[Path, Kind] = field(default_factory=dict)
    refuses_other_formats: bool = True  # False: answered as if it had not been asked


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """POST `path` with text in `text_field`; `tokens_key` of the answer holds ids ("": a list of objects).

    With `lists` the text may be a list of texts, and the answer has a list of ids for each.
    """

    path: str
    text_field: str
    tokens_key: str = "tokens"
    lists: bool = False


@dataclass(frozen=True, slots=True)
class Reset:
    path: str  # a `/` at its end: also what follows
    method: str


@dataclass(frozen=True, slots=True)
class Dialect:
    name: str
    habits: Habits = field(default_factory=Habits)
    shape: Shape = field(default_factory=Shape)
    errors: Errors = field(default_factory=Errors)
    structure: Structure = field(default_factory=Structure)
    loading: Literal["refused", "503", "up"] = "refused"  # what a client sees before the model is loaded
    responses: ResponsesStyle | None = None  # at /v1/responses; None: it has no such API
    messages: MessagesStyle | None = None  # at /v1/messages
    embeddings: VectorStyle | None = None  # at /v1/embeddings
    rerank: RankStyle | None = None  # at /v1/rerank
    transcriptions: bool = False  # at /v1/audio/transcriptions
    # The usage of /v1/completions stands in the chunk with the finish reason, whether requested or not.
    completions_usage: Literal["asked", "finish"] = "asked"
    # None: an empty answer.
    health: Mapping[str, object] | None = field(default_factory=lambda: {"status": "ok"})
    version: Mapping[str, object] = field(default_factory=dict)  # "{version}" and "{kv_tokens}" in it
    info: Mapping[str, object] = field(default_factory=dict)  # of its settings, where they have another path
    owned_by: str = "simulated"
    card: Mapping[str, object] = field(default_factory=dict)  # of a model, besides what all have
    own_name: str = ""  # for its model, besides the one it is given
    tokenizer_extra: Mapping[str, object] = field(default_factory=dict)  # next to the ids; "{count}" in it
    reset_answer: Mapping[str, object] | None = None  # None: plain text
    reset_busy: int = 0  # status while requests run; 0: a reset at any time
    unused_counters: frozenset[str] = frozenset()  # keys of [metrics.counters] that need settings of its own
    labels: str = 'model_name="{model}"'  # of every series
    cache_block_tokens: int = 16  # 1: any prefix
    forces_length: bool = True  # `length_field` and min_tokens have an effect
    length_field: Path = ("ignore_eos",)  # true: the model's end is ignored; (): it has no such field
    known_fields: frozenset[str] | None = None  # others are refused; None: others are ignored
    refused_values: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # field -> values it refuses
    salt_field: str = ""  # prompts with different values share no prefix
    uncached_field: str = ""  # a field that, when false, keeps the prompt out of the cache
    out_of_memory: str = "torch.OutOfMemoryError: CUDA out of memory."  # its last words
    pulls_models: bool = False  # Ollama's routes that bring a model in

    # Filled in from the shipped definition of this name (declared.py); set in dialects/ where there is none.
    chat_path: str = "/v1/chat/completions"
    health_path: str = "/health"
    version_path: str = ""  # "": no version over HTTP
    info_path: str = ""
    tokenizer: Tokenizer | None = None
    reset: Reset | None = None
    metrics_path: str = ""  # "": none
    json_metrics_path: str = ""
    series: tuple[Series, ...] = ()
