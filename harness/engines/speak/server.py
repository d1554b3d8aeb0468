"""Requests to a serving engine outside the timed window: version, tokens, counters, cache reset."""

import dataclasses
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, BinaryIO

from harness.apis import APIS, Api, ApiName, Message
from harness.apis.payload import Payload, error_message, read_json
from harness.client.answer import Answer, StatusError
from harness.client.client import Client
from harness.client.limits import Limits
from harness.engines.speak.access import key_hint
from harness.engines.speak.prometheus import Histogram, histogram, read_series, whole_prompts
from harness.errors import SetupError
from harness.host.access import Access
from harness.model.json_path import value_at
from harness.spec.backend import Backend, Probe, Step, Tokenize
from harness.spec.recordings import Recording
from harness.spec.template import fill
from harness.untrusted import BadDocumentError, one_line

# A scripted server says so in every answer, whatever name it is attached under.
SIMULATED_HEADER = "x-bench-simulated"
_LIMITS = Limits(wire_bytes=64 << 20, body_bytes=64 << 20)  # the tokens of a prompt of eight million
_OPEN = Access()
_MODELS = "/v1/models"
_LOOK_UP = Limits(total_s=20.0)  # what an engine answers without generating
_SETTLES_S = 2.0
_BUSY = (400, 409, 503)  # as servers refuse what they cannot do while requests run
_FEW = 16  # tokens; some servers refuse a lower limit
_TEXT_CHARS = 200  # of a name or a version
_TOKENIZED_AT_ONCE = 8  # requests to a server whose round trips take the time
_FAR_S = 0.01  # a round trip; a server next to us may take one connection only
_TOKENIZED_CHARS = 100_000  # of the texts of one request to a tokenizer that takes lists
_FACT_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class ResetResult:
    """`how`: by what means the declared reset succeeded and what it leaves, or why it failed."""

    done: bool
    how: str


