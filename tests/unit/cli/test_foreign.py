"""Flags of other tools: each leads to flags that exist, and to a page that has it."""

import re

import pytest

from harness.cli.flags.foreign import FOREIGN, NEEDLESS, OURS
from harness.cli.flags.parsers import command_parser
from harness.host.paths import CHECKOUT
from harness.spec.scenario import load_scenario


@pytest.mark.parametrize("flag", FOREIGN)
def test_a_flag_of_another_tool_leads_to_flags_that_exist(flag):
    ours = command_parser("run")._option_string_actions
    assert flag not in ours
    named = set(re.findall(r"--[a-z-]+", FOREIGN[flag])) - {"--max-concurrency"}
    assert named
    assert named <= set(ours)
    for name in re.findall(r"--scenario ([a-z][a-z-]+)", FOREIGN[flag]):
        assert load_scenario(name)


@pytest.mark.parametrize("flag", [*FOREIGN, *NEEDLESS])
def test_the_page_of_other_tools_has_it(flag):
    assert flag in (CHECKOUT / "docs/coming-from.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", OURS)
def test_a_flag_of_another_command_leads_to_flags_that_exist(command):
    ours = set(command_parser(command)._option_string_actions)
    assert not set(OURS[command]) & ours
    assert set(re.findall(r"--[a-z-]+", " ".join(OURS[command].values()))) <= ours
