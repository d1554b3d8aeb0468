"""manifest.json: under which conditions the run's figures hold."""

import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness import build
from harness.errors import SpecError
from harness.model import RunWarning, as_json
from harness.observe import host
from harness.run import noise
from harness.run.division import Place, division, elsewhere
from harness.run.prepare import Prepared
from harness.run.window import engine_version
from harness.spec import files
from harness.spec.backend_refs import definition_key
from harness.store import RunFolder
from harness.traces import Dataset, Trace
from harness.validity import notices


class Manifest:
    """Written at every change of state, so that a killed run still says how far it came."""

    def __init__(self, folder: RunFolder, content: dict[str, Any], prepared: Prepared) -> None:
        self._folder = folder
        self._prepared = prepared
        self.content = content
        self.write(state="running")

    @classmethod
    def new(cls, folder: RunFolder, prepared: Prepared) -> "Manifest":
        options, machine = prepared.options, host.host_facts()
        cells = [cell.name for block in prepared.plan for cell in block.cells]
        # Which loads a search will try is not known before.
        planned = [] if options.find_capacity else cells
        content: dict[str, Any] = {
            "run": folder.run_id,
            "created_utc": datetime.now(UTC).isoformat(timespec="seconds"),
            "command": list(options.command),
            "options": dataclasses.asdict(options),
            "working_directory": str(Path.cwd()),
            "host": machine,
            "packages": host.package_versions(),
            "git": build.revision(),
            "scenario": dataclasses.asdict(prepared.scenario),
            "scenario_sha256": files.fingerprint(prepared.scenario),
            "model": _model(prepared),
            "backends": {
                label: {
                    "backend": ref.definition.name,
                    "variant": ref.variant,
                    "url": ref.url,
                    "definition_sha256": definition_key(ref.definition),
                    "launch": {"mode": launch.mode, "why": launch.why},
                    "track": track,
                    "division": division(prepared, index),
                    "tuned": dataclasses.asdict(ref.tuned) if ref.tuned else None,
                    "between_repeats": prepared.between[index],
                    "engine": None,
                }
                for index, (label, ref, launch, track) in enumerate(
                    zip(prepared.labels, prepared.backends, prepared.launches, prepared.tracks, strict=True)
                )
            },
            "seeds": {"run": options.seed, "dimensions": ["prompts", "arrivals", "think"]},
            "repeats": prepared.repeats,
            "stopping": _stopping(prepared),
            "aa": options.aa,
            "noise_floor": {},
            "order": planned,
            "find_capacity": options.find_capacity,
            "workload_source": prepared.source.facts() if prepared.source else None,
            "workload_sha256": None,
            "exact_lengths": None,
            "failures": [],
            "warnings": _about(prepared.source),
            "resumed_utc": [],
        }
        return cls(folder, content, prepared)

    @classmethod
    def resumed(cls, folder: RunFolder, prepared: Prepared) -> "Manifest":
        """Raises SpecError when a definition is not the one the run began with: cells would not be equal."""
        content = folder.read_manifest()
        if content["scenario_sha256"] != files.fingerprint(prepared.scenario):
            raise _changed(f"scenario '{prepared.scenario.name}'", folder)
        for label, ref in zip(prepared.labels, prepared.backends, strict=True):
            if content["backends"][label]["definition_sha256"] != definition_key(ref.definition):
                raise _changed(f"backend '{label}'", folder)
        content["resumed_utc"].append(datetime.now(UTC).isoformat(timespec="seconds"))
        content["failures"].clear()
        content["warnings"] = _about(prepared.source)
        return cls(folder, content, prepared)

    def write(self, **changes: Any) -> None:
        self.content.update(changes)
        self._folder.write_json("manifest.json", self.content)

    def engine_started(self, label: str, facts: Mapping[str, Any], noise_key: str) -> None:
        """`noise_key`: of run/noise.py, under which this backend's floor is kept."""
        self.content["backends"][label] |= {"engine": dict(facts), "noise_key": noise_key}
        if floors := noise.stored(noise_key):
            self.content["noise_floor"] = {**(self.content["noise_floor"] or {}), label: floors}
        self._warn_of_other_place(label, engine_version(facts))
        self.write()

    def _warn_of_other_place(self, label: str, version: str | None) -> None:
        """A tuned variant holds for where it was tuned."""
        index = self._prepared.labels.index(label)
        if tuned := self._prepared.backends[index].tuned:
            place = Place.of(self._prepared, index, self.content["host"])
            if found := list(elsewhere(tuned.provenance, place, version)):
                text = f"{label} was tuned for {'; '.join(found)}"
                self.warn(notices.TUNED_ELSEWHERE.warning(text))

    def probed(self, label: str, found: Mapping[str, Any]) -> None:
        """The whole of it lies in its own file."""
        self.content["backends"][label]["probe"] = dict(found)
        self.write()

    def warn(self, warning: RunWarning) -> None:
        """Once, however often it is told."""
        known = [(one["code"], one["text"]) for one in self.content["warnings"]]
        if (warning.code, warning.text) not in known:
            self.content["warnings"].append(as_json(warning))

    def failed(self, label: str, repeat: int, error: str) -> None:
        self.content["failures"].append({"backend": label, "repeat": repeat, "error": error})
        self.write()


def _model(prepared: Prepared) -> dict[str, str] | None:
    """None when every server brings its own: what it calls it is among its facts."""
    if not any(prepared.tracks):
        return None
    return {"name": prepared.model_name, "title": prepared.model.title}


def _stopping(prepared: Prepared) -> dict[str, Any] | None:
    """None where the number of repeats is fixed. `repeats`: at the last look that was taken."""
    if not prepared.looks:
        return None
    budget_s = prepared.options.budget_s
    return {"looks": list(prepared.looks), "repeats": 0, "reason": None, "budget_s": budget_s, "spent_s": 0.0}


def _about(source: Trace | Dataset | None) -> list[dict[str, str]]:
    """What of a file was not used as it stands."""
    if source is None:
        return []
    facts = source.facts()
    found = []
    if skipped := source.skipped:
        left_out = sum(skipped.values())
        lines = facts["lines"] if isinstance(source, Trace) else left_out + facts["prompts"]
        reasons = "; ".join(f"{count}: {reason}" for reason, count in skipped.items())
        text = f"{facts['file']}: {left_out} of {lines} lines left out: {reasons}"
        found.append(notices.FILE_LINES_LEFT_OUT.warning(text))
    if isinstance(source, Trace) and source.remarks:
        changes = "; ".join(f"{count} {what}" for what, count in source.remarks.items())
        found.append(notices.TRACE_CHANGED.warning(f"{facts['file']}: {changes}"))
    return [as_json(warning) for warning in found]


def _changed(what: str, folder: RunFolder) -> SpecError:
    return SpecError(
        f"{what} has changed since this run began",
        where=str(folder.path),
        hint="start a new run with `bench run`",
    )


def plan_json(prepared: Prepared) -> dict[str, Any]:
    return {
        "blocks": [
            {"backend": prepared.labels[block.backend], "repeat": block.repeat,
             "cells": [{"cell": cell.name, "load": as_json(cell.load)} for cell in block.cells]}
            for block in prepared.plan
        ]
    }  # fmt: skip
