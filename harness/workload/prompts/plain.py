"""Makes prompts of which no two begin alike."""

from collections.abc import Iterator
from itertools import accumulate, repeat
from random import Random

from harness.records.request_table import Expected
from harness.spec.scenario.synthetic import Classification, CopyAndWrite, FixedLength, Mix
from harness.workload.prompts.lengths import spread
from harness.workload.prompts.request import ChatRequest
from harness.workload.prompts.text import TextMaker
from harness.workload.prompts.topics import about

COPY, WRITE = "copy", "write"
_ASKED = {
    COPY: "\n\nRepeat the text above word for word, without any comment.",
    WRITE: "\n\nContinue the text above with new events, in your own words.",
}


def fixed_length(spec: FixedLength, count: int, random: Random, texts: TextMaker) -> Iterator[ChatRequest]:
    lengths = spread(repeat(spec.output_tokens, count), spec.output_spread, random)
    for output, text in zip(lengths, texts.stream(repeat(spec.input_tokens, count), random), strict=True):
        yield ChatRequest((("user", text),), output, spec.input_tokens)


def mix(spec: Mix, count: int, random: Random, texts: TextMaker) -> Iterator[ChatRequest]:
    weights = list(accumulate(length_class.weight for length_class in spec.classes))
    choice = Random(random.random())
    drawn = choice.choices(spec.classes, cum_weights=weights, k=count)
    lengths = spread((length_class.output_tokens for length_class in drawn), spec.output_spread, random)
    prompts = texts.stream((length_class.input_tokens for length_class in drawn), random)
    for length_class, output, text in zip(drawn, lengths, prompts, strict=True):
        yield ChatRequest((("user", text),), output, length_class.input_tokens, kind=length_class.name)


def classification(
    spec: Classification, count: int, random: Random, texts: TextMaker
) -> Iterator[ChatRequest]:
    """Yields texts with a unique beginning, sentences about the topic, and the question at the end."""
    expected: dict[str, Expected] = {
        label: Expected("label", {"label": label, "labels": list(spec.labels)}, label)
        for label in spec.labels
    }
    question = f"\n\nWhich topic is this text about: {', '.join(spec.labels)}? Answer with that word only."
    choice = Random(random.random())

    def messages() -> Iterator[tuple[str, str]]:
        for text in texts.stream((spec.text_tokens for _ in range(count)), random):
            label = choice.choice(spec.labels)
            yield label, f"{text} {about(label, 3, choice)}{question}"

    for (label, message), tokens in texts.counted(messages(), lambda prompts: prompts[1]):
        yield ChatRequest((("user", message),), spec.output_tokens, tokens, expected=expected[label])


def copy_and_write(spec: CopyAndWrite, count: int, random: Random, texts: TextMaker) -> Iterator[ChatRequest]:
    """Alternates the two kinds, so that both are in flight together."""
    lengths = spread(repeat(spec.output_tokens, count), spec.output_spread, random)

    def messages() -> Iterator[tuple[str, str]]:
        passages = texts.stream((spec.passage_tokens for _ in range(count)), random)
        for index, passage in enumerate(passages):
            kind = WRITE if index % 2 else COPY
            yield kind, passage + _ASKED[kind]

    counted = texts.counted(messages(), lambda prompts: prompts[1])
    for output, ((kind, message), tokens) in zip(lengths, counted, strict=True):
        yield ChatRequest((("user", message),), output, tokens, kind=kind)
