"""A flag of `bench run` has the option or the scenario key that it sets as its destination."""

from dataclasses import fields
from typing import get_type_hints

from harness.cli.flags.parsers import command_parser
from harness.run.setup.options import RunOptions
from harness.spec.scenario import Scenario
from harness.spec.scenario.generators import GENERATORS

GIVEN = vars(command_parser("run").parse_args(["--backends", "truth", "--scenario", "chat"]))


def test_every_option_has_a_flag():
    options = {field.name for field in fields(RunOptions)}
    assert options - GIVEN.keys() == {"load_from", "command"}  # of several flags; what was typed


def test_every_other_flag_sets_a_key_or_is_none_of_the_run():
    others = GIVEN.keys() - {field.name for field in fields(RunOptions)}
    sections = get_type_hints(Scenario)
    prompts = {field.name for generator in GENERATORS.values() for field in fields(generator)}
    for section, name in (key.split(".") for key in others if "." in key):
        known = prompts if section == "prompts" else {field.name for field in fields(sections[section])}
        assert name in known, f"{section}.{name}"
    assert {key for key in others if "." not in key} == {
        *("cluster", "load_nodes", "workers_per_node"),  # RunOptions.load_from
        *("price_per_hour", "price_per_gpu_hour"),  # RunOptions.prices
        "depth",
        *(
            "anyway",
            "dry_run",
            "fail_on",
            "json",
            "junit",
            "metrics_port",
            "no_report",
            "verbose",
        ),  # of the command
        *("api_key", "token"),  # refused
    }
