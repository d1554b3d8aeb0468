"""The probe: a few short requests in the declared dialect, side by side, then those on the cache."""

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from functools import partial

from harness.client.answer import NoAnswer
from harness.engines.speak.server import Server
from harness.model import Finding, Probed
from harness.probe import cache, endpoints, streaming, structured, traps
from harness.probe.asker import Asker, line_to
from harness.probe.shapes import TRIALS
from harness.probe.together import side_by_side
from harness.spec.dialect import Dialect

LIMIT_S = 120.0

Check = Callable[[Asker], Iterator[Finding]]


def examine(
    server: Server,
    *,
    variant: str | None = None,
    shapes: Collection[str] = tuple(TRIALS),
    tools: bool = True,
    thorough: bool = True,
    limit_s: float = LIMIT_S,
) -> Probed:
    """Leaves the prefix cache empty where it can. Raises SetupError when the server stops answering at all.

    Of structured output and tools only what is named is tried; `thorough` adds what only confirms. What was
    not reached within `limit_s` says so.
    """
    started = time.monotonic()
    with closing(line_to(server, started + limit_s)) as line:
        asker = Asker(server, line, thorough)
        if asker.api.gives == "text":
            findings, prompt_tokens = _run(asker, _checks(asker.dialect, shapes, tools=tools))
        else:
            checks = (
                endpoints.engine,
                endpoints.version,
                endpoints.values,
                endpoints.tokenizer,
                endpoints.metrics,
            )
            findings, prompt_tokens = [finding for check in checks for finding in check(asker)], {}
        requests = line.requests
    return Probed(
        backend=server.definition.name,
        variant=variant,
        api=server.definition.dialect.api,
        base_url=server.base_url,
        served_name=server.served_name,
        version=server.version(),
        simulated=server.simulated,
        findings=tuple(findings),
        prompt_tokens=prompt_tokens,
        requests=requests,
        wall_s=round(time.monotonic() - started, 2),
    )


def _checks(dialect: Dialect, shapes: Collection[str], *, tools: bool) -> list[Check]:
    declared = [name for name in shapes if getattr(dialect.structured, name)]
    checks: list[Check] = [
        endpoints.engine,
        endpoints.version,
        endpoints.apis,
        traps.not_followed,
        streaming.exact_output,
        streaming.unknown_field,
        streaming.thinking,
        *(partial(structured.shape, name=name) for name in declared),
        lambda asker: structured.undeclared(asker, [name for name in shapes if name not in declared]),
    ]
    return [*checks, structured.tools] if tools else checks


def _run(asker: Asker, checks: list[Check]) -> tuple[list[Finding], dict[str, int | None]]:
    prompt = cache.LongPrompt.new(asker)
    alone, stream = streaming.stream(asker)  # a server with more to do may send tokens together
    if alone.none_came is NoAnswer.LATE:  # so would be all others
        rest = (endpoints.version, endpoints.tokenizer, endpoints.metrics)
        return [*stream, *(finding for check in rest for finding in check(asker))], {}
    for check in (traps.held_back, traps.lazy, traps.interrupted):
        stream += check(asker, alone)
    first, (counted, prompt_tokens), *answers = side_by_side(
        [
            partial(asker.ask, prompt.text, 1),
            partial(endpoints.template, asker),
            *(partial(_found, check, asker) for check in checks),
        ]
    )
    findings = [*stream, *(finding for of_check in answers for finding in of_check)]
    findings += [counted, *endpoints.tokenizer(asker), *traps.cut_prompt(prompt, first)]
    findings += cache.findings(prompt, first)
    return [*findings, *endpoints.metrics(asker), *traps.default_length(asker)], prompt_tokens


def _found(check: Check, asker: Asker) -> list[Finding]:
    return list(check(asker))
