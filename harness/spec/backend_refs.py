"""Backend definitions read and checked, variants applied, and the list of --backends."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from harness.apis import API_NAMES, APIS, ApiName
from harness.errors import SpecError
from harness.spec import files
from harness.spec.backend import (
    PLACEHOLDERS,
    PROVIDED,
    Backend,
    BackendRef,
    Images,
    Process,
    Range,
    Value,
    Variant,
)
from harness.spec.dialect import Dialect, Lora, check_dialect, with_api
from harness.spec.own_variants import check_names, with_variant
from harness.spec.server_urls import server_urls
from harness.spec.strict import as_written, build, nearest
from harness.spec.template import placeholders
from harness.spec.tuned import VARIANT, load_tuned, tuned_path
from harness.spec.versions import at_version, pinned

P = TypeVar("P", bound=Process)
_BEFORE_URL = re.compile("(?<!=)=(?!=)")  # NAME==VERSION has no URL yet
_ADDRESS = re.compile(r"://|:\d+(/|$)|^localhost$")
_NAMES = ("served_name", "model", "listed")
_STEP_PLACEHOLDERS = ("model", "served_name", "model_digest")


def load_backend(name: str) -> Backend:
    path = files.locate("backends", name)
    return _loaded(files.read_text(path), str(path))


@lru_cache(maxsize=128)
def _loaded(text: str, where: str) -> Backend:
    """A run loads its definitions several times: for its flags, its plan, its engines and its manifest."""
    return parse_backend(files.read_tables_of(text, where), where)


def parse_backend(table: Mapping[str, object], where: str) -> Backend:
    definition = build(Backend, table, where)
    _check_name(definition.name, f"{where}:backend.name", "the title may be any text")
    for variant in (None, *definition.variants):
        varied = apply_variant(definition, variant)
        _check_placeholders(varied, where)
        check_dialect(varied.dialect, where)
    _check_tunable(definition, where)
    _check_server(definition, where)
    _check_compose(definition, where)
    _check_start(definition, where)
    return definition


def _check_name(name: str, where: str, hint: str) -> None:
    """Raises SpecError unless files, containers and services can have this name."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise SpecError(f"must be letters, digits, '.', '_' and '-', not '{name}'", where=where, hint=hint)


def _check_tunable(definition: Backend, where: str) -> None:
    """Raises SpecError unless every key can be set, with two or more candidates of its type."""
    kinds = definition.value_kinds
    for key, given in definition.engine.tunable.items():
        key_path = f"{where}:engine.tunable.{key}"
        if key not in kinds:
            raise SpecError("is not a key of [engine.values]", where=key_path, hint=nearest(key, kinds))
        if isinstance(given, Range) and not (0 < given.least <= given.most and given.factor > 1):
            raise SpecError("needs 0 < least <= most and a factor above 1", where=key_path)
        values = candidates(given)
        if wrong := [value for value in values if type(value) is not kinds[key]]:
            raise SpecError(f"{as_written(wrong[0])} is not of the type that '{key}' has", where=key_path)
        if len(set(values)) < 2:
            raise SpecError("needs two different candidates", where=key_path)


def candidates(given: tuple[Value, ...] | Range) -> tuple[Value, ...]:
    if not isinstance(given, Range):
        return given
    values = [given.least]
    while values[-1] * given.factor <= given.most:
        values.append(values[-1] * given.factor)
    return tuple(values)


def _check_placeholders(definition: Backend, where: str) -> None:
    engine, lora = definition.engine, definition.lora
    known = {*PLACEHOLDERS, *engine.values}
    starts = {table: getattr(definition, table) for table in ("engine", "process", "process_cuda", "compose")}
    starts |= {f"image.{device}": image for device, image in definition.images.items()}
    for table, start in starts.items():
        for key in ("program", "model_args", "hub_model_args", "args", "values", "env", "files"):
            _known_only(placeholders(getattr(start, key, ())), known, f"{where}:{table}.{key}")
    _known_only(placeholders(engine.vision_args), {*known, "vision"}, f"{where}:engine.vision_args")
    if lora:
        _known_only(placeholders(lora.args), known, f"{where}:lora.args")
        _known_only(placeholders(lora.each), ("adapter", "adapter_path"), f"{where}:lora.each")
        _known_only(placeholders(lora.request), ("adapter", "adapter_scales"), f"{where}:lora.request")


