"""The command line and the environment an engine is started with, and what of them may be recorded."""

import dataclasses
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from harness.engines.provide.install import EngineEnv
from harness.engines.provide.weights import HUB_TOKEN, Weights
from harness.engines.start.kv_cache import kv_tokens
from harness.engines.start.launch_choice import LaunchChoice, named
from harness.engines.start.ports import free_port
from harness.engines.start.started import EngineFacts
from harness.errors import SpecError
from harness.host import paths
from harness.host.cpus import computing_cpus
from harness.host.helper_process import CREDENTIAL, without_credentials
from harness.model.numbers import GIB
from harness.spec.backend import PLACEHOLDERS, Backend, Compose, Engine, Image, Process, Value
from harness.spec.models import Model
from harness.spec.strict import nearest
from harness.spec.template import PLACEHOLDER, placeholders

SERVED_NAME = "bench"
HOST = "127.0.0.1"
CPUSET = "BENCH_CPUSET"  # names the CPUs of containers
_SHIMS = Path(__file__).parents[1] / "shims"
_MOST_SOCKETS_BYTES = 70  # Linux takes 107 for a socket's path; vLLM's names have 36

_NOT_RECORDED = "(not recorded)"
# Narrower than CREDENTIAL, by which `--max-num-batched-tokens` would be one.
_SECRET_FLAG = re.compile(
    r"api[-_]?key|(hf|hub|face|auth|access)[-_]token|^(--token|-hft)$|secret|passw|credential", re.IGNORECASE
)
# Within a word: `HF_TOKEN=…`, `Authorization: Bearer …`, a shell's `--api-key …`, a login of a URL. Names in
# lower case need more than `token`: `{"pad_token": 0}` is none.
_SECRET_PART = re.compile(
    r"((?<!\S)(?:--?[\w-]*(?i:api[-_]?key|(?:hf|hub|face|auth|access)[-_]token|secret|passw|credential)[\w-]*"
    r"|--token|-hft)(?:=|\s+)[\"']?(?!-)"
    r"|(?:(?<!\w)[A-Z0-9_]*(?:TOKEN|KEY|SECRET|PASSW(?:OR)?D)"
    r"|(?i:api[-_]?key|authorization|(?:hf|hub|face|auth|access)[-_]token|secret|password|credential)[\w-]*)"
    r"[\"']?\s*[=:]\s*[\"']?(?i:(?:bearer|basic)\s+)?)[^\s\"',;]+"
    r"|(?<=://)[^/\s@]+(?=@)"
)

# An engine sees of our environment what it needs to find programs, libraries, devices and its own settings.
# What it does not see cannot change a measurement without being recorded. Variables with an address are left
# out: an engine would listen elsewhere, or join a cluster that runs already.
_PASSED = re.compile(
    r"(PATH|HOME|USER|LANG|LC_\w+|TMPDIR|TZ|LD_LIBRARY_PATH|LD_PRELOAD|XDG_\w+|SSL_CERT_\w+|REQUESTS_CA_BUNDLE"
    r"|\w+_proxy|\w+_PROXY|CUDA_\w+|NVIDIA_\w+|NCCL_\w+|HIP_\w+|ROCR_\w+|OMP_\w+|KMP_\w+|GOMP_\w+|MKL_\w+"
    r"|OPENBLAS_\w+|TORCH_\w+|HF_\w+|FLASHINFER_\w+|TRITON_\w+|TVM_\w+"
    r"|VLLM_\w+|APHRODITE_\w+|SGLANG_\w+|LMDEPLOY_\w+|TRTLLM_\w+|TLLM_\w+|GGML_\w+|LLAMA_\w+"
    r"|PYTORCH_\w+|HSA_\w+|MODULAR_\w+|CT2_\w+|MLX_\w+"
    r"|OLLAMA_(?!HOST$)\w+|MAX_SERVE_(?!HOST$|PORT$)\w+|RAY_(?!ADDRESS$|AUTH_|JOB_)\w+)"
)


