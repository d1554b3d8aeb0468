"""backends/*.toml: how an engine is started, spoken to and reset. One file per engine.

Arguments, programs and environment values may hold `{placeholders}`: those below, and every key of
[engine.values].
"""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from harness.errors import SpecError
from harness.spec import files
from harness.spec.dialect import Dialect, check_dialect
from harness.spec.strict import build, nearest
from harness.spec.template import PLACEHOLDER

PLACEHOLDERS = {
    "model": "path of the weights, or their name in the model hub",
    "served_name": "name the server answers to",
    "host": "address to listen on",
    "port": "free port, or the one asked for",
    "scratch": "empty folder, removed when the engine stops",
    "threads": "CPUs this process may use",
    "offline": "1 when the weights lie on this machine, 0 when the engine must fetch them",
    "context_total": "context_tokens x max_sequences",
    "python": "interpreter of the engine's environment",
    "bin": "folder of the programs of the engine's environment",
    "shims": "folder of the small programs that give a library an engine's command line",
    "harness_python": "interpreter that runs this harness",
}


@dataclass(frozen=True, slots=True)
class Header:
    name: str
    title: str
    licence: str
    homepage: str
    weights: Literal["gguf", "hf", "none"]  # the form of a model this engine reads
    default_track: str = ""  # quantisation track chosen when --model names none; "" = the model's first
    note: str = ""
    simulated: bool = False  # a scripted server: every output says so


