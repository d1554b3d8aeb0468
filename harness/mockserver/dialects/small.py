"""More servers with engines of their own, and hosted ones: read from their sources and documentation."""

from harness.mockserver.dialect import Dialect, Errors, Reset, Structure, Tokenizer
from harness.mockserver.dialects.common import CHAT_FIELDS, OPENAI_FORMATS, series
from harness.mockserver.habits import Habits
from harness.mockserver.shape import Shape

MISTRALRS = Dialect(
    name="mistralrs",
    habits=Habits(usage="finish"),
    shape=Shape(role="every", cached_tokens=False),
    structure=Structure(
        {"text": None, "json_schema": OPENAI_FORMATS["json_schema"]}, {("grammar", "value"): "regex"}
    ),
    metrics_path="/metrics",
    labels="",
    series=series(
        "mistralrs_",
        gauge={"sequences_running": "running", "sequences_waiting": "waiting"},
        histogram={"time_to_first_token_seconds": "ttft", "inter_token_latency_seconds": "itl"},
    ),
    cache_block_tokens=1,
)

MODULAR_MAX = Dialect(
    name="modular-max",
    shape=Shape(role="every"),
    health=None,
    version_path="/version",
    version={"version": "{version}"},
    structure=Structure(OPENAI_FORMATS),
    reset=Reset("/reset_prefix_cache"),
    metrics_path="/metrics",  # the engine's own are on another port
    labels="",
    series=series(
        "maxserve_",
        counter={
            "num_input_tokens_total": "prompt",
            "cache_hits_tokens_total": "cached",
            "num_output_tokens_total": "generated",
        },
        gauge={"num_requests_running": "running", "num_requests_queued": "waiting"},
        histogram={
            "time_to_first_token_milliseconds": "ttft",
            "itl_milliseconds": "itl",
            "time_per_output_token_milliseconds": "tpot",
            "request_time_milliseconds": "e2e",
        },
    ),
    cache_block_tokens=128,
)

LLAMA_CPP_PYTHON = Dialect(
    name="llama-cpp-python",
    habits=Habits(usage="never"),
    shape=Shape(cached_tokens=False),
    health_path="/v1/models",
    structure=Structure(
        {"text": None, "json_object": ("json_object", ("schema",))}, {("grammar",): "grammar"}
    ),
    tokenizer=Tokenizer("/extras/tokenize", "input"),
    cache_block_tokens=1,
    length_field=(),  # min_tokens only
)

LMSTUDIO = Dialect(
    name="lmstudio",
    loading="up",
    health_path="/v1/models",
    structure=Structure({"text": None, "json_schema": OPENAI_FORMATS["json_schema"]}),
    cache_block_tokens=1,
    forces_length=False,
)

MLC_LLM = Dialect(
    name="mlc-llm",
    shape=Shape(role="every", cached_tokens=False),
    health_path="/v1/models",
    structure=Structure({"text": None, "json_object": ("json_object", ("schema",))}),
    reset=Reset("/debug/reset_engine", answer={}),
    cache_block_tokens=1,
    length_field=("debug_config", "ignore_eos"),
)

TABBYAPI = Dialect(
    name="tabbyapi",
    habits=Habits(usage="finish"),
    shape=Shape(role="text", cached_tokens=False),
    errors=Errors({"detail": "{message}"}, invalid=422),
    structure=Structure(
        {"text": None, "json_schema": OPENAI_FORMATS["json_schema"]},
        {("json_schema",): "json_schema", ("regex_pattern",): "regex", ("grammar_string",): "grammar"},
        refuses_other_formats=False,
    ),
    tokenizer=Tokenizer("/v1/token/encode", "text", extra={"length": "{count}"}),
    cache_block_tokens=256,
    length_field=("ban_eos_token",),
)

KOBOLDCPP = Dialect(
    name="koboldcpp",
    health_path="/api/v1/model",
    health={"result": "koboldcpp/simulated"},
    version_path="/api/extra/version",
    version={"result": "KoboldCpp", "version": "{version}"},
    owned_by="koboldcpp",
    structure=Structure(refuses_other_formats=False),
    cache_block_tokens=1,
    forces_length=False,
)

OVMS = Dialect(
    name="ovms",
    chat_path="/v3/chat/completions",
    health_path="/v2/health/ready",
    health=None,
    shape=Shape(role_delta={"role": "assistant", "content": None}, cached_tokens=False),
    structure=Structure(
        {"text": None, "json_schema": OPENAI_FORMATS["json_schema"]}, refuses_other_formats=False
    ),
    tokenizer=Tokenizer("/v3/tokenize", "text"),
    metrics_path="/metrics",
    labels='name="{model}"',
    series=series("ovms_", gauge={"current_requests": "running"}, counter={"requests_success": "finished"}),
)

# bench's shim before a library: harness/engines/shims/library_server.py.
LIBRARY = Dialect(
    name="library",
    shape=Shape(role="text", choice={}, cached_tokens=False),
    version_path="/version",
    version={"version": "{version}", "server": "bench's shim"},
    tokenizer=Tokenizer("/tokenize", "content"),
)

HOSTED = Dialect(
    name="hosted",
    shape=Shape(whole={}, details={"audio_tokens": 0}),
    health_path="/v1/models",
    structure=Structure(OPENAI_FORMATS),
    cache_block_tokens=128,
    forces_length=False,
    known_fields=CHAT_FIELDS,
)

# Cached tokens stand at the top of its usage, where the simulator has none.
OMLX = Dialect(
    name="omlx",
    habits=Habits(keepalive_ms=10.0),
    shape=Shape(cached_tokens=False),
    structure=Structure(OPENAI_FORMATS),
    cache_block_tokens=16,
    forces_length=False,
)
