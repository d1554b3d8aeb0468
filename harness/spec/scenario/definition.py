"""A scenario file as a whole."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Literal, get_args

from harness.apis import APIS, ApiName, Gives
from harness.errors import SpecError
from harness.host.paths import LONGEST_NAME, is_name
from harness.model import SLO_METRICS
from harness.spec import files
from harness.spec.scenario.generators import GENERATORS, PromptFile, Prompts, has_times, turns_of
from harness.spec.scenario.images import Images
from harness.spec.scenario.limits import Count, Duration, not_negative
from harness.spec.scenario.load import Load, check_load, for_duration, without_unread
from harness.spec.scenario.lora import LoraMix
from harness.spec.scenario.rules import check_rules
from harness.spec.scenario.synthetic import (
    Audio,
    Classification,
    Documents,
    FewShot,
    FixedLength,
    Mix,
    Rag,
    Rerank,
    SharedPrefix,
    Structured,
    Victim,
)
from harness.spec.scenario.text import Text, check_text
from harness.spec.scenario.verdict import Verdict, check_classes, check_slo, check_verdict
from harness.spec.strict import UnknownKeyError, as_written, build, check_known, nearest, require_known

Profile = Literal["gpu", "cpu"]
PROFILES: tuple[Profile, ...] = get_args(Profile)


@dataclass(frozen=True, slots=True)
class Request:
    """Sampling is always sent explicitly, in the engine's own field names: defaults differ by engine."""

    api: ApiName = "chat"  # that requests speak, where --api does not say
    temperature: Annotated[float, not_negative] = 0.0  # of sampling
    top_p: float = 1.0  # of sampling
    seed: int = 0  # of sampling; sent where the temperature is above 0
    thinking: Literal["off", "on"] = "off"  # of models that reason before they answer
    thinking_budget: int | None = None  # tokens of reasoning at most, where the engine has a field for that
    grammar: str = ""  # GBNF that every answer is held to; "": none
    cache_control: bool = False  # ask for what chats share to be kept, where the API has a field for that
    kept_turns: bool = False  # later turns name the answer before them: the server keeps the conversation
    exact_output: bool = True  # generate exactly output_tokens where the engine can
    encoding_format: Literal["float", "base64"] = "float"  # of vectors
    language: str = "en"  # that is spoken in recordings; "": the server finds out
    dimensions: Count | None = None  # of vectors, of models that can shorten them; None: the model's own
    timeout_s: Duration = 300.0  # of a request, from its send; one that takes longer has failed
    fields: dict[str, object] = field(default_factory=dict)  # others, sent with every request as they stand

    def check(self, where: str, answers: Gives) -> None:
        if not 0 < self.top_p <= 1:
            raise SpecError(f"must be above 0 and at most 1, not {self.top_p:g}", where=f"{where}.top_p")
        for key, kinds in _READ_FOR.items():
            if answers not in kinds and getattr(self, key) != getattr(Request(), key):
                what = f"has no effect on requests for {answers}"
                raise SpecError(what, where=f"{where}.{key}", hint="leave it out")
        if self.fields.get("n", 1) != 1:
            raise SpecError(
                "one answer a request is measured",
                where=f"{where}.fields.n",
                hint="several at once: --concurrency",
            )


_ALIKE = (FixedLength, FewShot, Rag, Classification, Documents, Rerank)  # their requests are of one class
# Keys of [request] that not all requests have, and the answers that those ask for.
_READ_FOR: dict[str, tuple[Gives, ...]] = {
    "temperature": ("text", "transcripts"),
    **dict.fromkeys(("top_p", "seed", "thinking", "grammar", "cache_control"), ("text",)),
    **dict.fromkeys(("encoding_format", "dimensions"), ("vectors",)),
    "language": ("transcripts",),
    "fields": ("text", "vectors", "scores"),
}


@dataclass(frozen=True, slots=True)
class Cache:
    """State of the prefix cache at the start of each cell.

    cold: empty. warm: it holds what the cell's requests share. primed: it holds all of the cell's prompts,
    those of later turns excepted. any: as the cell before left it.
    """

    state: Literal["cold", "warm", "primed", "any"] = "cold"  # of the prefix cache as each cell begins


