"""`bench validate`: the kind of each file, every wrong one named, and a count at the end."""

import json
import re

import pytest

from harness.cli.main import main
from harness.errors import ExitCode
from harness.host import paths

SUITE = paths.shipped("workloads") / "suites" / "truth.toml"
SCENARIO = paths.shipped("workloads") / "shared-prefix.toml"
BACKEND = paths.shipped("backends") / "vllm.toml"
MODELS = paths.shipped("backends") / "models.toml"


def validated(capsys, *files):
    code = main(["validate", *map(str, files)])
    said = capsys.readouterr()
    return code, said.out.splitlines(), said.err.splitlines()


def test_each_file_is_named_with_its_kind(capsys):
    kinds = {SCENARIO: "scenario", BACKEND: "backend", MODELS: "models", SUITE: "suite"}
    code, out, err = validated(capsys, *kinds)
    assert (code, err) == (ExitCode.OK, [])
    assert out == [f"{file}: {kind}, valid" for file, kind in kinds.items()]


@pytest.fixture
def wrong(tmp_path):
    """A file for each place in which a mistake may hide; the first table alone is right in all."""
    scenario, backend, models = SCENARIO.read_text(), BACKEND.read_text(), MODELS.read_text()
    texts = {
        "typo.toml": scenario.replace("groups = 8 ", "group = 8 "),
        "value.toml": scenario.replace("context_tokens = ", "context_token = ", 1),
        "profile.toml": scenario.replace("[profiles.cpu]", "[profiles.cpu]\ncache = { state = 'hot' }"),
        "variant.toml": f"{backend}\n[variants.mine]\ndescription = 'x'\nargs = ['{{dtyp}}']\n",
        "default.toml": models.replace("default = ", 'default = "mine" #', 1),
        "track.toml": re.sub(r'convert_from = "[^"]+"', 'convert_from = "mine"', models),
        "circle.toml": models.replace(
            "tracks.gguf-q4_1]", 'tracks.gguf-q4_1]\nconvert_from = "bf16-from-q4_1"', 1
        ),
        "vocabulary.toml": re.sub(r'vocabulary = "[^"]+"', 'vocabulary = "mine"', models),
        "nothing.toml": "[other]\n",
        "broken.toml": "[scenario\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("typo.toml", "unknown key 'group'"),
        ("value.toml", "value.toml:engine_values: no backend has an engine value 'context_token'"),
        ("profile.toml", "hot"),
        ("variant.toml", "dtyp"),
        ("default.toml", "default.toml:default: unknown model 'mine'"),
        ("track.toml", ".convert_from: unknown track 'mine'"),
        ("circle.toml", "is made of itself: 'gguf-q4_1' of 'bf16-from-q4_1' of 'gguf-q4_1'"),
        ("vocabulary.toml", ".random.vocabulary: unknown model 'mine'"),
        ("nothing.toml", "has none of the tables [scenario], [backend], [models], [suite]"),
        ("broken.toml", "broken.toml"),
        ("absent.toml", "absent.toml"),
    ],
)
def test_a_mistake_anywhere_in_a_file_is_found(wrong, capsys, name, says):
    code, out, err = validated(capsys, wrong / name)
    assert (code, out) == (ExitCode.USAGE, [])
    assert err[0].startswith("error: ")
    assert says in err[0]
    assert err[-1] == "1 of 1 file wrong"


def test_one_wrong_file_hides_no_other(wrong, capsys):
    code, out, err = validated(capsys, wrong / "typo.toml", BACKEND, wrong / "nothing.toml")
    assert code == ExitCode.USAGE
    assert out == [f"{BACKEND}: backend, valid"]
    assert sum(line.startswith("error: ") for line in err) == 2
    assert err[-1] == "2 of 3 files wrong"


def test_without_a_file_those_of_this_folder_and_those_shipped_are_checked(tmp_path, monkeypatch, capsys):
    (tmp_path / "workloads").mkdir()
    (tmp_path / "workloads" / "mine.toml").write_text("[scenario]\n")
    monkeypatch.chdir(tmp_path)
    kinds = ("workloads", "workloads/suites", "backends")
    known = sum(len(paths.definitions(kind)) for kind in kinds)
    code, out, err = validated(capsys)
    assert code == ExitCode.USAGE
    assert len(out) == known - 1
    assert err[-1] == f"1 of {known} files wrong"


def test_a_file_that_cannot_be_read_has_its_name_and_the_reason_once(capsys, tmp_path):
    code, _, err = validated(capsys, tmp_path / "none.toml", tmp_path)
    assert code == ExitCode.USAGE
    assert err[0] == f"error: {tmp_path}/none.toml: cannot be read: No such file or directory"
    assert err[1] == f"error: {tmp_path}: cannot be read: Is a directory"


def test_every_wrong_run_of_a_suite_is_named(tmp_path, capsys):
    text = SUITE.read_text().replace("repeats = 1", "repeats = 0")
    wrong = tmp_path / "mine.toml"
    wrong.write_text(text + text[text.index("[[run]]") :].replace("[2]", "[4]"))
    code, out, err = validated(capsys, wrong)
    assert (code, out) == (ExitCode.USAGE, [])
    places = [f"error: {wrong}:run[{number}].repeats: must be at least 1, not 0" for number in range(2)]
    assert err == [*places, "1 of 1 file wrong"]


def test_the_document_has_every_file_with_what_is_wrong_in_it(wrong, capsys):
    code = main(["validate", "--json", str(BACKEND), str(wrong / "typo.toml"), str(wrong / "broken.toml")])
    valid, typo, broken = json.loads(capsys.readouterr().out)
    assert code == ExitCode.USAGE
    assert valid == {"file": str(BACKEND), "kind": "backend", "errors": []}
    assert (typo["kind"], typo["errors"][0]["hint"]) == (None, "did you mean 'groups'?")
    assert "unknown key 'group'" in typo["errors"][0]["error"]
    assert [each["error"].startswith(str(wrong)) for each in broken["errors"]] == [True]
