"""Requests: how many were answered, and what became of the others."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial

import numpy as np
from msgspec.structs import replace

from harness.metrics.quality import form_refused, unanswered
from harness.metrics.sample_size import MIN_ANSWERS, MIN_SECONDS, requests_needed, sample, times_needed
from harness.metrics.view import Mask
from harness.model import UNSET, Doubt, Imported, IssueCode, UnsetType
from harness.model.numbers import apart, counted, most_first, percent_apart
from harness.records.finish import Finish, finish_of
from harness.records.layout import UNKNOWN, Outcome
from harness.untrusted.text import one_line
from harness.validity.rule import Evidence, Rule, Violation

MAX_FAILED_SHARE = 0.01
MAX_DROPPED_SHARE = 0.01
MAX_CONNECTING_SHARE = 0.02
MIN_SAMPLES = 5  # fewer have no median
_MOST_NAMED = 3
_LESS = "the server refuses what it has no room for: lower the load, or raise its limits; see its log"
_KEY = "the key was refused during the load: does it end, or has a gateway a quota? See --api-key-env"
_ELSEWHERE = "the server redirects, which is not followed: give the address it names (`curl -i` shows it)"
_PROXY = "a proxy got no answer from the engine: see its time limits, and the logs of both"
_CUT = "the server, or a proxy before it, closed connections: see its log, and the time limits of the proxy"
_CERTIFICATE = "the server's certificate expired or was replaced during the run: renew it, or --ca-cert FILE"
# What Python puts around the text of the system and of OpenSSL.
_MARKS = re.compile(r"^\[(?:SSL: \w+|Errno -?\d+)\] | \(_ssl\.c:\d+\)$")
# What to do, by the status or outcome that most failures have.
_HINTS = {
    **dict.fromkeys(("HTTP 429", "HTTP 503", "HTTP 529"), _LESS),  # the last is Anthropic's
    **dict.fromkeys(("HTTP 401", "HTTP 403"), _KEY),
    **dict.fromkeys(("HTTP 301", "HTTP 302", "HTTP 303", "HTTP 307", "HTTP 308"), _ELSEWHERE),
    **dict.fromkeys(("HTTP 502", "HTTP 504"), _PROXY),
    **dict.fromkeys(("reset", "truncated", "unfinished"), _CUT),
    "timeout": "lower the load, shorten inputs or answers, or raise --set request.timeout_s; where a few "
    "users wait as long, see the engine's log",
    "connect failed": "nothing took connections there: the server, or a proxy before it, ended or restarted; "
    "see its log",
    "lost": "no fault of the engine: a load process ended; where it was killed, `dmesg` may say why",
    "malformed": "no engine answers so: look with `curl -i` for a login page or the page of a proxy",
}
_ERROR_CHARS = 80


def _count(cell: Evidence, outcome: Outcome) -> tuple[int, int]:
    """Measured requests that ended so, and all of them; for imported figures as their tool counted."""
    if (file := _summed(cell)) is not None:
        ok = file.answered or 0
        return ok if outcome == Outcome.OK else 0, ok + (file.failed or 0)
    rows = cell.view.measured_requests
    return int(np.count_nonzero(rows["outcome"] == outcome)), len(rows)


def _summed(cell: Evidence) -> Imported | None:
    """The imported file if it has figures and no requests."""
    file = cell.facts.imported
    return file if file is not None and file.level == "summary" else None


@partial(
    Rule,
    code=IssueCode.FORM_REFUSED,
    measures="requests refused for a schema or pattern that the engine does not take; "
    "they do not count as failed requests",
    limit="0",
    hint="this engine does not take these schemas: the answers' notes say why; others did more work",
    cause="work",
    eases=True,
)
def _form_refused(cell: Evidence) -> Iterator[Violation]:
    rows = cell.view.measured_requests
    if forms := int(np.count_nonzero(form_refused(rows, cell.requested))):
        yield Violation(f"{forms} of {len(rows)}")


def _failures(cell: Evidence) -> Mask:
    rows = cell.view.requests
    sent: Mask = cell.view.measured & (rows["outcome"] != Outcome.DROPPED)
    return sent & unanswered(rows, cell.requested)


@partial(
    Rule,
    code=IssueCode.FAILED_REQUESTS,
    measures="failed requests, with their most frequent status and error; one is enough to be SUSPECT",
    limit=f"{MAX_FAILED_SHARE:.0%}",
    verdicts=("SUSPECT", "INVALID"),
    hint="see all outcomes and errors in requests.parquet, and the engine's log",
    cause="engine",
    eases=True,
)
def _failed(cell: Evidence) -> Iterator[Violation]:
    _, total = _count(cell, Outcome.OK)
    file = _summed(cell)
    if failed := int(np.count_nonzero(_failures(cell))) if file is None else file.failed or 0:
        invalid = failed / total > MAX_FAILED_SHARE
        why, case = _most_frequent_failure(cell)
        verdict: Doubt = "INVALID" if invalid else "SUSPECT"
        hint = None if case is UNSET else _HINTS.get(case)
        if case == "connect failed" and "certificate" in why:
            hint = _CERTIFICATE
        yield Violation(f"{failed} of {total}{why}", hint=hint, verdict=verdict, failure=case)


def _most_frequent_failure(cell: Evidence) -> tuple[str, str | UnsetType]:
    """A status or outcome in words with the error text that most of these have, and alone.

    No words where no texts are known.
    """
    rows, errors = cell.records.requests, cell.records.errors
    texts: dict[str, Counter[str]] = {}
    for row in np.flatnonzero(_failures(cell)[: len(errors)]).tolist():
        outcome, status = Outcome(rows["outcome"][row]), int(rows["http_status"][row])
        known = outcome == Outcome.HTTP_ERROR and status != UNKNOWN  # a file of another tool has none
        case = f"HTTP {status}" if known else outcome.name.lower().replace("_", " ")
        texts.setdefault(case, Counter())[error_shown(errors[row])] += 1
    if not texts:
        return "", UNSET
    case, count = most_first({case: seen.total() for case, seen in texts.items()})[0]
    text, _ = most_first(texts[case])[0]
    words = f", {text}" if text and text != case else ""
    return f"{f', {count} of them' if len(texts) > 1 else ''}: {case}{words}", case


def error_shown(text: str) -> str:
    """The error of a request in one short line, without the marks of Python."""
    return one_line(_MARKS.sub("", text), _ERROR_CHARS)


@partial(
    Rule,
    code=IssueCode.FINISH_REASON_UNKNOWN,
    measures="answers whose finish reason says neither that they are whole nor that they were cut",
    limit="0",
    hint="whether these answers are whole is not known: read the engine's documentation of this reason",
    cause="engine",
    eases=True,
)
def _finish_reason_unknown(cell: Evidence) -> Iterator[Violation]:
    """Doubts unknown reasons of answers that count as whole. Records of earlier versions also hold some that
    were given up."""
    whole = cell.view.answered
    reasons = (cell.records.finish_reasons[row] for row in np.flatnonzero(whole).tolist())
    odd = Counter(reason for reason in reasons if reason and finish_of(reason) in (None, Finish.GIVEN_UP))
    if odd:
        named = ", ".join(f'{count} "{reason}"' for reason, count in most_first(odd)[:_MOST_NAMED])
        yield Violation(f"{odd.total()} of {np.count_nonzero(whole)} answers: {named}")


@partial(
    Rule,
    code=IssueCode.DROPPED_REQUESTS,
    measures="requests dropped at the in-flight cap",
    limit=f"{MAX_DROPPED_SHARE:.0%}",
    verdicts=("INVALID",),
    hint="the server is past saturation at this rate, or max_in_flight is too low",
    cause="engine",
    eases=True,
)
def _dropped(cell: Evidence) -> Iterator[Violation]:
    dropped, total = _count(cell, Outcome.DROPPED)
    if dropped > MAX_DROPPED_SHARE * total:
        yield Violation(f"{dropped} of {total}")


@partial(
    Rule,
    code=IssueCode.TOO_FEW_SAMPLES,
    measures="answers; INVALID without any",
    limit=f"{MIN_SAMPLES}",
    verdicts=("SUSPECT", "INVALID"),
    hint="measure longer: raise --requests",
    cause="work",
    eases=True,
)
def _too_few(cell: Evidence) -> Iterator[Violation]:
    ok, _ = _count(cell, Outcome.OK)
    if ok < MIN_SAMPLES:
        found = sample(cell.view, cell.facts.minimum)
        enough = replace(found, min_answers=max(found.min_answers, MIN_SAMPLES))
        few = Violation(f"{ok} answered", verdict="SUSPECT" if ok else "INVALID")
        yield cell.longer(few, requests_needed(cell.view, enough), times_needed(enough))


@partial(
    Rule,
    code=IssueCode.TOO_SHORT,
    measures="answers and seconds of the measured part",
    limit="as many as the scenario declares (`[load] min_answers`, `min_seconds`; "
    f"{MIN_ANSWERS} answers, {MIN_SECONDS:g} s)",
    hint="measure longer: raise --requests",
    cause="work",
    eases=True,
)
def _too_short(cell: Evidence) -> Iterator[Violation]:
    """Leaves cells without answers to `too-few-samples`."""
    found = sample(cell.view, cell.facts.minimum)
    enough = found.seconds >= found.min_seconds and found.answers >= found.min_answers
    if enough or not found.answers:
        return
    few = Violation(
        f"{counted(found.answers, 'answer')} in {apart(found.seconds, found.min_seconds, 1)[0]} s",
        f"{counted(found.min_answers, 'answer')} and {found.min_seconds:g} s",
    )
    yield cell.longer(few, requests_needed(cell.view, found), times_needed(found))


@partial(
    Rule,
    code=IssueCode.COVERAGE_SHORT,
    measures="share of the duration that the last first token and the last further one reach",
    limit="what the scenario declares (`[load] min_coverage`)",
    verdicts=("INVALID",),
    hint="the trace ended before the duration, or sessions failed: a longer trace, or more --concurrency "
    "for fewer gaps",
    cause="work",
)
def _coverage_short(cell: Evidence) -> Iterator[Violation]:
    """Judges, as AgentX does, how far first tokens and the ends of answers with further ones reach."""
    asked, rows = cell.facts.minimum, cell.view.answers
    if asked is None or not asked.coverage or not asked.duration_s or not len(rows):
        return
    sent = cell.view.measured_requests["sent_ns"]
    begin = int(sent[sent != UNKNOWN].min(initial=rows["sent_ns"][0]))
    further = rows[rows["last_text_ns"] > rows["first_text_ns"]]
    reached = [
        (int(part[stamp].max(initial=begin)) - begin) / (1e9 * asked.duration_s)
        for part, stamp in ((rows, "first_text_ns"), (further, "last_text_ns"))
    ]
    if min(reached) < asked.coverage:
        first, last = (f"{percent_apart(min(share, 1.0), asked.coverage, decimals=1)}%" for share in reached)
        yield Violation(
            f"first tokens {first}, further ones {last} of {asked.duration_s:g} s",
            f"{100 * asked.coverage:g}%",
        )


@partial(
    Rule,
    code=IssueCode.CONNECTING,
    measures="share of their time for which requests waited for a new connection",
    limit=f"{MAX_CONNECTING_SHARE:.0%}",
    hint="requests/s of a closed loop and TTFT of an open one include it: let the server, and a proxy "
    "before it, keep connections open",
    cause="engine",
)
def _connecting(cell: Evidence) -> Iterator[Violation]:
    rows = cell.view.measured_requests
    rows = rows[rows["sent_ns"] != UNKNOWN]
    waited_ns, served_ns = np.maximum(rows["connect_ns"], 0), rows["end_ns"] - rows["sent_ns"]
    share = float(waited_ns.sum()) / max(float(waited_ns.sum() + served_ns.sum()), 1.0)
    if share > MAX_CONNECTING_SHARE:
        waited = f"{np.count_nonzero(waited_ns)} of {counted(len(rows), 'request')}"
        yield Violation(f"{percent_apart(share, MAX_CONNECTING_SHARE, decimals=1)}%, in {waited}")


@partial(
    Rule,
    code=IssueCode.REQUESTS_RESENT,
    measures="requests sent a second time, on a new connection",
    limit="0",
    hint="the server closed connections as requests left: raise its keep-alive timeout, or its limit of "
    "requests on a connection",
    cause="client",
    eases=True,
)
def _resent(cell: Evidence) -> Iterator[Violation]:
    rows = cell.view.measured_requests
    if resent := int(np.count_nonzero(rows["attempts"] > 1)):
        yield Violation(f"{resent} of {len(rows)}")


RULES = (
    _form_refused,
    _failed,
    _finish_reason_unknown,
    _dropped,
    _too_few,
    _too_short,
    _coverage_short,
    _resent,
    _connecting,
)
