"""More servers with engines of their own, and hosted ones: read from their sources and documentation."""

from harness.mockserver.dialect import Dialect, Errors, Structure, Tokenizer
from harness.mockserver.dialects.common import CHAT_FIELDS, OPENAI_FORMATS
from harness.mockserver.habits import Habits
from harness.mockserver.shape import Shape

MISTRALRS = Dialect(
    name="mistralrs",
    habits=Habits(usage="finish"),
    shape=Shape(role="every", cached_tokens=False),
    structure=Structure(OPENAI_FORMATS, {("grammar", "value"): "regex"}),
    labels="",
    cache_block_tokens=1,
)

MODULAR_MAX = Dialect(
    name="modular-max",
    shape=Shape(role="every"),
    health=None,
    version={"version": "{version}"},
    structure=Structure(OPENAI_FORMATS),
    labels="",
    cache_block_tokens=128,
)

LLAMA_CPP_PYTHON = Dialect(
    name="llama-cpp-python",
    habits=Habits(usage="never"),
    shape=Shape(cached_tokens=False),
    structure=Structure(
        {"text": None, "json_object": ("json_object", ("schema",))}, {("grammar",): "grammar"}
    ),
    cache_block_tokens=1,
    length_field=(),  # min_tokens only
)

LMSTUDIO = Dialect(
    name="lmstudio",
    loading="up",
    structure=Structure({"text": None, "json_schema": OPENAI_FORMATS["json_schema"]}),
    cache_block_tokens=1,
    forces_length=False,
)

MLC_LLM = Dialect(
    name="mlc-llm",
    shape=Shape(role="every", cached_tokens=False),
    structure=Structure({"text": None, "json_object": ("json_object", ("schema",))}),
    reset_answer={},
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
    tokenizer_extra={"length": "{count}"},
    cache_block_tokens=256,
    length_field=("ban_eos_token",),
)

KOBOLDCPP = Dialect(
    name="koboldcpp",
    health={"result": "koboldcpp/simulated"},
    version={"result": "KoboldCpp", "version": "{version}"},
    owned_by="koboldcpp",
    structure=Structure(refuses_other_formats=False),
    cache_block_tokens=1,
    forces_length=False,
)

OVMS = Dialect(
    name="ovms",
    health=None,
    shape=Shape(role_delta={"role": "assistant", "content": None}, cached_tokens=False),
    structure=Structure(
        {"text": None, "json_schema": OPENAI_FORMATS["json_schema"]}, refuses_other_formats=False
    ),
    labels='name="{model}"',
)

# bench's shim before a library, harness/engines/shims/library_server.py: no definition has this name.
LIBRARY = Dialect(
    name="library",
    shape=Shape(role="text", choice={}, cached_tokens=False),
    version_path="/version",
    version={"version": "{version}", "server": "bench's shim"},
    tokenizer=Tokenizer("/tokenize", "content"),
)

FASTER_WHISPER = Dialect(
    name="faster-whisper",
    transcriptions=True,
    version={"version": "{version}", "server": "bench's shim"},
)

HOSTED = Dialect(
    name="hosted",
    shape=Shape(whole={}, details={"audio_tokens": 0}),
    structure=Structure(OPENAI_FORMATS),
    cache_block_tokens=128,
    forces_length=False,
    known_fields=CHAT_FIELDS,
)

# Cached tokens stand at the top of its usage, where the simulator has none.
OMLX = Dialect(
    name="omlx",
    habits=Habits(keepalive_ms=10.0),
    structure=Structure(OPENAI_FORMATS),
    cache_block_tokens=16,
    forces_length=False,
)
