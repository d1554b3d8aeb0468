"""Decides with which values of its definition each engine is started."""

from collections.abc import Mapping, Sequence

from harness.engines.start.command import configured, settable
from harness.errors import SpecError
from harness.run.setup.backends import ChosenBackend
from harness.spec.models import Model
from harness.spec.strict import nearest


def engine_values(
    chosen: Sequence[ChosenBackend], model: Model, asked: Mapping[str, object], given: Mapping[str, str]
) -> tuple[dict[str, str], ...]:
    """Values of each backend, of those `asked` by the scenario and `given` on the command line.

    Values of a variant, then tuned ones, replace those of the scenario, and the command line replaces all.
    Raises SpecError for a key of the command line that no backend takes, and for a value that a definition
    refuses.
    """
    keys = [settable(backend.ref.definition, backend.launch) for backend in chosen]
    _check_given(chosen, keys, given)
    wanted = {key: str(value) for key, value in asked.items()}
    values = []
    for backend, own in zip(chosen, keys, strict=True):
        definition, tuned = backend.ref.definition, backend.ref.tuned
        variant = definition.variants.get(backend.ref.variant or "")
        of_variant = {key: str(value) for key, value in variant.values.items()} if variant else {}
        of_tuning = {key: str(value) for key, value in tuned.values.items()} if tuned else {}
        taken = {
            key: value for key, value in (wanted | of_variant | of_tuning | dict(given)).items() if key in own
        }
        origins = dict.fromkeys(wanted, "engine_values.")
        origins |= dict.fromkeys((*of_variant, *of_tuning), f"{backend.ref.label}: ")
        origins = {key: origin for key, origin in origins.items() if key not in given}
        own_model = definition.backend.weights == "none" or backend.launch.mode == "attach"
        configured(definition, None if own_model else model, taken, backend.launch, origins)
        values.append(taken)
    return tuple(values)


def _check_given(
    chosen: Sequence[ChosenBackend], keys: Sequence[Mapping[str, object]], given: Mapping[str, str]
) -> None:
    where = "--engine-set"
    started = [own for backend, own in zip(chosen, keys, strict=True) if backend.launch.mode != "attach"]
    if given and not started:
        raise SpecError("a running server keeps the values that it was started with", where=where)
    for key in given:
        if any(key in own for own in started):
            continue
        known = {name for own in started for name in own}
        also = any(key in settable(backend.ref.definition) for backend in chosen)
        lacks = f"takes '{key}' as it is started here" if also else f"has an engine value '{key}'"
        raise SpecError(f"no backend {lacks}", where=where, hint=nearest(key, known))
