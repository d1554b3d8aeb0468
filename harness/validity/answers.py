"""Answers: whether their texts can be what a model says to these prompts. Of 15,613 published answers of real
engines, models of random weights among them, in 458 cells none breaks one of these rules.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np

from harness.model import IssueCode
from harness.model.numbers import most_first
from harness.records.layout import UNKNOWN
from harness.untrusted.text import one_line
from harness.validity.rule import Evidence, Rule, Violation

# tests/bench/answer_texts.py counts what real models break of these.
SAME_SHARE, SAME_LEAST, SAME_CHARS = 0.15, 5, 32  # of shorter answers a label or a yes may be right
ERROR_SHARE, ERROR_CHARS = 0.01, 400
TOKEN_SHARE, TOKEN_CHARS, TOKEN_TIMES = 0.05, 16, 16  # no token of usual text is longer
ALIKE = 0.75  # of the tokens of an answer; a model that repeats a phrase has at most half of them alike
SILENT_SHARE, SILENT_LEAST = 0.05, 16
_SHOWN_CHARS = 60
_ERROR = re.compile(
    r"\s*(?:"
    r"(?:CUDA|HIP|NCCL|ROCm|cuBLAS)\w* (?:driver |kernel )?(?:error|out of memory)"
    r"|(?-i:(?:\w+\.)*\w*(?:Error|Exception): )"
    r"|Traceback \(most recent call last\)"
    r"|(?:HTTP )?(?:error )?(?:(?:429|50[0-4]):? )?(?:Internal Server Error|Bad Gateway|Too Many Requests"
    r"|Service (?:Temporarily )?Unavailable|Gateway Time-?out)\b"
    r"|upstream (?:connect error|request timeout)"
    r'|\{\s*"(?:error"|object"\s*:\s*"error")'
    r")",
    re.IGNORECASE,
)
_TOKEN = re.compile(rf"\s*(\S.{{0,{TOKEN_CHARS - 1}}}?)\1{{{TOKEN_TIMES - 1},}}", re.DOTALL)


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


def _most_frequent(texts: Iterable[str]) -> tuple[str, int]:
    """The text that comes most often, as it may be shown, and how often."""
    text, count = most_first(Counter(texts))[0]
    return one_line(text, _SHOWN_CHARS), count


@partial(
    Rule,
    code=IssueCode.ERRORS_AS_ANSWERS,
    measures="answers with status 200 whose whole text is the error of an engine or of a gateway",
    limit=f"{ERROR_SHARE:.0%} of the answers",
    hint="the server fails and calls it an answer, so that its figures are too good: see its log",
    cause="engine",
    eases=True,
)
def _errors(cell: Evidence) -> Iterator[Violation]:
    answers = [text for _, text in _texts(cell)]
    errors = [text for text in answers if len(text) <= ERROR_CHARS and _ERROR.match(text)]
    if len(errors) > ERROR_SHARE * len(answers):
        yield Violation(f'{len(errors)} of {len(answers)} answers: "{_most_frequent(errors)[0]}"')


@partial(
    Rule,
    code=IssueCode.ANSWERS_SAME,
    measures="answers to different prompts that are the same text, letter for letter; judged where no two "
    f"prompts are equal, of first turns and of answers of {SAME_CHARS} characters or more",
    limit=f"{SAME_SHARE:.0%} of the answers, {SAME_LEAST} at least",
    hint="no model says the same to other prompts: a cache or a gateway may answer, or the server does not "
    "read the prompt; ask it two questions with `curl`. Where prompts ask for the same, it is no fault",
    cause="engine",
    eases=True,
)
def _same(cell: Evidence) -> Iterator[Violation]:
    if not cell.facts.workload.prompts_differ or cell.requested is None:
        return
    numbers = cell.requested.numbers
    first = (numbers["turn"] <= 0) & (numbers["kept"] <= 0)
    seqs = cell.records.requests["seq"]
    answers = [text for row, text in _texts(cell) if first[seqs[row]]]
    long = [text for text in answers if len(text) >= SAME_CHARS]
    text, count = _most_frequent(long) if long else ("", 0)
    if count >= SAME_LEAST and count > SAME_SHARE * len(answers):
        yield Violation(f'{count} of {len(answers)} answers are the same text: "{text}"')


@partial(
    Rule,
    code=IssueCode.ONE_TOKEN_REPEATED,
    measures=f"answers of {TOKEN_TIMES} tokens or more that are one token over and over",
    limit=f"{TOKEN_SHARE:.0%} of the answers",
    hint="such text is what broken weights, a broken kernel or values that overflow give: ask the server a "
    "question with `curl`, and try another number type or attention backend",
    cause="engine",
    eases=True,
)
def _one_token(cell: Evidence) -> Iterator[Violation]:
    answers, rows = list(_texts(cell)), cell.records.requests
    broken = [
        text
        for row, text in answers
        if _times(text) > ALIKE * max(rows["output_tokens"][row], rows["text_events"][row])
    ]
    if len(broken) > TOKEN_SHARE * len(answers):
        yield Violation(f'{len(broken)} of {len(answers)} answers: "{_most_frequent(broken)[0]}"')


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
    "tokens, without tool calls and reasoning",
    limit=f"{SILENT_SHARE:.0%} of the answers",
    hint="most of these tokens have no text: special tokens after the end of an answer, or empty events that "
    "are counted; compare characters/s, and look at a stream with `curl`",
    cause="engine",
    eases=True,
)
def _silent(cell: Evidence) -> Iterator[Violation]:
    rows = cell.records.requests
    judged = (rows["output_tokens"] >= SILENT_LEAST) & (rows["reasoning_tokens"] <= 0)
    judged &= rows["first_reasoning_ns"] == UNKNOWN
    answers = [(row, text) for row, text in _texts(cell) if judged[row]]
    sizes = [(int(rows["output_tokens"][row]), len(text.encode())) for row, text in answers]
    few = np.array([(tokens, size) for tokens, size in sizes if size < tokens])
    if len(few) > SILENT_SHARE * len(answers):
        tokens, size = few.mean(axis=0)
        yield Violation(
            f"{len(few)} of {len(answers)} answers: {tokens:.1f} tokens in {size:.1f} bytes of text (means)"
        )


RULES = (_errors, _same, _one_token, _silent)
