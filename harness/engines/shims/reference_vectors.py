"""Vectors of a sentence-transformers folder: `reference_vectors.py FOLDER`, texts as JSON on stdin.

By sentence-transformers where it is installed, else by transformers with the pooling that the folder says.
"""

import json
import sys
from pathlib import Path
from typing import Any


def main(folder: Path, texts: list[str]) -> dict[str, object]:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        return {"by": "transformers", "vectors": _by_transformers(folder, texts)}
    vectors = SentenceTransformer(str(folder), device="cpu").encode(texts, convert_to_numpy=True)
    return {"by": "sentence-transformers", "vectors": vectors.tolist()}


def _by_transformers(folder: Path, texts: list[str]) -> list[list[float]]:
    import torch
    from transformers import AutoModel, AutoTokenizer

    pooling = _declared(folder / "1_Pooling" / "config.json", {})
    steps = [step["type"].rpartition(".")[2] for step in _declared(folder / "modules.json", [])]
    longest = _declared(folder / "sentence_bert_config.json", {}).get("max_seq_length", 512)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    vectors = []
    for text in texts:
        inputs = tokenizer(text, truncation=True, max_length=longest, return_tensors="pt")
        with torch.inference_mode():
            states = model(**inputs).last_hidden_state[0]
        if pooling.get("pooling_mode_mean_tokens"):
            vector = states.mean(dim=0)
        elif pooling.get("pooling_mode_cls_token"):
            vector = states[0]
        else:
            sys.exit(f"{folder} does not declare pooling by the mean, or from the first token")
        if "Normalize" in steps:
            vector = torch.nn.functional.normalize(vector, dim=0)
        vectors.append(vector.tolist())
    return vectors


def _declared(file: Path, otherwise: Any) -> Any:
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else otherwise


if __name__ == "__main__":
    json.dump(main(Path(sys.argv[1]), json.load(sys.stdin)), sys.stdout)
