"""Vision drawn from a seed for a model of text: `random_vision.py MODEL FOLDER SHAPE`, SHAPE as JSON.

MODEL is a Llama's folder in the hub's form, whose weights become the text half of an Idefics3. What it says
of an image is nonsense; what an image costs is real. Runs inside an engine's environment.
"""

import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, Idefics3Config, Idefics3ForConditionalGeneration

ROUND = 64  # to which a vocabulary is filled up
MOST_TILES = 6  # of an image, in a row and in a column
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'text' %}{{ part['text'] }}{% else %}<image>{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def main(source: Path, folder: Path, shape: dict[str, int]) -> None:
    tokenizer = AutoTokenizer.from_pretrained(source)
    tiles = [f"<row_{row + 1}_col_{column + 1}>" for row in range(MOST_TILES) for column in range(MOST_TILES)]
    marks = ["<fake_token_around_image>", "<image>", "<end_of_utterance>", "<global-img>", *tiles]
    tokenizer.add_special_tokens({"additional_special_tokens": marks})

    text = AutoModelForCausalLM.from_pretrained(source, dtype=torch.bfloat16)
    of_text = text.config.to_dict()
    for key in ("architectures", "_name_or_path", "transformers_version"):
        of_text.pop(key, None)
    of_text["vocab_size"] = -(-len(tokenizer) // ROUND) * ROUND
    tile, patch = shape["tile"], shape["patch"]
    vision = {
        "hidden_size": shape["width"],
        "intermediate_size": 2 * shape["width"],
        "num_hidden_layers": shape["layers"],
        "num_attention_heads": shape["heads"],
        "image_size": tile,
        "patch_size": patch,
    }
    joined = 2  # patches that become one token, in each direction
    config = Idefics3Config(
        text_config=of_text,
        vision_config=vision,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=joined,
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=True,
    )
    torch.manual_seed(shape["seed"])
    model = Idefics3ForConditionalGeneration(config).to(torch.bfloat16)
    weights = dict(text.model.state_dict())
    embedded = weights.pop("embed_tokens.weight")
    rows = model.model.text_model.embed_tokens.weight.data
    rows[: len(embedded)], rows[len(embedded) :] = embedded, 0
    model.model.text_model.load_state_dict(weights, strict=False)
    model.tie_weights()
    model.save_pretrained(folder)
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    tokens = (tile // patch // joined) ** 2
    processor = {  # written by hand: not every environment has the libraries of images
        "processor_class": "Idefics3Processor",
        "image_seq_len": tokens,
        "image_processor": {
            "image_processor_type": "Idefics3ImageProcessor",
            "do_image_splitting": True,
            "image_mean": [0.5, 0.5, 0.5],
            "image_std": [0.5, 0.5, 0.5],
            "size": {"longest_edge": shape["longest"]},
            "max_image_size": {"longest_edge": tile},
        },
    }
    (folder / "processor_config.json").write_text(json.dumps(processor, indent=1), encoding="utf-8")
    drawn = sum(each.numel() for each in model.model.vision_model.parameters())
    print(f"{drawn / 1e6:,.1f} million random weights of vision, {tokens} tokens for each tile")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3]))
