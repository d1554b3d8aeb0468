"""Runs in a container: the scripted server behind an engine's command line, of which only the port counts.

What it does besides stands in the environment of the image or the first argument: see HABITS below.
"""

import os
import sys
import time

arguments = sys.argv[1:]
port = arguments[arguments.index("--port") + 1]
habits = os.environ.get("HABITS", "").split()
if "dies" in habits:
    print("RuntimeError: CUDA out of memory", flush=True)
    sys.exit(3)
if "slow" in habits:
    print("loading the model", flush=True)
    time.sleep(2)
if "grows" in habits:
    import threading

    def grow() -> None:
        """Takes memory until the limit of the container ends it."""
        time.sleep(float(os.environ["GROWS_AFTER_S"]))
        held = []
        while True:
            held.append(bytearray(os.urandom(1 << 20) * 16))

    threading.Thread(target=grow, daemon=True).start()

from harness.cli.main import main  # noqa: E402

faults = os.environ.get("FAULTS", "").split()
sys.exit(main(["truth", "--host", "0.0.0.0", "--port", port, "--ttft-ms", "20", "--gap-ms", "5", *faults]))
