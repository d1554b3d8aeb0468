"""backends/*.toml: how an engine is started, spoken to, reset and read. One file per engine.

Arguments, programs, files and environment values may hold `{placeholders}`: those below, and every key of
[engine.values]. backend_refs.py reads the files and applies variants.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from harness.apis import ApiName
from harness.spec.dialect import Dialect, Fields, Lora
from harness.spec.engine_metrics import Metrics
from harness.spec.reach import Reach

if TYPE_CHECKING:
    from harness.spec.tuned import Tuned

PLACEHOLDERS = {
    "model": "path of the weights, or their name in the model hub",
    "model_name": "in a container: where the weights lie below the folder /models",
    "served_name": "name the server answers to",
    "host": "address to listen on",
    "port": "free port, or the one asked for",
    "scratch": "empty folder for [engine.files] and the engine's own, removed when the engine stops",
    "sockets": "folder for the engine's Unix sockets: {scratch}, or /tmp where that has too long a path",
    "threads": "CPUs this process may use",
    "offline": "1 when the weights lie on this machine, 0 when the engine must fetch them",
    "context_total": "context_tokens x max_sequences",
    "kv_tokens": "tokens of this model in kv_cache_gib; context_total where no config.json here tells",
    "kv_cache_bytes": "kv_cache_gib in bytes",
    "second_port": "another free port, for what the engine serves apart from its API",
    "python": "interpreter of the engine's environment",
    "bin": "folder of the programs of the engine's environment",
    "shims": "folder of the small programs that give a library an engine's command line",
    "harness_python": "interpreter that runs this harness",
    "cache": "cache folder of bench, kept between runs",
}
Value = int | float | str
DEVICES = ("cuda", "rocm", "cpu")
# The form of a model an engine reads. bench can provide the first four. "any": as the engines behind it;
# "none": it brings its own.
Form = Literal["gguf", "hf", "openvino", "ctranslate2", "mlc", "mlx", "powerinfer", "any", "none"]
PROVIDED: tuple[Form, ...] = ("gguf", "hf", "openvino", "ctranslate2")


@dataclass(frozen=True, slots=True)
class Header:
    name: str
    title: str
    licence: str
    homepage: str
    weights: Form
    default_track: str = ""  # quantisation track chosen when --model names none; "" = the model's first
    note: str = ""
    # A front passes requests on to engines: its hop and theirs are in every figure.
    # A library has no server of its own: it runs behind bench's shim, whose cost is measured at each start.
    kind: Literal["engine", "library", "front", "hosted"] = "engine"
    # Of the project. Dormant: no release for a year or more; finished: its makers say so, or left.
    status: Literal["active", "maintenance", "dormant", "finished"] = "active"
    bias: tuple[
        str, ...
    ] = ()  # its defaults that tilt a comparison, and what this definition does about them
    simulator: str = ""  # dialect of the scripted server that stands in for it; "": of its name
    simulated: bool = False  # a scripted server: every output says so


@dataclass(frozen=True, slots=True)
class Facts:
    """Sources that the definition was written from."""

    version: str  # of the system
    source: str  # where its flags, routes and behaviour were read
    not_run: str = ""  # what a run of the real server needs that the project's tests lack; "": they run it
    package: str = ""  # in a package index, where bench installs none: the first number of `version`


@dataclass(frozen=True, slots=True)
class Attach:
    """Commands with which a person starts the server that bench attaches to."""

    start: tuple[str, ...]  # commands, in order; MODEL is its weights, capitals are to be filled in


@dataclass(frozen=True, slots=True)
class Range:
    least: int  # then `least` x `factor`, and so on
    most: int
    factor: int = 2


@dataclass(frozen=True, slots=True)
class Engine:
    """The server's own settings, the same in every launch mode."""

    model_args: tuple[str, ...] = ()  # first on the command line: they name the weights
    hub_model_args: tuple[str, ...] = ()  # instead, for weights the engine fetches itself; (): no difference
    # After them, where the weights have their vision in a file of its own, {vision}; (): it takes none.
    vision_args: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    values: dict[str, Value] = field(default_factory=dict)
    # Keys of `values`, or threads, that `bench tune` searches, the most promising first: candidates.
    tunable: dict[str, tuple[Value, ...] | Range] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)  # name below {scratch} -> text
    fetches: bool = True  # weights by their name in the model hub; False: only what lies on this machine


@dataclass(frozen=True, slots=True)
class Install:
    """An environment of the engine's own, built by `bench engines install NAME`."""

    requirements: tuple[str, ...]
    torch: str = ""  # exact torch version to be put in first, as a CPU build; "": none needed
    without: tuple[str, ...] = ()  # what the first requirement's wheel asks for and does not get
    metadata_alias: str = ""  # NAME==VERSION under which the engine looks up its own distribution
    version_of: str = ""  # distribution whose version is the engine's
    # In backends/locks: all but `torch` with versions and hashes, and pip installs nothing else.
    lock: str = ""
    index: str = ""  # whose index has its wheels, where pip's default one lacks them
    python: str = ""  # that its wheels are made for, such as 3.12; "": any that bench runs on
    size_mb: int = 0  # of the finished environment, measured; 0: it was not, and its lock tells the downloads


