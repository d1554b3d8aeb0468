"""`bench URL`: a running server of which only the address is known, measured by `bench run`."""

import argparse
import re
import shlex
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from harness.cli.display.output import printed_command, progress_display
from harness.cli.display.result import Result
from harness.cli.flags import options
from harness.cli.typed import RunOutput, typed
from harness.errors import ExitCode, SetupError, SpecError
from harness.model.lines import wrap
from harness.model.numbers import duration

if TYPE_CHECKING:
    from harness.cli.commands.run import Options as RunFlags
    from harness.engines.speak.server import Server
    from harness.host.access import Access
    from harness.probe import Look
    from harness.run.setup.options import Ui
    from harness.run.setup.sizing import Loads
    from harness.spec.backend import Backend
    from harness.spec.reach import ReachFlags

EPILOG = """Finds the model, the engine and a load that fits the time, and measures chat completions. From
there on it is the `bench run` that is printed at the end; with --api, that measures another API. Two URLs are
measured alternately and compared.

  bench http://127.0.0.1:8000
  bench http://127.0.0.1:8000 http://127.0.0.1:8001 --minutes 10
  bench old=http://127.0.0.1:8000 new=http://127.0.0.1:8001
  bench a=https://gate.example b=https://gate.example --model-name a=chat-a,b=chat-b
  bench http://10.0.0.1:8000+http://10.0.0.2:8000       replicas of one model, loaded in turn"""

SCENARIO = "first-look"
MINUTES = (2.0, 5.0)  # of one server, and of two: in two minutes answers would be too short to compare
_LOOK_SHARE = 0.25  # of the time, for the first look at all servers together
_APIS_S = 5.0  # at least, for a look at what else it answers
_MODELS = 8  # named in an error
_NAMED = re.compile(r"([\w.-]+)=")


@dataclass(frozen=True, slots=True)
class Given:
    """A server of the command line."""

    url: str
    alias: str = ""  # the user's name of it

    @property
    def shown(self) -> str:
        """The server as its user names it, with its address: two models may be behind one."""
        url = _first(self.url)
        return f"{self.alias}, {url}" if self.alias else url


@dataclass(frozen=True)
class Options(RunOutput):
    urls: tuple[str, ...]
    minutes: float | None
    reach: "ReachFlags"
    metrics_urls: tuple[str, ...]
    out: Path

    @classmethod
    def from_parsed(cls, parsed: argparse.Namespace) -> Self:
        return typed(cls, parsed, reach=options.reach_flags(parsed))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "bench URL [URL2] [options]"
    parser.add_argument(
        "urls",
        nargs="+",
        metavar="[NAME=]URL",
        help="address of a running server, and a name for it; a second one is compared with it; URL+URL are "
        "replicas",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        metavar="N",
        help="minutes that it may take, roughly (default: {:g}; of two servers {:g})".format(*MINUTES),
    )
    options.add_reach(parser, "of two URLs a value goes to both, unless the name of one is before it")
    options.add_runs_folder(parser)
    options.add_run_output(parser)


def main(given: Options) -> Result:
    from harness.cli.commands import run
    from harness.engines.speak.access import access_behind, access_of
    from harness.host.address import address_of
    from harness.report.text.sketch import sketch
    from harness.run.setup.sizing import fit, short_answers
    from harness.spec.reach import reach_of
    from harness.spec.scenario.limits import positive

    wanted = _given(given.urls)
    minutes = MINUTES[len(wanted) - 1] if given.minutes is None else given.minutes
    positive(minutes, "--minutes")
    _check_metrics_urls(wanted, given.metrics_urls)
    began, budget_s = time.monotonic(), 60 * minutes
    with closing(progress_display(verbose=given.verbose)) as ui:
        names = [server.alias for server in wanted if server.alias]
        reaches = [reach_of(given.reach, (server.alias,), names) for server in wanted]
        places = [frozenset(map(address_of, server.url.split("+"))) for server in wanted]
        if len(set(zip(places, reaches, strict=True))) < len(wanted):
            a, b = names if names[1:] else "ab"
            hint = "bench run --aa compares a server with itself: its noise; two models of it: "
            hint += f"bench {a}=URL {b}=URL --model-name {a}=MODEL,{b}=MODEL"
            raise SpecError("is given twice", where=wanted[0].url, hint=hint)
        accesses = list(map(access_of, reaches))
        models = _models(wanted, accesses, [reach.served_name for reach in reaches], ui)
        limit_s = _LOOK_SHARE * budget_s / len(wanted)
        engines = [
            {at: access_behind(at, server.url.split("+"), reach) for at in _engines_of(server, given)}
            for server, reach in zip(wanted, reaches, strict=True)
        ]
        definitions = [
            _definition(*known, ui) for known in zip(wanted, models, accesses, engines, strict=True)
        ]
        backends = backends_of(wanted, [definition.name for definition in definitions], given)
        looks = [
            _look(server, definition, model, access, limit_s, ui)
            for server, definition, model, access in zip(wanted, definitions, models, accesses, strict=True)
        ]
        spent_s = time.monotonic() - began
        loads = fit(looks, budget_s - spent_s)
        short = short_answers(loads, looks, spent_s)
        words = words_of(backends, loads, given)
        command = ("bench", "run", *words)
        ui.note(f"takes about {duration(loads.expected_s)}: {_load_words(loads)}")
        if short:
            ui.note(short)
    measured = run.measure(parsed(words, command), sketch)
    if measured.code == ExitCode.INTERRUPTED:
        return measured
    same = printed_command("the same as: ", command)
    return replace(measured, text=lambda screen: [*wrap(short, screen.width), same])


