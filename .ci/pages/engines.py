"""Page docs/engines.md, made of the definitions and of nothing else."""

from collections.abc import Iterator, Sequence

from harness.host import paths
from harness.spec.backend import DEVICES, Backend, Facts
from harness.spec.backend_refs import load_backend
from harness.spec.engine_metrics import Metrics
from harness.spec.versions import pinned

HEAD = """# Engines

This page lists every engine that `bench` knows: how it starts, what it can do, what tilts a comparison, and
whether it was run.

It is made from `backends/*.toml` by `make pages`; each file names the sources that it was read from.
`bench probe NAME` checks what a definition says on the server itself, and so does every run before its
first cell. [How to add an engine](adding-an-engine.md).
"""
NO, UNKNOWN = "–", "?"
# "none" brings its own model, and has no row.
_FORMS = {
    "gguf": "GGUF",
    "hf": "hub",
    "openvino": "OpenVINO IR",
    "ctranslate2": "CTranslate2",
    "mlc": "MLC",
    "mlx": "MLX",
    "powerinfer": "PowerInfer GGUF",
    "any": "of the engines behind it",
}
ALL = """Each is declared, and the scripted server uses its dialect in a test. *On a CPU* are systems that the
project's own tests also run for real, with the version that they run. On a GPU llama.cpp,
vLLM 0.26 and SGLang 0.5.16 were measured ([on an H200](gpu-box.md#vllm-and-sglang-on-an-h200)). A front
passes requests on to engines. A library has no server, and runs behind a small one of bench's own, whose cost
is measured and reported.
"""
START = """Every engine can be attached to, where it runs already (`NAME=URL`), and simulated. *Installed* is
a process that `bench` installs, and *hub* the format of the model hub.
"""
KEPT = """Prefix caches are on by default, unless it says otherwise or has a question mark.
"""
SPOKEN = """A question mark is what is not known.
"""


def page() -> str:
    names = set(paths.definitions("backends")) - {"models"}
    return of([load_backend(name) for name in names])


def of(definitions: Sequence[Backend]) -> str:
    """Markdown. Scripted servers and the generic dialect are no engines, and left out."""
    engines = sorted(
        (definition for definition in definitions if definition.backend.weights != "none"),
        key=lambda definition: definition.backend.title.lower(),
    )
    return "\n".join(_lines(engines)) + "\n"


def _lines(engines: Sequence[Backend]) -> Iterator[str]:
    yield HEAD
    yield "## All of them"
    yield ""
    yield ALL
    yield from _table(
        ("system", "kind", "licence", "as of", "real server"),
        [
            (
                _name(definition),
                _kind(definition),
                definition.backend.licence,
                *_facts(definition),
            )
            for definition in engines
        ],
    )
    yield "## How they start"
    yield ""
    yield START
    yield from _table(
        ("engine", "launch", "images", "weights"),
        [
            (_name(definition), _launch(definition), _images(definition), _tracks(definition))
            for definition in engines
        ],
    )
    yield "## How they are spoken to"
    yield ""
    yield SPOKEN
    yield from _table(
        (
            "engine",
            "exact length",
            "structured output",
            "unknown fields",
            "cached tokens in usage",
            "usage block",
        ),
        [
            (
                _name(definition),
                "yes" if definition.dialect.exact_output else "cannot",
                _structured(definition),
                definition.dialect.habits.unknown_fields or UNKNOWN,
                {True: "yes", False: "no", None: UNKNOWN}[definition.dialect.habits.cached_tokens],
                {
                    "last": "last chunk",
                    "finish": "with the finish reason",
                    "each": "in each chunk",
                    "never": "never",
                }.get(definition.dialect.habits.usage or "", UNKNOWN),
            )
            for definition in engines
        ],
    )
    yield "## What they keep and report"
    yield ""
    yield KEPT
    yield from _table(
        ("engine", "prefix cache", "cache reset", "metrics", "series"),
        [
            (_name(definition), _cache(definition), _reset(definition), *_metrics(definition.metrics))
            for definition in engines
        ],
    )
    for engine in engines:
        yield from _about(engine)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
    yield ""


def _name(engine: Backend) -> str:
    return f"[{engine.backend.title}](#{engine.name})"


def _kind(engine: Backend) -> str:
    header = engine.backend
    return header.kind + ("" if header.status == "active" else f", {header.status}")


