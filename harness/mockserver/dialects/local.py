"""Servers of a desktop: all but Ollama are checked with captures of the real ones."""

from harness.mockserver.dialect import SLOTS, Dialect, Errors, Structure
from harness.mockserver.dialects.common import CHAT_FIELDS, OPENAI_FORMATS
from harness.mockserver.event_style import MessagesStyle, ResponsesStyle
from harness.mockserver.habits import Habits
from harness.mockserver.shape import Shape
from harness.mockserver.values import RankStyle, VectorStyle

LLAMACPP = Dialect(
    name="llamacpp",
    habits=Habits(hang_up=True),
    completions_usage="finish",
    responses=ResponsesStyle(opens="first", numbered="", tells_cut=False, timings=True, keeps_turns=False),
    messages=MessagesStyle(start_counts_all=False, delta_counts_input=False, signature=True),
    embeddings=VectorStyle(shortens="ignored"),
    rerank=RankStyle(),
    shape=Shape(role_delta={"role": "assistant", "content": None}, choice={}, timings=True),
    errors=Errors({"error": {"code": "{code}", "message": "{message}", "type": "invalid_request_error"}}),
    loading="503",
    version={
        "build_info": "{version}",
        "total_slots": SLOTS,
        "default_generation_settings": {"n_ctx": "{kv_tokens_of_slot}"},
        "model_alias": "{model}",
    },
    owned_by="llamacpp",
    structure=Structure(OPENAI_FORMATS, {("json_schema",): "json_schema", ("grammar",): "grammar"}),
    reset_answer={"id_slot": 0, "n_erased": 0},
    labels="",
    cache_block_tokens=1,
    uncached_field="cache_prompt",
    out_of_memory="ggml_backend_cuda_buffer_type_alloc_buffer: cudaMalloc failed: out of memory",
)

OLLAMA = Dialect(
    name="ollama",
    habits=Habits(reasoning_field="reasoning"),
    shape=Shape(role="text", choice={}, cached_tokens=False),
    errors=Errors(
        {"error": {"message": "{message}", "type": "invalid_request_error", "param": None, "code": None}},
        unknown_model=404,
    ),
    loading="up",
    health=None,
    version={"version": "{version}"},
    owned_by="library",
    structure=Structure(OPENAI_FORMATS),
    cache_block_tokens=1,
    forces_length=False,
    pulls_models=True,
    out_of_memory="Error: model requires more system memory (6.1 GiB) than is available (2.0 GiB)",
)

TRANSFORMERS = Dialect(
    name="transformers",
    habits=Habits(role="early", usage="finish", no_done=True),
    shape=Shape(
        role_delta={"role": "assistant"},
        chunk={"system_fingerprint": ""},
        choice={},
        finish_null=False,
        whole={},
        cached_tokens=False,
    ),
    errors=Errors({"detail": "{message}"}, invalid=422, unknown_model=400),
    structure=Structure(refuses_other_formats=False),
    cache_block_tokens=1,
    forces_length=False,
    known_fields=CHAT_FIELDS
    | frozenset("generation_config chat_template_kwargs reasoning_effort modalities metadata store".split()),
)

MLX_LM = Dialect(
    name="mlx-lm",
    habits=Habits(keepalive_ms=10.0, reasoning_field="reasoning"),
    shape=Shape(role="every", choice={}),
    errors=Errors({"error": "{message}"}, unknown_model=404),
    own_name="default_model",
    structure=Structure(refuses_other_formats=False),
    cache_block_tokens=1,
    forces_length=False,
)
