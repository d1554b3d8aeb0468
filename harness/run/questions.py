"""Asks the engines of a run the agreement questions, and stores their answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from harness import agreement
from harness.apis import APIS
from harness.engines.session import EngineSession
from harness.errors import SetupError
from harness.model import AskedBackend
from harness.run.interrupts import Interrupts
from harness.run.keep.manifest import ManifestWriter
from harness.run.measure.agreement_answers import (
    ACCURACY_LIMIT_S,
    Asking,
    agreement_wanted,
    ask_all,
    questions_of,
)
from harness.run.measure.agreement_load import under_load
from harness.run.measure.agreement_values import ask_values, reference_values
from harness.run.measure.workloads import Workloads
from harness.run.setup.options import Ui
from harness.run.setup.prepare import BackendPlan, Prepared
from harness.store import RunFolder
from harness.validity import notices


@dataclass(frozen=True, slots=True)
class Questions:
    """The agreement questions of one run."""

    prepared: Prepared
    folder: RunFolder
    manifest: ManifestWriter
    ui: Ui
    interrupts: Interrupts

    def unasked(self, label: str) -> bool:
        """Whether this backend still has to answer the questions."""
        return agreement_wanted(self.prepared) and label not in self.folder.read_answers()[1]

    def ask(self, backend: BackendPlan, engine: EngineSession, workloads: Callable[[], Workloads]) -> bool:
        """Stores the answers of one engine, or warns why there are none; returns whether it was interrupted.

        `workloads` makes the requests of the load that the questions go between.
        """
        label, definition = backend.label, backend.ref.definition
        of_text = APIS[definition.dialect.api].gives == "text"
        questions = questions_of(self.prepared.options) if of_text else agreement.load_questions()
        asked, missing, hint, interrupted = None, _death(engine), None, False
        if missing is None:
            try:
                with self.interrupts.window() as stop:
                    if not of_text:
                        asked = ask_values(self.prepared, engine, questions)
                    else:
                        say = partial(self._stage, label)
                        asking = self._asking(label, engine, workloads)
                        asked = ask_all(definition, engine, questions, say, stop, asking)
            except SetupError as error:
                missing, hint = str(error), error.hint or None
            interrupted = stop.is_set()
            if not interrupted and (asked is None or _failed(asked)):
                missing = _death(engine, suspected=True) or missing
        if missing:
            self.manifest.warn(notices.AGREEMENT_MISSING.warning(f"{label}: {missing}", hint, label))
        elif asked is not None:
            self.folder.write_answers(agreement.as_json(questions), label, asked)
            self.manifest.withdraw(notices.AGREEMENT_MISSING, label)  # of an earlier start
            if asked.values:
                self._reference(questions)
        return interrupted

    def _asking(self, label: str, engine: EngineSession, workloads: Callable[[], Workloads]) -> Asking:
        """How the questions are put: between requests of the load if an accuracy was asked for."""
        between = workloads().between if self.prepared.options.accuracy else None
        if between is None:
            return Asking()
        known = self.folder.read_answers()[1]
        before = [
            known[backend.label]
            for backend in self.prepared.backends
            if backend.label in known and backend.label != label
        ]
        return Asking(
            ACCURACY_LIMIT_S,
            under_load(self.prepared, between, engine),
            before,
            len(self.prepared.backends),
        )

    def _reference(self, questions: Sequence[agreement.Question]) -> None:
        """Stores the values that the model's own library gives for the same texts, once in a run."""
        if any(
            backend.values and backend.values.library for backend in self.folder.read_answers()[1].values()
        ):
            return
        try:
            reference = reference_values(self.prepared, questions, partial(self._stage, "reference"))
        except SetupError as error:
            self.manifest.warn(notices.AGREEMENT_MISSING.warning(f"reference: {error}", error.hint or None))
            return
        self.manifest.withdraw(notices.AGREEMENT_MISSING)  # of an earlier try
        for label, asked in reference.items():
            self.folder.write_answers(agreement.as_json(questions), label, asked)

    def _stage(self, label: str, text: str) -> None:
        self.ui.stage(f"{label}: {text}")


def _death(engine: EngineSession, *, suspected: bool = False) -> str | None:
    ending = engine.liveness.look(suspected=suspected)
    return ending.sentence() if ending else None


def _failed(asked: AskedBackend) -> bool:
    """Whether a question got no answer."""
    conditions = (asked.unloaded, asked.saturated)
    return any(answer.outcome != "ok" for condition in conditions for answer in condition.answers.values())