def _known_only(names: Iterable[str], known: Iterable[str], where: str) -> None:
    for name in names:
        if name not in known:
            raise SpecError(f"unknown placeholder '{{{name}}}'", where=where, hint=nearest(name, known))


def _check_server(definition: Backend, where: str) -> None:
    for index, failure in enumerate(definition.server.failures):
        try:
            re.compile(failure.pattern)
        except re.error as error:
            raise SpecError(
                f"not a regular expression: {error}", where=f"{where}:server.failures[{index}]"
            ) from None
    info_keys = {key for info in definition.server.info for key in info.keys}
    for value, key in definition.server.effective.items():
        key_path = f"{where}:server.effective.{value}"
        if value not in definition.engine.values:
            raise SpecError("is not a key of [engine.values]", where=key_path)
        _check_info_key(key, info_keys, key_path)
    for key in definition.server.kv_tokens:
        _check_info_key(key, info_keys, f"{where}:server.kv_tokens")
    _known_only(placeholders(definition.server.served_name), _NAMES, f"{where}:server.served_name")
    for index, step in enumerate(definition.server.prepare):
        names = placeholders([step.path, step.body])
        _known_only(names, _STEP_PLACEHOLDERS, f"{where}:server.prepare[{index}]")
    reset = definition.prefix_cache.reset
    if reset:
        _known_only(placeholders(reset.path), ("slot",), f"{where}:prefix_cache.reset.path")
        for key_path, body in (("body", reset.body), ("then", reset.then)):
            _known_only(placeholders(body), ("served_name",), f"{where}:prefix_cache.reset.{key_path}")


def _check_info_key(key: str, info_keys: Iterable[str], where: str) -> None:
    if key not in info_keys:
        raise SpecError(f"'{key}' is not among the keys of [[server.info]]", where=where)


def _check_compose(definition: Backend, where: str) -> None:
    compose = definition.compose
    if (compose is None) != (not definition.devices):
        raise SpecError("[compose] and [image.DEVICE] go together", where=where)
    if compose is None:
        return
    if compose.shm_size and compose.ipc:
        raise SpecError("shm_size has no effect with ipc", where=f"{where}:compose.shm_size")
    if compose.healthcheck[:1] not in (("CMD",), ("CMD-SHELL",)) or len(compose.healthcheck) < 2:
        raise SpecError("must be CMD or CMD-SHELL and a command", where=f"{where}:compose.healthcheck")


def _check_start(definition: Backend, where: str) -> None:
    """Raises SpecError unless bench can provide weights for what it starts, and knows its version."""
    form = definition.backend.weights
    if definition.starts and form not in (*PROVIDED, "none"):
        raise SpecError(
            f"bench has no weights in the form '{form}'",
            where=f"{where}:backend.weights",
            hint=f"one of {', '.join(PROVIDED)}; or leave out [process], [process_cuda] and [compose]: "
            "it is then attached to",
        )
    for table in ("process", "process_cuda"):
        process: Process | None = getattr(definition, table)
        install = process and process.install
        if install and install.version_of and not pinned(install):
            raise SpecError(
                f"none of the requirements is '{install.version_of}==…'",
                where=f"{where}:{table}.install.version_of",
            )
    if definition.attach and not definition.attach.start:
        raise SpecError("needs a command at least", where=f"{where}:attach.start")


