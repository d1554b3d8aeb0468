"""`bench compare`: runs of any machine against a baseline; the exit code is a gate."""

import argparse
import json
from pathlib import Path

from harness.cli import options
from harness.errors import ExitCode, SpecError

EPILOG = """Each backend is compared with the same backend of the baseline run (the first RUN, or --baseline),
the backends of a single run with each other. Runs whose conditions differ in what matters (requests,
weights, model, cache state, hardware) are refused unless --force. Whatever the baseline measured and a run
lacks, or has only as INVALID or null, is listed as missing.

Exit codes: 0 success; 1 slower with --fail-on slower, something missing, or a load point that cannot be
compared; 2 not a run folder."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    options.add_runs(parser)
    parser.add_argument(
        "--baseline", metavar="NAME", help="run or backend to compare with (default: the first)"
    )
    options.add_fail_on(parser, "a metric is slower")
    parser.add_argument("--force", action="store_true", help="compare even if conditions differ")
    options.add_allow_missing(parser)
    parser.add_argument(
        "--floor",
        type=float,
        metavar="PERCENT",
        help="smallest difference that counts (default: 2 within a run, 5 between runs)",
    )
    options.add_runs_folder(parser)
    form = parser.add_mutually_exclusive_group()
    options.add_json(form)
    options.add_markdown(form, "a pull request")


def main(arguments: argparse.Namespace) -> int:
    from harness.cli.runs import opened
    from harness.compare.baseline import compare_runs, not_allowed, refused, regressions
    from harness.model import as_json
    from harness.report import baseline

    runs = opened(arguments.runs, arguments.out)
    floor = None if arguments.floor is None else arguments.floor / 100
    document = compare_runs(
        runs,
        _baseline(arguments),
        force=arguments.force,
        floor=floor,
        allow_missing=arguments.allow_missing,
    )
    if len(runs) == 1 and not document.pairs:
        raise SpecError(
            "only one backend: nothing to compare",
            where=str(arguments.runs[0]),
            hint="name a second run, or one with several backends",
        )
    if arguments.json:
        print(json.dumps(as_json(document), indent=1))
    else:
        print((baseline.markdown if arguments.markdown else baseline.terminal)(document))
    slower = bool(regressions(document)) if arguments.fail_on else False
    failed = slower or refused(document) or bool(not_allowed(document))
    return ExitCode.LIMIT_FAILED if failed else ExitCode.OK


def _baseline(arguments: argparse.Namespace) -> str | None:
    """A path of one of the runs is its name."""
    given = arguments.baseline
    return Path(given).name if given in arguments.runs else given
