"""Answers of the backends to the agreement questions, and what follows from them."""

from typing import Annotated, Literal

from msgspec import field

from harness.model.comparison import Interval
from harness.model.load import LoadPoint
from harness.model.record import UNSET, Record, UnsetType, doc


class StoredAnswer(Record, frozen=True, kw_only=True):
    """One backend's answer to one agreement question."""

    text: Annotated[str, doc("Generated.")]
    finish_reason: Annotated[str | None, doc("As the server says.")]
    outcome: Annotated[str, doc("Of the request: ok, or why not.")]
    error: Annotated[str | None, doc("Of a request that failed.")]
    prompt_tokens: Annotated[int | None, doc("As the server counts.")]
    output_tokens: Annotated[int | None, doc("As the server counts.")]


class AskedCondition(Record, frozen=True, kw_only=True):
    """Answers to the questions asked at one concurrency, alone or between the requests of a load."""

    concurrency: Annotated[int, doc("Questions in flight; with `load` its requests among them.")]
    load: Annotated[
        LoadPoint | UnsetType, doc("Between whose requests they were put; missing: the questions alone.")
    ] = UNSET
    answers: Annotated[dict[str, StoredAnswer], doc("By question.")]


TooLong = Literal["refused", "cut", "read whole"]


class StoredValues(Record, frozen=True, kw_only=True):
    """Values of one backend: vectors or scores of the same texts, alone and in a batch."""

    gives: Annotated[Literal["vectors", "scores"], doc("What an answer is.")]
    alone: Annotated[dict[str, tuple[float, ...]], doc("By text, or by query: asked for one at a time.")]
    together: Annotated[
        dict[str, tuple[float, ...]],
        doc("The same in one batch; of scores with the documents in reverse order."),
    ]
    too_long: Annotated[
        TooLong | UnsetType,
        doc("What became of a text twice as long as the context."),
    ] = UNSET
    library: Annotated[str | UnsetType, doc("Of a reference: what computed it.")] = UNSET


class AskedBackend(Record, frozen=True, kw_only=True):
    """Everything that one backend answered: agreement/backends/LABEL.json."""

    unloaded: Annotated[AskedCondition, doc("One at a time.")]
    saturated: Annotated[AskedCondition, doc("All at once.")]
    values: Annotated[StoredValues | UnsetType, doc("Of an API of vectors or scores.")] = UNSET


class RightCount(Record, frozen=True, kw_only=True):
    """Counts of the questions of one kind."""

    asked: Annotated[int, doc("That were put.")]
    right: Annotated[int, doc("Answered rightly.")]


class ConditionAgreement(Record, frozen=True, kw_only=True):
    """How many answers under one condition are right, and what is wrong with the others."""

    concurrency: Annotated[int, doc("Questions in flight; with `load` its requests among them.")]
    load: Annotated[
        LoadPoint | UnsetType, doc("Between whose requests they were put; missing: the questions alone.")
    ] = UNSET
    accuracy: Annotated[Interval | UnsetType, doc("Share right, 0 to 1, with its 95 % interval.")] = UNSET
    marks: Annotated[str, doc("Of each question in the order of asking: 1 right, 0 wrong, - not asked.")] = ""
    asked: Annotated[int, doc("That were put.")]
    right: Annotated[int, doc("Answered rightly.")]
    by_kind: Annotated[dict[str, RightCount], doc("By kind of question.")]
    faults: Annotated[dict[str, int], doc("Answers that failed, are empty, garbled or repeat themselves.")]


class BackendAgreement(Record, frozen=True, kw_only=True):
    """Right answers of one backend, and what load changed in them."""

    unloaded: Annotated[ConditionAgreement, doc("One at a time.")]
    saturated: Annotated[ConditionAgreement, doc("All at once.")]
    under_load: Annotated[dict[str, int], doc("What became of the answers: same, reworded and worse.")]
    changed: Annotated[dict[str, tuple[str, ...]], doc("Questions by what became of their answers.")]


class Disagreement(Record, frozen=True, kw_only=True):
    """Disagreement between two backends, against what load does to the one that it changes more."""

    answers: Annotated[int, doc("Right from one of the two only.")]
    own: Annotated[int, doc("Right from that one either unloaded or loaded only.")]
    own_asked: Annotated[int, doc("Of so many.")]
    p_value: Annotated[float | None, doc("Fisher's exact test, one-sided; null: nothing to test.")]
    beyond_load: Annotated[bool, doc("More than load does, over all pairs.")]


class PairAgreement(Record, frozen=True, kw_only=True):
    """Agreement of the unloaded answers of two backends, where both answered."""

    a: Annotated[str, doc("Label.")]
    b: Annotated[str, doc("Label.")]
    compared: Annotated[int, doc("Questions that both answered.")]
    same_text: Annotated[int, doc("In the same words.")]
    both_right: Annotated[int, doc("Questions.")]
    only_a_right: Annotated[int, doc("Questions.")]
    only_b_right: Annotated[int, doc("Questions.")]
    both_wrong: Annotated[int, doc("Questions.")]
    p_value: Annotated[float | None, doc("McNemar's exact test; null: they are right in the same ones.")]
    prompt_tokens_compared: Annotated[int, doc("Questions whose prompts both counted.")]
    prompt_tokens_equal: Annotated[int, doc("Of them.")]
    prompt_tokens_difference: Annotated[float | None, doc("Median of b less a.")]
    different: Annotated[tuple[str, ...], doc("Questions answered in other words.")]
    disagreement: Annotated[Disagreement | UnsetType, doc("Against what load does.")] = UNSET


