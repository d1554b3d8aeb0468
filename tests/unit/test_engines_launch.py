import pytest

from harness.engines.launch import resolve_launch
from harness.errors import SpecError
from harness.spec.backend_refs import parse_backend_list


def resolve(entry, mode):
    (ref,) = parse_backend_list(entry)
    return resolve_launch(ref, mode)


@pytest.mark.parametrize(
    ("entry", "mode", "chosen"),
    [
        ("llamacpp", "auto", "process"),
        ("llamacpp", "process", "process"),
        ("llamacpp@no-prefix-cache", "auto", "process"),
        ("vllm=http://h:1", "auto", "attach"),
        ("openai=http://h:1", "attach", "attach"),
    ],
)
def test_the_choice_says_what_and_why(entry, mode, chosen):
    choice = resolve(entry, mode)
    assert choice.mode == chosen
    assert entry.split("=")[0] in choice.why


@pytest.mark.parametrize(
    ("entry", "mode", "message"),
    [
        ("llamacpp", "compose", "no Compose profile"),
        ("llamacpp", "attach", "no URL to attach to"),
        ("llamacpp=http://h:1", "process", "given with a URL"),
        ("openai", "auto", "cannot be started here"),
        ("openai", "process", "cannot be started here"),
    ],
)
def test_contradictions_are_refused_with_a_way_out(entry, mode, message):
    with pytest.raises(SpecError) as caught:
        resolve(entry, mode)
    assert message in str(caught.value)
    assert caught.value.hint
