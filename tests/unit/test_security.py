"""What SECURITY.md promises, point by point: each test fails where the point is undone."""

import ast
import os
import re
import stat
from functools import cache
from pathlib import Path

import pytest

from harness.engines.speak.access import api_key
from harness.engines.start.containers.files import compose_files
from harness.host import helper_process, paths
from harness.spec.backend_refs import load_backend
from harness.store import RunFolder
from tests.sources import naming, text_of, tree

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "harness").rglob("*.py"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PUBLISHING = ("pages.yml", "release.yml")
IMAGES = [load_backend(name) for name in sorted(paths.definitions("backends")) if name != "models"]


@cache
def nodes(path):
    """Of a file's syntax tree."""
    return list(ast.walk(tree(path)))


def imported(path):
    """Modules that a file imports, wherever in it."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))


def users(*modules):
    return {
        path.relative_to(ROOT / "harness").as_posix()
        for path in naming(SOURCES, [one.rpartition(".")[2] for one in modules])
        if any(name == one or name.startswith(f"{one}.") for name in imported(path) for one in modules)
    }


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


INSTALLS = {
    f"{one.name} {process.program[0]}": process.install
    for one in IMAGES
    for process in (one.process, one.process_cuda)
    if process and process.install and not process.install.index
}


@pytest.mark.parametrize("install", INSTALLS.values(), ids=INSTALLS)
def test_every_environment_is_locked_with_a_hash_for_everything(install):
    assert install.lock
    text = paths.lock_file(install.lock).read_text(encoding="utf-8")
    entries = [entry for entry in re.split(r"\n(?=\S)", text) if not entry.startswith("#")]
    assert entries
    assert all(re.match(r"[\w.-]+==\S+", entry) and "--hash=sha256:" in entry for entry in entries)
    assert "://" not in text


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_run_folder_is_the_users_alone_and_the_umask_holds_below(tmp_path, umask):
    before = os.umask(umask)
    try:
        path = RunFolder.create(tmp_path, "x").path
    finally:
        os.umask(before)
    assert mode(path) == 0o700
    assert mode(path / "cells") == 0o777 & ~umask


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize("variable", ["BENCH_CACHE", "BENCH_CONFIG"])
def test_cache_and_settings_are_the_users_alone_and_the_umask_holds_below(
    tmp_path, monkeypatch, umask, variable
):
    top = tmp_path / "above" / "top"
    monkeypatch.setenv(variable, str(top))
    before = os.umask(umask)
    try:
        made = paths.made(top / "logs")
    finally:
        os.umask(before)
    assert mode(top.parent) == mode(top) == 0o700
    assert mode(made) == 0o777 & ~umask


def test_a_folder_that_exists_keeps_its_mode(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "shared"))
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o750)
    paths.made(paths.cache_dir() / "logs")
    assert mode(tmp_path / "shared") == 0o750


def test_the_cache_is_made_in_one_place_alone():
    """By whoever writes there first: each asks `paths.made`."""
    own = re.compile(
        r"(cache_dir|config_dir)\(\).*\.mkdir|\b(logs|log\.parent|state\.parent|token\.parent)\.mkdir"
    )
    assert [path.name for path in SOURCES if own.search(text_of(path))] == []


def test_a_child_gets_no_credential_whatever_its_name(monkeypatch):
    monkeypatch.setenv("LOOKS_HARMLESS", "sk-secret")
    monkeypatch.setenv("SOME_TOKEN", "t")
    monkeypatch.setenv("HARMLESS", "x")
    monkeypatch.setattr(helper_process, "_withheld", set())
    assert api_key("LOOKS_HARMLESS") == "sk-secret"
    passed = helper_process.without_credentials(os.environ)
    assert "HARMLESS" in passed
    assert not {"LOOKS_HARMLESS", "SOME_TOKEN"} & passed.keys()


def test_every_child_is_told_its_environment():
    untold = {
        path.name
        for path in naming(SOURCES, ["subprocess"])
        for node in nodes(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("Popen", "run", "check_output", "check_call", "call")
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "subprocess"
        and "env" not in {keyword.arg for keyword in node.keywords}
    }
    # A night and a kit start `bench`; the guard was told its own and hands it on.
    assert untold == {"run_suite.py", "box.py", "guard.py"}


def test_no_child_is_handed_the_whole_environment():
    whole = re.compile(r"\*\*os\.environ|dict\(os\.environ\)|os\.environ\.copy")
    inherit = {path.name for path in SOURCES if whole.search(text_of(path))}
    assert inherit == {"watch.py"}  # takes four variables out of it


def test_nothing_of_another_is_unpickled_or_evaluated():
    # A spool of requests in a file without a name, and the pipes to our own children, are pickled.
    assert users("pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib") == {
        "workload/prompts/workload.py"
    }
    spool = (ROOT / "harness" / "workload" / "prompts" / "workload.py").read_text(encoding="utf-8")
    assert "self._file = tempfile.TemporaryFile()" in spool
    for path in naming(SOURCES, ["eval", "exec", "shell"]):
        for node in nodes(path):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec"), f"{path}:{node.lineno}"
            if isinstance(node, ast.keyword) and node.arg == "shell":
                raise AssertionError(f"{path}:{node.value.lineno}: a shell")


def test_chat_templates_are_rendered_in_a_sandbox_only():
    bare = users("jinja2") - users("jinja2.sandbox")
    assert not bare, "a template comes with the model: jinja2.sandbox.ImmutableSandboxedEnvironment"
    # Shims in an engine's environment, on weights whose sha256 is known: transformers too renders in a
    # sandbox, and runs code of a model with trust_remote_code only.
    assert users("transformers") == {
        "engines/shims/convert_gguf.py",
        "engines/shims/library_ctranslate2.py",
        "engines/shims/library_mistralrs.py",
        "engines/shims/random_vision.py",
        "engines/shims/random_weights.py",
        "engines/shims/reference_values.py",
    }
    assert not any("trust_remote_code" in text_of(path) for path in SOURCES)


def test_archives_are_read_by_member_never_extracted_whole():
    kits = ROOT / "harness" / "kit" / "parts.py"  # with the filter that refuses what leads out of the folder
    extracts = "members.extractall(folder, _fitting(members, folder), filter=_data)"
    for line in (extracts, "kept = tarfile.data_filter(member, folder)"):
        assert line in kits.read_text(encoding="utf-8")
    assert users("tarfile", "shutil.unpack_archive") == {"kit/make.py", "kit/parts.py", "kit/source.py"}
    for path in set(SOURCES) - {kits}:
        assert not re.search(r"\.extract(all)?\(|unpack_archive\(", text_of(path)), path


@pytest.fixture(scope="module")
def files():
    return compose_files([definition for definition in IMAGES if definition.compose])


def test_no_container_has_privileges_and_all_lose_what_none_needs(files):
    for name, text in files.items():
        assert "privileged" not in text, name
    services = files["compose.yaml"].count("\n    restart:")
    assert services == files["compose.yaml"].count('cap_drop: ["AUDIT_WRITE", "MKNOD", "NET_RAW"')
    assert services == files["compose.yaml"].count('"no-new-privileges:true"')
    asked = {cap for text in files.values() for cap in re.findall(r'cap_add: \["(.*)"\]', text)}
    assert asked <= {"SYS_PTRACE", "SYS_NICE"}


def test_ports_are_published_on_loopback_only(files):
    published = re.findall(r"ports: \[(.*)\]", files["compose.yaml"])
    assert published
    assert all(one.startswith('"127.0.0.1:') for one in published)
    for definition in IMAGES:
        for command in definition.attach.start if definition.attach else ():
            if "docker run" not in command:
                continue
            assert not re.search(r"(?<!\S)-p (?!127\.0\.0\.1:)\d", command), f"{definition.name}: {command}"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_may_only_read_but_for_those_that_publish(path):
    text = path.read_text(encoding="utf-8")
    assert re.search(r"^permissions:\n  contents: read\n", text, re.MULTILINE)
    assert "pull_request_target" not in text
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")
    if path.name in PUBLISHING:
        assert "pull_request" not in text, "what others propose is not run with more rights"
        assert "secrets." not in text
    else:
        assert text.count("permissions:") == 1, "no job asks for more"


ACTIONS = (ROOT / "action.yml", ROOT / "action" / "comment" / "action.yml")


@pytest.mark.parametrize("path", [*WORKFLOWS, ACTIONS[0]], ids=lambda path: path.name)
def test_actions_are_named_by_their_sha(path):
    used = re.findall(r"uses: (\S+)(.*)", path.read_text(encoding="utf-8"))
    assert used
    for action, note in used:
        if action == "./":
            continue
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", note), f"{action} does not say its version"


def test_inputs_of_the_actions_reach_no_shell_as_text():
    """An input put into a script would be run; as a variable it is only read."""
    runs = [
        run
        for path in ACTIONS
        for run in re.findall(r"^ +run: (.*(?:\n {8}.*)*)", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(runs) == 3
    assert not [run for run in runs if "${{" in run]


def test_the_report_runs_no_script_but_its_own_and_asks_no_one():
    text = (ROOT / "harness" / "report" / "html" / "page.py").read_text(encoding="utf-8")
    for part in ("default-src 'none'", "script-src 'sha256-", "base-uri 'none'", "form-action 'none'"):
        assert part in text
    assert "'unsafe-eval'" not in text
    script = (ROOT / "harness" / "report" / "html" / "page.js").read_text(encoding="utf-8")
    assert not re.search(r"fetch\(|XMLHttpRequest|WebSocket|innerHTML|eval\(|import\(", script)


def test_it_is_said_how_to_report():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    for heading in ("## Reporting", "## What is trusted", "## What is not trusted"):
        assert heading in text
