"""Tables of docs/fairness.md: the conditions by which comparisons are refused."""

from collections.abc import Iterator

from harness.conditions import TABLE, Key

AREAS = {
    "work": "The requests",
    "engine": "How the engine is set",
    "build": "What the engine is",
    "host": "Where it runs",
}


def page() -> str:
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    for area, title in AREAS.items():
        yield f"**{title}**"
        yield ""
        yield "| code | what | known from | two engines | one engine, two runs | why |"
        yield "|---|---|---|---|---|---|"
        for key in TABLE:
            if key.area == area:
                parts = (f"`{key.code}`", key.title, _sources(key), key.engines, key.itself, key.why)
                yield f"| {' | '.join(parts)} |"
        yield ""


def _sources(key: Key) -> str:
    sources = [
        ("the cells" if key.cell else ""),
        ("manifest" if key.manifest else ""),
        ("info endpoint" if key.info else ""),
        ", ".join(f"`{name.partition('=')[0].rpartition('/')[2]}`" for name in (*key.flags, *key.variables)),
        ", ".join(f"value `{name}`" for name in key.values),
    ]
    return "; ".join(filter(None, sources))