@dataclass(frozen=True, slots=True)
class Process:
    """Start as a plain process on this machine."""

    program: tuple[str, ...]
    args: tuple[str, ...] = ()  # after [engine] args
    install: Install | None = None
    env: dict[str, str] = field(default_factory=dict)
    processors: tuple[str, ...] = ()  # that its packages are made for, such as x86_64; (): any
    cpu_flags: tuple[str, ...] = ()  # that Linux must list for the CPU
    caveat: str = ""  # what its figures do not show; it follows every rank line
    structured: bool = True  # false: it refuses structured output, whatever [dialect] says


@dataclass(frozen=True, slots=True)
class CudaProcess(Process):
    """Process in place of [process] on an NVIDIA GPU: other packages, often another command line."""

    cuda: int = 0  # major version that the packages are built for: the driver must know it; 0: not known
    not_run: str = ""  # what it was not run on yet; "": it was


@dataclass(frozen=True, slots=True)
class Image:
    """The container image for one kind of device."""

    name: str
    tag: str
    args: tuple[str, ...] = ()  # after [engine] args, on this device only
    remove_args: tuple[str, ...] = ()  # of [engine] and [compose] args, each flag alone
    env: dict[str, str] = field(default_factory=dict)
    capabilities: tuple[str, ...] = ()  # Linux capabilities beyond Docker's own; never all of them
    note: str = ""


@dataclass(frozen=True, slots=True)
class Images:
    """Container images by device; None: the vendor publishes none."""

    cuda: Image | None = None
    rocm: Image | None = None
    cpu: Image | None = None


@dataclass(frozen=True, slots=True)
class Compose:
    """Start in a container; [image] says which. [engine] and this make the service of its Compose profile."""

    port: int  # inside the container
    healthcheck: tuple[str, ...]  # as Compose takes it (CMD or CMD-SHELL first), of programs the image has
    program: tuple[str, ...] = ()  # before the arguments, for an image whose entrypoint is not the server
    entrypoint: tuple[str, ...] | None = None  # replaces the image's; None: the image's own
    args: tuple[str, ...] = ()  # after [engine] args
    env: dict[str, str] = field(default_factory=dict)
    user: str = ""  # "": the image's own
    volumes: dict[str, str] = field(default_factory=dict)  # named volume -> where it is mounted: model caches
    shm_size: str = ""  # "": Docker's 64 MB; not together with ipc
    ipc: Literal["", "host"] = ""
    ulimits: dict[str, int] = field(default_factory=dict)
    start_period_s: int = 1200  # failed health checks do not count for so long: a model may have to come


@dataclass(frozen=True, slots=True)
class Probe:
    path: str
    key: str = ""  # dotted path into the JSON answer


@dataclass(frozen=True, slots=True)
class Info:
    """Effective settings that the running server reports; they are recorded."""

    path: str
    keys: tuple[str, ...]  # dotted paths into the JSON answer


@dataclass(frozen=True, slots=True)
class Tokenize:
    """POST `path` with `text_field` holding the text; the answer's `tokens_key` is the list of ids.

    With `lists` the field holds a list of texts, and the answer a list of ids for each.
    """

    path: str
    text_field: str
    tokens_key: str = "tokens"  # "": the answer itself is the list
    model_field: str = ""
    lists: bool = False
    extra: Fields = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """A request that makes a ready server serve the model; sent in order, each must answer 2xx.

    Texts in `path` and `body` may hold {model}, {served_name} and {model_digest}.
    """

    path: str
    when: Literal["local", "hub", "always"] = "always"  # weights that lie here, or in the model hub
    body: Fields = field(default_factory=dict)
    upload: bool = False  # the weights' file itself is the body
    timeout_s: float = 3600.0


@dataclass(frozen=True, slots=True)
class Failure:
    """A message in the log of an engine that cannot start, and what to do about it."""

    pattern: str  # regular expression
    hint: str


@dataclass(frozen=True, slots=True)
class Server:
    ready_path: str
    startup_timeout_s: float
    # Some answer on `ready_path` before the model is there: they are ready once they also generate.
    ready: Literal["answers", "generates"] = "answers"
    loading: str = ""  # what a client sees while the model loads
    # What requests name: as given at its start, {model}, {listed} (first of /v1/models) or a fixed text.
    served_name: str = "{served_name}"
    version: Probe | None = None
    info: tuple[Info, ...] = ()
    # Keys of [engine.values] -> where among the keys of `info` the server tells what became of them.
    effective: dict[str, str] = field(default_factory=dict)
    # Keys of `info` whose product is what the KV cache holds, in tokens; (): the server does not tell.
    kv_tokens: tuple[str, ...] = ()
    tokenize: Tokenize | None = None
    prepare: tuple[Step, ...] = ()
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True, slots=True)
class Reset:
    """Empties the prefix cache. Repeated for `slot` 0..max_sequences-1 where the path names {slot}."""

    path: str
    method: Literal["POST", "GET"] = "POST"
    body: Fields = field(default_factory=dict)  # JSON; may hold {served_name}
    then: Fields = field(default_factory=dict)  # body of a second request there, which makes it ready again
    success_key: str = ""  # dotted path that must be true in the answer; "": the status decides
    leaves: str = ""  # what it does not empty; harmless while nothing repeats a cell's prompts


