"""Answers of the backends to the agreement questions, and what follows from them."""

from typing import Annotated, Literal

from msgspec import field

from harness.model.comparison import Interval
from harness.model.load import LoadPoint
from harness.model.numbers import digits_apart, short, signed
from harness.model.record import UNSET, Record, UnsetType, doc


class StoredAnswer(Record, frozen=True, kw_only=True):
    """One backend's answer to one agreement question."""

    text: Annotated[str, doc("Text that the backend generated.")]
    finish_reason: Annotated[str | None, doc("Finish reason that the server reported; null: none.")]
    outcome: Annotated[str, doc("Outcome of the request: ok, or the kind of failure.")]
    error: Annotated[str | None, doc("Error of the request; null: none.")]
    prompt_tokens: Annotated[
        int | None, doc("Tokens of the prompt, as the server counts them; null: not reported.")
    ]
    output_tokens: Annotated[
        int | None, doc("Tokens of the answer, as the server counts them; null: not reported.")
    ]


class AskedCondition(Record, frozen=True, kw_only=True):
    """Answers to the questions asked at one concurrency, alone or between the requests of a load."""

    concurrency: Annotated[int, doc("Most questions in flight at once; with `load`, its requests included.")]
    load: Annotated[
        LoadPoint | UnsetType,
        doc("Load point between whose requests the questions were asked; missing: questions alone."),
    ] = UNSET
    answers: Annotated[dict[str, StoredAnswer], doc("Answers by id of the question.")]


TooLong = Literal["refused", "cut", "read whole"]


class StoredValues(Record, frozen=True, kw_only=True):
    """Values of one backend: vectors or scores of the same texts, alone and in a batch."""

    gives: Annotated[Literal["vectors", "scores"], doc("Kind of answer that the API gives.")]
    alone: Annotated[
        dict[str, tuple[float, ...]],
        doc("Vector of each text asked for alone, or scores of each query's documents, by question id."),
    ]
    together: Annotated[
        dict[str, tuple[float, ...]],
        doc("Vectors of all texts in one batch, or scores with the documents sent in reverse order."),
    ]
    too_long: Annotated[
        TooLong | UnsetType, doc("Result for a text twice as long as the context; missing: not tried.")
    ] = UNSET
    library: Annotated[
        str | UnsetType,
        doc("Library that computed these values as a reference; missing: an engine gave them."),
    ] = UNSET


class AskedBackend(Record, frozen=True, kw_only=True):
    """Everything that one backend answered: agreement/backends/LABEL.json."""

    unloaded: Annotated[AskedCondition, doc("Answers to questions asked one at a time.")]
    saturated: Annotated[
        AskedCondition,
        doc("Answers under load: to all questions at once, or between the requests of a load."),
    ]
    values: Annotated[
        StoredValues | UnsetType,
        doc("Vectors or scores of an embeddings or rerank API; missing: answers are text."),
    ] = UNSET


class RightCount(Record, frozen=True, kw_only=True):
    """Counts of the questions of one kind."""

    asked: Annotated[int, doc("Questions of this kind that were asked.")]
    right: Annotated[int, doc("Questions of this kind that were answered correctly.")]


class ConditionAgreement(Record, frozen=True, kw_only=True):
    """How many answers under one condition are right, and what is wrong with the others."""

    concurrency: Annotated[int, doc("Most questions in flight at once; with `load`, its requests included.")]
    load: Annotated[
        LoadPoint | UnsetType,
        doc("Load point between whose requests the questions were asked; missing: questions alone."),
    ] = UNSET
    accuracy: Annotated[
        Interval | UnsetType,
        doc("Share of correct answers, 0 to 1: low, estimate, high at 95%; missing: none asked."),
    ] = UNSET
    marks: Annotated[
        str, doc("Mark of each question in the order of asking: 1 right, 0 wrong, - not asked.")
    ] = ""
    asked: Annotated[int, doc("Questions that were asked.")]
    right: Annotated[int, doc("Questions that were answered correctly.")]
    by_kind: Annotated[
        dict[str, RightCount], doc("Questions asked and answered correctly, by kind of question.")
    ]
    faults: Annotated[
        dict[str, int],
        doc("Number of answers that failed, are empty, garbled or repeat themselves, by fault."),
    ]


