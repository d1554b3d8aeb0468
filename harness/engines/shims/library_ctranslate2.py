"""CTranslate2: one request at a time, its weights made of a Hugging Face folder at the start."""

from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

import ctranslate2
import transformers
from ctranslate2.converters import TransformersConverter

if TYPE_CHECKING:
    from harness.engines.shims.library_server import Job, Settings


class Library:
    def __init__(self, settings: "Settings") -> None:
        self.version = ctranslate2.__version__
        folder = str(Path(settings.scratch) / "ctranslate2")
        TransformersConverter(settings.model).convert(folder, quantization=settings.dtype)
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(settings.model)
        # By default in the type of its weights; one that the CPU has no kernels for is replaced, not refused.
        self._model = ctranslate2.Generator(folder, device="cpu", intra_threads=settings.threads)
        self.effective = {"compute_type": self._model.compute_type}
        print(f"asked for {settings.dtype}, computes in {self._model.compute_type}", flush=True)

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def prompt(self, messages: Sequence[dict[str, str]]) -> list[int]:
        text = self._tokenizer.apply_chat_template(list(messages), add_generation_prompt=True, tokenize=False)
        return self.encode(text)

    def decode(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(tokens)) if tokens else ""

    def serve(self, waiting: "SimpleQueue[Job]") -> None:
        while True:
            self._generate(waiting.get())

    def _generate(self, job: "Job") -> None:
        asked = job.asked
        steps = self._model.generate_tokens(
            self._tokenizer.convert_ids_to_tokens(job.prompt),
            max_length=asked.max_tokens,
            min_length=asked.max_tokens if asked.ignore_eos else 0,
            sampling_topk=1 if asked.temperature == 0 else asked.top_k,
            sampling_topp=asked.top_p,
            sampling_temperature=asked.temperature or 1.0,
        )
        for step in steps:
            job.put([step.token_id])
            if job.gone:
                break
        job.end("length" if job.produced == asked.max_tokens else "stop")
