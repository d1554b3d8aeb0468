"""Vectors or scores by a model's own library: `reference_values.py FOLDER`, texts or pairs of them on stdin.

By sentence-transformers where it is installed, else by transformers with the pooling that the folder says.
A pair is a query and a document; its score is the raw one.
"""

import json
import sys
from pathlib import Path
from typing import Any

Pair = list[str]


def main(folder: Path, asked: list[Any]) -> dict[str, object]:
    scored = bool(asked) and isinstance(asked[0], list)
    try:
        import sentence_transformers as library
    except ImportError:
        values = (_scores if scored else _vectors)(folder, asked)
        return {"by": "transformers", "values": values}
    if scored:
        raw = library.CrossEncoder(str(folder), device="cpu").predict(asked, activation_fn=_as_it_is)
        return {"by": "sentence-transformers", "values": raw.tolist()}
    vectors = library.SentenceTransformer(str(folder), device="cpu").encode(asked, convert_to_numpy=True)
    return {"by": "sentence-transformers", "values": vectors.tolist()}


def _as_it_is(score: Any) -> Any:
    return score


def _scores(folder: Path, pairs: list[Pair]) -> list[float]:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    scores = []
    for query, document in pairs:
        inputs = tokenizer(query, document, truncation=True, return_tensors="pt")
        with torch.inference_mode():
            scores.append(model(**inputs).logits[0, 0].item())
    return scores


def _vectors(folder: Path, texts: list[str]) -> list[list[float]]:
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
