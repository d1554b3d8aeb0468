"""llama-server's command line over the xllamacpp package, which carries the real server as a library.

The flags are llama-server's own, as far as backends/llamacpp.toml uses them; any other is an error.
"""

import argparse
import signal
import threading
from typing import Any

import xllamacpp


def main() -> None:
    asked = _arguments()
    params = xllamacpp.CommonParams()
    params.model.path = asked.model
    if asked.mmproj:
        params.mmproj.path = asked.mmproj
    params.model_alias = {asked.alias}
    if hasattr(params, "hostnames"):
        params.hostnames = [asked.host]
    else:  # before 2026.10
        params.hostname = asked.host
    params.port = asked.port
    params.n_ctx = asked.ctx_size
    params.n_parallel = asked.parallel
    params.n_batch = asked.batch_size
    params.n_ubatch = asked.ubatch_size
    params.cpuparams.n_threads = asked.threads
    params.endpoint_metrics = asked.metrics
    params.endpoint_slots = asked.slots
    params.slot_save_path = asked.slot_save_path + "/"  # the server puts a file name right after it
    params.cache_ram_mib = asked.cache_ram
    params.sampling.seed = asked.seed
    params.lora_init_without_apply = asked.lora_init_without_apply
    params.lora_adapters = [_adapter(path) for path in asked.lora]
    if asked.chat_template:
        params.chat_template = asked.chat_template
        params.use_jinja = True
    if asked.spec_type:
        _speculate(params.speculative, asked)
    if asked.embeddings:
        params.embedding = True
        params.pooling_type = getattr(
            xllamacpp.llama_pooling_type, f"LLAMA_POOLING_TYPE_{asked.pooling.upper()}"
        )

    # The library runs the server on its own threads: it listens when the constructor returns and
    # stops when the object goes. While it loads, SIGTERM keeps its default action.
    server = xllamacpp.Server(params)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    print(f"serving on {server.listening_address}", flush=True)
    stop.wait()


def _speculate(speculative: Any, asked: argparse.Namespace) -> None:
    """Types by the package's own names; of a draft model its file, of n-grams their length."""
    name = asked.spec_type.upper().replace("-", "_")
    speculative.types = [getattr(xllamacpp.common_speculative_type, f"COMMON_SPECULATIVE_TYPE_{name}")]
    speculative.ngram_simple.size_n = asked.spec_ngram_simple_size_n
    speculative.synth_len = asked.spec_synth_len
    if asked.model_draft:
        speculative.draft.mparams.path = asked.model_draft


def _adapter(path: str) -> xllamacpp.CommonAdapterLoraInfo:
    info = xllamacpp.CommonAdapterLoraInfo()
    info.path, info.scale = path, 1.0
    return info


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="llama-server", allow_abbrev=False)
    parser.add_argument("--model", required=True)
    parser.add_argument("--mmproj", metavar="FILE")
    parser.add_argument("--alias", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ctx-size", type=int, required=True)
    parser.add_argument("--parallel", type=int, required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--ubatch-size", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--metrics", action="store_true")
    parser.add_argument("--slots", action="store_true")
    parser.add_argument("--slot-save-path", required=True)
    parser.add_argument("--cache-ram", type=int, required=True, metavar="MIB")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--chat-template", metavar="JINJA")
    parser.add_argument("--spec-type", choices=("ngram-simple", "draft-simple"))
    parser.add_argument("--spec-ngram-simple-size-n", type=int, default=12)
    parser.add_argument("--spec-synth-len", type=float, default=-1.0)
    parser.add_argument("--model-draft")
    parser.add_argument("--lora", action="append", default=[], metavar="FILE")
    parser.add_argument("--lora-init-without-apply", action="store_true")
    parser.add_argument("--embeddings", action="store_true")
    parser.add_argument("--pooling", choices=("mean", "cls", "last", "rank"), default="mean")
    return parser.parse_args()


if __name__ == "__main__":
    main()