class Server:
    """One engine behind `base_url`. Every method raises SetupError when it cannot be reached."""

    def __init__(self, definition: Backend, base_url: str, served_name: str, access: Access = _OPEN) -> None:
        self.definition, self.base_url, self.served_name = definition, base_url, served_name
        self.simulated = definition.backend.simulated
        self.started_here = False  # else its settings are somebody else's
        self.first_answer_s: float | None = None  # after it said that it was ready; None: not asked yet
        self.access = access
        self._client = Client(base_url, access)

    @property
    def api_url(self) -> str:
        """Path to which requests of the chosen API go."""
        return self.base_url + self.definition.dialect.api_path

    def close(self) -> None:
        self._client.close()

    def version(self) -> str | None:
        """Returns the version as the running server tells it; None when it does not."""
        probe = self.definition.server.version
        return self._probe(probe) if probe else None

    def info(self) -> dict[str, object]:
        """The declared facts of [[server.info]] by dotted key, those present."""
        facts: dict[str, object] = {}
        for source in self.definition.server.info:
            answer = self._ask("GET", source.path)
            document = answer.document_or_none() if answer.ok else None
            values = {key: value_at(document, key) for key in source.keys}
            facts |= {key: value for key, value in values.items() if _is_fact(value)}
        return facts

    def check_reachable(self, *, is_behind: bool = False) -> None:
        """Raises SetupError unless the readiness path answers 2xx. Where it `is_behind` a gateway that
        hides this path, the list of models will do; a server whose model was named need not have one.
        """
        path = self.definition.server.ready_path
        answer = self._ask("GET", path)
        if answer.missing and is_behind:
            path, answer = _MODELS, self._ask("GET", _MODELS)
        if answer.missing and path == _MODELS and self.served_name:
            return
        if answer.missing:
            hint = f"is this {self.definition.backend.title}? openai=URL takes any server"
            if self.definition.name == "openai":
                hint = "the address is what comes before /v1; where it lists no model: --model-name"
            elif self.definition.metrics is not None:
                hint += "; behind a gateway name the engine's own address too: --metrics-url"
            raise SetupError("no such path on this server", where=answer.url, hint=hint)
        self._accepted(answer)

    def model_names(self) -> list[str]:
        """Names the server answers to."""
        answer = self._ok(self._ask("GET", _MODELS))
        data = answer.get("data") if isinstance(answer, dict) else None
        entries = [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
        return [name for entry in entries if (name := _text(entry.get("id")))]

    def one_chat(self, messages: Sequence[Message], max_tokens: int, timeout_s: float | None = None) -> str:
        """The text of one short completion, outside any measurement."""
        body = {
            "model": self.served_name,
            "messages": list(messages),
            "max_tokens": max_tokens,
            "temperature": 0.0,
        }
        path = self.definition.dialect.chat_path
        answer = self._ok(self._ask("POST", path, json=body, timeout_s=timeout_s))
        choices = answer.get("choices") if isinstance(answer, dict) else None
        first = choices[0] if isinstance(choices, list) and choices else None
        message = first.get("message") if isinstance(first, dict) else None
        if not isinstance(message, dict):
            raise SetupError(
                f"answered a chat request without a message: {str(answer)[:200]}", where=self.base_url + path
            )
        texts = (message.get(name) for name in ("content", "reasoning_content", "reasoning"))
        return next((text for text in texts if text and isinstance(text, str)), "")

    def check_answers(self, body: bytes, timeout_s: float) -> None:
        """Raises SetupError unless it answers a request of the load's own kind."""
        path, headers = self.definition.dialect.api_path, APIS[self.definition.dialect.api].headers
        self._accepted(self._ask("POST", path, content=body, headers=headers, timeout_s=timeout_s))

    def refusal_of(self, name: ApiName, timeout_s: float | None = None) -> str:
        """Returns why one short request of that API, outside any measurement, was not answered; "": it
        was.
        """
        try:
            return self._refusal(name, self._short_request(name, timeout_s))
        except SetupError as error:
            return f"POST {self._path(name)}: {error.what}"

    def _path(self, name: ApiName) -> str:
        dialect = self.definition.dialect
        if name == dialect.api:
            return dialect.api_path
        return (dialect.apis[name].path if name in dialect.apis else "") or APIS[name].path

    def _short_request(self, name: ApiName, timeout_s: float | None = None) -> Answer:
        api = APIS[name]
        content = api.encode({"model": self.served_name, **api.body(_short(api), _FEW)})
        return self._ask("POST", self._path(name), content=content, headers=api.headers, timeout_s=timeout_s)

    def _refusal(self, name: ApiName, answer: Answer) -> str:
        """What is wrong with the answer to a short request; "": nothing."""
        api, asked = APIS[name], f"POST {self._path(name)}"
        if not answer.ok:
            return f"{asked} answered {answer.status}: {answer.said}"
        payload = read_json(answer.body, api.read, bare_list=api.bare_list)
        wrong = answer.line(payload.error or payload.malformed)
        if api.gives == "text" and not (wrong or payload.text or payload.calls or payload.finish_reason):
            wrong = "an answer with neither text nor a finish reason"
        return f"{asked}: {wrong}" if wrong else ""

    def values(self, messages: Sequence[Message], fields: Mapping[str, object]) -> Payload:
        """Returns the values of one request outside any measurement: its vectors or scores.

        Raises SetupError without them.
        """
        api = APIS[self.definition.dialect.api]
        body = {"model": self.served_name, **api.body(messages, 0), **fields}
        answer = self._ask("POST", self.definition.dialect.api_path, json=body)
        self._accepted(answer)
        payload = read_json(answer.body, api.read, bare_list=api.bare_list)
        if wrong := payload.error or payload.malformed:
            raise SetupError(answer.line(wrong), where=self.api_url)
        return payload

    def check_keeps_turns(self) -> None:
        """Raises SetupError unless a second turn may name the answer to the first."""
        api, path = APIS[self.definition.dialect.api], self.definition.dialect.api_path
        body = {"model": self.served_name, **api.body([{"role": "user", "content": "Say hello."}], _FEW)}
        body |= api.keep_turns
        answer = self._ask("POST", path, json=body)
        name = read_json(answer.body, api.read).answer_id if answer.ok else ""
        if name:
            answer = self._ask("POST", path, json=body | dict.fromkeys(api.go_on, name))
        if not name or not answer.ok:
            reply = f"{answer.status}: {answer.said}" if not answer.ok else "without an id"
            raise SetupError(
                f"keeps no turns: POST {path} answered {reply}",
                where=self.base_url,
                hint="start it with its store of responses; or leave out request.kept_turns",
            )

    def check_api(self, timeout_s: float | None = None) -> None:
        """Raises SetupError where the server lacks the API that requests will speak."""
        name = self.definition.dialect.api
        answer = self._short_request(name, timeout_s)
        if answer.refuses_key:
            self._accepted(answer)
        refusal = self._refusal(name, answer)
        names_model = _has_word(answer.said, self.served_name)
        fails = answer.status >= 500 and answer.status != 501  # llama.cpp answers 501 (Not Implemented)
        if refusal and (answer.status == 429 or fails or names_model or _names_part(answer)):
            # It has that API: it is too busy, fails, lacks the model, or refuses something in the request.
            raise SetupError(refusal, where=self.base_url)
        if refusal:
            raise SetupError(
                f"no {APIS[name].title} API: {refusal}",
                where=self.base_url,
                hint="`bench URL` says which APIs a server has; --api chat is what most have",
            )

    def count_tokens(self, texts: Sequence[str]) -> list[int] | None:
        """Tokens of each text alone, without special tokens; None when the server does not tokenise."""
        ask = self.definition.server.tokenize
        if ask is None:
            return None
        batches = list(_batches(texts) if ask.lists else ([text] for text in texts))
        began = time.monotonic()
        answers = [self._tokenized(ask, batch) for batch in batches[:_TOKENIZED_AT_ONCE]]
        is_far = time.monotonic() - began > len(answers) * _FAR_S
        with ThreadPoolExecutor(_TOKENIZED_AT_ONCE if is_far else 1) as pool:
            answers += pool.map(partial(self._tokenized, ask), batches[_TOKENIZED_AT_ONCE:])
        known = [each for each in answers if each is not None]
        return [len(ids) for each in known for ids in each] if len(known) == len(answers) else None

    def _tokenized(self, ask: Tokenize, texts: Sequence[str]) -> list[list[object]] | None:
        """Token ids of each text, of which there is one without `lists`; None without such a route."""
        named = {ask.model_field: self.served_name} if ask.model_field else {}
        text = list(texts) if ask.lists else texts[0]
        answer = self._ask("POST", ask.path, json={ask.text_field: text, **named, **ask.extra})
        if answer.missing:
            return None
        content = self._ok(answer)
        tokens = value_at(content, ask.tokens_key) if ask.tokens_key else content
        each = tokens if ask.lists else [tokens]
        if not isinstance(each, list) or [isinstance(ids, list) for ids in each] != [True] * len(texts):
            what = "a list for each text" if ask.lists else ask.tokens_key or "a list"
            raise SetupError(f"answers without {what}", where=self.base_url + ask.path)
        return each

    def step(self, step: Step, values: Mapping[str, str], upload: BinaryIO | None = None) -> None:
        """One of [[server.prepare]]; `upload` is sent as it is. Raises SetupError unless accepted."""
        body = None if upload else fill(step.body, values)
        path = fill(step.path, values)
        self._accepted(self._ask("POST", path, json=body, content=upload, timeout_s=step.timeout_s))

    def reset_prefix_cache(self) -> ResetResult:
        """Resets the cache. Never raises for a refusal: a cell on a warm cache is marked, not lost."""
        reset = self.definition.prefix_cache.reset
        if reset is None:
            return ResetResult(
                False, f"{self.definition.name} declares no reset: restart it for a cold cache"
            )
        slots = int(self.definition.engine.values.get("max_sequences", 1)) if "{slot}" in reset.path else 1
        for slot in range(slots):
            path = reset.path.replace("{slot}", str(slot))
            for body in (reset.body, reset.then) if reset.then else (reset.body,):
                filled = fill(body, {"served_name": self.served_name}) or None
                answer = self._once_idle(partial(self._ask, reset.method, path, json=filled))
                if not answer.ok:
                    return ResetResult(
                        False, f"{reset.method} {path} answered {answer.status}: {answer.said}"
                    )
            if reset.success_key and value_at(answer.document_or_none(), reset.success_key) is not True:
                return ResetResult(False, f"{reset.method} {path} answered {answer.said}")
        done = f"{reset.method} {reset.path}" + (f" for {slots} slots" if slots > 1 else "")
        return ResetResult(True, done + (f"; leaves {reset.leaves}" if reset.leaves else ""))

    def _once_idle(self, ask: Callable[[], Answer]) -> Answer:
        """A server may count a request as running for a moment after its last byte: refusals are repeated."""
        deadline = time.monotonic() + _SETTLES_S
        while (answer := ask()).status in _BUSY and time.monotonic() < deadline:
            time.sleep(_SETTLES_S / 20)
        return answer

    def counters(self) -> dict[str, float] | None:
        """[metrics] by our names, those present: counters since start, and gauges now.

        `prompt_tokens` includes cached ones whatever the engine counts. None when the server has no metrics.
        """
        metrics, text = self.definition.metrics, self._metrics_text()
        if metrics is None or text is None:
            return None
        ours = read_series(text, dataclasses.asdict(metrics.counters), dataclasses.asdict(metrics.gauges))
        return whole_prompts(ours) if metrics.prompt_tokens_exclude_cached else ours

    def histograms(self) -> dict[str, Histogram] | None:
        """[metrics.histograms] by our names, those present, since the start of the engine; in seconds.

        None if the engine has no metrics, or does not show them now.
        """
        metrics, text = self.definition.metrics, self._metrics_text()
        if metrics is None or text is None:
            return None
        named = dataclasses.asdict(metrics.histograms).items()
        per_s = {"s": 1, "ms": 1000}[metrics.histogram_unit]
        histograms = {name: histogram(text, series, per_s) for name, series in named if series}
        return {name: found for name, found in histograms.items() if found["count"] is not None}

    def _metrics_text(self) -> str | None:
        if self.definition.metrics is None:
            return None
        answer = self._ask("GET", self.definition.metrics.path)
        return answer.figures if answer.ok else None

    def _probe(self, probe: Probe) -> str | None:
        answer = self._ask("GET", probe.path)
        if not answer.ok:
            return None
        value = value_at(answer.document_or_none(), probe.key) if probe.key else answer.text
        return _text(str(value)) if isinstance(value, str | int | float) else None

    def _ask(
        self,
        method: str,
        path: str,
        json: Any = None,
        *,
        content: bytes | BinaryIO | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Answer:
        limits = _LOOK_UP if method == "GET" else _LIMITS
        if timeout_s is not None:
            limits = dataclasses.replace(limits, total_s=timeout_s)
        answer = self._client.ask(method, path, json=json, content=content, headers=headers, limits=limits)
        self.simulated |= SIMULATED_HEADER in answer.headers
        return answer

    def _ok(self, answer: Answer) -> Any:
        """The answer's JSON."""
        self._accepted(answer)
        try:
            return answer.document()
        except BadDocumentError as error:
            raise SetupError(f"{error}: {answer.said[:100]!r}", where=answer.url) from None

    def _accepted(self, answer: Answer) -> None:
        if answer.refuses_key:
            what, hint = f"the server refuses with {answer.status}", key_hint(self.access)
            raise StatusError(answer.status, what, where=answer.url, hint=hint)
        if not answer.ok:
            message = (
                error_message(answer.document_or_none()) if answer.status >= HTTPStatus.BAD_REQUEST else ""
            )
            what = f"the server answers {answer.status}: {answer.line(message) or answer.said}"
            raise StatusError(answer.status, what, where=answer.url)


def _short(api: Api) -> list[Message]:
    """Messages of one short request."""
    if api.gives == "transcripts":
        from harness.workload.prompts.audio import wav_of  # loads numpy

        return [{"role": "user", "content": wav_of(Recording(audio_ms=1000))}]
    texts = ("Say hello.",) if api.gives == "text" else ("Say hello.", "Hello.", "The tide is out.")
    return [{"role": "user", "content": text} for text in texts]


def _has_word(text: str, word: str) -> bool:
    """Whether the text names it: a short name of a model is a part of many words."""
    return bool(word and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text))


def _names_part(answer: Answer) -> bool:
    """Whether it refuses a part of the request, which only a server with that API reads."""
    error = answer.document_or_none() if answer.status == 400 else None
    invalid = value_at(error, "error.type") == "invalid_request_error" or bool(value_at(error, "error.param"))
    return answer.status == 422 or invalid


def _is_fact(value: object) -> bool:
    """Something, and not more than a person may want to read in the manifest."""
    return value is not None and len(repr(value)) <= _FACT_CHARS


def _text(value: object) -> str | None:
    """A name or a version: one short line, or nothing."""
    return one_line(value, _TEXT_CHARS) or None if isinstance(value, str) else None


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in order, about _TOKENIZED_CHARS characters at a time."""
    batch: list[str] = []
    chars = 0
    for text in texts:
        if batch and chars + len(text) > _TOKENIZED_CHARS:
            yield batch
            batch, chars = [], 0
        batch.append(text)
        chars += len(text)
    if batch:
        yield batch