@dataclass(frozen=True, slots=True)
class Command:
    argv: tuple[str, ...]
    env: dict[str, str]
    files: dict[str, str]  # to be written below the scratch folder: name -> text
    second_port: int

    def recorded_env(self) -> dict[str, str | None]:
        """Returns the environment without secrets, and without what says more about the user than about
        the engine.
        """
        kept = {name: value for name, value in sorted(self.env.items()) if name not in ("HOME", "USER")}
        return without_secrets(kept)


def without_secrets(env: Mapping[str, str | None]) -> dict[str, str | None]:
    """The environment as it may be recorded."""
    return {
        name: _NOT_RECORDED if value is not None and _hides(name, value) else value
        for name, value in env.items()
    }


def without_secret_arguments(command: Iterable[str]) -> list[str]:
    """The command as it may be recorded, without values of flags such as `--api-key` and `--hf-token`, of
    variables and headers that a word sets, and without logins of URLs.
    """
    recorded, hides = list[str](), False
    for word in command:
        if word.startswith("-"):
            flag, equals, _value = word.partition("=")
            hides = _SECRET_FLAG.search(flag) is not None
            recorded.append(f"{flag}={_NOT_RECORDED}" if hides and equals else _without_parts(word))
        else:
            recorded.append(_NOT_RECORDED if hides else _without_parts(word))
    return recorded


def _without_parts(word: str) -> str:
    return _SECRET_PART.sub(lambda found: f"{found[1] or ''}{_NOT_RECORDED}", word)


def settable(definition: Backend, choice: LaunchChoice | None = None) -> dict[str, type[Value]]:
    """Keys that --engine-set may set for this engine, with the type of each.

    `choice`: started so, else in any way. What only another way takes would be set without an effect.
    """
    declared = {key: type(value) for key, value in definition.engine.values.items()}
    threads: dict[str, type[Value]] = {"threads": int} if _takes_threads(definition) else {}
    elsewhere = _only_elsewhere(definition, choice) if choice else set()
    kinds = {key: kind for key, kind in (threads | declared).items() if key not in elsewhere}
    return {"port": int, **kinds}


def _takes_threads(definition: Backend) -> bool:
    """An engine that is not given a number chooses one that nobody here knows."""
    starts = (definition.engine, definition.process, definition.compose, definition.image.cpu)
    return any("threads" in named(start) for start in starts if start)


def values_in_use(definition: Backend, choice: LaunchChoice) -> dict[str, Value]:
    """Returns those of a configured definition, less what only another way of launching it takes."""
    elsewhere = _only_elsewhere(definition, choice)
    return {name: value for name, value in definition.engine.values.items() if name not in elsewhere}


def _only_elsewhere(definition: Backend, choice: LaunchChoice) -> set[str]:
    """Placeholders that another way of launching it has, or a variant removes, and this one has not."""
    if choice.mode not in ("process", "compose"):
        return set()
    here = set().union(*map(named, _tables(definition, choice)))
    removed = placeholders([variant.remove_args for variant in definition.variants.values()])
    return set().union(removed, *map(named, definition.tables)) - here


