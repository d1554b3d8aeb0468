"""Runs in a container: the scripted server behind an engine's command line, of which only the port counts.

Environment: HABITS (words: dies, slow, grows), TRUTH (flags of `bench truth`), METRICS_PORT (a second one).
"""

import os
import runpy
import sys
import threading
import time
from pathlib import Path

from second_port import pass_on


def asked_port(arguments: list[str]) -> str:
    for flag in ("--port", "--server-port"):
        if flag in arguments:
            return arguments[arguments.index(flag) + 1]
    return os.environ["OLLAMA_HOST"].rpartition(":")[2]


def grow() -> None:
    """Once there is a file /tmp/grow: takes memory until the limit of the container ends it."""
    while not Path("/tmp/grow").exists():
        time.sleep(0.05)
    held = []
    while True:
        held.append(os.urandom(1 << 24))


habits = os.environ.get("HABITS", "").split()
if "dies" in habits:
    print("RuntimeError: CUDA out of memory", flush=True)
    sys.exit(3)
if "slow" in habits:
    print("loading the model", flush=True)
    time.sleep(2)
if "grows" in habits:
    threading.Thread(target=grow, daemon=True).start()
if "METRICS_PORT" in os.environ:
    metrics = pass_on(int(asked_port(sys.argv[1:])), int(os.environ["METRICS_PORT"]), "/metrics")
    threading.Thread(target=metrics.serve_forever, daemon=True).start()
flags = ["--host", "0.0.0.0", "--port", asked_port(sys.argv[1:]), "--model-name", "bench"]
flags += ["--ttft-ms", "20", "--gap-ms", "5"]
sys.argv[1:] = [*flags, *os.environ.get("TRUTH", "").split()]
# Not `bench truth`: the image has Python alone, and none of the packages of `bench`.
runpy.run_module("harness.mockserver", run_name="__main__")