class BackendAgreement(Record, frozen=True, kw_only=True):
    """Right answers of one backend, and what load changed in them."""

    unloaded: Annotated[
        ConditionAgreement, doc("Correct and faulty answers to questions asked one at a time.")
    ]
    saturated: Annotated[ConditionAgreement, doc("Correct and faulty answers under load.")]
    under_load: Annotated[
        dict[str, int], doc("Number of answers by what load made of them, such as same, reworded or failed.")
    ]
    changed: Annotated[
        dict[str, tuple[str, ...]],
        doc("Ids of the questions whose answers load changed, by what it made of them."),
    ]


class Disagreement(Record, frozen=True, kw_only=True):
    """Disagreement between two backends, against what load does to the one that explains it better."""

    answers: Annotated[int, doc("Questions that exactly one of the two backends answered correctly.")]
    own: Annotated[
        int, doc("Questions that one backend, the one that explains more, got right in one condition only.")
    ]
    own_asked: Annotated[int, doc("Questions that this backend was asked in both conditions.")]
    p_value: Annotated[
        float | None,
        doc("One-sided p of Fisher's exact test that they differ more than load explains; null: no answers."),
    ]
    beyond_load: Annotated[bool, doc("Whether the two differ more than load explains, at 5% over all pairs.")]


class PairAgreement(Record, frozen=True, kw_only=True):
    """Agreement of the unloaded answers of two backends, where both answered."""

    a: Annotated[str, doc("Label of the first backend.")]
    b: Annotated[str, doc("Label of the second backend.")]
    compared: Annotated[int, doc("Questions that both backends were asked, one at a time.")]
    same_text: Annotated[int, doc("Questions that both answered with the same text, failures left out.")]
    both_right: Annotated[int, doc("Questions that both answered correctly.")]
    only_a_right: Annotated[int, doc("Questions that a alone answered correctly.")]
    only_b_right: Annotated[int, doc("Questions that b alone answered correctly.")]
    both_wrong: Annotated[int, doc("Questions that neither answered correctly.")]
    p_value: Annotated[
        float | None, doc("Two-sided p of McNemar's exact test; null: both are right in the same questions.")
    ]
    prompt_tokens_compared: Annotated[int, doc("Questions whose prompt tokens both servers counted.")]
    prompt_tokens_equal: Annotated[int, doc("Questions for which these two counts are equal.")]
    prompt_tokens_difference: Annotated[
        float | None, doc("Median of b's prompt tokens less a's, over these questions; null: no counts.")
    ]
    different: Annotated[
        tuple[str, ...], doc("Ids of the questions that they answered with different texts, or one failed.")
    ]
    disagreement: Annotated[
        Disagreement | UnsetType,
        doc("Disagreement of the two, against what load changes; missing: not recorded."),
    ] = UNSET


MARGIN = 0.05  # change of a share within which nothing was lost that matters
AccuracyVerdict = Literal["loses", "gains", "same", "undecided"]


class AccuracyChange(Record, frozen=True, kw_only=True):
    """Change of `b` against `a` over the same questions; of one label alone under load against unloaded."""

    a: Annotated[str, doc("Label of the backend that b is compared with.")]
    b: Annotated[
        str, doc("Label of the backend that changed; the same as `a` within one run: its answers under load.")
    ]
    under_load: Annotated[bool, doc("Whether the answers of b were given under load.")]
    compared: Annotated[int, doc("Questions that both were asked, up to the look that decided.")]
    lost: Annotated[int, doc("Questions that a alone answered correctly.")]
    gained: Annotated[int, doc("Questions that b alone answered correctly.")]
    change: Annotated[
        Interval,
        doc("Share of correct answers, b less a, -1 to 1: low, estimate, high at this look's level."),
    ]
    p_value: Annotated[float, doc("Two-sided p of McNemar's exact test.")]
    level: Annotated[
        float, doc("Significance level of this look; all looks and comparisons of its kind share 0.05.")
    ]
    verdict: Annotated[
        AccuracyVerdict, doc("Verdict about b's accuracy; same: the change lies within 5 points.")
    ]

    @property
    def ends(self) -> tuple[str, str]:
        """Ends of the interval in points. Neither reads as 0, or as the margin, where the verdict says
        otherwise.
        """
        low, high = (
            signed(end, digits_apart(end, 0.0, -100 * MARGIN, 100 * MARGIN, least=1, shown=signed))
            for end in (100 * self.change.low, 100 * self.change.high)
        )
        return low, high

    @property
    def words(self) -> str:
        """`loses 3.1 to 8.4 points (31 lost, 6 gained of 400)`."""
        low, high = self.ends
        counts = f"{self.lost} lost, {self.gained} gained of {self.compared}"
        if self.verdict == "loses":
            return f"loses {high[1:]} to {low[1:]} points ({counts})"
        if self.verdict == "gains":
            return f"gains {low[1:]} to {high[1:]} points ({counts})"
        word = "as accurate" if self.verdict == "same" else "undecided"
        return f"{word}: {low} to {high} points ({counts})"


