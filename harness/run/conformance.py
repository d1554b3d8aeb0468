"""Checks a backend's definition against its running engine, before anything is measured on it."""

from collections.abc import Iterable
from itertools import islice

from harness.engines.session import EngineSession
from harness.errors import SetupError
from harness.load.job import ClosedLoop, LoadJob
from harness.model import ProbeCount, Probed
from harness.probe import examine
from harness.run.keep.manifest import ManifestWriter
from harness.run.setup.options import Ui
from harness.store import RunFolder
from harness.validity import notices
from harness.workload.prompts.request import ChatRequest

PROBE_LIMIT_S = 60.0
PROBED_REQUESTS = 256  # which shapes a cell asks for is seen from its first requests


def probe_engine(engine: EngineSession, variant: str | None, requests: Iterable[ChatRequest]) -> Probed:
    """Probes the engine for the shapes and tools that the first of `requests` ask for."""
    first = list(islice(requests, PROBED_REQUESTS))
    return examine(
        engine,
        variant=variant,
        shapes={request.constraint.shape for request in first if request.constraint},
        tools=any(request.tools for request in first),
        thorough=False,
        limit_s=PROBE_LIMIT_S,
    )


def without_http2(label: str, engine: EngineSession) -> SetupError | None:
    """The error of an engine that no request reaches over HTTP/2; None: requests do."""
    from harness.load.http2 import unreachable  # h2 comes with an extra

    url, *others = engine.api_urls
    job = LoadJob(url, engine.access, [], ClosedLoop(1), http2=True, other_urls=tuple(others))
    problem = unreachable(job) and unreachable(job)  # one connection may fail that the next one does not
    what = f"it cannot be measured over HTTP/2: {problem}"
    return SetupError(what, where=label, hint="leave out --http2") if problem else None


def refusal(label: str, probed: Probed) -> SetupError | None:
    """The error of a server that refuses requests of an exact length; None: it answers them."""
    if not probed.refused:
        return None
    return SetupError(
        f"it refuses the requests: {probed.refused}",
        where=label,
        hint="its definition and the server differ: another version, or a definition of your own",
    )


def keep_probe(label: str, probed: Probed, folder: RunFolder, manifest: ManifestWriter, ui: Ui) -> None:
    """Stores the probe in a file of its own, and shows what does not hold.

    A mismatch that changes the meaning of figures becomes a warning of the run.
    """
    folder.write_probe(label, probed)
    manifest.probed(
        label,
        ProbeCount(
            findings=len(probed.findings),
            not_as_declared=tuple(finding.topic for finding in probed.mismatches),
            prompt_tokens=probed.prompt_tokens,
        ),
    )
    for finding in probed.mismatches:
        text = f"{label}: {finding.topic}: declared {finding.declared}, seen {finding.seen}"
        if finding.matters:
            manifest.warn(notices.NOT_AS_DECLARED.warning(text, finding.then, label))
            ui.note(f"warning: {text}")
        else:
            ui.detail(f"note: {text}")
