"""A small scripted engine and what it takes to open it: real processes, real HTTP, no model."""

import sys
from pathlib import Path

from harness.engines.session import open_engine
from harness.engines.start.launch_choice import as_launched, resolve_launch
from harness.engines.start.request import EngineRequest
from harness.model.choices import Device
from harness.spec.backend import (
    Backend,
    BackendRef,
    Engine,
    Header,
    PrefixCache,
    Probe,
    Process,
    Reset,
    Server,
    Tokenize,
)
from harness.spec.engine_metrics import Counters, Metrics
from harness.spec.models import Model
from harness.spec.reach import Reach

MODEL = Model("none", "none")

# Behaviours are words on the command line, after the port.
PROGRAM = """
import json, os, signal, subprocess, sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer

port, habits = int(sys.argv[1]), set(sys.argv[2:])
print("loading the model", flush=True)
if "dies" in habits:
    print("RuntimeError: CUDA out of memory", flush=True)
    sys.exit(3)
if "hangs" in habits:
    time.sleep(60)
if "deaf" in habits:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "child" in habits:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"],
                             start_new_session="stray" in habits)
    print(f"child {child.pid}", flush=True)
started, erased = time.monotonic(), []


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, content, status=200):
        data = content.encode() if isinstance(content, str) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if self.path == "/health":
            if "slow" in habits and time.monotonic() - started < 0.5:
                return self.answer({"error": "Loading model"}, 503)
            return self.answer("ok")
        if "locked" in habits and self.headers["authorization"] != "Bearer sesame":
            return self.answer({"error": "who are you"}, 401)
        if self.path == "/v1/models":
            return self.answer({"data": [] if "nameless" in habits else [{"id": "served"}]})
        if self.path == "/version":
            return self.answer({"build": {"version": "1.2.3"}})
        if self.path == "/metrics":
            return self.answer('fake:fresh{a="1"} 5\\nfake:fresh{a="2"} 2\\nfake:cached 3\\n')
        if self.path == "/erased":
            return self.answer(erased)
        return self.answer({}, 404)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"] or 0)) or "{}")
        if self.path == "/v1/chat/completions":
            if "loading" in habits:
                time.sleep(60)
            if "mute" in habits:
                return self.answer({"error": "no such model"}, 400)
            return self.answer({"choices": [{"message": {"content": "hello from " + body["model"]}}]})
        if self.path == "/tokenize":
            return self.answer({"tokens": body["text"].split()})
        if self.path.startswith("/slots/"):
            if "busy" in habits:
                return self.answer({"success": False})
            erased.append(int(self.path.split("?")[0].split("/")[2]))
            return self.answer({"success": True})
        if self.path == "/exit":
            os._exit(7)
        return self.answer({}, 404)

    def log_message(self, *args):
        pass


HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


def fake_backend(folder: Path, *habits: str, timeout_s: float = 20.0, program: str | None = None) -> Backend:
    script = folder / "fake_engine.py"
    script.write_text(PROGRAM)
    return Backend(
        backend=Header("fake", "Fake", "MIT", "", weights="none"),
        server=Server(
            ready_path="/health",
            startup_timeout_s=timeout_s,
            loading="503",
            version=Probe("/version", "build.version"),
            tokenize=Tokenize("/tokenize", "text"),
        ),
        engine=Engine(args=("{port}", *habits), values={"max_sequences": 2}),
        process=Process(program=(program or sys.executable, str(script))),
        prefix_cache=PrefixCache(
            enabled=True, reset=Reset("/slots/{slot}?action=erase", success_key="success", leaves="crumbs")
        ),
        metrics=Metrics(
            "/metrics",
            Counters("fake:fresh", "fake:cached", "fake:absent"),
            prompt_tokens_exclude_cached=True,
        ),
    )


def opened(
    folder: Path,
    definition: Backend,
    *,
    url: str | None = None,
    reach: Reach = Reach(),  # noqa: B008  # immutable
    device: Device = "auto",
    say=lambda line: None,
    **options,
):
    """`open_engine` with everything a test does not care about."""
    ref = BackendRef(definition, None, url, reach=reach)
    choice = resolve_launch(ref, "auto", device)
    ref = as_launched(ref, choice)
    return open_engine(EngineRequest(ref, choice, "m", MODEL, log_path=folder / "engine.log", **options), say)