def _load_words(loads: "Loads") -> str:
    """`32 requests at 1, 4 and 8 in flight, answers of 64 tokens`."""
    from harness.report.wording import listing

    each = f", {loads.repeats} times each" if loads.repeats > 1 else ""
    in_flight = listing([str(value) for value in loads.concurrency])
    return (
        f"{loads.requests} requests at {in_flight} in flight, answers of {loads.output_tokens} tokens{each}"
    )


def _given(words: Sequence[str]) -> list[Given]:
    servers = [_server(word) for word in words]
    if len(servers) > 2:
        raise SpecError(
            f"{len(servers)} URLs: give one server, or two to compare",
            where="URL",
            hint="bench run --backends NAME=URL,NAME=URL,… compares more",
        )
    if servers[1:] and servers[0].alias == servers[1].alias != "":
        raise SpecError("is given twice", where=f"{servers[0].alias}=", hint="each server has its own name")
    return servers


def _check_metrics_urls(servers: Sequence[Given], metrics_urls: Sequence[str]) -> None:
    """Raises SpecError before a server is asked where a URL names none of two servers."""
    from harness.spec.server_urls import metrics_url

    for text in metrics_urls if servers[1:] else ():
        if not metrics_url(text)[0]:
            raise SpecError(
                "two servers: whose metrics are these?",
                where=f"--metrics-url {text.partition('?')[0]}",
                hint="name the servers, a=URL b=URL, and say --metrics-url a=URL",
            )


def _server(word: str) -> Given:
    from harness.spec.server_urls import server_urls

    named = _NAMED.match(word)
    addresses = word[named.end() :] if named else word
    url = server_urls("+".join(map(_with_scheme, addresses.split("+"))), "URL")
    return Given(url, named[1] if named else "")


def _with_scheme(address: str) -> str:
    return address if "://" in address or not address else f"http://{address}"


def _models(
    servers: Sequence[Given], accesses: Sequence["Access"], chosen: Sequence[str | None], ui: "Ui"
) -> list[str]:
    """The model of each server. Raises one error for all that cannot be reached."""
    models, failed = [], []
    for server, access, name in zip(servers, accesses, chosen, strict=True):
        url = _first(server.url)
        ui.stage(f"{server.shown}: asking what it serves")
        try:
            models.append(_model(url, access, name))
        except SetupError as error:
            failed.append(error)
    if len(failed) > 1:
        hints = dict.fromkeys(error.hint for error in failed if error.hint)
        below = "\n".join(f"  {error}" for error in failed)
        raise SetupError("neither server can be measured:", below=below, hint="; ".join(hints))
    if failed:
        raise failed[0]
    return models


def _first(urls: str) -> str:
    """The first of replicas: they are alike, which the run checks."""
    return urls.partition("+")[0]


def _engines_of(server: Given, given: Options) -> list[str]:
    """Addresses of the engines behind a server, by its --metrics-url."""
    from harness.spec.server_urls import metrics_url, server_url

    named = [metrics_url(text) for text in given.metrics_urls]
    urls = [server_url(url, "--metrics-url") for label, _role, url in named if label in ("", server.alias)]
    return ["{0.scheme}://{0.netloc}".format(urlsplit(url)) for url in urls]


def _definition(
    given: Given, model: str, access: "Access", engines: Mapping[str, "Access"], ui: "Ui"
) -> "Backend":
    """The engine that answers there, by its answers, or by those of `engines` behind it; where they fit none,
    by the user's name of it.

    Raises SpecError where that name is another engine's, and SetupError where it lacks what that engine has.
    """
    from harness.engines.speak.detect import recognise
    from harness.engines.speak.server import Server
    from harness.spec import files
    from harness.spec.backend_refs import load_backend

    url = _first(given.url)
    named = load_backend(given.alias) if given.alias in files.names("backends") else None
    recognition, recognised = "no engine was recognised", None
    for at, reached in {url: access, **engines}.items():
        if recognised := recognise(at, reached, named):
            recognition = f"recognised by {' and '.join(recognised.seen)}"
            recognition += f" of {at}" if at != url else ""
            break
    definition = load_backend(recognised.name) if recognised else named or load_backend("openai")
    if named and not recognised:
        recognition = "as named"
        with closing(Server(definition, url, model, access)) as server:
            server.check_reachable(is_behind=bool(engines))
    ui.note(f"{given.shown}: {definition.backend.title} ({recognition}), model {model}")
    if named and given.alias != definition.name:
        raise SpecError(
            f"is the name of another engine: {url} answers as {definition.backend.title}",
            where=f"{given.alias}=",
            hint="give the server another name, or none",
        )
    return definition


