"""Answers: whether their texts can be what a model says to these prompts. Of 15,613 published answers of real
engines, models of random weights among them, in 458 cells none breaks a rule that needs no prompt. None of
312 answers of SmolLM2 gives its prompt back.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from harness.model import IssueCode
from harness.model.numbers import most_first
from harness.records.layout import UNKNOWN
from harness.untrusted.text import one_line
from harness.validity.rule import Evidence, Rule, Violation

# tests/bench/answer_texts.py counts what real models break of these.
# Models begin alike: SmolLM2 gave one text of up to 32 tokens to 17% of the prompts of a cell at most, and no
# longer one twice.
SAME_SHARE, SAME_LEAST, SAME_TOKENS = 1 / 3, 5, 48
ERROR_SHARE, ERROR_CHARS = 0.01, 400
TOKEN_SHARE, TOKEN_CHARS, TOKEN_TIMES = 0.05, 16, 16  # no token of usual text is longer
ALIKE = 0.75  # of the tokens of an answer; a model that repeats a phrase has at most half of them alike
SILENT_SHARE, SILENT_LEAST = 0.05, 16
ECHO_CHARS = 48  # of the beginnings of a prompt: an answer may well repeat a short question
_SHOWN_CHARS = 60
# Messages, not sentences about them: a model may be asked what an error means, or what a program prints.
_ERROR = re.compile(
    r"\s*(?:"
    r"(?:torch|vllm|sglang|litellm|openai)[\w.]*\.\w*(?:Error|Exception): "
    r"|(?:\w*(?:Error|Exception): )?(?:"
    r"(?:CUDA|HIP|NCCL|ROCm|cuBLAS)\w* (?:driver |kernel )?error: "
    r"|(?:CUDA|HIP|ROCm) out of memory(?:\. Tried to allocate|\.?\s*$)"
    r"|probability tensor contains )"
    r"|(?:HTTP )?(?:error )?(?:(?:429|50[0-4]):? )?(?:Internal Server Error|Bad Gateway|Too Many Requests"
    r"|Service (?:Temporarily )?Unavailable|Gateway Time-?out)[.!]?\s*$"
    r"|upstream (?:connect error|request timeout)"
    r'|\{\s*"(?:error"\s*:\s*\{\s*"message"|object"\s*:\s*"error")'
    r")",
    re.IGNORECASE,
)
_TOKEN = re.compile(rf"\s*?(.{{1,{TOKEN_CHARS}}}?)\1{{{TOKEN_TIMES - 1},}}", re.DOTALL)


def _texts(cell: Evidence) -> Iterator[tuple[int, str]]:
    """The rows of whole answers in words of the model's own, with their texts.

    Leaves out tool calls, and answers to requests that expect a certain one.
    """
    records, texts = cell.records, cell.records.texts
    places = np.flatnonzero(cell.view.answered[: len(texts)])
    if cell.requested is not None:
        seqs = records.requests["seq"][places]
        places = places[cell.requested.numbers["expected"][seqs] < 0]
    for row in places.tolist():
        if texts[row] and not (records.tool_calls and records.tool_calls[row]):
            yield row, texts[row]


def _meant(cell: Evidence) -> Iterator[tuple[int, str]]:
    """The same, of weights that are not random: such a model may answer all prompts with one token."""
    return iter(()) if cell.facts.random_weights else _texts(cell)


def _most_frequent(texts: Iterable[str]) -> tuple[str, int]:
    """The text that comes most often, as it may be shown, and how often."""
    text, count = most_first(Counter(texts))[0]
    shown = one_line(text, _SHOWN_CHARS)
    return f'"{shown}"' if shown else "white space", count


def _tokens(cell: Evidence) -> NDArray[np.int32]:
    """Tokens of each answer; events, where a server counts fewer tokens than it sends."""
    rows = cell.records.requests
    tokens: NDArray[np.int32] = np.maximum(rows["output_tokens"], rows["text_events"])
    return tokens


@partial(
    Rule,
    code=IssueCode.ERRORS_AS_ANSWERS,
    measures="answers with status 200 whose whole text is the error of an engine or of a gateway",
    limit=f"{ERROR_SHARE:.0%} of the answers",
    hint="the server fails and calls it an answer, so that its figures are too good: see its log. It is no "
    "fault where prompts ask for such a text",
    cause="engine",
    eases=True,
    certain=True,
)
def _errors(cell: Evidence) -> Iterator[Violation]:
    answers = [text for _, text in _texts(cell)]
    errors = [text for text in answers if len(text) <= ERROR_CHARS and _ERROR.match(text)]
    if len(errors) > ERROR_SHARE * len(answers):
        yield Violation(f"{len(errors)} of {len(answers)} answers: {_most_frequent(errors)[0]}")


@partial(
    Rule,
    code=IssueCode.ANSWERS_SAME,
    measures="answers to different prompts that are the same text, letter for letter; of first turns, of "
    f"answers of {SAME_TOKENS} tokens or more that are no JSON, and not of random weights",
    limit=f"{SAME_SHARE:.0%} of the answers, to {SAME_LEAST} prompts at least",
    hint="a cache or a gateway may answer, or the server does not read the prompt: ask it two questions with "
    "`curl`. It is no fault where weights are dummies, or where these prompts have one right answer",
    cause="engine",
    eases=True,
    certain=True,
)
def _same(cell: Evidence) -> Iterator[Violation]:
    equal = cell.facts.workload.equal_prompts
    if not equal or cell.requested is None:
        return
    numbers, tokens = cell.requested.numbers, _tokens(cell)
    first = (numbers["turn"] <= 0) & (numbers["kept"] <= 0)
    seqs = cell.records.requests["seq"]
    answers = [(row, text) for row, text in _meant(cell) if first[seqs[row]]]
    long = [text for row, text in answers if tokens[row] >= SAME_TOKENS and not text.lstrip().startswith("{")]
    text, count = _most_frequent(long) if long else ("", 0)
    # Each prompt may have brought the text `equal` times: greedy, a model answers it alike each time.
    if count > SAME_SHARE * len(answers) and count > (SAME_LEAST - 1) * equal:
        yield Violation(f"{count} of {len(answers)} answers are the same text: {text}")


@partial(
    Rule,
    code=IssueCode.PROMPT_ECHOED,
    measures="answers to first turns that hold the beginnings of all messages sent, in their order and "
    f"outside of code blocks; not where these have fewer than {ECHO_CHARS} characters",
    limit=f"{SAME_SHARE:.0%} of the answers, {SAME_LEAST} at least",
    hint="the server gives the prompt back, so that TTFT is of a text it need not compute: have it leave the "
    "prompt out (`skip_prompt`, `return_full_text`, `echo`). It is no fault where prompts ask for it",
    cause="engine",
    eases=True,
    certain=True,
)
def _echoed(cell: Evidence) -> Iterator[Violation]:
    if not cell.facts.echoed or cell.requested is None:
        return
    count, turns = cell.facts.echoed, cell.requested.numbers["turn"][cell.view.answers["seq"]]
    answers = int(np.count_nonzero(turns <= 0))
    if count >= SAME_LEAST and count > SAME_SHARE * answers:
        yield Violation(f"{count} of {answers} answers hold their own prompt")


@partial(
    Rule,
    code=IssueCode.ONE_TOKEN_REPEATED,
    measures=f"answers of {TOKEN_TIMES} tokens or more, as the server counts them, that are one token "
    "over and over, not of random weights",
    limit=f"{TOKEN_SHARE:.0%} of the answers",
    hint="so answer broken weights, a broken kernel or values that overflow: ask the server a question with "
    "`curl`, and try another number type or attention backend. It is no fault where weights are dummies",
    cause="engine",
    eases=True,
    certain=True,
)
def _one_token(cell: Evidence) -> Iterator[Violation]:
    answers, tokens = list(_meant(cell)), _tokens(cell)
    long = cell.records.requests["output_tokens"] >= TOKEN_TIMES  # an event may have many tokens
    broken = [text for row, text in answers if long[row] and _times(text) > ALIKE * tokens[row]]
    if len(broken) > TOKEN_SHARE * len(answers):
        yield Violation(f"{len(broken)} of {len(answers)} answers: {_most_frequent(broken)[0]}")


def _times(text: str) -> float:
    """How often the piece comes that nearly all of a text consists of; 0 where there is none."""
    found = _TOKEN.match(text)
    if found is None or found.end() < 0.9 * len(text):
        return 0
    return (found.end() - found.start(1)) / len(found[1])


@partial(
    Rule,
    code=IssueCode.TOKENS_WITHOUT_TEXT,
    measures=f"answers of {SILENT_LEAST} tokens or more whose text has fewer bytes than the server counted "
    "tokens, without tool calls and reasoning, not of random weights",
    limit=f"{SILENT_SHARE:.0%} of the answers",
    hint="most of these tokens have no text: special tokens after the end of an answer, reasoning that is "
    "not sent, or empty events; compare characters/s, and look at a stream with `curl`",
    cause="engine",
    eases=True,
    certain=True,
)
def _silent(cell: Evidence) -> Iterator[Violation]:
    rows = cell.records.requests
    judged = (rows["output_tokens"] >= SILENT_LEAST) & (rows["reasoning_tokens"] <= 0)
    judged &= rows["first_reasoning_ns"] == UNKNOWN
    answers = [(row, text) for row, text in _meant(cell) if judged[row]]
    sizes = [(int(rows["output_tokens"][row]), len(text.encode())) for row, text in answers]
    few = np.array([(tokens, size) for tokens, size in sizes if size < tokens])
    if len(few) > SILENT_SHARE * len(answers):
        tokens, size = few.mean(axis=0)
        yield Violation(
            f"{len(few)} of {len(answers)} answers: {tokens:.1f} tokens in {size:.1f} bytes of text (means)"
        )


RULES = (_errors, _same, _echoed, _one_token, _silent)
