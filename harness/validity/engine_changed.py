"""Backends whose cells are of more than one engine, though they count as repeats of it."""

from collections.abc import Iterator, Sequence

from harness.conditions import TABLE
from harness.model import CellResult, RunWarning, known, labels
from harness.model.numbers import about_equal
from harness.untrusted import one_line
from harness.validity.notices import ENGINE_CHANGED

_TITLES = {key.code: key.title for key in TABLE}
# Compared as texts.
_BUILD = ("engine version", "server version", "model", "image digest", "weights SHA-256", "packages SHA-256")
_ANSWERED = "model in answers"
_MOST_CHARS = 80  # of a value
_MOST_NAMES = 4  # of cells with one value


def engine_changes(cells: Sequence[CellResult]) -> Iterator[RunWarning]:
    """Yields a warning for each backend whose cells were not all measured on the same engine.

    `cells`: with what the manifest says of them. A fact that a cell has not kept is not compared.
    """
    for label in labels(cells):
        if text := _changes(label, [(cell, _facts(cell)) for cell in cells if cell.label == label]):
            yield ENGINE_CHANGED.warning(text, backend=label)


def other_builds(label: str, cells: Sequence[CellResult]) -> str:
    """What changed, where their versions, models, images, weights or packages differ; else ""."""
    return _changes(label, [(cell, _build(cell)) for cell in cells])


def _changes(label: str, facts: Sequence[tuple[CellResult, dict[str, str]]]) -> str:
    differences = []
    for name in dict.fromkeys(name for _, found in facts for name in found):
        values = [(cell, found[name]) for cell, found in facts if name in found]
        groups = _groups(values, exact=name in _BUILD or name.startswith(_ANSWERED))
        if len(groups) > 1:
            differences.append(f"{name} {', '.join(_words(group, groups) for group in groups)}")
    return f"{label} changed during the run: {'; '.join(differences)}" if differences else ""


_Group = list[tuple[CellResult, str]]  # cells with one value


def _build(cell: CellResult) -> dict[str, str]:
    """Returns what says which engine it is, as far as it is known, by title.

    The version that the server reports is compared alone: at one start it may not answer.
    """
    engine = known(cell.conditions.engine)
    own: tuple[str | None, ...] = ()
    if engine:
        own = engine.served_name, engine.image_digest, engine.weights_sha256, engine.packages_sha256
    values = (*cell.versions, *own)
    build = {title: value for title, value in zip(_BUILD, values, strict=False) if value}
    served = engine.served_name if engine else None
    for requested, answered in cell.conditions.answered_model.items():
        build[_ANSWERED if requested == (served or "") else f"{_ANSWERED} for {requested}"] = answered
    return build


def _facts(cell: CellResult) -> dict[str, str]:
    """Returns the same with the settings that the engine reported, where the cell has kept these."""
    conditions = cell.conditions
    if known(conditions.engine) is None:
        return _build(cell)
    return {
        **_build(cell),
        **{_TITLES[code]: value for code, value in conditions.settings.items()},
        **{name.removeprefix("info "): value for name, value in (conditions.unclassified or {}).items()},
    }


def _groups(values: _Group, *, exact: bool) -> list[_Group]:
    groups: list[_Group] = []
    for cell, value in values:
        group = next((group for group in groups if alike(group[0][1], value, exact)), None)
        if group is None:
            groups.append(group := [])
        group.append((cell, value))
    return groups


def alike(first: str, second: str, exact: bool) -> bool:
    """Whether two starts of one engine may report these, unless they are to be `exact`."""
    if first == second or exact:
        return first == second
    try:
        return about_equal(float(first), float(second))
    except ValueError:
        return False


def _words(group: _Group, groups: Sequence[_Group]) -> str:
    """`about 200000 (r0, r2)`, with load points where a repeat has other values too."""
    others = {cell.repeat for other in groups if other is not group for cell, _ in other}
    names = dict.fromkeys(
        f"{cell.point.label} r{cell.repeat}" if cell.repeat in others else f"r{cell.repeat}"
        for cell, _ in group
    )
    shown = [*names][:_MOST_NAMES]
    more = [f"{len(names) - len(shown)} more"] if len(names) > len(shown) else []
    about = "about " if len({value for _, value in group}) > 1 else ""
    return f"{about}{one_line(group[0][1], _MOST_CHARS)} ({', '.join([*shown, *more])})"