@dataclass(frozen=True, slots=True)
class Header:
    name: str  # by which runs are listed
    purpose: str  # a sentence: what it asks of a server
    rules: Literal["", "agentx"] = ""  # of a standard: what they lock cannot be set otherwise

    def check(self, where: str) -> None:
        """Raises SpecError unless the folder of a run can have this name between its date and its number."""
        if not is_name(self.name):
            raise SpecError(
                f"must be 1 to {LONGEST_NAME} bytes without a '/' or what a terminal cannot show: "
                "runs are named after it",
                where=f"{where}.name",
            )


@dataclass(frozen=True, slots=True)
class Scenario:
    scenario: Header
    prompts: Prompts
    load: Load
    text: Text = field(default_factory=Text)
    request: Request = Request()
    cache: Cache = Cache()
    verdict: Verdict = field(default_factory=Verdict)
    slo: dict[str, dict[str, float]] = field(default_factory=dict)  # latency → share of requests → ms
    lora: LoraMix = field(default_factory=LoraMix)
    images: Images = field(default_factory=Images)
    # [engine.values] of every backend that has them, where --engine-set does not say otherwise.
    engine_values: dict[str, int | float | str] = field(default_factory=dict)
    profile: str = ""  # of [profiles] that was applied; "": the file declares none

    @property
    def name(self) -> str:
        return self.scenario.name

    @property
    def begins_cold(self) -> bool:
        """Whether the first requests after a start are measured: nothing but its first text precedes them."""
        return self.verdict.between_repeats == "restart" and not self.load.warmup_requests


def check_api(scenario: Scenario, api: ApiName, where: str) -> None:
    """Raises SpecError if the API does not take the scenario's prompts or images."""
    if scenario.prompts.gives != (wanted := APIS[api].gives):
        fitting = {
            "text": "scenarios of chats, such as fixed-length",
            "vectors": "embed-documents and embed-queries",
            "scores": "rerank-top-100",
            "transcripts": "audio-in",
        }
        raise SpecError(
            f"the prompts of '{scenario.name}' are not for the {APIS[api].title} API",
            where=where,
            hint=f"--api {api} goes with {fitting[wanted]}",
        )
    if scenario.images.counts and APIS[api].image is None:
        raise SpecError(
            f"the {APIS[api].title} API takes no images", where=where, hint="use chat, responses or messages"
        )


def load_scenario(
    name: str, overrides: Mapping[str, object] | None = None, profile: Profile = "cpu"
) -> Scenario:
    """Loads a scenario by name or path, sized for `profile`, with `section.key` overrides from flags.

    Raises SpecError, which names the override if one is at fault.
    """
    if "profile" in (overrides or {}):
        raise SpecError(
            "is no key of a scenario", where="profile, as given", hint=f"--profile {'|'.join(PROFILES)}"
        )
    path = files.locate("workloads", name)
    table = with_profile(files.read_toml(path), profile, str(path))
    header = table.get("scenario")
    files.check_scenario_name(path, header.get("name") if isinstance(header, Mapping) else None)
    for dotted, value in (overrides or {}).items():
        table = files.override(table, dotted, value)
    try:
        return parse_scenario(table, str(path), (overrides or {}).keys())
    except SpecError as error:
        table_at = (error.where or "").removeprefix(str(path)).removeprefix(":")
        unknown = error.key if isinstance(error, UnknownKeyError) else ""
        key = f"{table_at}.{unknown}".strip(".")
        inside = bool(unknown) or "." in key
        if not any(_is_set_by(dotted, key, inside=inside) for dotted in overrides or {}):
            raise
        where = f"{key}, as given"
        if isinstance(error, UnknownKeyError):
            raise UnknownKeyError(error.key, where, error.hint) from None
        example = "a limit is like slo.ttft_ms.p95=500, in ms" if key.startswith("slo") else None
        raise SpecError(error.what, where=where, hint=error.hint or example) from None


def _is_set_by(dotted: str, key: str, *, inside: bool) -> bool:
    """Whether `dotted` sets what is wrong at `key`, such as `images.counts[0]`, or something `inside` it.

    A table of the file stays the file's where one of its keys is set.
    """
    return f"{key}.".startswith((f"{dotted}.", f"{dotted}[")) or (inside and dotted.startswith(f"{key}."))


