"""SGLang over native torch kernels says what transformers says, token by token, in float32."""

import json
import subprocess

import httpx
import pytest

from harness.engines.provide.install import installed
from harness.spec.backend_refs import load_backend

pytestmark = pytest.mark.engine

TOKENS = 32
PROMPTS = [
    f"{start} {subject}"
    for start in ("Tell me about", "Write a short story of", "Explain", "List facts on")
    for subject in ("the sea", "a small town", "iron", "the year 1900")
]
REFERENCE = """
import json, sys
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
folder, prompts, count = json.load(sys.stdin)
torch.set_num_threads(1)
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
asked = [tokenizer.apply_chat_template([{"role": "user", "content": text}], add_generation_prompt=True,
                                       return_dict=False) for text in prompts]
told = []
for ids in asked:
    prompt = torch.tensor([ids])
    with torch.no_grad():
        made = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=count,
                              do_sample=False, eos_token_id=None)
    told.append(made[0, len(ids):].tolist())
print(json.dumps([asked, told]))
"""


def test_greedy_answers_in_float32_are_those_of_transformers(start):
    python = installed(load_backend("sglang")).python
    with start("sglang", dtype="float32") as engine:
        folder = engine.facts["command"][engine.facts["command"].index("--model-path") + 1]
        done = subprocess.run(
            [python, "-c", REFERENCE],
            input=json.dumps([folder, PROMPTS, TOKENS]),
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        asked, told = json.loads(done.stdout.splitlines()[-1])
        sampling = {"temperature": 0, "max_new_tokens": TOKENS, "ignore_eos": True}
        for text, ids, expected in zip(PROMPTS, asked, told, strict=True):
            body = {"input_ids": ids, "sampling_params": sampling}
            answer = httpx.post(f"{engine.base_url}/generate", json=body, timeout=120).json()
            assert answer["output_ids"] == expected, text
