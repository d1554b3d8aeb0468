"""Real virtual environments and real pip, on tiny wheels and without an index."""

import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

from harness.engines.provide import install
from harness.engines.provide.install import install_engine, installed
from harness.errors import SetupError, SpecError
from harness.spec.backend import Backend, Header, Install, Process, Server
from harness.spec.backend_refs import load_backend
from tests.integration.wheels import make_wheel, no_network, only_these, sha256

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture(scope="module")
def empty_environment(tmp_path_factory):
    """As `bench` makes it, but with the pip of this Python: to unpack and compile one takes seconds."""
    folder = tmp_path_factory.mktemp("environment") / "env"
    creating = install.creating(sys.version_info[:2], folder)
    subprocess.run([*creating, "--without-pip"], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    pip = distribution("pip")
    for name in ("pip", f"pip-{pip.version}.dist-info"):
        (packages / name).symlink_to(Path(pip.locate_file(name)))
    return folder


@pytest.fixture
def copied(empty_environment, monkeypatch):
    """Environments begin as copies of one."""
    monkeypatch.setattr(
        install, "creating", lambda _version, folder: ["cp", "-aT", str(empty_environment), str(folder)]
    )


def backend(recipe):
    return Backend(
        Header("tiny", "Tiny", "MIT", "", weights="none"),
        Server("/", 1),
        process=Process(("x",), install=recipe),
    )


@pytest.mark.usefixtures("copied")
def test_an_environment_is_built_and_found_again(tmp_path, monkeypatch):
    make_wheel(tmp_path / "wheels", "tinyengine", "1.5", requires=["tinydep>=2"])
    make_wheel(tmp_path / "wheels", "tinydep", "2.1")
    only_these(monkeypatch, tmp_path / "wheels")
    definition = backend(Install(("tinyengine==1.5",), version_of="tinyengine", size_mb=12))
    said = []
    assert installed(definition) is None
    made = install_engine(definition, said.append)
    assert made == installed(definition) == install_engine(definition, pytest.fail)
    assert made.version == "1.5"
    assert made.packages["tinydep"] == "2.1"
    assert any("about 12 MB" in line for line in said)
    assert any("installing tinyengine==1.5" in line for line in said)
    assert said[-1].startswith("tiny: environment ready after")
    other = backend(Install(("tinyengine==1.5", "tinydep"), version_of="tinyengine", size_mb=12))
    assert installed(other) is None
    assert installed(backend(Install(("tinyengine==1.5",), version_of="tinyengine", size_mb=13))) == made


@pytest.mark.usefixtures("copied")
def test_a_lock_lets_nothing_else_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wheel = make_wheel(tmp_path / "wheels", "tinyengine", "1.5")
    only_these(monkeypatch, tmp_path / "wheels")
    lock = tmp_path / "backends" / "locks" / "tiny.txt"
    lock.parent.mkdir(parents=True)
    lock.write_text(f"tinyengine==1.5 --hash=sha256:{sha256(wheel.read_bytes())}\n", encoding="utf-8")
    definition = backend(Install(("tinyengine==1.5",), version_of="tinyengine", lock="tiny.txt"))
    made = install_engine(definition, lambda line: None)
    assert made.version == "1.5"
    lock.write_text(f"tinyengine==1.5 --hash=sha256:{'0' * 64}\n", encoding="utf-8")
    assert installed(definition) is None
    with pytest.raises(SetupError, match="DO NOT MATCH THE HASHES"):
        install_engine(definition, lambda line: None)
    lock.unlink()
    with pytest.raises(SpecError, match=r"lock tiny\.txt: cannot be read"):
        installed(definition)


@pytest.mark.long
def test_requirements_left_out_and_the_alias(tmp_path, monkeypatch):
    """In an environment with a pip of its own, as Python makes one."""
    wheels = tmp_path / "wheels"
    asks = ["torch==9", "Torch_Audio", "tinydep; python_version > '3'", "absent; extra == 'more'"]
    make_wheel(wheels, "tiny_engine", "0.3.0", requires=asks)
    make_wheel(wheels, "tinydep", "2.1")
    make_wheel(wheels, "helper", "1")
    only_these(monkeypatch, wheels)
    definition = backend(
        Install(
            ("tiny_engine==0.3.0", "helper"),
            without=("torch", "torch-audio"),
            metadata_alias="tiny==0.3.0+cpu",
            version_of="tiny-engine",
        )
    )
    made = install_engine(definition, lambda line: None)
    ours = {name: version for name, version in made.packages.items() if name not in ("pip", "setuptools")}
    assert ours == {"tiny-engine": "0.3.0", "tinydep": "2.1", "helper": "1", "tiny": "0.3.0+cpu"}
    asked = "from importlib.metadata import version; print(version('tiny'))"
    assert subprocess.check_output([made.python, "-c", asked], text=True) == "0.3.0+cpu\n"


@pytest.mark.long
@pytest.mark.usefixtures("copied")
def test_torch_is_pinned_against_what_comes_later(tmp_path, monkeypatch):
    wheels = tmp_path / "wheels"
    make_wheel(wheels, "torch", "2.0+cpu")
    make_wheel(wheels, "torch", "3.0", requires=["nvidia-cublas"])
    make_wheel(wheels, "nvidia_cublas", "1")
    make_wheel(wheels, "tinyengine", "1", requires=["torch>=3"])
    only_these(monkeypatch, wheels)
    greedy = backend(Install(("tinyengine==1",), torch="2.0", version_of="tinyengine"))
    with pytest.raises(SetupError, match=r"installing tinyengine==1 failed: .*conflicting"):
        install_engine(greedy, lambda line: None)
    make_wheel(wheels, "sneaky", "1", requires=["nvidia-cublas"])
    with pytest.raises(SetupError, match="brought GPU packages: nvidia-cublas"):
        install_engine(backend(Install(("sneaky==1",), torch="2.0", version_of="sneaky")), lambda line: None)
    make_wheel(wheels, "content", "1", requires=["torch"])
    made = install_engine(
        backend(Install(("content",), torch="2.0", version_of="content")), lambda line: None
    )
    assert made.packages["torch"] == "2.0+cpu"
    assert made.torch_source == "torch==2.0 as pip finds it: a CPU build"


@pytest.mark.usefixtures("copied")
def test_no_network_is_one_sentence_with_the_log(tmp_path, monkeypatch):
    no_network(monkeypatch)
    definition = backend(Install(("tinyengine==1",), version_of="tinyengine"))
    with pytest.raises(SetupError) as caught:
        install_engine(definition, lambda line: None)
    assert "tiny: installing tinyengine==1 failed: Could not find a version" in str(caught.value)
    assert "the package index cannot be reached" in caught.value.hint
    log = tmp_path / "cache" / "logs" / "install-tiny.log"
    assert str(log) in caught.value.hint
    assert "tinyengine" in log.read_text()
    assert installed(definition) is None


def test_an_engine_without_a_recipe_has_nothing_to_install():
    assert installed(load_backend("openai")) is None
    with pytest.raises(SpecError, match="'openai' has nothing to install"):
        install_engine(load_backend("openai"), lambda line: None)