@dataclass(frozen=True, slots=True)
class PrefixCache:
    enabled: bool | None  # None: not known
    default: bool | None = None  # what the engine does by default; None: not known
    reset: Reset | None = None  # None: restart the engine for a cold cache
    matching: Literal["", "blocks", "tokens", "slots"] = ""  # whole blocks, any prefix, one prompt per slot
    block_tokens: int = 0  # of "blocks"; 0: not known
    note: str = ""

    @property
    def keeps(self) -> str:
        """What its reset does not empty; "": nothing, or there is no reset."""
        return self.reset.leaves if self.reset else ""


@dataclass(frozen=True, slots=True)
class Variant:
    """`NAME@VARIANT`: declared keys that differ, nothing else."""

    description: str
    program: tuple[str, ...] = ()  # in place of that of [process], which then needs no environment
    args: tuple[str, ...] = ()  # appended
    remove_args: tuple[str, ...] = ()  # taken out, each flag alone, of [engine], [process] and [compose]
    values: dict[str, Value] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    track: str = ""
    request: Fields = field(default_factory=dict)  # added to [dialect] extra
    prefix_cache: bool | None = None
    leaves: str | None = None  # by the reset of [prefix_cache], in place of what that says
    tokens_per_event: Literal["one", "several"] | None = None  # in place of [dialect.habits]
    lora: bool = True  # False: every request goes to the base model, whatever adapter it names
    not_on_cpu: str = ""  # why [process] cannot start it; "": it can


@dataclass(frozen=True, slots=True)
class Backend:
    backend: Header
    server: Server
    facts: Facts | None = None
    engine: Engine = Engine()
    process: Process | None = None
    process_cuda: CudaProcess | None = None
    image: Images = Images()
    compose: Compose | None = None
    attach: Attach | None = None
    dialect: Dialect = field(default_factory=Dialect)
    prefix_cache: PrefixCache = PrefixCache(enabled=None)
    metrics: Metrics | None = None
    lora: Lora | None = None  # None: it has no adapters, or nobody declared them
    variants: dict[str, Variant] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.backend.name

    @property
    def images(self) -> dict[str, Image]:
        """Images by device, the fastest first."""
        return {device: image for device in DEVICES if (image := getattr(self.image, device))}

    @property
    def devices(self) -> list[str]:
        """Devices that it has an image for, the fastest first."""
        return list(self.images)

    @property
    def tables(self) -> list["Engine | Process | Compose | Image"]:
        """[engine], and what adds to it in each way of starting it."""
        listed = (self.engine, self.process, self.process_cuda, self.compose, *self.images.values())
        return [table for table in listed if table]

    @property
    def value_kinds(self) -> dict[str, type[Value]]:
        """The type of each key of [engine.values], and of `threads`, which every engine may have."""
        return {"threads": int, **{key: type(value) for key, value in self.engine.values.items()}}

    @property
    def starts(self) -> bool:
        """Whether bench can start it on some machine."""
        return not (self.process is None and self.process_cuda is None and self.compose is None)

    @property
    def metrics_own_port(self) -> bool:
        return self.metrics is not None and self.metrics.own_port


@dataclass(frozen=True, slots=True)
class BackendRef:
    """One element of --backends, resolved: the definition with its version and variant applied."""

    definition: Backend
    variant: str | None
    url: str | None  # attach to a running server; several of one model are joined by +
    version: str | None = None  # in place of the one that the definition pins
    metrics_urls: tuple[str, ...] = ()  # where a running server's metrics are read; (): at its URLs
    metrics_roles: tuple[str, ...] = ()  # what the engine at each of these does; (): all do all
    tuned: "Tuned | None" = None  # where the variant is what `bench tune` stored
    reach: Reach = field(default_factory=Reach)  # of a running server
    api: ApiName = "chat"  # that its requests speak; the definition's dialect is that of this API
    alias: str = ""  # of a running server: a name of the user's own in place of the definition's

    @property
    def urls(self) -> tuple[str, ...]:
        return tuple(self.url.split("+")) if self.url else ()

    @property
    def label(self) -> str:
        version = f"=={self.version}" if self.version else ""
        variant = f"@{self.variant}" if self.variant else ""
        name = self.alias or self.definition.name + version + variant
        return name + (f"@{self.api}" if self.api != "chat" else "")
