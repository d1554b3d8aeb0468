"""`bench claims` without a run: the list of one engine, its counts, and limits that have no end."""

import json
import re

import pytest

from harness.claims import load_catalog
from harness.cli.flags.parsers import command_parser
from harness.cli.main import main
from harness.errors import ExitCode
from harness.spec.backend_refs import parse_backend_list
from harness.spec.scenario import load_scenario

STATEMENT = re.compile(r"\w+-\d+")  # `A0-003` and `A0-003b` are one about two pairs


def listed(capsys, *words):
    assert main(["claims", *words]) == ExitCode.OK
    return capsys.readouterr().out


def test_the_counts_at_the_end_are_those_of_the_list(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    rows = json.loads(listed(capsys, "--system", "sglang", "--json"))
    about = [row.get("order", "").split()[::2] or row["of"] for row in rows]
    assert all(any(name.partition("@")[0] == "sglang" for name in names) for names in about)
    statements = {STATEMENT.match(row["id"])[0] for row in rows}
    decidable = {STATEMENT.match(row["id"])[0] for row in rows if "needs" not in row}
    assert len(decidable) < len(statements) < len(rows)
    text = listed(capsys, "--system", "sglang")
    lines = text.splitlines()
    assert f"{len(statements)} claims, decidable by a run: {len(decidable)}" in lines
    ids, conflicts = {row["id"] for row in rows}, load_catalog().conflict
    about = [conflict for conflict in conflicts if ids & set(conflict.claims)]
    assert 1 < len(about) < len(conflicts)
    assert f"{len(about)} matters in which the sources contradict each other" in lines
    shown = {line.split()[0]: line for line in lines if STATEMENT.match(line)}
    assert set(shown) == {row["id"] for row in rows}
    assert all((" (needs " in shown[row["id"]]) is ("needs" in row) for row in rows)


def test_a_limit_without_an_end_is_null_and_no_number_of_another_language(capsys):
    text = listed(capsys, "--json")
    assert "Infinity" not in text
    found = next(row for row in json.loads(text) if row["id"] == "A0-003")
    assert (found["ratio"], found["load"]) == ([1.1, None], [8, None])
    assert "scaling" not in found


def test_an_engine_that_nobody_wrote_about_is_an_error_with_those_that_are_known(capsys):
    assert main(["claims", "--system", "vlm"]) == ExitCode.USAGE
    error, hint = capsys.readouterr().err.splitlines()
    assert error == "error: no claim is about 'vlm'"
    assert {"vllm", "sglang", "llamacpp"} <= set(hint.removeprefix("hint: known: ").split(", "))


def test_claims_about_several_engines_are_about_all_of_them(capsys):
    rows = json.loads(listed(capsys, "--system", "sglang,vllm", "--json"))
    named = [
        {name.partition("@")[0] for name in row.get("order", "").split()[::2] or row["of"]} for row in rows
    ]
    assert all({"sglang", "vllm"} <= names for names in named)
    assert {"A1-008", "A0-074"} <= {row["id"] for row in rows}
    assert main(["claims", "--system", "sglang,vlm"]) == ExitCode.USAGE
    assert "no claim is about 'vlm'" in capsys.readouterr().err
    assert main(["claims", "--system", ","]) == ExitCode.USAGE
    assert "',' holds no name" in capsys.readouterr().err


def test_a_claim_of_certain_hardware_says_that_no_other_decides_it(capsys):
    warning = "A run on anything but an H100 leaves it not decidable."
    assert warning in listed(capsys, "A1-008")
    assert warning not in listed(capsys, "A0-003")
    assert "\nbench claims latest\n" in listed(capsys, "A0-003")


def test_a_source_without_a_claim_about_the_engine_leaves_no_gap(capsys):
    text = listed(capsys, "--system", "mlc-llm")
    assert "\n\n\n" not in text
    assert not text.startswith("\n")


def test_a_claim_names_the_run_that_decides_it(capsys):
    text = listed(capsys, "A0-003")
    assert "by output_tokens_per_s: vllm better than llamacpp by a factor of 1.1 or more" in text
    command = (
        "bench run --scenario fixed-length --backends vllm,llamacpp --concurrency 8 --requests 64 --repeats 3"
    )
    assert command in text
    assert listed(capsys, "a0-003") == text
    assert json.loads(listed(capsys, "A0-003", "--json"))["command"] == command
    assert "--scenario shared-prefix --backends llamacpp --repeats 3" in listed(capsys, "A0-007")
    assert "--concurrency 1,8 " in listed(capsys, "A0-004")
    needs = listed(capsys, "A0-005")
    assert "what it needs: memory" in needs
    assert "bench run" not in needs


@pytest.mark.parametrize("name", ["A0-999", "a0-999"])
def test_a_claim_that_nobody_made_is_an_error_with_where_they_are_listed(name, capsys):
    assert main(["claims", name]) == ExitCode.USAGE
    assert capsys.readouterr().err == f"error: {name}: no such claim\nhint: `bench claims` lists them\n"


def test_every_command_is_one_that_bench_takes():
    """A scenario of that kind of work, and backends with definitions."""
    catalog = load_catalog()
    for claim in catalog.claims:
        command = catalog.command(claim)
        assert (command is None) == (claim.needs is not None)
        if command is not None:
            parsed = command_parser("run").parse_args(command[2:])
            assert claim.workload in (None, *catalog.workloads[load_scenario(parsed.scenario).name])
            assert parse_backend_list(parsed.backends)
            highest = max(getattr(parsed, "load.concurrency") or [0])
            assert claim.load is None or claim.takes("concurrency", highest)