def with_profile(table: Mapping[str, object], profile: Profile, where: str) -> dict[str, object]:
    """Lays the tables of [profiles.NAME] over the file's own, key by key. Raises SpecError."""
    if "profile" in table:
        raise SpecError("unknown key 'profile'", where=where, hint="--profile chooses one of [profiles]")
    profiles = table.get("profiles")
    if profiles is None:
        return dict(table)
    if not isinstance(profiles, Mapping):
        raise SpecError("must be a table", where=f"{where}:profiles")
    for name in profiles:
        check_known(name, PROFILES, f"{where}:profiles", "profile")
    rest = {key: value for key, value in table.items() if key != "profiles"}
    chosen = profiles.get(profile, {})
    if not isinstance(chosen, Mapping):
        raise SpecError("must be a table", where=f"{where}:profiles.{profile}")
    return {**files.laid_over(rest, chosen), "profile": profile}


def _table_of(key: str, generator: object) -> str | None:
    """The table that such a key belongs to, which may have been left out: `concurrency` is one of [load]."""
    tables: dict[str, type] = {
        "load": Load,
        "request": Request,
        "verdict": Verdict,
        "cache": Cache,
        "text": Text,
    }
    if isinstance(generator, str) and generator in GENERATORS:
        tables["prompts"] = GENERATORS[generator]
    if key in SLO_METRICS:
        return "slo"
    return next((name for name, kind in tables.items() if key in {each.name for each in fields(kind)}), None)


def parse_scenario(table: Mapping[str, object], where: str, given: Collection[str] = ()) -> Scenario:
    """Builds the scenario from tables with their profile applied. `given`: keys that stand in no file.

    Raises SpecError for what does not go together.
    """
    prompts = table.get("prompts")
    try:
        require_known(Scenario, table, where)
    except UnknownKeyError as error:
        home = _table_of(error.key, prompts.get("generator") if isinstance(prompts, Mapping) else None)
        hint = f"did you mean '{home}.{error.key}'?" if home else error.hint
        raise UnknownKeyError(error.key, where, hint) from None
    if not isinstance(prompts, Mapping) or "generator" not in prompts:
        raise SpecError("table [prompts] with a generator is missing", where=where)
    generator = prompts["generator"]
    if not isinstance(generator, str) or generator not in GENERATORS:
        raise SpecError(
            f"unknown generator {as_written(generator)}",
            where=f"{where}:prompts.generator",
            hint=nearest(str(generator), GENERATORS),
        )
    generator_spec = build(GENERATORS[generator], prompts, f"{where}:prompts")
    generator_spec.check(f"{where}:prompts")
    try:
        scenario = build(Scenario, {**table, "prompts": generator_spec}, where)
    except UnknownKeyError as error:
        if error.where == f"{where}:request" and "did you mean" not in (error.hint or ""):
            field = "NAME" if error.key == "extra_body" else error.key
            error.hint = f"any other field of the API is request.fields.{field}"
            if error.key.startswith("max_") and error.key.endswith("_tokens"):  # the field has several names
                error.hint = "the length of answers belongs to the prompts: --output-tokens N"
        raise
    scenario.scenario.check(f"{where}:scenario")
    check_text(
        scenario.text, f"{where}:text.content", made_up=not isinstance(generator_spec, PromptFile | Audio)
    )
    check_load(scenario.load, f"{where}:load", sessions=turns_of(generator_spec) > 1)
    load = for_duration(without_unread(scenario.load, f"{where}:load", given), f"{where}:load", given)
    scenario = replace(scenario, load=load)
    scenario.request.check(f"{where}:request", generator_spec.gives)
    if load.abandon_share and load.abandon_after_s >= scenario.request.timeout_s:
        raise SpecError(
            f"must be below request.timeout_s, {scenario.request.timeout_s:g}, not {load.abandon_after_s:g}",
            where=f"{where}:load.abandon_after_s",
        )
    _check_groups(scenario, where)
    check_rules(scenario.scenario.rules, generator_spec, scenario.load, where)
    if scenario.scenario.rules and not scenario.request.exact_output:
        raise SpecError("the rules of AgentX lock it to true", where=f"{where}:request.exact_output")
    scenario.lora.check(f"{where}:lora")
    scenario.images.check(f"{where}:images")
    _check_classes(scenario, where)
    _check_switches(scenario, where, given)
    check_api(scenario, scenario.request.api, f"{where}:request.api")
    check_verdict(scenario.verdict, f"{where}:verdict", text=generator_spec.gives == "text")
    if isinstance(generator_spec, Mix):
        check_classes(scenario.verdict, generator_spec.figures, f"{where}:verdict")
    elif isinstance(generator_spec, _ALIKE) and not (scenario.lora.adapters or scenario.images.counts):
        check_classes(scenario.verdict, (), f"{where}:verdict")
    check_slo(scenario.slo, f"{where}:slo", text=generator_spec.gives == "text")
    _check_request(scenario, where)
    _check_times(scenario, generator, where)
    return scenario


