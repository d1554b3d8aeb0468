"""Small runs against the scripted server, with load from both nodes."""

from harness.store import RunFolder
from tests.cluster.network import GCS_PORT, HEAD, TRUTH_PORT

URL = f"http://{HEAD}:{TRUTH_PORT}"
SMALL = ["--scenario", "fixed-length", "--no-probe", "--no-agreement", "--no-report", "--profile", "cpu"]
SMALL += ["--repeats", "1", "--sample-hz", "0", "--input-tokens", "16", "--output-tokens", "8"]
SMALL += ["--backends", f"openai={URL}"]
TWO = ["--cluster", f"{HEAD}:{GCS_PORT}", "--load-nodes", "2"]


def measured(machines, *options, code=(0, 4), out="results", **env):
    machines.ledger(reset=True)
    done = machines.run("run", *SMALL, *options, "--out", out, **env)
    assert done.returncode in code, done.stderr + machines.logs()
    (run,) = (machines.folder / out).iterdir()
    return RunFolder(run), done


def cell_of(folder):
    (name,) = folder.cells()
    return folder.read_cell(name)
