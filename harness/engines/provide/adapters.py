"""LoRA adapters drawn from a seed for the model that an engine serves: nonsense in content, real in cost."""

import json
import sys
from pathlib import Path

from harness.engines.provide.install import EngineEnv
from harness.engines.provide.logged import run_or_raise
from harness.engines.provide.shared_folders import Say, filled, folder_of
from harness.engines.provide.weights import Weights
from harness.errors import SetupError
from harness.spec.backend import Backend
from harness.spec.scenario import adapter_names

_SHIM = Path(__file__).parents[1] / "shims" / "random_adapters.py"
SEED = 1


def drawn_adapters(
    definition: Backend, weights: Weights | None, env: EngineEnv | None, say: Say
) -> dict[str, Path]:
    """Adapters by name; empty if the engine is to have none."""
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
    made_of = [dumps, str(model), weights.sha256, _SHIM.read_text(encoding="utf-8")]
    folder = folder_of("adapters", definition.name, made_of)

    def draw(target: Path) -> None:
        say(f"{definition.name}: drawing {count} adapters")
        python = env.python if env else Path(sys.executable)
        run_or_raise(
            [str(python), "-I", str(_SHIM), str(model), str(target), dumps],
            f"adapters-{definition.name}",
            f"{definition.name}: drawing its adapters",
            say,
            failed="adapters cannot be drawn for this model",
            where=f"backend {definition.name}",
        )

    filled(folder, f"adapters of {definition.name}", draw, say)
    return {name: next(folder.glob(f"{name}.gguf"), folder / name) for name in adapter_names(count)}
