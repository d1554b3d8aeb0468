"""LoRA adapters drawn from a seed for the model that an engine serves: nonsense in content, real in cost."""

import json
import sys
from pathlib import Path

import msgspec

from harness.engines.provide.install import EngineEnv
from harness.engines.provide.logged import new_log, run_logged, tail
from harness.engines.provide.shared_folders import Say, built
from harness.engines.provide.weights import Weights
from harness.errors import SetupError
from harness.host import paths
from harness.spec.backend import Backend
from harness.spec.files import fingerprint
from harness.spec.scenario import adapter_names

_SHIM = Path(__file__).parents[1] / "shims" / "random_adapters.py"
SEED = 1


class _Drawn(msgspec.Struct):
    pass


def drawn_adapters(
    definition: Backend, weights: Weights | None, env: EngineEnv | None, say: Say
) -> dict[str, Path]:
    """Returns the adapters by name; empty where the engine is to have none.

    The same numbers for every engine, in its own form.
    """
    values = definition.engine.values
    count = int(values.get("lora_adapters", 0))
    if not count or definition.lora is None or weights is None:
        return {}
    if not weights.local:
        raise SetupError(
            "adapters are drawn for a model that lies on this machine", where=f"backend {definition.name}"
        )
    model, rank = Path(weights.model), int(values["lora_rank"])
    dumps = json.dumps({"count": count, "rank": rank, "seed": SEED})
    key = fingerprint([dumps, str(model), _SHIM.read_text(encoding="utf-8")])
    folder = paths.cache_dir() / "adapters" / f"{definition.name}-{key[:12]}"

    def draw(target: Path) -> _Drawn:
        say(f"{definition.name}: drawing {count} adapters")
        log = new_log(f"adapters-{definition.name}")
        python = env.python if env else Path(sys.executable)
        command = [str(python), "-I", str(_SHIM), str(model), str(target), dumps]
        if run_logged(command, log, say, f"{definition.name}: drawing its adapters"):
            raise SetupError(
                f"adapters cannot be drawn for this model: {tail(log, 1)}",
                where=f"backend {definition.name}",
                hint=f"log: {log}",
            )
        return _Drawn()

    built(folder, f"adapters of {definition.name}", draw, _Drawn, say)
    return {name: next(folder.glob(f"{name}.gguf"), folder / name) for name in adapter_names(count)}
