"""GGUF file to a Hugging Face folder in bf16: `convert_gguf.py FILE.gguf FOLDER`. Llama architectures.

The weights go through transformers' own GGUF reader in float32 and then into a plain LlamaForCausalLM:
saving the model that the reader returns keeps its quantisation wrapper, which other engines refuse.
"""

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig, LlamaConfig, LlamaForCausalLM

PROMPT = "The capital of France is"


def main(source: Path, target: Path) -> None:
    where = {"pretrained_model_name_or_path": str(source.parent), "gguf_file": source.name}
    read = AutoModelForCausalLM.from_pretrained(
        **where, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)
    )
    config = read.config.to_dict()
    config.pop("quantization_config", None)
    plain = LlamaForCausalLM(LlamaConfig(**config))
    plain.load_state_dict(read.state_dict(), strict=True)
    plain = plain.to(torch.bfloat16)

    tokenizer = AutoTokenizer.from_pretrained(**where)
    inputs = tokenizer(PROMPT, return_tensors="pt")
    with torch.inference_mode():
        before, after = (int(model(**inputs).logits[0, -1].argmax()) for model in (read, plain))
    if before != after:
        sys.exit(
            f"the converted weights continue '{PROMPT}' with {tokenizer.decode(after)!r} instead of "
            f"{tokenizer.decode(before)!r}"
        )
    plain.save_pretrained(target)
    tokenizer.save_pretrained(target)
    print(f"'{PROMPT}' goes on with {tokenizer.decode(after)!r} before and after")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
