"""A run as the claims need it: which systems, figures and conditions it has."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from harness.claims.catalog import HARDWARE, Catalog, Claim
from harness.host.address import is_loopback
from harness.model import (
    VERDICT_METRICS,
    BackendEntry,
    CellResult,
    HostFacts,
    LoadPoint,
    Manifest,
    PairVerdict,
    Summary,
    family,
    known,
)

Triple = tuple[float, float, float]

_NOT_SEEN = "hardware that is not known"
SHARES = {metric.name for metric in family("share")}  # comparable between models


@dataclass(frozen=True, slots=True)
class RunContext:
    labels: Mapping[str, CellResult]  # label → a cell that is not simulated
    names: Mapping[str, str]  # system as claims call it → label
    estimates: Mapping[tuple[str, LoadPoint, str], Triple]
    findings: Mapping[tuple[str, str, LoadPoint, str], PairVerdict]
    loads: Sequence[LoadPoint]
    scenario: str
    kinds: frozenset[str]  # of work
    model: str
    gpus: str  # of the machine of bench
    unseen: frozenset[str]  # labels of engines that may have run on another machine

    def is_about(self, claim: Claim) -> bool:
        fits = claim.workload is None or claim.workload in self.kinds
        return fits and len(self.names.keys() & {*claim.systems}) >= min(len(claim.systems), 2)

    def estimate(self, label: str, load: LoadPoint, measure: str) -> Triple | None:
        return self.estimates.get((label, load, measure))

    def finding(self, a: str, b: str, load: LoadPoint, measure: str) -> PairVerdict | None:
        """The verdict on the pair in either order."""
        return self.findings.get((a, b, load, measure)) or self.findings.get((b, a, load, measure))

    def gain(self, a: str, b: str, load: LoadPoint, measure: str) -> Triple | None:
        """How many times better a is than b: more of a rate, less of a latency or a price."""
        finding = self.finding(a, b, load, measure)
        lower = VERDICT_METRICS[measure] == "lower"
        if finding and finding.ratio:
            low, middle, high = finding.ratio
            turned = (finding.a == b) != lower
            return (1 / high, 1 / middle, 1 / low) if turned and low > 0 else (low, middle, high)
        first, other = self.estimate(a, load, measure), self.estimate(b, load, measure)
        if first is None or other is None:
            return None
        top, bottom = (other, first) if lower else (first, other)
        return (top[0] / bottom[2], top[1] / bottom[1], top[2] / bottom[0]) if bottom[0] > 0 else None

    def elsewhere(self, claim: Claim) -> str:
        """The reason this machine or model cannot decide it; "" if it can."""
        hardware = self._hardware(claim)
        if claim.hardware is not None and (hardware is None or not self._meets(claim.hardware)):
            return f"claimed for {HARDWARE[claim.hardware][0]}, measured on {hardware or _NOT_SEEN}"
        if claim.model is not None and not _is_of_size(self.model, claim.model):
            return f"claimed for a {claim.model} model, measured with {self.model or 'an unnamed one'}"
        if claim.value is not None and claim.model is None and claim.measure not in SHARES:
            return "an absolute figure claimed without naming a model"
        # Who says nothing of hardware does not mean an engine without its own kernels.
        of_speed = claim.hardware != "cpu" and claim.measure not in SHARES
        return next(iter(self._caveats(claim)), "") if of_speed else ""

    def _caveats(self, claim: Claim) -> list[str]:
        """What the figures of these systems do not show here, each with the label of its backend."""
        known = (
            (label, cell.conditions.settings.get("caveat")) for label, cell in self._shown(claim).items()
        )
        return [f"{label}: {caveat}" for label, caveat in known if caveat]

    def _meets(self, hardware: str) -> bool:
        _, pattern = HARDWARE[hardware]
        return bool(re.search(pattern, self.gpus)) if pattern else not self.gpus

    def _hardware(self, claim: Claim) -> str | None:
        return None if self.unseen & self._shown(claim).keys() else self.gpus or "a CPU"

    def unstated(self, claim: Claim) -> dict[str, tuple[str, ...]]:
        """Conditions that the claim leaves open, with what they are here."""
        here = {}
        if claim.hardware is None:
            here["hardware"] = (self._hardware(claim) or "not known",)
        if claim.model is None:
            here["model"] = (self.model or "not known",)
        if claim.workload is None:
            here["workload"] = (self.scenario,)
        versions = [
            f"{label} {cell.engine_version or 'of unknown version'}"
            for label, cell in self._shown(claim).items()
        ]
        return {**here, "versions": tuple(versions)}

    def others(self, claim: Claim) -> list[str]:
        """What else a reader must know before taking the verdict for the claim's."""
        tracks = {str(cell.track) for cell in self._shown(claim).values()}
        weights = f"the weights are not the same here: {', '.join(sorted(tracks))}"
        return [*([weights] if len(tracks) > 1 else []), *self._caveats(claim)]

    def _shown(self, claim: Claim) -> dict[str, CellResult]:
        return {label: self.labels[label] for name in claim.systems if (label := self.names.get(name))}


def _is_of_size(model: str, size: str) -> bool:
    """Whether the name holds the size as a word: 1.8B and 8bit are no 8B, and 8x7B is no 7B."""
    return bool(re.search(rf"(?<![0-9a-z.]){re.escape(size.lower())}(?![0-9a-z])", model.lower()))


def context_of(summary: Summary, manifest: Manifest, catalog: Catalog) -> RunContext:
    cells = [cell for cell in summary.cells if not cell.simulated]
    host, model = manifest.host or HostFacts(), summary.model
    apple = ["Apple silicon"] if host.system == "Darwin" else []
    labels = {cell.label: cell for cell in reversed(cells)}
    return RunContext(
        labels=labels,
        names=_names(labels),
        estimates={
            (estimate.label, estimate.load, estimate.metric): estimate.whole
            for estimate in summary.estimates
            if estimate.whole is not None and estimate.runs >= summary.verdict_rules.min_runs
        },
        findings={
            (finding.a, finding.b, finding.load, finding.metric): finding for finding in summary.comparison
        },
        loads=sorted({cell.point for cell in cells}),
        scenario=summary.scenario,
        kinds=frozenset(catalog.workloads.get(summary.scenario, ())),
        model=model.title or model.name if model else "",
        gpus=", ".join(dict.fromkeys([*(host.gpus or ()), *apple])),
        unseen=frozenset(label for label in labels if _is_elsewhere(manifest, label)),
    )


def _is_elsewhere(manifest: Manifest, label: str) -> bool:
    """Whether nothing is known of its machine: the manifest describes that of bench, and an import none."""
    url = known(manifest.backends.get(label, BackendEntry()).url)
    return manifest.host is None or bool(url and not is_loopback(urlsplit(url).hostname or ""))


def _names(labels: Mapping[str, CellResult]) -> dict[str, str]:
    """A variant stands for an engine that was not measured plain, unless it takes something away."""
    names = {label: label for label in labels}
    for label, cell in labels.items():
        if not (cell.variant or "").startswith("no-"):
            names.setdefault(cell.backend, label)
    return names