def apply_variant(definition: Backend, variant: str | None) -> Backend:
    """Applies the changes that the variant declares. Raises SpecError if it is not declared."""
    if variant is None:
        return definition
    if variant not in definition.variants:
        raise SpecError(
            f"backend '{definition.name}' has no variant '{variant}'",
            hint="; ".join(
                filter(
                    None,
                    [nearest(variant, definition.variants), f"bench run --variant {variant}=… declares it"],
                )
            ),
        )
    change = definition.variants[variant]

    def kept(start: Any) -> Any:
        """A table of the definition, less the arguments that are taken out; None stays None."""
        return start and replace(
            start, args=tuple(arg for arg in start.args if arg not in change.remove_args)
        )

    engine, compose, images = kept(definition.engine), kept(definition.compose), definition.image
    process, process_cuda = kept(definition.process), kept(definition.process_cuda)
    if change.program:
        process, process_cuda = (_programmed(start, change.program) for start in (process, process_cuda))
        compose, images = None, Images()  # a container has its own program
    values = {**engine.values, **change.values}
    if not change.lora:
        values = {name: value for name, value in values.items() if not name.startswith("lora_")}
    header, cache = definition.backend, definition.prefix_cache
    if change.prefix_cache is not None:
        cache = replace(cache, enabled=change.prefix_cache)
    if change.leaves is not None and cache.reset is not None:
        cache = replace(cache, reset=replace(cache.reset, leaves=change.leaves))
    return replace(
        definition,
        backend=replace(header, default_track=change.track or header.default_track),
        engine=replace(
            engine, args=engine.args + change.args, values=values, env={**engine.env, **change.env}
        ),
        process=process,
        process_cuda=process_cuda,
        compose=compose,
        image=images,
        dialect=_varied(definition.dialect, change),
        prefix_cache=cache,
        lora=definition.lora if change.lora else Lora(),
    )


def _programmed(start: P | None, program: tuple[str, ...]) -> P | None:
    """Another program, which needs the environment of this one only where it names a part of it."""
    uses = {"bin", "python"}.intersection(placeholders(program))
    return start and replace(start, program=program, install=start.install if uses else None)


def _varied(dialect: Dialect, change: Variant) -> Dialect:
    habits = dialect.habits
    if change.tokens_per_event is not None:
        habits = replace(habits, tokens_per_event=change.tokens_per_event)
    apis = {
        name: own if own.extra is None else replace(own, extra={**own.extra, **change.request})
        for name, own in dialect.apis.items()
    }
    extra = {**dialect.extra, **change.request}
    return replace(dialect, habits=habits, extra=extra, apis=apis)


def check_engine_values(given: Collection[str], chosen: Iterable[Backend], where: str) -> None:
    """Raises SpecError for a key that no known definition has: a typo would have no effect.

    It refuses nothing where a definition cannot be read, which may have the key: a run may do without it.
    """
    known = set().union(*(definition.value_kinds for definition in chosen))
    if set(given) <= known:
        return
    for name in files.names("backends"):
        try:
            definition = load_backend(name)
        except SpecError:
            return
        changes = [variant.values for variant in definition.variants.values()]
        known = known.union(definition.engine.values, *changes)
    for key in given:
        if key not in known:
            raise SpecError(f"no backend has an engine value '{key}'", where=where, hint=nearest(key, known))


def parse_backend_list(
    text: str, apis: Sequence[ApiName] = (), own: Mapping[str, str] = MappingProxyType({})
) -> list[BackendRef]:
    """Parses `NAME[==VERSION][@VARIANT][@API][=URL[+URL…]],…`, before which `ALIAS=` may stand if there is a
    URL. Raises SpecError for an entry given twice.

    An entry without an API becomes one backend for each of `apis`, or has the first API of its definition.
    `own`: variants of the command line, by name.
    """
    check_names(own)
    entries = filter(None, map(str.strip, text.split(",")))
    refs = [ref for entry in entries for ref in _parse_entry(entry, apis, own)]
    if not refs:
        raise SpecError("no backend given")
    if unused := own.keys() - {ref.variant for ref in refs}:
        name = min(unused)
        raise SpecError("no backend has it", where=f"--variant {name}", hint=f"--backends NAME@{name}")
    seen = [(ref.label, None if ref.alias else ref.url) for ref in refs]
    for entry in seen:
        if seen.count(entry) > 1:
            hint = "use --repeats to measure a backend again"
            raise SpecError(f"'{entry[0]}' is listed twice", hint=hint)
    return refs


def in_api(ref: BackendRef, api: ApiName) -> BackendRef:
    """The same backend with requests of another API. Raises SpecError if its definition lacks that API."""
    definition = ref.definition
    if api not in definition.dialect.api_names:
        raise SpecError(
            f"backend '{definition.name}' has no {APIS[api].title} API",
            where=f"--api {api}",
            hint=f"it has: {', '.join(definition.dialect.api_names)}",
        )
    dialect = with_api(definition.dialect, api)
    lora = definition.lora if dialect.lora else None
    return replace(ref, definition=replace(definition, dialect=dialect, lora=lora), api=api)