class ValuesPair(Record, frozen=True, kw_only=True):
    """Similarity of the vectors or scores of two backends, or of one backend alone and in a batch."""

    a: Annotated[str, doc("Label of the first backend.")]
    b: Annotated[str, doc("Label of the second backend; the same as `a`: alone against in a batch.")]
    compared: Annotated[int, doc("Texts, or queries, that both answered.")]
    measure: Annotated[
        Literal["cosine", "rank correlation"],
        doc("Measure of similarity that `median`, `least` and `limit` are in."),
    ]
    median: Annotated[
        float | None, doc("Median similarity over the texts or queries; null: nothing compares.")
    ]
    least: Annotated[float | None, doc("Lowest similarity of any text or query; null: nothing compares.")]
    limit: Annotated[float, doc("Lowest similarity that counts as alike.")]
    alike: Annotated[bool, doc("Whether every text or query compares and reaches the limit.")]

    @property
    def words(self) -> str:
        """A sentence for people about a pair that is not alike."""
        pair = f"{self.a} alone and in a batch" if self.a == self.b else f"{self.a} and {self.b}"
        if self.least is None:
            return f"{pair}: nothing to compare, or vectors of different sizes"
        if self.least >= self.limit:
            return f"{pair}: not all compare: sizes differ, or the values of one are all equal"
        digits = digits_apart(self.least, self.limit, least=3, shown=short)
        return (
            f"{pair}: {self.measure} down to {short(self.least, digits)}, at least {self.limit:g} is needed"
        )


class ValuesAgreement(Record, frozen=True, kw_only=True):
    """Whether backends that serve one model give the same vectors, or rank in the same order."""

    gives: Annotated[Literal["vectors", "scores"], doc("Kind of answer that the API gives.")]
    texts: Annotated[int, doc("Number of texts, or of queries, that were asked for.")]
    dimensions: Annotated[
        dict[str, int], doc("Length of a vector, or number of documents per query, by label of the backend.")
    ]
    pairs: Annotated[
        tuple[ValuesPair, ...],
        doc("Similarity of each backend alone and in a batch, and of each pair of backends."),
    ]
    normalised: Annotated[
        dict[str, bool], doc("Whether vectors have length 1, by label of the backend; empty: scores.")
    ] = field(default_factory=dict)
    too_long: Annotated[
        dict[str, str], doc("Result for a text beyond the context, by label: refused, cut or read whole.")
    ] = field(default_factory=dict)
    reference: Annotated[
        str | UnsetType,
        doc("Label of the model's own library, which computed the same values; missing: none."),
    ] = UNSET

    @property
    def words(self) -> str:
        """Words for people; "" where some are not alike, which the verdicts say."""
        least = [pair.least for pair in self.pairs if pair.alike and pair.least is not None]
        if not self.pairs or len(least) < len(self.pairs):
            return ""
        library = f", also with {self.reference}" if self.reference else ""
        lowest = f"{min(least):.5f}"
        more = " or more" if float(lowest) < 1 else ""
        return f"{self.gives.capitalize()} agree{library}: {self.pairs[0].measure} {lowest}{more}."


class Agreement(Record, frozen=True, kw_only=True):
    """Whether the backends answered correctly, alike, and as well under load as without it."""

    questions: Annotated[int, doc("Number of agreement questions; 0: vectors or scores were compared.")]
    kinds: Annotated[dict[str, int], doc("Number of questions by kind.")]
    backends: Annotated[
        dict[str, BackendAgreement],
        doc("Correct answers of each backend, and what load changed in them, by label."),
    ]
    pairs: Annotated[
        tuple[PairAgreement, ...], doc("Agreement of the unloaded answers of each pair of backends.")
    ]
    sha256: Annotated[str, doc("SHA-256 of the questions as they were asked; empty: not kept.")] = ""
    accuracy: Annotated[
        tuple[AccuracyChange, ...],
        doc("Change in correct answers: of each pair in each condition, and of each backend under load."),
    ] = ()
    values: Annotated[
        ValuesAgreement | UnsetType,
        doc("Agreement of vectors or scores, instead of the other keys; missing: answers are text."),
    ] = UNSET