def _look(
    given: Given, definition: "Backend", model: str, access: "Access", limit_s: float, ui: "Ui"
) -> "Look":
    from harness.engines.speak.server import Server
    from harness.probe import look

    url, deadline = _first(given.url), time.monotonic() + limit_s
    ui.stage(f"{given.shown}: a first look")
    with closing(Server(definition, url, model, access)) as server:
        seen = look(server, limit_s)
        ui.note(f"{given.shown}: {_apis(server, max(deadline, time.monotonic() + _APIS_S))}")
    ui.note(
        f"{given.shown}: first look: TTFT {1e3 * seen.ttft_s:.0f} ms, TPOT {1e3 * seen.tpot_s:.1f} ms; "
        f"{seen.together}"
    )
    return seen


def _apis(server: "Server", deadline: float) -> str:
    """One line: the APIs that answered a short request each. Chat Completions did so before.

    What a silent server would answer after `deadline` (time.monotonic()) is not known.
    """
    from harness.apis import API_NAMES

    has: list[str] = [API_NAMES[0]]
    lacks: list[str] = []
    unknown: list[str] = []
    for name in API_NAMES[1:]:
        left_s = deadline - time.monotonic()
        refusal = server.refusal_of(name, left_s) if left_s > 0 else ""
        answers = unknown if time.monotonic() >= deadline else lacks if refusal else has
        answers.append(name)
    without = f"; none of {', '.join(lacks)}" if lacks else ""
    late = f"; no answer in time from {', '.join(unknown)}" if unknown else ""
    return f"APIs: {', '.join(has)}{without}{late}; measured here: chat"


def _model(url: str, access: "Access", chosen: str | None) -> str:
    """The chosen one, or the only one that the server lists."""
    from harness.client.answer import StatusError
    from harness.engines.speak.server import Server
    from harness.probe.address import hint_at
    from harness.spec.backend_refs import load_backend

    with closing(Server(load_backend("openai"), url, chosen or "", access)) as server:
        try:
            if chosen:
                server.check_reachable()
                return chosen
            names = server.model_names()
        except SetupError as error:
            status = error.status if isinstance(error, StatusError) else 0
            hint = error.hint or hint_at(url, status, chosen)
            raise SetupError(error.what, where=error.where, hint=hint) from None
    if not names:
        raise SetupError(
            "lists no model",
            where=f"{url}/v1/models",
            hint="load a model there, or name it with --model-name; is this an OpenAI-compatible server?",
        )
    if len(names) > 1:
        more = "" if len(names) <= _MODELS else f" and {len(names) - _MODELS} more"
        raise SpecError(
            f"serves {len(names)} models: {', '.join(names[:_MODELS])}{more}",
            where=url,
            hint=f"choose one: --model-name {shlex.quote(names[0])}; or compare two: bench a={url} b={url} "
            f"--model-name {shlex.quote(f'a={names[0]},b={names[1]}')}",
        )
    return names[0]


def backends_of(servers: Sequence[Given], engines: Sequence[str], given: Options) -> str:
    """The value of --backends. Raises SpecError for a --metrics-url that fits none of them."""
    from harness.spec.backend_refs import parse_backend_list
    from harness.spec.server_urls import with_metrics_urls

    named = [
        f"{server.alias}={engine}={server.url}".lstrip("=")
        for server, engine in zip(servers, engines, strict=True)
    ]
    refs = parse_backend_list(",".join(named))
    with_metrics_urls(refs, [ref.label for ref in refs], given.metrics_urls)
    return ",".join(named)


def words_of(backends: str, loads: "Loads", given: Options) -> list[str]:
    """The words after `bench run`."""
    words = ["--scenario", SCENARIO, "--backends", backends]
    words += ["--concurrency", ",".join(map(str, loads.concurrency)), "--requests", str(loads.requests)]
    words += ["--output-tokens", str(loads.output_tokens), "--duration", str(loads.cell_limit_s)]
    if loads.timeout_s is not None:
        words += ["--set", f"request.timeout_s={loads.timeout_s}"]
    if given.urls[1:]:
        words += ["--repeats", str(loads.repeats), "--no-agreement"]
    if not loads.probe:
        words.append("--no-probe")
    words += options.reach_words(given.reach)
    words += [word for url in given.metrics_urls for word in ("--metrics-url", url)]
    if given.out != options.RESULTS:
        words += ["--out", str(given.out)]
    if given.metrics_port:
        words += ["--metrics-port", "{}:{}".format(*given.metrics_port)]
    forms = {"--verbose": given.verbose, "--json": given.json, "--no-report": given.no_report}
    return [*words, *(flag for flag, wanted in forms.items() if wanted)]


def parsed(words: Sequence[str], command: tuple[str, ...]) -> "RunFlags":
    """Parses words as `bench run` does: the line that is printed is the line that is run."""
    from harness.cli.commands import run

    parser = argparse.ArgumentParser(allow_abbrev=False)
    run.add_arguments(parser)
    return run.Options.from_parsed(parser.parse_args(words), command)