def _facts(engine: Backend) -> tuple[str, str]:
    facts = engine.facts
    if facts is None:
        return NO, NO
    return facts.version, f"not run: needs {facts.not_run}" if facts.not_run else _measured(engine, facts)


def _measured(engine: Backend, facts: Facts) -> str:
    process = engine.process
    install, caveat = (process.install, process.caveat) if process else (None, None)
    version = (install and pinned(install)) or facts.version
    return f"on a CPU: {version}" + (f" ({caveat})" if caveat else "")


def _launch(engine: Backend) -> str:
    own = engine.process is not None and engine.process.install is not None
    modes = [("process, installed" if own else "process") if engine.process else ""]
    if engine.process_cuda:
        untried = engine.process_cuda.not_run
        modes.append("process on NVIDIA" + (f" (not run on {untried} yet)" if untried else ""))
    modes += ["compose" if engine.compose else ""]
    return "; ".join(filter(None, modes)) or NO


def _images(engine: Backend) -> str:
    images = ((device, getattr(engine.image, device)) for device in DEVICES)
    return "<br>".join(f"{device}: `{image.name}:{image.tag}`" for device, image in images if image) or NO


def _tracks(engine: Backend) -> str:
    tracks = [variant.track for variant in engine.variants.values() if variant.track]
    form = _FORMS[engine.backend.weights]
    return form + (f": {', '.join(dict.fromkeys(tracks))}" if tracks else "")


def _structured(engine: Backend) -> str:
    shapes = engine.dialect.structured
    names = ("json_schema", "json_object", "regex", "choice", "grammar")
    said = [name for name in names if getattr(shapes, name)]
    by = engine.engine.values.get("structured_engine")
    return (", ".join(said) + (f" ({by})" if by else "")) if said else "none"


def _cache(engine: Backend) -> str:
    cache = engine.prefix_cache
    if not cache.enabled:
        return "none"
    matching = {
        "blocks": f"blocks of {cache.block_tokens} tokens" if cache.block_tokens else "blocks",
        "tokens": "any prefix",
        "slots": "one prompt per slot",
        "": UNKNOWN,
    }[cache.matching]
    default = {True: "", False: "; off by default, switched on", None: f"; {UNKNOWN}"}[cache.default]
    return matching if matching == UNKNOWN else f"{matching}{default}"


def _reset(engine: Backend) -> str:
    reset = engine.prefix_cache.reset
    if reset is None:
        started = engine.process or engine.process_cuda or engine.compose
        return "restart" if engine.prefix_cache.enabled and started else NO
    return f"`{reset.method} {reset.path}`" + (f"; leaves {reset.leaves}" if reset.leaves else "")


def _metrics(metrics: Metrics | None) -> tuple[str, str]:
    if metrics is None:
        return NO, NO
    groups = (metrics.counters, metrics.gauges, metrics.histograms)
    known = [key for group in groups for key in group.__slots__ if getattr(group, key)]
    where = f"`{metrics.path}`" + (f", `{metrics.json.path}` (JSON)" if metrics.json else "")
    where += ", on a port of its own" if metrics.own_port else ""
    return where, ", ".join(known)


def _about(engine: Backend) -> Iterator[str]:
    header, metrics = engine.backend, engine.metrics
    yield f'<a id="{engine.name}"></a>'
    yield ""
    yield f"## {header.title}: `{engine.name}`"
    yield ""
    definition = f"[its definition](../backends/{engine.name}.toml)"
    yield f"<{header.homepage}>, {definition}" + (f" {header.note}" if header.note else "")
    yield ""
    for bias in header.bias:
        yield f"- {bias}"
    images = [getattr(engine.image, device) for device in DEVICES]
    notes = [f"image `{image.tag}`: {image.note}" for image in images if image and image.note]
    notes += [f"prefix cache: {engine.prefix_cache.note}"] if engine.prefix_cache.note else []
    notes += [f"metrics: {metrics.note}"] if metrics and metrics.note else []
    notes += [f"JSON metrics: {metrics.json.note}"] if metrics and metrics.json and metrics.json.note else []
    for note in notes:
        yield f"- {note}"
    yield ""
    if engine.attach:
        yield from ("Start it yourself:", "", "```", *engine.attach.start, "```", "")
    if engine.variants:
        yield from _table(
            ("variant", "is"),
            [(f"`{engine.name}@{name}`", variant.description) for name, variant in engine.variants.items()],
        )