AccuracyVerdict = Literal["loses", "gains", "same", "undecided"]


class AccuracyChange(Record, frozen=True, kw_only=True):
    """Change of `b` against `a` over the same questions; of one label alone under load against unloaded."""

    a: Annotated[str, doc("Label.")]
    b: Annotated[str, doc("Label; the same as `a`: under load against one at a time.")]
    under_load: Annotated[bool, doc("Of the answers under load.")]
    compared: Annotated[int, doc("Questions that both answered, up to the look that decided.")]
    lost: Annotated[int, doc("Right in a alone.")]
    gained: Annotated[int, doc("Right in b alone.")]
    change: Annotated[Interval, doc("Of the share right, b less a, -1 to 1, at the level of this look.")]
    p_value: Annotated[float, doc("McNemar's exact test.")]
    level: Annotated[float, doc("Of this look; of all looks and comparisons of its kind together 0.05.")]
    verdict: Annotated[AccuracyVerdict, doc("About b. same: the change lies within 5 points.")]

    @property
    def words(self) -> str:
        """`loses 3.1 to 8.4 points (31 lost, 6 gained of 400)`."""
        low, _, high = (100 * share for share in self.change)
        counts = f"{self.lost} lost, {self.gained} gained of {self.compared}"
        if self.verdict == "loses":
            return f"loses {-high:.1f} to {-low:.1f} points ({counts})"
        if self.verdict == "gains":
            return f"gains {low:.1f} to {high:.1f} points ({counts})"
        word = "as accurate" if self.verdict == "same" else "undecided"
        return f"{word}: {low:+.1f} to {high:+.1f} points ({counts})"


class ValuesPair(Record, frozen=True, kw_only=True):
    """Similarity of the vectors or scores of two backends, or of one backend alone and in a batch."""

    a: Annotated[str, doc("Label.")]
    b: Annotated[str, doc("Label; the same as `a`: alone against in a batch.")]
    compared: Annotated[int, doc("Texts, or queries, that both answered.")]
    measure: Annotated[Literal["cosine", "rank correlation"], doc("What the next three are.")]
    median: Annotated[float | None, doc("Null: nothing compares.")]
    least: Annotated[float | None, doc("Of the least alike.")]
    limit: Annotated[float, doc("That the least must reach.")]
    alike: Annotated[bool, doc("Whether it does.")]

    @property
    def words(self) -> str:
        """A sentence for people about a pair that is not alike."""
        pair = f"{self.a} alone and in a batch" if self.a == self.b else f"{self.a} and {self.b}"
        if self.least is None:
            return f"{pair}: nothing to compare, or vectors of different sizes"
        return f"{pair}: {self.measure} down to {self.least:.3g}, at least {self.limit:g} is needed"


class ValuesAgreement(Record, frozen=True, kw_only=True):
    """Whether backends that serve one model give the same vectors, or rank in the same order."""

    gives: Annotated[Literal["vectors", "scores"], doc("What an answer is.")]
    texts: Annotated[int, doc("Texts, or queries, that there are.")]
    dimensions: Annotated[dict[str, int], doc("Numbers of a vector, or documents of a query, by label.")]
    pairs: Annotated[tuple[ValuesPair, ...], doc("Each backend with itself, and with each other.")]
    normalised: Annotated[dict[str, bool], doc("Whether vectors have length 1.")] = field(
        default_factory=dict
    )
    too_long: Annotated[dict[str, str], doc("Of texts beyond the context.")] = field(default_factory=dict)
    reference: Annotated[str | UnsetType, doc("Label of the model's own library, where it was here.")] = UNSET

    @property
    def words(self) -> str:
        """Words for people; "" where some are not alike, which the verdicts say."""
        least = [pair.least for pair in self.pairs if pair.alike and pair.least is not None]
        if not self.pairs or len(least) < len(self.pairs):
            return ""
        library = f", also with {self.reference}" if self.reference else ""
        return f"{self.gives.capitalize()} agree{library}: {self.pairs[0].measure} {min(least):.5f} or more."


class Agreement(Record, frozen=True, kw_only=True):
    """Whether the backends answered correctly, alike, and as well under load as without it."""

    questions: Annotated[int, doc("That there are.")]
    kinds: Annotated[dict[str, int], doc("Questions by kind.")]
    backends: Annotated[dict[str, BackendAgreement], doc("By label.")]
    pairs: Annotated[tuple[PairAgreement, ...], doc("Of all backends.")]
    sha256: Annotated[str, doc("Of the questions; empty: not kept.")] = ""
    accuracy: Annotated[
        tuple[AccuracyChange, ...], doc("Each pair in each condition, and each backend under load.")
    ] = ()
    values: Annotated[
        ValuesAgreement | UnsetType, doc("In the place of the others, of vectors and scores.")
    ] = UNSET
