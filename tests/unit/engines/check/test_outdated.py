"""What is said of pins: behind, newest, or why it is not known."""

import pytest

from harness.engines.check import outdated
from harness.engines.start.containers.daemon import NotOfferedError
from harness.errors import SetupError
from harness.spec.backend_refs import load_backend


@pytest.fixture
def newest(monkeypatch):
    def answer(**versions):
        def asked(definition, say):
            found = versions[definition.name]
            if isinstance(found, SetupError):
                raise found
            return found

        monkeypatch.setattr(outdated, "newest", asked)
        return {name: load_backend(name) for name in versions}

    return answer


def test_a_pin_is_the_newest_or_behind(newest):
    pins = [pin for _, pin in outdated.packages(newest(llamacpp=("1", "2"), vllm=("3", "3")), print)]
    assert [pin.is_behind for pin in pins] == [True, False]
    assert str(pins[0]) == "1 is pinned; try llamacpp==2"
    assert str(pins[1]) == "3 is the newest"


def test_a_night_hears_only_of_what_is_behind_and_never_fails_for_it(newest):
    pins = outdated.packages(newest(llamacpp=("1", "2"), vllm=("3", "3")), print)
    assert list(outdated.behind(pins)) == ["llamacpp: 1 is pinned; try llamacpp==2"]
    pins = outdated.packages(newest(llamacpp=SetupError("no index"), vllm=("3", "4")), print)
    (line,) = outdated.behind(pins)
    assert line.endswith("not known: no index")


def test_a_tool_that_moved_is_named_with_the_version_that_was_read(monkeypatch):
    asked = []

    def newest(self, project, *options):
        asked.append((project, *options))
        return "0.14.0"

    monkeypatch.setattr(outdated.Pip, "newest", newest)
    found = outdated.tools({"aiperf": "0.13.0", "guidellm": "0.14.0"}, print)
    assert [str(read) for _, read in found] == [
        "0.14.0 is out; its definitions and files were read in 0.13.0",
        "0.14.0 was read and is the newest",
    ]
    assert asked[0] == ("aiperf", "--ignore-requires-python"), (
        "inference-perf needs a newer Python than bench"
    )


def test_two_that_ask_at_once_read_their_own_answers(monkeypatch):
    """With one log the newest of one package was that of another: KTransformers was at vLLM's 0.33.0."""
    monkeypatch.setattr(outdated.Pip, "newest", lambda self, *_asked: str(self.log))
    first, second = outdated.tools({"aiperf": "1"}, print), outdated.tools({"aiperf": "1"}, print)
    (_, ours), (_, theirs) = next(first), next(second)
    assert ours.newest != theirs.newest


class Registry:
    """A Docker that knows the digests of `offered`, or how it is refused one, and has `here`."""

    def __init__(self, offered, here):
        self._offered, self._here, self.asked = offered, here, []

    def check_here(self):
        pass

    def offered(self, name):
        self.asked.append(name)
        if name not in self._offered:
            raise SetupError("no way there", where=name)
        if isinstance(self._offered[name], SetupError):
            raise self._offered[name]
        return self._offered[name]

    def image(self, name):
        return {"RepoDigests": [f"x@{self._here[name]}"]} if name in self._here else None


def images(monkeypatch, registry, *names):
    monkeypatch.setattr(outdated, "Daemon", lambda: registry)
    return list(outdated.images([load_backend(name) for name in names], lambda _: None))


def test_a_tag_that_moved_is_told_from_one_that_did_not(monkeypatch):
    cuda, rocm, cpu = ("ollama/ollama:0.35.1", "ollama/ollama:0.35.1-rocm", "ollama/ollama:0.35.1")
    found = images(monkeypatch, Registry({cuda: "sha256:a", rocm: "sha256:b"}, {cuda: "sha256:a"}), "ollama")
    assert found == [
        f"ollama (cuda) {cuda} is sha256:a, as on this machine",
        f"ollama (rocm) {rocm} is sha256:b; not on this machine",
        f"ollama (cpu) {cpu} is sha256:a, as on this machine",
    ]
    (first, *_) = images(monkeypatch, Registry({cuda: "sha256:new"}, {cuda: "sha256:a"}), "ollama")
    assert first.endswith("is sha256:new now; here is x@sha256:a")


def test_a_registry_that_cannot_be_asked_is_one_line_and_is_asked_once(monkeypatch):
    registry = Registry({}, {})
    found = images(monkeypatch, registry, "ollama", "vllm", "llamacpp")
    assert found == [
        "images of the default registry: not looked up: no way there",
        "images of ghcr.io: not looked up: no way there",
    ]
    assert len(registry.asked) == 2


def test_an_image_that_its_registry_refuses_leaves_the_others_of_that_registry_asked(monkeypatch):
    cuda, rocm = "ollama/ollama:0.35.1", "ollama/ollama:0.35.1-rocm"
    found = images(
        monkeypatch, Registry({cuda: NotOfferedError("manifest unknown"), rocm: "b"}, {}), "ollama"
    )
    assert found == [
        f"ollama (cuda) {cuda} is not offered: manifest unknown",
        f"ollama (rocm) {rocm} is b; not on this machine",
        f"ollama (cpu) {cuda} is not offered: manifest unknown",
    ]


def test_without_docker_it_is_one_line(monkeypatch):
    def none():
        raise SetupError("Docker does not answer")

    monkeypatch.setattr(outdated, "Daemon", none)
    assert list(outdated.images([load_backend("ollama")], print)) == [
        "images: not looked up: Docker does not answer"
    ]
