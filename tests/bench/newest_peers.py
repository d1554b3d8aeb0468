"""The newest clients of others on the scripted server: our views of our records, our import of their files.

    python -m tests.bench.newest_peers [--only NAME]...

Installs the newest aiperf, guidellm, inference-perf and genai-bench that pip finds, each into an environment
of its own in the cache, once for each version. vLLM's client is that of the installed engine (`bench engines
install vllm`). inference-perf needs Python 3.12: PEERS_PYTHON, else the python3.12 of PATH. Then
`tests.bench.peer_views` and `tests.bench.imported_tools` run over all of them.

Nothing is left out: a tool that cannot be installed, that does not run or that says other figures than were
predicted fails the lane, after the others have run. One that is newer than what was read is named.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from harness.engines.provide.install import EngineEnv, installed
from harness.engines.provide.logged import new_log
from harness.engines.provide.models import ensure_weights, find_model
from harness.engines.provide.pip import Pip
from harness.engines.provide.shared_folders import built
from harness.engines.provide.torch_cpu import install_cpu_torch
from harness.errors import SetupError
from harness.host import paths
from harness.metrics.peers import READ_IN, TOOLS
from harness.spec.backend_refs import load_backend
from tests.bench.command import options

CLIENTS = ("aiperf", "guidellm", "inference-perf", "genai-bench")
NEEDS_TORCH = {"guidellm": "2.13.0"}  # which pip would bring for CUDA: gigabytes that no client uses
NEEDS_NEWER = ("inference-perf",)  # Python than the oldest that bench runs on
HABITS = ("role chunk with the first token", "role chunk at once")
LIMIT_S = 900  # of each of the two


class _Client(msgspec.Struct):
    version: str


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--only", action="append", choices=("vllm", *CLIENTS), metavar="NAME")
    wanted = parser.parse_args().only or ["vllm", *CLIENTS]
    try:
        newer, engine = _newer_python(), _engine()
        tokenizer = _tokenizer(engine)
    except SetupError as error:
        print(f"error: {error.what}\nhint: {error.hint}", file=sys.stderr)
        return 3
    programs, failed = {}, []
    if "vllm" in wanted:
        programs[f"vllm@{engine.version}"] = engine.bin / "vllm"
    for name in (one for one in CLIENTS if one in wanted):
        try:
            version, programs[name] = _client(name, newer if name in NEEDS_NEWER else sys.executable)
        except SetupError as error:
            failed.append(f"{name}: {error.what}")
            continue
        print(f"{name} {version}" + ("" if version == READ_IN[name] else f": {READ_IN[name]} was read"))
    for module, habits, names in (
        ("peer_views", HABITS, [one for one in programs if one.partition("@")[0] in TOOLS]),
        ("imported_tools", HABITS, list(programs)),
    ):
        print(f"\n{module}\n", flush=True)
        words = [word for habit in habits for word in ("--only", habit)]
        words += [word for name in names for word in ("--peer", f"{name}={programs[name]}")]
        failed += _run([f"tests.bench.{module}", "--tokenizer", str(tokenizer), *words])
    print("", *failed, sep="\nFAILED: " if failed else "\n")
    return 1 if failed else 0


def _run(words: list[str]) -> Iterator[str]:
    try:
        code = subprocess.run([sys.executable, "-m", *words], check=False, timeout=LIMIT_S).returncode
    except subprocess.TimeoutExpired:
        yield f"{words[0]}: not done after {LIMIT_S} s"
    else:
        if code:
            yield f"{words[0]}: exit code {code}: its table says what"


def _newer_python() -> str:
    for program in (os.environ.get("PEERS_PYTHON"), "python3.12"):
        found = program and shutil.which(program)
        if found and not subprocess.run([found, "-V"], check=False, capture_output=True).returncode:
            return found
    raise SetupError("no Python 3.12", hint="PEERS_PYTHON=PROGRAM: inference-perf needs it")


def _engine() -> EngineEnv:
    engine = installed(load_backend("vllm"))
    if engine is None:
        raise SetupError("vLLM is not installed, whose client is measured", hint="bench engines install vllm")
    return engine


def _tokenizer(engine: EngineEnv) -> Path:
    """A folder that the clients can load: of the default model as vLLM takes it."""
    name, model = find_model(None)
    track = next(key for key, track in model.tracks.items() if track.weights == "hf")
    return Path(ensure_weights(name, model, track, engine, print).model)


def _quiet(_progress: str) -> None:
    pass


def _client(name: str, python: str) -> tuple[str, Path]:
    """Its newest version, and its program. Raises SetupError."""
    log = new_log(f"peer-{name}")
    print(f"{name}: looking for its newest version; pip's log: {log}", flush=True)
    version = Pip(Path(sys.executable), log, _quiet, name).newest(name, "--ignore-requires-python")
    folder = paths.cache_dir() / "peers" / f"{name}-{version}"

    def build(target: Path) -> _Client:
        subprocess.run([python, "-m", "venv", str(target)], check=True)
        pip = Pip(target / "bin" / "python", log, _quiet, name)
        if torch := NEEDS_TORCH.get(name):
            install_cpu_torch(pip, target / "bin", torch)
        pip.run(f"installing {name}=={version}", "install", f"{name}=={version}")
        return _Client(version)

    built(folder, f"the environment of {name}", build, _Client, print)
    for older in folder.parent.glob(f"{name}-[0-9]*"):
        if older.is_dir() and older != folder:
            shutil.rmtree(older)
    return version, folder / "bin" / name


if __name__ == "__main__":
    sys.exit(main())
