"""Addresses of running servers: one, several of one model, and where their metrics are."""

import re

import pytest

from harness.errors import SpecError
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare
from harness.spec.backend_refs import parse_backend_list
from harness.spec.server_urls import MOST_URLS, with_metrics_urls

A, B = "http://a:8000", "http://b:8000"
SIZE = {"load.requests": 8}


def refs(text):
    return parse_backend_list(text)


def prepared(backends, **options):
    return prepare(RunOptions("fixed-length", backends, overrides=SIZE, **options))


def test_one_backend_may_have_several_urls():
    one, other = refs(f"vllm={A}/v1+{B}/, sglang=https://c/")
    assert one.urls == (A, B)
    assert one.url == f"{A}+{B}"
    assert other.urls == ("https://c",)
    assert refs("vllm")[0].urls == ()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "backend vllm=: a URL is missing after '='"),
        (f"{A}++{B}", "a URL is missing before or after '+'"),
        (f"{A}+", "a URL is missing before or after '+'"),
        (f"+{A}", "a URL is missing before or after '+'"),
        (f"{A}+{A}/v1", f"{A} is given twice"),
        (f"{A}+http://localhost:8000+http://127.0.0.1:8000", "http://localhost:8000 is given twice"),
        (f"{A}+sglang", "'sglang' is not an http:// or https:// URL"),
        (f"{A}+http://u:p@b", "user name or password\nhint: --header Authorization=ENV:VAR"),
        (
            "http://::1:8000",
            "is not a URL\nhint: an IPv6 address stands in brackets, as in http://[::1]:8000",
        ),
        ("http://a?key=1", "without '?' or '#'\nhint: --query NAME=VALUE"),
        ("+".join(f"http://h{n}" for n in range(MOST_URLS + 1)), f"at most {MOST_URLS}"),
    ],
)
def test_what_is_no_list_of_servers_is_one_error(given, said):
    with pytest.raises(SpecError, match=re.escape(said)):
        refs(f"vllm={given}")


@pytest.mark.parametrize(
    "given", [A, "http://u:secret@a:8000", f"vllm,{A}", "localhost:8000", "localhost", "10.0.0.1:80/v1"]
)
def test_an_address_alone_is_refused_with_the_form_to_write(given):
    with pytest.raises(SpecError, match=r"^a running server is written NAME=URL") as refused:
        refs(given)
    assert "secret" not in f"{refused.value} {refused.value.hint}"


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("a:8000", "write http://a:8000"),
        ("8000", "write http://127.0.0.1:8000"),
        ("[::1]:80/v1", "write http://[::1]:80/v1"),
        ("u:secret@a:8000", "write http://a:8000"),
        ("ftp://a:8000", None),
        ("http:/a", None),
        ("http//a:80", None),
        (":8000", None),
        ("//a:80", None),
    ],
)
def test_an_address_without_its_scheme_is_shown_with_it(given, hint):
    with pytest.raises(SpecError, match="is not an http:// or https:// URL") as refused:
        refs(f"vllm={given}")
    assert (refused.value.hint or None) == hint
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("launch", ["process", "compose", "simulate"])
def test_urls_and_a_launch_exclude_each_other(launch):
    with pytest.raises(SpecError, match="given with a URL, which means attach"):
        prepared(f"vllm={A}+{B}", launch=launch)


def test_balance_needs_something_to_balance():
    assert prepared(f"vllm={A}+{B}", balance="least-outstanding").options.balance == "least-outstanding"
    for backends in (f"vllm={A}", f"vllm={A},sglang={B}"):
        with pytest.raises(SpecError, match="no backend has several URLs"):
            prepared(backends, balance="round-robin")


def test_two_sets_of_servers_under_one_name_are_told_apart():
    labels = prepared(f"vllm={A}+{B},vllm=http://c:1").labels
    assert labels == ("vllm_a_8000+b_8000", "vllm_c_1")


def test_metrics_go_to_the_backend_that_is_named():
    both = refs(f"vllm={A},sglang={B}")
    one, other = with_metrics_urls(both, ["vllm", "sglang"], ["sglang=http://m/metrics", "sglang=http://n"])
    assert (one.metrics_urls, other.metrics_urls) == ((), ("http://m/metrics", "http://n"))
    (only,) = with_metrics_urls(both[:1], ["vllm"], ["http://m:1"])
    assert only.metrics_urls == ("http://m:1",)
    (apart,) = with_metrics_urls(both[:1], ["vllm"], ["prefill@http://p", "vllm=decode@http://d"])
    assert (apart.metrics_urls, apart.metrics_roles) == (("http://p", "http://d"), ("prefill", "decode"))


@pytest.mark.parametrize(
    "url", ["http://u:{}@m", "http://m/metrics?key={}", "decode@http://u:{}@m", "ftp://u:{}@m"]
)
def test_a_refused_address_of_metrics_is_shown_without_its_secret(url):
    secret = "hunter2hunter2"
    with pytest.raises(SpecError) as caught:
        prepared(f"vllm={A}", metrics_urls=(url.format(secret),))
    assert secret not in str(caught.value)


@pytest.mark.parametrize(
    ("backends", "given", "said"),
    [
        (f"vllm={A},sglang={B}", ["http://m"], "whose metrics are these"),
        (f"vllm={A}", ["vlm=http://m"], "'vlm' is not one of the backends"),
        ("vllm", ["http://m"], "is for a running server"),
        ("vllm==0.9.1", ["http://m"], "give the backend as vllm=URL"),
        (f"openai={A}", ["http://m"], "declares no metrics"),
        (f"vllm={A}", ["http://m", "http://m/"], "is given twice"),
        (f"vllm={A}", ["http://m/metrics", "http://m"], "is given twice"),
        (f"vllm={A}", ["http://localhost:9", "http://127.0.0.1:9"], "is given twice"),
        (f"vllm={A}", ["vllm=m"], "is not an http:// or https:// URL"),
        (f"vllm={A}", ["decode@http://d"], "no engine has the role 'prefill'"),
        (f"vllm={A}", ["decode@http://d", "http://p"], "some have a role, and some have none"),
        (f"vllm={A}", ["draft@http://d"], "is not"),
    ],
)
def test_metrics_of_nothing_are_one_error(backends, given, said):
    with pytest.raises(SpecError, match=said):
        prepared(backends, metrics_urls=tuple(given))
