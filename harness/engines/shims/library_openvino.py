"""OpenVINO GenAI: continuous batching with a paged KV cache, the engine of OpenVINO Model Server."""

from collections.abc import Sequence
from importlib.metadata import version
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

import numpy as np
import openvino
import openvino_genai

if TYPE_CHECKING:
    from harness.engines.shims.library_server import Asked, Job, Settings

_TYPES = {"bfloat16": "bf16", "float32": "f32"}
_REASONS = {
    openvino_genai.GenerationFinishReason.STOP: "stop",
    openvino_genai.GenerationFinishReason.LENGTH: "length",
}


class Library:
    def __init__(self, settings: "Settings") -> None:
        self.version = version("openvino-genai")
        self.effective: dict[str, str] = {}
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.max_num_batched_tokens = settings.prefill_tokens
        scheduler.max_num_seqs = settings.max_sequences
        scheduler.cache_size = settings.kv_cache_gib
        scheduler.enable_prefix_caching = settings.prefix_cache
        properties = {
            "INFERENCE_NUM_THREADS": settings.threads,
            "INFERENCE_PRECISION_HINT": _TYPES[settings.dtype],
            "KV_CACHE_PRECISION": settings.kv_type,
        }
        self._pipeline = openvino_genai.ContinuousBatchingPipeline(
            settings.model, scheduler, "CPU", properties
        )
        self._tokenizer = self._pipeline.get_tokenizer()
        print(f"openvino {openvino.get_version()}, {properties}", flush=True)

    def encode(self, text: str) -> list[int]:
        return [int(token) for token in self._encoded(text).data[0]]

    def prompt(self, messages: Sequence[dict[str, str]]) -> list[int]:
        return self.encode(self._tokenizer.apply_chat_template(list(messages), add_generation_prompt=True))

    def decode(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(tokens))) if tokens else ""

    def serve(self, waiting: "SimpleQueue[Job]") -> None:
        running: dict[int, tuple[Job, openvino_genai.GenerationHandle]] = {}
        number = 0
        while True:
            for job in _arrived(waiting, wait=not running):
                running[number] = (
                    job,
                    self._pipeline.add_request(number, _tensor(job.prompt), _config(job.asked)),
                )
                number += 1
            self._pipeline.step()
            for key, (job, handle) in list(running.items()):
                if _pass_on(job, handle):
                    del running[key]

    def _encoded(self, text: str) -> openvino.Tensor:
        return self._tokenizer.encode(text, add_special_tokens=False).input_ids


def _tensor(tokens: Sequence[int]) -> openvino.Tensor:
    return openvino.Tensor(np.array([tokens], dtype=np.int64))


def _arrived(waiting: "SimpleQueue[Job]", *, wait: bool) -> "list[Job]":
    found = [waiting.get()] if wait else []
    try:
        while True:
            found.append(waiting.get_nowait())
    except Empty:
        return found


def _pass_on(job: "Job", handle: "openvino_genai.GenerationHandle") -> bool:
    """Gives new tokens to the job; returns whether it is over."""
    if job.gone:
        handle.cancel()
        job.end("abort")
        return True
    while handle.can_read():
        (output,) = handle.read().values()
        job.put(output.generated_ids)
        if output.finish_reason in _REASONS:
            job.end(_REASONS[output.finish_reason])
            return True
    if handle.get_status() != openvino_genai.GenerationStatus.RUNNING:
        job.end("error")  # no room in the KV cache: the pipeline gives such a request up
        return True
    return False


def _config(asked: "Asked") -> "openvino_genai.GenerationConfig":
    config = openvino_genai.GenerationConfig()
    config.max_new_tokens = asked.max_tokens
    config.ignore_eos = asked.ignore_eos
    config.do_sample = asked.temperature > 0
    if config.do_sample:
        config.temperature, config.top_p, config.rng_seed = asked.temperature, asked.top_p, asked.seed
        if asked.top_k > 0:
            config.top_k = asked.top_k
    return config