@dataclass(frozen=True, slots=True)
class Engine:
    args: tuple[str, ...] = ()  # the server's own flags, the same in every launch mode
    values: dict[str, int | float | str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Install:
    """An environment of the engine's own, built by `bench engines install NAME`."""

    requirements: tuple[str, ...]
    torch: str = ""  # exact torch version to be put in first, as a CPU build; "": none needed
    without: tuple[str, ...] = ()  # what the first requirement's wheel asks for and does not get
    metadata_alias: str = ""  # NAME==VERSION under which the engine looks up its own distribution
    version_of: str = ""  # distribution whose version is the engine's
    size_mb: int = 0  # of the finished environment, measured


@dataclass(frozen=True, slots=True)
class Process:
    """Start as a plain process on this machine."""

    program: tuple[str, ...]
    args: tuple[str, ...] = ()  # after [engine] args
    install: Install | None = None
    env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Probe:
    path: str
    key: str = ""  # dotted path into the JSON answer


@dataclass(frozen=True, slots=True)
class Tokenize:
    """POST `path` with `text_field` holding the text; the answer's `tokens_key` is the list of ids."""

    path: str
    text_field: str
    tokens_key: str = "tokens"
    model_field: str = ""
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Server:
    ready_path: str
    startup_timeout_s: float
    loading: str = ""  # what a client sees while the model loads
    version: Probe | None = None
    tokenize: Tokenize | None = None


@dataclass(frozen=True, slots=True)
class Reset:
    """Empties the prefix cache. Repeated for `slot` 0..max_sequences-1 where the path names {slot}."""

    path: str
    method: Literal["POST", "GET"] = "POST"
    success_key: str = ""  # dotted path that must be true in the answer; "": the status decides
    leaves: str = ""  # what it does not empty; harmless while no cell repeats another's prompts


@dataclass(frozen=True, slots=True)
class PrefixCache:
    enabled: bool
    reset: Reset | None = None  # None: restart the engine for a cold cache
    note: str = ""


@dataclass(frozen=True, slots=True)
class Metrics:
    """Prometheus series by our names. Counters; a name that stands in no answer is null."""

    path: str
    prompt_tokens: str = ""
    cached_prompt_tokens: str = ""
    output_tokens: str = ""
    prompt_tokens_exclude_cached: bool = False
    running: str = ""
    waiting: str = ""
    kv_use: str = ""


@dataclass(frozen=True, slots=True)
class Variant:
    """`NAME@VARIANT`: declared keys that differ, nothing else."""

    description: str
    args: tuple[str, ...] = ()  # appended
    remove_args: tuple[str, ...] = ()  # taken out, each flag alone, of [engine] and of [process]
    values: dict[str, int | float | str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    track: str = ""
    request: dict[str, Any] = field(default_factory=dict)  # added to [dialect].extra
    prefix_cache: bool | None = None


@dataclass(frozen=True, slots=True)
class Backend:
    backend: Header
    server: Server
    engine: Engine = Engine()
    process: Process | None = None
    dialect: Dialect = field(default_factory=Dialect)
    prefix_cache: PrefixCache = PrefixCache(enabled=False)
    metrics: Metrics | None = None
    variants: dict[str, Variant] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.backend.name


@dataclass(frozen=True, slots=True)
class BackendRef:
    """One element of --backends, resolved: the definition with its variant applied."""

    definition: Backend
    variant: str | None
    url: str | None  # attach to a running server

    @property
    def label(self) -> str:
        return self.definition.name + (f"@{self.variant}" if self.variant else "")


def load_backend(name: str) -> Backend:
    path = files.locate("backends", name)
    return parse_backend(files.read_toml(path), str(path))


def parse_backend(table: Mapping[str, Any], where: str) -> Backend:
    definition = build(Backend, table, where)
    for variant in (None, *definition.variants):
        varied = apply_variant(definition, variant)
        _check_placeholders(varied, where)
        check_dialect(varied.dialect, where)
    return definition


def _check_placeholders(definition: Backend, where: str) -> None:
    engine, process = definition.engine, definition.process
    known = {*PLACEHOLDERS, *engine.values}
    places: list[tuple[str, Iterable[str]]] = [
        ("engine.args", engine.args),
        ("engine.env", engine.env.values()),
        ("process.program", process.program if process else ()),
        ("process.args", process.args if process else ()),
        ("process.env", process.env.values() if process else ()),
    ]
    for place, texts in places:
        for name in PLACEHOLDER.findall(" ".join(texts)):
            if name not in known:
                raise SpecError(f"unknown placeholder '{{{name}}}'", where=f"{where}:{place}",
                                hint=nearest(name, known))  # fmt: skip


def apply_variant(definition: Backend, variant: str | None) -> Backend:
    """Raises SpecError for a variant the definition does not declare."""
    if variant is None:
        return definition
    if variant not in definition.variants:
        raise SpecError(f"backend '{definition.name}' has no variant '{variant}'",
                        hint=nearest(variant, definition.variants))  # fmt: skip
    change = definition.variants[variant]

    def kept(args: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(arg for arg in args if arg not in change.remove_args)

    process = definition.process
    if process is not None:
        process = dataclasses.replace(process, args=kept(process.args))
    engine = Engine(
        args=kept(definition.engine.args) + change.args,
        values={**definition.engine.values, **change.values},
        env={**definition.engine.env, **change.env},
    )
    cache = definition.prefix_cache
    if change.prefix_cache is not None:
        cache = dataclasses.replace(cache, enabled=change.prefix_cache)
    return dataclasses.replace(
        definition,
        backend=dataclasses.replace(
            definition.backend, default_track=change.track or definition.backend.default_track
        ),
        engine=engine,
        process=process,
        dialect=dataclasses.replace(definition.dialect, extra={**definition.dialect.extra, **change.request}),
        prefix_cache=cache,
    )


def parse_backend_list(text: str) -> list[BackendRef]:
    """`NAME[@VARIANT][=URL],…`. The same entry twice is an error: use --repeats."""
    refs = [_parse_entry(entry.strip()) for entry in text.split(",") if entry.strip()]
    if not refs:
        raise SpecError("no backend given", where="--backends")
    seen = [(ref.label, ref.url) for ref in refs]
    for entry in seen:
        if seen.count(entry) > 1:
            raise SpecError(f"'{entry[0]}' stands twice", where="--backends",
                            hint="use --repeats to measure a backend again")  # fmt: skip
    return refs


def _parse_entry(entry: str) -> BackendRef:
    name_variant, equals, url = entry.partition("=")
    name, at, variant = name_variant.partition("@")
    if at and not variant:
        raise SpecError("a variant is missing after '@'", where=f"--backends {name_variant}")
    definition = apply_variant(load_backend(name), variant or None)
    return BackendRef(definition, variant or None, _server_url(url, name_variant) if equals else None)


def _server_url(url: str, name: str) -> str:
    """Without the `/v1` that clients of the API are usually given. A secret in it would be stored."""
    where = f"--backends {name}=…"
    parts = urlsplit(url)
    if parts.username or parts.password:
        raise SpecError("the URL holds a user name or password", where=where,
                        hint="name an environment variable with --api-key-env")  # fmt: skip
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SpecError(f"'{url}' is not an http:// or https:// URL", where=where)
    if parts.query or parts.fragment:
        raise SpecError("the URL must be a server's address, without '?' or '#'", where=where)
    return url.rstrip("/").removesuffix("/v1")