def _tables(definition: Backend, choice: LaunchChoice) -> list[Engine | Process | Compose | Image]:
    """[engine] and what adds to it in this way of starting it, less the arguments that an image removes."""
    engine, process, compose = definition.engine, definition.process, definition.compose
    if choice.mode != "compose":
        return [engine, process] if process else [engine]
    image = definition.images.get(choice.device)
    if compose is None or image is None:
        return [engine]

    def kept(args: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(arg for arg in args if arg not in image.remove_args)

    return [
        dataclasses.replace(engine, args=kept(engine.args)),
        dataclasses.replace(compose, args=kept(compose.args)),
        dataclasses.replace(image, remove_args=()),
    ]


def configured(
    definition: Backend,
    model: Model | None,
    overrides: Mapping[str, Value],
    choice: LaunchChoice | None = None,
    origins: Mapping[str, str] = MappingProxyType({}),
) -> Backend:
    """The definition with `threads` and the user's changes in [engine.values], of the declared types.
    `origins`: by key, what an error has before it in place of --engine-set.

    Raises SpecError for a value it does not have, or does not take when started as `choice` says (None: in
    any way), and for more context than `model` offers (None: no model).
    """
    kinds = settable(definition, choice)
    cpuset = os.environ.get(CPUSET, "") if choice and choice.mode == "compose" else ""
    values: dict[str, Value] = {"threads": computing_cpus(cpuset)} if "threads" in kinds else {}
    values |= definition.engine.values
    for key, given in overrides.items():
        where = f"{origins.get(key, '--engine-set ')}{key}={given}"
        if key not in kinds:
            also = key in settable(definition)
            lacks = f"takes no '{key}' as it is started here" if also else f"has no value '{key}'"
            raise SpecError(f"backend '{definition.name}' {lacks}", where=where, hint=nearest(key, kinds))
        try:
            values[key] = kinds[key](given)
            if kinds[key] is float and not math.isfinite(float(given)):
                raise ValueError
        except ValueError:
            raise SpecError(
                f"'{given}' is not {'a whole number' if kinds[key] is int else 'a number'}", where=where
            ) from None
        if key in ("max_sequences", "tensor_parallel") and int(values[key]) < 1:
            raise SpecError(f"must be at least 1, not {given}", where=where)
        if key == "memory_share" and not 0 < float(values[key]) <= 1:
            raise SpecError(
                f"must be above 0 and at most 1, not {given}", where=where, hint="0.9 are nine tenths"
            )
    context = values.get("context_tokens")
    if context is not None and model and model.context_tokens and int(context) > model.context_tokens:
        raise SpecError(
            f"context_tokens is {context}, but the model's context is {model.context_tokens}",
            where=f"backend {definition.name}",
            hint="use --engine-set context_tokens=N",
        )
    return dataclasses.replace(definition, engine=dataclasses.replace(definition.engine, values=values))


def facts_ahead(definition: Backend, choice: LaunchChoice) -> EngineFacts:
    """Values, command and environment of a configured definition, as far as they are known before its start.

    Empty for a server that runs already. A placeholder whose value comes later stands as it is.
    """
    if choice.mode == "attach":
        return {}
    values = values_in_use(definition, choice)
    facts: EngineFacts = {"values": values}
    if choice.mode == "simulate":
        return facts
    fill = {name: f"{{{name}}}" for name in PLACEHOLDERS} | common_fill(definition)
    words: list[str] = []
    env: dict[str, str] = {}
    for table in _tables(definition, choice):
        words += table.args
        env |= table.env
    return {
        **facts,
        "command": without_secret_arguments(filled(word, fill, definition.name) for word in words),
        "env": without_secrets({name: filled(text, fill, definition.name) for name, text in env.items()}),
    }


def build_command(
    definition: Backend,
    *,
    env: EngineEnv | None,
    weights: Weights | None,
    port: int,
    scratch: Path,
    host: str = HOST,
    adapters: Mapping[str, Path] | None = None,
) -> Command:
    """The placeholders of a configured definition filled in. `adapters`: by name, where it serves some."""
    process = definition.process
    if process is None:
        raise SpecError(f"backend '{definition.name}' has no [process]", where="--launch process")
    hub = weights is not None and not weights.local
    second_port = free_port(host, other_than=port)
    fill = common_fill(definition) | {
        "host": host,
        "scratch": str(scratch),
        "sockets": str(scratch) if len(os.fsencode(scratch)) <= _MOST_SOCKETS_BYTES else "/tmp",
        "shims": str(_SHIMS),
        "harness_python": sys.executable,
        "cache": str(paths.cache_dir()),
        "port": port,
        "second_port": second_port,
    }
    if env:
        fill |= {"python": str(env.python), "bin": str(env.bin)}
    if weights:
        fill |= {"model": weights.model, "offline": "1" if weights.local else "0"}
        if weights.vision:
            fill["vision"] = weights.vision
        if "kv_cache_gib" in fill:
            fill["kv_tokens"] = _kv_tokens(definition, weights)
    fill |= named_values(definition, fill)

    def placed(text: str, where: str) -> str:
        return filled(text, fill, f"backend {definition.name}:{where}")

    argv = [placed(part, "process.program") for part in process.program]
    argv += [placed(part, "engine.model_args") for part in model_args(definition, fill, hub=hub)]
    argv += [placed(part, "engine.args") for part in definition.engine.args]
    argv += [placed(part, "process.args") for part in process.args]
    if adapters and (lora := definition.lora):
        argv += [placed(part, "lora.args") for part in lora.args]
        for name, path in adapters.items():
            own: dict[str, Value] = {"adapter": name, "adapter_path": str(path)}
            argv += [filled(part, own, f"backend {definition.name}:lora.each") for part in lora.each]
    environment = _passed_on(hub=hub)
    if process.program[0] == "{harness_python}":  # which may run from a checkout that is not installed
        environment["PYTHONPATH"] = str(paths.CHECKOUT)
    for where, table in (("engine.env", definition.engine.env), ("process.env", process.env)):
        environment.update({name: placed(value, where) for name, value in table.items()})
    return Command(tuple(argv), environment, filled_files(definition, fill), second_port)


def _kv_tokens(definition: Backend, weights: Weights) -> int:
    """Returns, where that is not known here, as many as the sequences can need."""
    values = definition.engine.values
    known = kv_tokens(Path(weights.model), values) if weights.local else None
    return known or int(values["context_tokens"]) * int(values["max_sequences"])


def common_fill(definition: Backend) -> dict[str, Value]:
    """Placeholders that mean the same however the engine is started, and their values."""
    values = definition.engine.values
    fill: dict[str, Value] = {"served_name": SERVED_NAME, **values}
    if "context_tokens" in values and "max_sequences" in values:
        fill["context_total"] = int(values["context_tokens"]) * int(values["max_sequences"])
    if "kv_cache_gib" in values:
        fill["kv_cache_bytes"] = int(float(values["kv_cache_gib"]) * GIB)
    return fill


def named_values(definition: Backend, fill: Mapping[str, Value]) -> dict[str, str]:
    """The texts of [engine.values] with their own placeholders replaced: draft_model may be "{model}"."""
    where = f"backend {definition.name}:engine.values"
    texts = {name: fill[name] for name in definition.engine.values}
    return {name: filled(text, fill, where) for name, text in texts.items() if isinstance(text, str)}


def model_args(definition: Backend, fill: Mapping[str, Value], *, hub: bool) -> tuple[str, ...]:
    """The arguments that name the weights; `hub`: the engine fetches them itself.

    `fill` has `vision` where the weights are two files.
    """
    engine = definition.engine
    naming = (engine.hub_model_args if hub else ()) or engine.model_args
    return (*naming, *engine.vision_args) if "vision" in fill else naming


def filled(text: str, fill: Mapping[str, Value], where: str) -> str:
    """The text with its placeholders replaced."""
    missing = [name for name in PLACEHOLDER.findall(text) if name not in fill]
    if missing:
        raise SpecError(f"nothing to fill '{{{missing[0]}}}' with", where=where)
    return PLACEHOLDER.sub(lambda match: str(fill[match[1]]), text)


def filled_files(definition: Backend, fill: Mapping[str, Value]) -> dict[str, str]:
    """Name -> text of [engine.files], with values escaped as JSON, YAML and Python have them in quotes."""
    where = f"backend {definition.name}:engine.files"
    escaped = {
        name: json.dumps(value, ensure_ascii=False)[1:-1] if isinstance(value, str) else value
        for name, value in fill.items()
    }
    return {name: filled(text, escaped, where) for name, text in definition.engine.files.items()}


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """`files`: name, which may lie in folders of its own, to text."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _passed_on(hub: bool) -> dict[str, str]:
    kept = without_credentials(os.environ, keep=HUB_TOKEN if hub else "")
    return {name: value for name, value in kept.items() if _PASSED.fullmatch(name)}


def _hides(name: str, value: str) -> bool:
    """A proxy's URL may hold a password as well as a key's name may say what it is."""
    return bool(CREDENTIAL.search(name)) or ("://" in value and "@" in value)
