"""The imagined engine: admission, prefix cache and counters. It has no clock and no sockets."""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from random import Random

from harness.mockserver.ask import Ask, Messages
from harness.mockserver.cache import PrefixCache
from harness.mockserver.constraint import pieces
from harness.mockserver.event_answers import ResponsesAnswer, answer_to
from harness.mockserver.faults import (
    ERROR_TEXT,
    ODD_FINISH,
    Fault,
    garbage,
    strike_body,
    strike_wire,
    struck_words,
)
from harness.mockserver.habits import framed, streamed
from harness.mockserver.images import ImageCache
from harness.mockserver.known_answers import KnownAnswers
from harness.mockserver.ledger import Record
from harness.mockserver.options import Options
from harness.mockserver.recently_used import RecentlyUsed
from harness.mockserver.script import Script, Write, output_tokens, token_dues_ns
from harness.mockserver.transcripts import Transcript

NS_PER_US = 1_000


@dataclass(slots=True, eq=False)
class Job:
    """One request on its way through the engine."""

    ask: Ask
    record: Record
    rng: Random
    fault: Fault | None
    gzip: bool  # the client accepts it
    close: bool  # the client wants the connection closed


class Engine:
    def __init__(self, options: Options) -> None:
        self.options = options
        capacity = 0 if options.no_prefix_cache else options.cache_tokens
        self.cache = PrefixCache(capacity, options.cache_block_tokens)
        self._known = KnownAnswers(options.answers, options.wrong, options.seed)
        self.host_cache = PrefixCache(options.host_cache_tokens, options.cache_block_tokens)
        self.image_cache = ImageCache(options.image_cache)
        self.running: set[Job] = set()
        self.waiting: deque[tuple[Job, Callable[[int], None]]] = deque()
        self.prompt_tokens = 0
        self.cached_tokens = 0
        self.host_cached_tokens = 0  # of these, those that came from the second cache
        self._adapters = RecentlyUsed(options.adapter_slots)  # in memory
        self.finished = 0  # requests, however they ended
        self._freed_ns = 0  # when a slot was last freed while all were taken
        self.kept: dict[str, Messages] = {}  # conversations by the id of their last answer
        self._ended: list[Record] = []  # since they were last taken
        self._keeps_ended = any(series.kind == "histogram" for series in options.dialect.series)
        self._generated_tokens = 0  # of jobs that ended
        self._received = 0
        self._seen: OrderedDict[bytes, int] = OrderedDict()  # times per body; the one that came last is last

    @property
    def generated_tokens(self) -> int:
        return self._generated_tokens + sum(job.record.tokens for job in self.running)

    def number(self) -> int:
        """Returns the number of the next request, from 0."""
        self._received += 1
        return self._received - 1

    def restart_numbering(self) -> None:
        """The same requests draw the same times and faults again."""
        self._received = 0
        self._seen.clear()

    def rng(self, body: bytes) -> Random:
        """Seeds a generator from the seed, the body and how often that came before: the order of arrival
        does not matter.

        With `keep_requests` only that many bodies are remembered, those that came last.
        """
        digest = blake2b(body, digest_size=16).digest()
        occurrence = self._seen.pop(digest, 0)
        self._seen[digest] = occurrence + 1
        if self.options.keep_requests is not None and len(self._seen) > self.options.keep_requests:
            self._seen.popitem(last=False)
        return Random(b"%d %d %b" % (self.options.seed, occurrence, digest))

    def fault(self, number: int, rng: Random) -> Fault | None:
        """The first that strikes, in the order they were given."""
        return next((fault for fault in self.options.faults if fault.strikes(number, rng)), None)

    def submit(self, job: Job, received_ns: int, begin: Callable[[int], None]) -> None:
        """Calls `begin` with the time of admission: now, or from a later `leave` when all slots are taken.

        A request may be read before another one leaves and be looked at after it: it got that one's slot.
        """
        limit = self.options.max_running
        if limit is not None and len(self.running) >= limit:
            self.waiting.append((job, begin))
        else:
            self._admit(job, max(received_ns, self._freed_ns), begin)

    def leave(self, job: Job, now_ns: int) -> None:
        """The job ended, however it did; the longest waiting one takes its slot."""
        if job not in self.running:
            self.waiting = deque(entry for entry in self.waiting if entry[0] is not job)
            return
        if len(self.running) == self.options.max_running:
            self._freed_ns = now_ns
        self.running.remove(job)
        self._generated_tokens += job.record.tokens
        self.finished += 1
        if self._keeps_ended and job.record.write_ns:
            self._ended.append(job.record)
        if self.waiting:
            following, begin = self.waiting.popleft()
            self._admit(following, now_ns, begin)

    def take_ended(self) -> list[Record]:
        """Returns those that were answered and have not been taken before, where the dialect counts their
        times.
        """
        ended, self._ended = self._ended, []
        return ended

    def writes(self, job: Job, created: int) -> Iterator[Write]:
        """The whole answer to an admitted job. Call it once: it claims the prompt in the cache."""
        habits, fault, stream = self.options.habits, job.fault, job.ask.stream
        if job.ask.values is not None:
            body = job.ask.values.body(self._script(job), self.options.model_name, garbage(fault))
        else:
            body = self._generated(job, created)
        if fault:
            body = strike_body(fault, body, stream=stream)
        if stream:
            body = streamed(body, habits)
        writes = framed(body, habits, stream=stream, gzip=habits.gzip and job.gzip, close=job.close)
        return strike_wire(fault, writes) if fault else writes

    def _generated(self, job: Job, created: int) -> Iterator[Write]:
        answer = answer_to(
            ask=job.ask,
            script=self._script(job),
            habits=self.options.habits,
            answer_id=f"{'chatcmpl' if job.ask.chat else 'cmpl'}-{job.record.number:016x}",
            created=created,
            model=self.options.model_name,
            shape=self.options.dialect.shape,
            wrong_usage=job.fault is not None and job.fault.kind == "wrong-usage",
            completions_usage=self.options.dialect.completions_usage,
        )
        if job.ask.kept and isinstance(answer, ResponsesAnswer):
            self._keep(answer)
        return answer.body()

    def _keep(self, answer: ResponsesAnswer) -> None:
        self.kept[answer.name] = answer.conversation()
        if self.options.keep_requests is not None and len(self.kept) > self.options.keep_requests:
            del self.kept[next(iter(self.kept))]

    def _admit(self, job: Job, now_ns: int, begin: Callable[[int], None]) -> None:
        self.running.add(job)
        job.record.admitted_ns = now_ns
        begin(now_ns)

    def _script(self, job: Job) -> Script:
        options, ask, record = self.options, job.ask, job.record
        prompt = ask.prompt[-options.cut_prompt_tokens :] if options.cut_prompt_tokens else ask.prompt
        record.prompt_tokens = len(prompt)
        here = host = 0
        if not ask.uncached:
            salt = ask.salt + ask.adapter  # what one adapter computed is of no use to another
            here = self.cache.claim(prompt, salt)
            host = max(0, self.host_cache.claim(prompt, salt) - here)
        record.cached_tokens = here + host
        limit = ask.max_tokens or options.tokens
        words = ask.words or self._known.to(ask.question, len(self.running))
        if job.fault and job.fault.kind == "error-text":
            words = pieces(ERROR_TEXT)
        if words:  # its constraint ends an answer, whatever else was asked
            record.planned_tokens, finish_reason = output_tokens(limit, 0, False, len(words))
        else:
            record.planned_tokens, finish_reason = output_tokens(
                limit, ask.min_tokens, ask.ignore_eos, options.stop_after_tokens
            )
            words = struck_words(job.fault, prompt, record.planned_tokens) if job.fault else ()
        if job.fault and job.fault.kind == "odd-finish":
            finish_reason = ODD_FINISH
        self.prompt_tokens += record.prompt_tokens
        self.cached_tokens += record.cached_tokens
        self.host_cached_tokens += host
        uncached = record.prompt_tokens - record.cached_tokens
        prefill_us = uncached * options.prefill_us_per_token + host * options.host_us_per_token
        if ask.adapter:
            prefill_us += uncached * options.adapter_us_per_token + self._swap_us(ask.adapter)
        prefill_us += self.image_cache.claim(ask.images) * 1000 * options.image_ms
        if isinstance(ask.values, Transcript):
            record.audio_ms = ask.values.audio_ms
            prefill_us += record.audio_ms * options.audio_ms_per_s
        record.transfer_ns = round(options.transfer_ms * 1000 * NS_PER_US)
        prefill_us += 1000 * options.transfer_ms
        prefill_ns = round(prefill_us * NS_PER_US)
        dues_ns = token_dues_ns(options.ttft_ms, options.gap_ms, prefill_ns, record.planned_tokens, job.rng)
        return Script(
            tokens=record.planned_tokens,
            finish_reason=finish_reason,
            prompt_tokens=record.prompt_tokens,
            cached_tokens=record.cached_tokens,
            dues_ns=dues_ns,
            words=words,
            first_word=ask.first_word,
        )

    def _swap_us(self, adapter: str) -> float:
        """Returns what it takes to have it in memory, where the one used longest ago goes for it."""
        return 0.0 if self._adapters.claim(adapter) else 1000 * self.options.adapter_swap_ms