def _check_request(scenario: Scenario, where: str) -> None:
    """Raises SpecError for settings of [request] that exclude one another, or that the prompts exclude."""
    request = scenario.request
    if isinstance(scenario.prompts, Structured) and request.exact_output:
        raise SpecError(
            "exact_output conflicts with structured output",
            where=f"{where}:request.exact_output",
            hint="set it to false",
        )
    if request.grammar and request.exact_output:
        raise SpecError(
            "exact_output conflicts with a grammar",
            where=f"{where}:request.grammar",
            hint="set request.exact_output to false",
        )
    budget = request.thinking_budget
    if budget is not None and (budget < 0 or request.thinking == "off"):
        raise SpecError(
            f"must be at least 0, with thinking on, not {budget} with thinking {request.thinking}",
            where=f"{where}:request.thinking_budget",
        )
    if request.kept_turns and turns_of(scenario.prompts) == 1:
        raise SpecError("its prompts have no turns", where=f"{where}:request.kept_turns")


def _check_times(scenario: Scenario, generator: str, where: str) -> None:
    """Raises SpecError for a victim that is not replayed, for prompts without times that are, and for a
    duration of prompts whose parts are numbers of requests.
    """
    replay_speed, prompts = scenario.load.replay_speed, scenario.prompts
    in_stretches = isinstance(prompts, Victim) or (isinstance(prompts, Structured) and prompts.free)
    if in_stretches and scenario.load.duration_s is not None:
        raise SpecError(
            "would end the load before all four stretches of its requests were sent",
            where=f"{where}:load.duration_s",
            hint="leave it out: --requests N sets how many requests they have together",
        )
    if isinstance(scenario.prompts, Victim) and not replay_speed:
        raise SpecError(
            "prompts of generator 'victim' have times of their own",
            where=f"{where}:load",
            hint="replay_speed = [1] sends them at their pace, [2] twice as fast",
        )
    if replay_speed and not has_times(scenario.prompts):
        raise SpecError(
            f"prompts of generator '{generator}' have no times of their own",
            where=f"{where}:load.replay_speed",
            hint="give concurrency or rate, or use generator 'trace'",
        )


def _check_classes(scenario: Scenario, where: str) -> None:
    """Raises SpecError if more than one of prompts, adapters and images divides requests into classes."""
    divided = {"lora.adapters": bool(scenario.lora.adapters), "images.counts": bool(scenario.images.counts)}
    asked = [key for key, given in divided.items() if given]
    if len(asked) > 1:
        raise SpecError("adapters and images do not go together", where=f"{where}:{asked[1]}")
    spec = scenario.prompts
    one_class = isinstance(spec, FixedLength) or (isinstance(spec, SharedPrefix) and spec.turns == 1)
    if asked and not one_class:
        raise SpecError(
            f"{'adapters' if scenario.lora.adapters else 'images'} are the classes of requests: they go with "
            "the generators 'fixed-length' and 'shared-prefix' with one turn",
            where=f"{where}:{asked[0]}",
        )


def _check_switches(scenario: Scenario, where: str, given: Collection[str]) -> None:
    """Raises SpecError for details that are `given` of adapters or images where requests have none."""
    for name, switch in (("lora", "adapters"), ("images", "counts")):
        details = [key for key in given if key.startswith(f"{name}.") and key != f"{name}.{switch}"]
        if details and not getattr(getattr(scenario, name), switch):
            raise SpecError(f"has no effect without {name}.{switch}", where=f"{where}:{details[0]}")


def _check_groups(scenario: Scenario, where: str) -> None:
    """Raises SpecError unless one of [prompts] and [load] working_set sets the number of prefixes."""
    generator_spec, sized = scenario.prompts, bool(scenario.load.working_set)
    if sized and not (isinstance(generator_spec, SharedPrefix) and generator_spec.turns == 1):
        raise SpecError(
            "is of prompts of the generator 'shared-prefix' with one turn", where=f"{where}:load.working_set"
        )
    if isinstance(generator_spec, SharedPrefix) and bool(generator_spec.groups) == sized:
        what = "is what [load] working_set says" if sized else "must be at least 1, not 0"
        raise SpecError(what, where=f"{where}:prompts.groups")
