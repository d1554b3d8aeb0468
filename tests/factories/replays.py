"""What tools need to replay a trace: files of two forms from a seed, and the server's own tokenizer."""

import itertools
import json
from pathlib import Path
from random import Random

from tests.factories.agents import Shape, write_weka

BLOCK = 512  # tokens of a hash id in Mooncake's traces
MOST_BLOCKS = 8
LETTERS = "abcdefgh"
SEPARATOR = "<|e>"
HUB_NAME, COMMIT = "bench/four-characters", "0" * 40
SPLIT = {"behavior": "Isolated", "invert": False}


def write_mooncake(path: Path, requests: int = 200, seed: int = 0) -> Path:
    """Requests in bursts, five a second on average, of up to 4,096 tokens; each has another answer length."""
    random = Random(seed)
    answers = random.sample(range(8, 8 + requests), requests)
    prompts: list[list[int]] = []  # whole blocks of each
    new, at_ms = itertools.count(), 0.0
    with path.open("w", encoding="utf-8") as file:
        for answer in answers:
            known = random.choice(prompts) if prompts and random.random() < 0.7 else []
            blocks = random.randint(1, MOST_BLOCKS)
            ids = known[: random.randint(0, blocks)]
            ids += [next(new) for _ in range(blocks - len(ids))]
            cut = random.randrange(BLOCK) if ids[-1] not in known else 0
            prompts.append(ids[:-1] if cut else ids)
            row = {"timestamp": round(at_ms), "input_length": BLOCK * blocks - cut, "output_length": answer}
            file.write(json.dumps(row | {"hash_ids": ids}) + "\n")
            at_ms += random.expovariate(1 / (30 if random.random() < 0.7 else 600))
    return path


def write_sessions(path: Path, sessions: int = 12) -> Path:
    """Sessions of agents in Weka's form; each call has another answer length.

    Each prompt grows by more than the answer before it. No call is marked as a tool's: GuideLLM would ask the
    server for calls of tools, which the scripted one cannot make.
    """
    lengths = itertools.count(8)
    shape = Shape(sessions=sessions, opening=1024, growth=400)
    documents = list(map(json.loads, write_weka(path, shape).read_text().splitlines()))
    for document in documents:
        for entry in document["requests"]:
            for call in entry.get("requests", [entry]):
                call |= {"out": next(lengths), "stop": "end_turn", "input_types": ["text"]}
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    return path


def write_tokenizer(hub: Path) -> Path:
    """A tokenizer for the tools that counts like the scripted server: four characters are a token.

    The folder that is returned is also the snapshot of HUB_NAME in `hub`, a cache as huggingface_hub has it.

    Its words have eight letters, to which it maps each character of a text. So a text that a tool joins from
    blocks has as many tokens as the blocks. A vocabulary that merges is less kind to the tools.
    """
    words = ["".join(letters) for n in range(1, 5) for letters in itertools.product(LETTERS, repeat=n)]
    replaced = [(f"[{_like(letter)}]", letter) for letter in LETTERS] + [(f"[^{LETTERS}]", LETTERS[0])]
    separator = {"id": len(words), "content": SEPARATOR, "special": True}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [separator | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Replace", "pattern": {"Regex": pattern}, "content": letter}
                for pattern, letter in replaced
            ],
        },
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": ".{1,4}"}, **SPLIT},
        "post_processor": None,
        "decoder": {"type": "Fuse"},
        "model": {
            "type": "WordLevel",
            "vocab": {word: number for number, word in enumerate([*words, SEPARATOR])},
            "unk_token": SEPARATOR,
        },
    }
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    files: dict[str, object] = {
        "tokenizer.json": tokenizer,
        "tokenizer_config.json": settings | {"eos_token": SEPARATOR},
        "config.json": {"model_type": "gpt2"},  # transformers looks for one when offline
    }
    repository = hub / f"models--{HUB_NAME.replace('/', '--')}"
    folder = repository / "snapshots" / COMMIT
    for path in (folder, repository / "refs"):
        path.mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    for name, document in files.items():
        (folder / name).write_text(json.dumps(document))
    return folder


def _like(letter: str) -> str:
    """Other printable characters that become this letter, as a regular expression has them."""
    return "".join(
        f"\\x{code:02x}"
        for code in range(32, 127)
        if code % 8 == ord(letter) % 8 and chr(code) not in LETTERS
    )
