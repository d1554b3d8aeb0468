"""What reaches which server, as it is typed."""

import re

import pytest

from harness.engines.speak.access import access_of
from harness.errors import SpecError
from harness.spec.backend_refs import parse_backend_list
from harness.spec.reach import Given, ReachFlags, reach_of, with_reach

REFS = tuple(parse_backend_list("vllm=http://a,sglang=http://b"))
LABELS = ("vllm", "sglang")


def reaches(**flags):
    return [ref.reach for ref in with_reach(REFS, LABELS, ReachFlags(**flags))]


def test_a_value_is_for_all_backends_or_for_the_one_that_it_names():
    vllm, sglang = reaches(api_key_env="KEY,sglang=OTHER", served_name="vllm=a/b:c", ca_cert=("ca.pem",))
    assert (vllm.api_key_env, sglang.api_key_env) == ("KEY", "OTHER")
    assert (vllm.served_name, sglang.served_name) == ("a/b:c", None)
    assert vllm.ca_cert == sglang.ca_cert == "ca.pem"


def test_its_own_header_goes_before_one_for_all_of_the_same_name():
    vllm, sglang = reaches(headers=("sglang=X-TEAM=own", "X-Team=all", "X-Other=ENV:V"))
    assert vllm.headers == (Given("x-team", "all"), Given("x-other", variable="V"))
    assert sglang.headers == (Given("x-team", "own"), Given("x-other", variable="V"))


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"headers": ("vlm=X-Key=ENV:V",)}, "'vlm' is not one of the backends"),
        ({"api_key_env": "vlm=V"}, "'vlm' is not one of the backends"),
        ({"api_key_env": "A,B"}, "is given twice"),
        ({"ca_cert": ("a.pem", "b.pem")}, "is given twice"),
        ({"ca_cert": ("vllm=",)}, "needs a value"),
        ({"headers": ("X-Team=a", "x-team=b")}, "is given twice"),
        ({"headers": ("X Key=a",)}, "is not NAME=VALUE"),
        ({"headers": ("X-Key",)}, "is not NAME=VALUE"),
        ({"headers": ("Authorization: Bearer abc=",)}, "is not NAME=VALUE"),
        ({"query": ("?code: abc=",)}, "is not NAME=VALUE"),
        ({"headers": ("X-Name=",)}, "is not NAME=VALUE"),
        ({"headers": ("X-Name=a\r\nX-Evil: b",)}, "printable ASCII"),
        ({"headers": ("Content-Length=1",)}, "is set by bench itself"),
        ({"query": ("sig=abc",)}, "looks like a secret"),
        ({"query": ("name=sk-abc",)}, "looks like a secret"),
        ({"client_key": ("k.pem",)}, "needs --client-cert"),
    ],
)
def test_what_cannot_be_is_one_error_that_repeats_no_value(flags, says):
    with pytest.raises(SpecError, match=r"^--") as caught:
        reaches(**flags)
    assert says in str(caught.value)
    assert "abc" not in f"{caught.value} {caught.value.hint}"


def test_a_header_as_curl_takes_it_gets_an_example():
    with pytest.raises(SpecError, match="is not NAME=VALUE") as caught:
        reaches(headers=("X-Team: search",))
    assert "X-Team=search, or Authorization=ENV:VAR" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("flags", "where"),
    [
        ({"headers": ("ollama=X-Team=search",)}, "--header"),
        ({"query": ("ollama=v=1",)}, "--query"),
        ({"served_name": "vllm=a,ollama=b/c"}, "--model-name"),
        ({"ca_cert": ("ollama=ca.pem",)}, "--ca-cert"),
        ({"headers": ("ollama@flash=X-Team=search",)}, "--header"),
    ],
)
def test_a_backend_that_is_not_of_this_run_is_no_part_of_a_value(flags, where):
    with pytest.raises(SpecError, match=r"'ollama(@flash)?' is not one of the backends") as caught:
        reaches(**flags)
    assert caught.value.where == where
    assert caught.value.hint == "begin the value with vllm= or sglang="
    with pytest.raises(SpecError, match="is not one of the backends") as caught:
        reach_of(ReachFlags(**flags))
    assert re.fullmatch(r"leave '.*=' out: only `bench run` has .*", caught.value.hint)


def test_a_header_or_parameter_may_have_the_name_of_a_backend():
    vllm, _sglang = reaches(query=("ollama=true",), headers=("truth=yes",))
    assert (vllm.query, vllm.headers) == ((Given("ollama", "true"),), (Given("truth", "yes"),))
    assert reach_of(ReachFlags(query=("ollama=true",))).query == (Given("ollama", "true"),)


def test_a_value_may_begin_with_any_name_behind_a_label_and_with_what_is_no_backend_without():
    vllm, sglang = reaches(headers=("vllm=ollama=search", "models=a=b"), ca_cert=("team=ca.pem",))
    assert vllm.headers == (Given("models", "a=b"), Given("ollama", "search"))
    assert sglang.headers == (Given("models", "a=b"),)
    assert vllm.ca_cert == "team=ca.pem"


def test_a_flag_for_an_engine_that_bench_starts_is_refused():
    refs = parse_backend_list("vllm=http://a,sglang")
    with pytest.raises(SpecError, match="is for a running server"):
        with_reach(refs, LABELS, ReachFlags(headers=("sglang=X-Team=a",)))
    with pytest.raises(SpecError, match="is for a running server") as pinned:
        with_reach(parse_backend_list("vllm==0.9.1"), ["vllm==0.9.1"], ReachFlags(headers=("X-Team=a",)))
    assert pinned.value.hint == "give the backend as vllm=URL", "a running server has one version"
    vllm, sglang = with_reach(refs, LABELS, ReachFlags(headers=("X-Team=a",)))
    assert (len(vllm.reach.headers), len(sglang.reach.headers)) == (1, 0)


def test_a_name_of_the_model_for_an_engine_that_bench_starts_is_refused_too():
    refs = parse_backend_list("vllm=http://a,sglang")
    with pytest.raises(SpecError, match="--model-name: is for a running server"):
        with_reach(refs, LABELS, ReachFlags(served_name="vllm=a/b,sglang=c"))
    vllm, sglang = with_reach(refs, LABELS, ReachFlags(served_name="a/b", api_key_env="sglang=KEY"))
    assert (vllm.reach.served_name, sglang.reach.served_name) == ("a/b", None)
    assert sglang.reach.api_key_env == "KEY"


def test_values_come_from_the_environment_and_are_known_as_credentials(monkeypatch):
    monkeypatch.setenv("TOKEN_A", "Basic dTpw+/=")
    monkeypatch.setenv("CODE", "a b&c")
    access = access_of(
        reach_of(ReachFlags(headers=("Authorization=ENV:TOKEN_A",), query=("v=1", "code=ENV:CODE")))
    )
    assert access.headers == {"authorization": "Basic dTpw+/="}
    assert access.asked("http://a/v1") == "http://a/v1?v=1&code=a%20b%26c"
    assert access.asked("http://a/v1?x=1") == "http://a/v1?x=1&v=1&code=a%20b%26c"
    assert {"Basic dTpw+/=", "dTpw+/=", "a b&c"} <= set(access.credentials)
    assert "dTpw" not in repr(access)


def test_outside_a_load_a_session_has_the_number_0():
    access = access_of(reach_of(ReachFlags(headers=("X-Session=chat-{session}",))))
    assert access.headers_outside()["x-session"] == "chat-0"
