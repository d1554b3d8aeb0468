"""manifest.json: under which conditions the run's figures hold."""

import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.observe import host
from harness.run.prepare import Prepared
from harness.spec import files
from harness.store import RunFolder


class Manifest:
    """Written at every change of state, so that a killed run still says how far it came."""

    def __init__(self, folder: RunFolder, prepared: Prepared) -> None:
        self._folder = folder
        options = prepared.options
        self.content: dict[str, Any] = {
            "run": folder.run_id,
            "state": "running",
            "created_utc": datetime.now(UTC).isoformat(timespec="seconds"),
            "command": list(options.command),
            "working_directory": str(Path.cwd()),
            "host": host.host_facts(),
            "packages": host.package_versions(),
            "git": host.git_revision(),
            "scenario": dataclasses.asdict(prepared.scenario),
            "scenario_sha256": files.fingerprint(prepared.scenario),
            "model": {"name": prepared.model_name, "title": prepared.model.title},
            "backends": {
                label: {
                    "backend": ref.definition.name,
                    "variant": ref.variant,
                    "url": ref.url,
                    "definition_sha256": files.fingerprint(ref.definition),
                    "launch": {"mode": launch.mode, "why": launch.why},
                    "track": track,
                    "engine": None,
                }
                for label, ref, launch, track in zip(
                    prepared.labels, prepared.backends, prepared.launches, prepared.tracks, strict=True
                )
            },
            "seeds": {"run": options.seed, "dimensions": ["prompts", "arrivals"]},
            "repeats": options.repeats,
            "order": [cell.name for block in prepared.plan for cell in block.cells],
            "workload_sha256": None,
            "exact_lengths": None,
            "failures": [],
            "warnings": [],
        }
        self.write()

    def write(self, **changes: Any) -> None:
        self.content.update(changes)
        self._folder.write_json("manifest.json", self.content)

    def engine_started(self, label: str, facts: Mapping[str, Any]) -> None:
        self.content["backends"][label]["engine"] = dict(facts)
        self.write()

    def warn(self, code: str, text: str, hint: str) -> None:
        if all(warning["code"] != code or warning["text"] != text for warning in self.content["warnings"]):
            self.content["warnings"].append({"code": code, "text": text, "hint": hint})

    def failed(self, label: str, repeat: int, error: str) -> None:
        self.content["failures"].append({"backend": label, "repeat": repeat, "error": error})
        self.write()


def plan_json(prepared: Prepared) -> dict[str, Any]:
    return {
        "blocks": [
            {"backend": prepared.labels[block.backend], "repeat": block.repeat,
             "cells": [{"cell": cell.name, "load": dataclasses.asdict(cell.load)} for cell in block.cells]}
            for block in prepared.plan
        ]
    }  # fmt: skip
