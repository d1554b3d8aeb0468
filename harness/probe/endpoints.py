"""What the server reports besides its answers: version, tokens, counters, and what its template adds."""

import dataclasses
from collections.abc import Iterator

from harness.apis import APIS
from harness.engines.speak.detect import recognise
from harness.engines.speak.dialect import Chat
from harness.errors import SetupError
from harness.model import Finding
from harness.probe.asker import Asker, user
from harness.records.layout import UNKNOWN

# Series that are there only when the engine does what they count.
_SOMETIMES = {"draft_tokens", "accepted_tokens", "preemptions"}
_SYSTEM, _USER = "You are a geographer.", "Name three rivers."


def engine(asker: Asker) -> Iterator[Finding]:
    """Whether a running server answers as another engine than the one that it is called."""
    server = asker.server
    named = server.definition
    found = None if server.started_here else recognise(server.base_url, server.access, named)
    if found and found.name != named.name:
        seen = f"{found.name}, by {' and '.join(found.seen)}"
        then = f"its figures have the name of another engine: {found.name}=URL"
        yield Finding("engine", named.name, seen, False, then, True)


def version(asker: Asker) -> Iterator[Finding]:
    declared = asker.server.definition.server.version
    if declared is None:
        yield Finding("version", "none", "not asked", None, "the version is that of the package or image")
        return
    reported = asker.server.version()
    yield Finding(
        "version",
        declared.path,
        reported or "not reported",
        reported is not None,
        "" if reported else "the version is that of the package or image",
    )


def tokenizer(asker: Asker) -> Iterator[Finding]:
    declared = asker.server.definition.server.tokenize
    if declared is None:
        yield Finding(
            "tokenizer",
            "none",
            "not asked",
            None,
            "input lengths made with this server alone are approximate",
        )
        return
    try:
        counts = asker.server.count_tokens([_USER, f"{_USER} {_USER}"])
        seen = "404" if counts is None else f"{counts[0]} tokens for {_USER!r}"
        right = counts is not None and 0 < counts[0] < counts[1]
    except SetupError as error:
        seen, right = str(error), False
    then = "" if right else "input lengths are approximate, one word a token"
    yield Finding("tokenizer", declared.path, seen, right, then, not right)


def apis(asker: Asker) -> Iterator[Finding]:
    """Whether the server has the other APIs that its definition declares."""
    definition = asker.server.definition
    if not asker.thorough or definition.dialect.api != "chat":
        return
    known = definition.facts is not None  # else it stands for any server, and declares what some of them have
    for name in definition.dialect.api_names[1:]:
        if APIS[name].gives != "text":  # engines serve those from a server of its own
            continue
        refusal = asker.refusal_of(name)
        then = f"requests of --api {name} fail" if refusal else ""
        holds = None if refusal and not known else not refusal
        yield Finding(
            f"API {name}", "yes" if known else "", refusal or "answered", holds, then, holds is False
        )


def values(asker: Asker) -> Iterator[Finding]:
    """Whether vectors or scores come, and are such as a model can mean."""
    refusal = asker.refusal_of(asker.dialect.api)
    then = "its requests fail" if refusal else ""
    yield Finding(asker.api.title, "answered", refusal or asker.api.gives, not refusal, then, bool(refusal))


def metrics(asker: Asker) -> Iterator[Finding]:
    """Looks at the metrics after some traffic: some series appear with the first request."""
    declared = asker.server.definition.metrics
    if declared is None:
        yield Finding(
            "metrics", "none", "not asked", None, "no counters: cached tokens come from usage alone"
        )
        return
    named = dataclasses.asdict(declared.counters) | dataclasses.asdict(declared.gauges)
    series = {name: text for name, text in named.items() if text}
    counters = asker.server.counters()
    if counters is None:
        yield Finding("metrics", declared.path, "no answer", False, "server counters are null", matters=True)
        return
    missing = [name for name in series if name not in counters]
    seen = f"{len(series) - len(missing)} of {len(series)} series"
    then = f"null: {', '.join(f'{name} ({series[name]})' for name in missing)}" if missing else ""
    lost = any(name not in _SOMETIMES for name in missing)
    yield Finding("metrics", declared.path, seen, not lost, then, lost)


def template(asker: Asker) -> tuple[Finding, dict[str, int | None]]:
    """Prompt tokens of two fixed chats: equal for engines that render the same template."""
    system = {"role": "system", "content": _SYSTEM}
    alone, both = asker.ask(_USER, 1), asker.put(Chat((system, user(_USER)), 1))
    lengths = {
        name: None if seen.count("prompt_tokens") == UNKNOWN else seen.count("prompt_tokens")
        for name, seen in (("user", alone), ("system + user", both))
    }
    words = ", ".join(f"{'n/a' if count is None else count} ({name})" for name, count in lengths.items())
    return Finding("prompt tokens", "", words, None), lengths