def _parse_entry(entry: str, apis: Sequence[ApiName], own_variants: Mapping[str, str]) -> list[BackendRef]:
    alias, entry = _split_alias(entry)
    named, *url = _BEFORE_URL.split(entry, maxsplit=1)
    stem, _, last = named.rpartition("@")
    own = next((name for name in API_NAMES if stem and name == last), None)
    ref = replace(_parse_ref("=".join([stem if own else named, *url]), own_variants), alias=alias)
    if alias and alias != ref.definition.name and alias in files.names("backends"):
        raise SpecError(
            "is the name of another engine",
            where=f"backend {alias}",
            hint=f"{alias}=URL if that engine runs there, else another name",
        )
    first = ref.definition.dialect.api_names[:1]
    return [in_api(ref, api) for api in ((own,) if own else apis or first)]


def _split_alias(entry: str) -> tuple[str, str]:
    """The user's own name of a running server, and the rest: `old` and `vllm=URL` of `old=vllm=URL`."""
    alias, *rest = _BEFORE_URL.split(entry, maxsplit=2)
    if len(rest) < 2 or _ADDRESS.search(alias) or _ADDRESS.search(rest[0]):
        return "", entry
    _check_name(alias, f"backend {alias}", "NAME=ENGINE=URL names a running server")
    return alias, "=".join(rest)


def _parse_ref(entry: str, own: Mapping[str, str]) -> BackendRef:
    label, *rest = _BEFORE_URL.split(entry, maxsplit=1)
    if _ADDRESS.search(label):  # and not shown: a password may stand in it
        raise SpecError(
            "a running server is written NAME=URL",
            hint="NAME is its engine, such as vllm=URL, or openai for any server of that API",
        )
    where = f"backend {label}"
    versioned, at, variant = label.partition("@")
    name, is_pinned, version = versioned.partition("==")
    if at and not variant:
        raise SpecError("a variant is missing after '@'", where=where)
    if rest == [""]:
        raise SpecError("a URL is missing after '='", where=f"{where}=")
    url = server_urls(rest[0], f"{where}=…") if rest else None
    if is_pinned and url:
        raise SpecError("a running server has one version", where=where, hint=f"use {name}={url}")
    try:
        definition = at_version(load_backend(name), version) if is_pinned else load_backend(name)
    except SpecError as error:
        if url and name and not name.endswith(".toml") and name not in files.names("backends"):
            form = f"its engine stands before the URL: {name}=vllm=URL, or {name}=openai=URL for any server"
            alike = error.hint if len(name) > 2 and "did you mean" in (error.hint or "") else None
            error.hint = "; ".join(filter(None, (form, f"`bench {name}=URL` recognises it", alike)))
        raise
    if variant in own:
        if url:
            raise SpecError("a running server keeps the settings that it was started with", where=where)
        definition = with_variant(definition, variant, own[variant])
        _check_placeholders(apply_variant(definition, variant), f"--variant {variant}")
    if variant == VARIANT or variant.endswith(".toml"):
        path = Path(variant) if variant != VARIANT else tuned_path(definition.name)
        return replace(tuned_ref(definition, path), url=url, version=version or None)
    return BackendRef(apply_variant(definition, variant or None), variant or None, url, version or None)


def tuned_ref(definition: Backend, path: Path) -> BackendRef:
    """The definition with the values that `bench tune` stored at `path`.

    Raises SpecError if they do not fit.
    """
    tuned = load_tuned(path)
    if tuned.backend != definition.name:
        raise SpecError(f"was tuned for '{tuned.backend}', not '{definition.name}'", where=str(path))
    base = apply_variant(definition, tuned.variant or None)
    for key in tuned.values:
        if key not in base.value_kinds:
            hint = nearest(key, base.value_kinds)
            raise SpecError(f"backend '{definition.name}' has no value '{key}'", where=str(path), hint=hint)
    varied = replace(base, engine=replace(base.engine, values={**base.engine.values, **tuned.values}))
    return BackendRef(varied, VARIANT, None, tuned=tuned)
