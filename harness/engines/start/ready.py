"""Waiting until an engine serves, and saying why when it does not."""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from http import HTTPStatus

from harness.client.client import Client
from harness.client.limits import Limits
from harness.engines.provide.logged import Log, Reporter
from harness.engines.provide.shared_folders import Say
from harness.engines.start.causes import read_end, remedy
from harness.engines.start.started import Started
from harness.errors import SetupError
from harness.spec.backend import Failure
from harness.spec.backend import Server as ServerSpec

_POLL_S = 0.1
_LIMITS = Limits(total_s=5.0)
_READ_LINES = 400


def wait_ready(
    started: Started,
    spec: ServerSpec,
    log: Log,
    say: Say,
    label: str,
    generates: Callable[[], None] | None = None,
) -> None:
    """Waits until the readiness path answers 200, and `generates` no longer raises SetupError.

    Raises SetupError when the engine dies or takes too long.
    """
    url, limit_s = started.base_url + spec.ready_path, started.startup_timeout_s
    loading = f"; while loading: {spec.loading}" if spec.loading else ""
    say(f"{label}: waiting for {url}, at most {limit_s:.0f} s{loading}")
    reporter = Reporter(say, f"{label}: loading", log.last_line)
    state: str | None = "no connection"
    with closing(Client(started.base_url)) as client:
        while reporter.elapsed_s < limit_s:
            ending = started.life.exited()
            if ending:
                raise failure(f"ended while loading: {ending}", label, log, spec.failures)
            state = _unready(client, spec, generates)
            if state is None:
                return
            reporter.tick()
            time.sleep(_POLL_S)
    what = f"not ready after {limit_s:.0f} s; {spec.ready_path} last gave: {state}"
    raise failure(what, label, log, spec.failures)


def _unready(client: Client, spec: ServerSpec, generates: Callable[[], None] | None) -> str | None:
    """Returns what is missing; None once it is ready."""
    try:
        answer = client.ask("GET", spec.ready_path, limits=_LIMITS)
    except SetupError as error:
        return error.what
    state = f"{answer.status} {answer.said[:100]}"
    if answer.status != HTTPStatus.OK:
        return state
    try:
        if generates:
            generates()
    except SetupError as error:
        return f"{state}, but {error}"
    return None


def failure(
    what: str, label: str, log: Log, known: Sequence[Failure] = (), otherwise: str = "read the log"
) -> SetupError:
    """Builds the error with the lines of the engine's log that say most, then the last ones, and where the
    cause is a known one, what to do; `otherwise` is the hint where it is not.
    """
    lines = read_end(log.tail(_READ_LINES).splitlines(), known)
    shown = "\n".join(f"  | {line}" for line in lines) or "  | (nothing was logged)"
    hint = remedy("\n".join((what, *lines)), known) or otherwise
    return SetupError(what, where=label, hint=f"{hint}; log: {log.path}", below=shown)
