"""The verdict on weights that were damaged on purpose, through the whole of bench on a real engine.

    python -m tests.bench.damage_study [--noise 0 0.1 0.3] [--questions 80] [--out FOLDER]

For each noise a copy of the model's GGUF file gets so much noise (`damage_weights`) and is served by
llama.cpp. `bench run --accuracy` asks it, and `bench compare --fail-on accuracy.drop` judges it against the
file as it is. Noise 0 changes rounding alone: a loss there is a false verdict. A run that is in FOLDER
already is not measured again. Prints a Markdown table.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.engines.provide.convert import with_libraries
from harness.engines.provide.install import install_engine
from harness.engines.provide.models import ensure_weights
from harness.spec.backend_refs import load_backend
from harness.spec.models import choose_model, choose_track
from tests.bench.command import bench, options

DAMAGE = Path(__file__).with_name("damage_weights.py")
INTACT = "intact"
_ENDED = ("complete", "invalid")


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--noise", type=float, nargs="+", default=[0.0, 0.1, 0.3])
    parser.add_argument("--questions", type=int, default=80)
    parser.add_argument("--out", type=Path, default=None)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        out = (arguments.out or Path(passing)).absolute()
        env = install_engine(load_backend("llamacpp"), _say)
        name, model = choose_model(None)
        intact = ensure_weights(name, model, choose_track(name, model, "gguf", "")[0], env, _say).model
        python = with_libraries(env, {"gguf"}, _say).python
        before = _run(Path(intact), out / INTACT, arguments.questions)
        print("| noise | right of, intact | right of, damaged | verdict | gate |")
        print("|---:|---:|---:|---|---|")
        for noise in arguments.noise:
            damaged = out / f"damaged-{noise:g}.gguf"
            if not damaged.exists():
                subprocess.run([python, DAMAGE, intact, damaged, str(noise)], check=True, capture_output=True)
            after = _run(damaged, out / f"noise-{noise:g}", arguments.questions)
            damaged.unlink()
            print(_row(noise, before, after), flush=True)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _run(model: Path, out: Path, questions: int) -> Path:
    """Its folder."""
    if not (known := _complete(out)):
        load = ("--concurrency", "4", "--requests", "16", "--repeats", "1", "--output-tokens", "16")
        what = ("--backends", "llamacpp", "--launch", "process", "--profile", "cpu", "--model", model)
        asked = ("--accuracy", questions, "--no-probe", "--no-report", "--out", out)
        _bench("run", "--scenario", "fixed-length", *what, *load, *asked)
        known = _complete(out)
    (folder,) = known
    return folder


def _complete(out: Path) -> list[Path]:
    """Runs that came to their end: others lack answers, and are measured again."""
    summaries = out.glob("*/summary.json")
    return [path.parent for path in summaries if json.loads(path.read_text())["state"] in _ENDED]


def _row(noise: float, before: Path, after: Path) -> str:
    done = _bench(
        "compare", before, after, "--force", "--undecided", "pass", "--fail-on", "accuracy.drop", "--json"
    )
    compared = json.loads(done.stdout)
    verdict = next(one["why"] for one in compared["accuracy"] if not one["under_load"])
    gate = "failed" if done.returncode else "passed"
    return f"| {noise:g} | {_right(before)} | {_right(after)} | {verdict} | {gate} |"


def _right(folder: Path) -> str:
    (backend,) = json.loads((folder / "summary.json").read_text())["agreement"]["backends"].values()
    return f"{backend['unloaded']['right']} of {backend['unloaded']['asked']}"


def _bench(*words: object) -> "subprocess.CompletedProcess[str]":
    done = bench(*words, limit_s=1800)
    if done.returncode not in (0, 1, 4):
        sys.exit(done.stderr)
    return done


if __name__ == "__main__":
    main()
