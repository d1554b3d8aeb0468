"""The list of claims as data, and what a run says about them."""

import math
from pathlib import Path

import pytest
from msgspec.structs import replace

from harness.claims import judge, load_catalog
from harness.claims.catalog import read_catalog
from harness.errors import SpecError
from harness.host import paths
from harness.model import CellResult, Estimate, Manifest, PairVerdict, Summary
from harness.spec.backend_refs import load_backend
from tests.factories.documents import made

INF = math.inf
SOURCES = {
    "A0": {"title": "T", "url": "https://example.org"},
    "A1": {"title": "U", "url": "https://example.org"},
}


def book(*claims, conflict=()):
    table = {
        "claims": [{"id": f"A0-{number:03d}", "says": "…", **claim} for number, claim in enumerate(claims)],
        "sources": SOURCES,
        "workloads": {"shared-prefix": ["prefix", "chat"]},
        "conflict": list(conflict),
    }
    return read_catalog(table, "test")


def cell(label, value=1, **changes):
    backend, _, variant = label.partition("@")
    named = {"label": label, "backend": backend, "variant": variant or None}
    load = {"kind": "concurrency", "value": value}
    return made(CellResult, named, **{"load": load, "engine_version": "1", "track": "t", **changes})


def estimate(label, low, middle, high, metric="output_tokens_per_s", value=1):
    load = {"kind": "concurrency", "value": value}
    return made(Estimate, label=label, load=load, metric=metric, interval=[low, middle, high], runs=5)


def finding(a, b, ratio, verdict="faster", metric="output_tokens_per_s", why="", value=1):
    load = {"kind": "concurrency", "value": value}
    keys = {"a": a, "b": b, "load": load, "metric": metric, "ratio": ratio, "verdict": verdict, "why": why}
    return made(PairVerdict, keys)


def judged(claims, *, cells=None, estimates=(), comparison=(), gpus=None, scenario="shared-prefix"):
    cells = cells or [cell("vllm"), cell("llamacpp")]
    summary = made(
        Summary,
        scenario=scenario,
        cells=cells,
        estimates=list(estimates),
        comparison=list(comparison),
        model={"title": "SmolLM2 135M"},
        verdict_rules={"min_runs": 3},
    )
    return judge(summary, made(Manifest, host={"gpus": gpus, "system": "Linux"}), book(*claims))


FASTER = {"of": ["llamacpp", "vllm"], "measure": "output_tokens_per_s", "ratio": [1.0, INF]}


@pytest.mark.parametrize(
    ("ratio", "verdict", "where"),
    [
        ([1.2, 1.3, 1.4], "reproduced", "the whole interval fits"),
        ([0.7, 0.8, 0.9], "contradicted", "the whole interval lies outside"),
        ([0.9, 1.1, 1.3], "not decidable here", "the interval reaches over the limit"),
    ],
)
def test_an_interval_inside_outside_and_across_the_limit(ratio, verdict, where):
    (entry,) = judged([FASTER], comparison=[finding("llamacpp", "vllm", ratio)])
    assert entry.verdict == verdict
    assert entry.why.startswith(where)
    assert list(entry.found[0].measured) == ratio


def test_the_comparison_may_have_been_made_the_other_way_round():
    (entry,) = judged([FASTER], comparison=[finding("vllm", "llamacpp", [0.5, 0.8, 0.9])])
    assert list(entry.found[0].measured) == pytest.approx([1 / 0.9, 1.25, 2.0])


def test_less_waiting_is_better():
    claim = {**FASTER, "measure": "ttft_ms.p50", "ratio": [2.0, 4.0]}
    found = finding("llamacpp", "vllm", [0.3, 1 / 3, 0.4], metric="ttft_ms.p50")
    (entry,) = judged([claim], comparison=[found])
    assert list(entry.found[0].measured) == pytest.approx([2.5, 3.0, 1 / 0.3])
    assert entry.verdict == "reproduced"


def test_the_same_within_noise_is_not_better():
    (entry,) = judged([FASTER], comparison=[finding("llamacpp", "vllm", [1.01, 1.02, 1.03], "same")])
    assert (entry.verdict, entry.why) == ("contradicted", "the same within the noise")


def test_what_cannot_be_compared_decides_nothing():
    refused = finding("llamacpp", "vllm", [1.2, 1.3, 1.4], "not comparable", why="other prompts")
    (entry,) = judged([FASTER], comparison=[refused])
    assert (entry.verdict, entry.why) == ("not decidable here", "not comparable: other prompts")


@pytest.mark.parametrize(
    ("found", "word"),
    [
        (finding("llamacpp", "vllm", [1.2, 1.3, 1.4]), "reproduced"),
        (
            finding("llamacpp", "vllm", None, "not enough runs", why="2 runs each, 3 are needed"),
            "not decidable here",
        ),
    ],
)
def test_runs_that_were_left_out_of_a_comparison_do_not_come_back_by_the_estimates(found, word):
    found = replace(found, left_out=({}, {"not steady": 1}))
    about = [estimate("llamacpp", 90, 100, 110), estimate("vllm", 40, 50, 60)]
    (entry,) = judged([FASTER], estimates=about, comparison=[found])
    assert entry.verdict == word
    if found.ratio is None:
        assert entry.why == "not enough runs: 2 runs each, 3 are needed"


def test_figures_that_were_not_compared_are_held_by_their_estimates():
    (entry,) = judged([FASTER], estimates=[estimate("llamacpp", 90, 100, 110), estimate("vllm", 40, 50, 60)])
    assert list(entry.found[0].measured) == pytest.approx([1.5, 2.0, 2.75])


def test_one_run_has_no_interval():
    single = replace(estimate("llamacpp", 0, 0, 0), interval=(None, 100.0, None))
    (entry,) = judged([FASTER], estimates=[single])
    assert entry.verdict == "not decidable here"
    assert entry.found[0].measured is None


def test_two_runs_decide_no_claim_as_they_decide_no_verdict():
    two = [replace(estimate(*found), runs=2) for found in (("llamacpp", 90, 100, 110), ("vllm", 40, 50, 60))]
    (entry,) = judged([FASTER], estimates=two)
    assert entry.verdict == "not decidable here"


def test_hardware_elsewhere_decides_nothing_but_is_shown():
    claim = {**FASTER, "hardware": "h100"}
    compared = [finding("llamacpp", "vllm", [1.2, 1.3, 1.4])]
    (here,) = judged([claim], comparison=compared)
    assert (here.verdict, here.why) == ("not decidable here", "claimed for an H100, measured on a CPU")
    assert here.found[0].measured
    (there,) = judged([claim], comparison=compared, gpus=["NVIDIA H100 80GB HBM3"])
    assert there.verdict == "reproduced"


@pytest.mark.parametrize(
    ("stated", "text"),
    [
        ({}, "nothing stated"),
        ({"hardware": "h100", "workload": "chat", "load": [1, 1]}, "an H100; chat; concurrency 1"),
        ({"model": "8B", "load": [1, 64]}, "8B; concurrency 1 to 64"),
        ({"load": [1, INF]}, "concurrency 1 and more"),
    ],
)
def test_a_claim_is_shown_with_what_it_was_stated_under(stated, text):
    (entry,) = judged([{**FASTER, **stated}], comparison=[finding("llamacpp", "vllm", [1.2, 1.3, 1.4])])
    assert entry.stated_under == text


@pytest.mark.parametrize("gpu", ["Apple silicon", "AMD Instinct MI300X"])
def test_a_claim_about_gpus_of_nvidia_is_of_no_others(gpu):
    compared = [finding("llamacpp", "vllm", [1.2, 1.3, 1.4])]
    claim = {**FASTER, "hardware": "nvidia"}
    (entry,) = judged([claim], comparison=compared, gpus=[gpu])
    assert entry.why == f"claimed for an NVIDIA GPU, measured on {gpu}"
    (entry,) = judged([claim], comparison=compared, gpus=["NVIDIA L4"])
    assert entry.verdict == "reproduced"


@pytest.mark.parametrize(
    ("hardware", "gpu", "meets"),
    [
        ("a100", "NVIDIA A100-SXM4-80GB", True),
        ("a100", "NVIDIA RTX A1000", False),
        ("h200", "NVIDIA H200", True),
        ("h200", "NVIDIA GH200 480GB", False),
        ("consumer-gpu", "NVIDIA GeForce RTX 4090", True),
        ("consumer-gpu", "NVIDIA RTX 5000 Ada Generation", False),
    ],
)
def test_a_gpu_whose_name_only_contains_another_is_not_that(hardware, gpu, meets):
    compared = [finding("llamacpp", "vllm", [1.2, 1.3, 1.4])]
    (entry,) = judged([{**FASTER, "hardware": hardware}], comparison=compared, gpus=[gpu])
    assert entry.verdict == ("reproduced" if meets else "not decidable here")


@pytest.mark.parametrize(
    ("manifest", "known"),
    [
        ({}, False),  # an import: of another machine
        ({"host": {}, "backends": {"vllm": {"url": "http://10.0.0.7:8000"}}}, False),
        ({"host": {}, "backends": {"vllm": {"url": "http://127.0.0.1:8000"}}}, True),
        ({"host": {}, "backends": {"tgi": {"url": "http://10.0.0.7:8000"}}}, True),
    ],
)
def test_a_server_elsewhere_has_hardware_that_is_not_known(manifest, known):
    summary = made(
        Summary,
        cells=[cell("vllm"), cell("llamacpp")],
        comparison=[finding("llamacpp", "vllm", [1.2, 1.3, 1.4])],
    )
    here, anywhere = judge(summary, made(Manifest, manifest), book({**FASTER, "hardware": "cpu"}, FASTER))
    why = "claimed for a CPU, measured on hardware that is not known"
    assert (here.verdict, here.why == why) == (
        ("reproduced", False) if known else ("not decidable here", True)
    )
    assert anywhere.verdict == "reproduced"
    assert f"hardware not stated; here {'a CPU' if known else 'not known'}" in anywhere.differs


@pytest.mark.parametrize(
    ("size", "model", "meets"),
    [
        ("8B", "Llama 3.1 8B Instruct", True),
        ("8B", "llama3.1_8b-instruct", True),
        ("8B", "Qwen 1.8B", False),
        ("8B", "Llama 3.2 1B 8bit", False),
        ("7B", "Mixtral 8x7B", False),
        ("20B", "gpt-oss-120b", False),
    ],
)
def test_a_model_is_of_the_size_that_its_name_has_as_a_word(size, model, meets):
    summary = made(
        Summary,
        cells=[cell("vllm"), cell("llamacpp")],
        comparison=[finding("llamacpp", "vllm", [1.2, 1.3, 1.4])],
        model={"title": model},
    )
    (entry,) = judge(summary, made(Manifest, host={}), book({**FASTER, "model": size}))
    assert entry.verdict == ("reproduced" if meets else "not decidable here")


def test_a_claim_about_users_takes_only_its_loads():
    claim = {**FASTER, "load": [8, INF]}
    cells = [cell(label, value) for label in ("vllm", "llamacpp") for value in (1, 8, 32)]
    compared = [finding("llamacpp", "vllm", [1.2, 1.3, 1.4], value=value) for value in (1, 8, 32)]
    (entry,) = judged([claim], cells=cells, comparison=compared)
    assert [found.load.value for found in entry.found] == [8, 32]
    assert judged([claim], comparison=compared) == []


def test_loads_that_disagree_decide_nothing():
    cells = [cell(label, value) for label in ("vllm", "llamacpp") for value in (1, 8)]
    compared = [
        finding("llamacpp", "vllm", [1.2, 1.3, 1.4]),
        finding("llamacpp", "vllm", [0.2, 0.3, 0.4], "slower", value=8),
    ]
    (entry,) = judged([FASTER], cells=cells, comparison=compared)
    assert entry.verdict == "not decidable here"
    assert entry.why == "reproduced: llamacpp / vllm at c1; contradicted: llamacpp / vllm at c8"


def test_an_order_is_held_pair_by_pair_over_the_systems_at_hand():
    claim = {"order": "sglang >> trt > vllm ≈ tgi >> llamacpp", "measure": "output_tokens_per_s"}
    (made,) = book(claim).claims
    assert made.pairs({"sglang", "vllm", "llamacpp"}) == [
        ("sglang", "vllm", 1.25, INF),
        ("vllm", "llamacpp", 1.25, INF),
    ]
    assert made.pairs({"vllm", "tgi"}) == [("vllm", "tgi", 0.9, 1.1)]
    (entry,) = judged([claim], comparison=[finding("vllm", "llamacpp", [1.5, 2.0, 3.0])])
    assert entry.verdict == "reproduced"


@pytest.mark.parametrize(
    ("second", "word"),
    [
        ([1.2, 1.3, 1.4], "reproduced"),
        ([0.9, 1.1, 1.3], "not decidable here"),
        ([0.7, 0.8, 0.9], "contradicted"),
    ],
)
def test_an_order_holds_where_all_its_pairs_do(second, word):
    claim = {"order": "sglang > vllm > llamacpp", "measure": "output_tokens_per_s"}
    cells = [cell(label) for label in ("sglang", "vllm", "llamacpp")]
    compared = [finding("sglang", "vllm", [1.2, 1.3, 1.4]), finding("vllm", "llamacpp", second)]
    (entry,) = judged([claim], cells=cells, comparison=compared)
    assert entry.verdict == word
    assert "sglang / vllm at c1" in entry.why


@pytest.mark.parametrize("ratio", [[1.0, INF], [1.0, 6.4]])
def test_up_to_so_many_times_as_fast_is_not_the_same(ratio):
    compared = [finding("llamacpp", "vllm", [0.98, 1.0, 1.02], "same")]
    (entry,) = judged([{**FASTER, "ratio": ratio}], comparison=compared)
    assert (entry.verdict, entry.why) == ("contradicted", "the same within the noise")


def test_scaling_is_against_one_user():
    claim = {"of": ["llamacpp"], "measure": "output_tokens_per_s", "scaling": [0.0, 2.0], "load": [8, INF]}
    estimates = [estimate("llamacpp", 95, 100, 105), estimate("llamacpp", 110, 120, 130, value=8)]
    (entry,) = judged([claim], cells=[cell("llamacpp"), cell("llamacpp", 8)], estimates=estimates)
    assert entry.verdict == "reproduced"
    assert list(entry.found[0].measured) == pytest.approx([110 / 105, 1.2, 130 / 95])


def test_an_absolute_speed_needs_a_model():
    claim = {"of": ["llamacpp"], "measure": "output_tokens_per_s", "value": [5, 30]}
    measured = [estimate("llamacpp", 95, 100, 105)]
    (entry,) = judged([claim], estimates=measured)
    assert entry.why == "an absolute figure claimed without naming a model"
    (named,) = judged([{**claim, "model": "135M"}], estimates=measured)
    assert named.verdict == "contradicted"
    (larger,) = judged([{**claim, "model": "70B"}], estimates=measured)
    assert larger.verdict == "not decidable here"


def test_work_of_another_kind_is_another_matter():
    claim = {**FASTER, "workload": "structured"}
    assert judged([claim], comparison=[finding("llamacpp", "vllm", [1.2, 1.3, 1.4])]) == []


def test_simulated_engines_reproduce_nothing():
    cells = [cell("vllm", simulated=True), cell("llamacpp", simulated=True)]
    assert judged([FASTER], cells=cells, comparison=[finding("llamacpp", "vllm", [1.2, 1.3, 1.4])]) == []


def test_a_crippled_variant_does_not_stand_for_its_engine():
    compared = [finding("llamacpp@no-prefix-cache", "vllm", [0.2, 0.3, 0.4])]
    assert judged([FASTER], cells=[cell("vllm"), cell("llamacpp@no-prefix-cache")], comparison=compared) == []
    quantised = [finding("llamacpp@bf16", "vllm", [1.2, 1.3, 1.4])]
    (entry,) = judged([FASTER], cells=[cell("vllm"), cell("llamacpp@bf16")], comparison=quantised)
    assert entry.found[0].about == "llamacpp@bf16 / vllm"


def test_sources_that_contradict_each_other_are_quoted_together():
    clash = {"topic": "one user", "claims": ["A0-000"], "says": "ahead, or behind"}
    summary = made(Summary, cells=[cell("vllm"), cell("llamacpp")])
    (entry,) = judge(summary, made(Manifest), book(FASTER, conflict=[clash]))
    assert entry.conflicts == ("one user (ahead, or behind)",)


def test_conditions_that_differ_are_named():
    cells = [cell("vllm", track="bf16", engine_version="0.32"), cell("llamacpp", track="q4")]
    (entry,) = judged([FASTER], cells=cells, comparison=[finding("llamacpp", "vllm", [1.2, 1.3, 1.4])])
    assert list(entry.differs) == [
        "hardware not stated; here a CPU",
        "model not stated; here SmolLM2 135M",
        "workload not stated; here shared-prefix",
        "versions not stated; here llamacpp 1, vllm 0.32",
        "the weights are not the same here: bf16, q4",
    ]


@pytest.mark.parametrize(
    ("claim", "complaint"),
    [
        ({"needs": "x", "ratio": [1, 2], "measure": "e2e_ms.p50"}, "needs one of"),
        ({"of": ["a", "b"], "ratio": [1, 2], "measure": "speed"}, "not a known measure"),
        (
            {"of": ["a", "b"], "ratio": [1, 2], "measure": "e2e_ms.p50", "hardware": "abacus"},
            "unknown hardware",
        ),
        ({"needs": "x", "because": "y"}, "unknown key 'because'"),
    ],
)
def test_a_claim_that_cannot_be_is_refused(claim, complaint):
    with pytest.raises(SpecError, match=complaint):
        book(claim)


def test_the_shipped_list():
    shipped = load_catalog()
    known = {claim.id for claim in shipped.claims}
    assert len(known) == len(shipped.claims)
    page = (Path(__file__).parents[3] / "docs" / "claims.md").read_text(encoding="utf-8")
    assert f"{len(known)} statements of five comparisons" in page
    assert {
        source: sum(c.source == source for c in shipped.claims) > 20 for source in shipped.sources
    } == dict.fromkeys(("A0", "A1", "A2", "A3", "A4"), True)
    for conflict in shipped.conflict:
        assert set(conflict.claims) <= known, conflict.topic
    for claim in shipped.claims:
        assert claim.needs or claim.systems, claim.id
        assert claim.load is None or len(claim.load) == 2, claim.id
        assert claim.kind != "ratio" or len(claim.of) == 2, claim.id
        assert claim.kind not in ("value", "scaling") or len(claim.of) == 1, claim.id
        low, high = claim.limits
        assert low <= high, claim.id
        kinds = {kind for found in shipped.workloads.values() for kind in found}
        assert claim.workload is None or claim.workload in kinds, claim.id


def test_variants_that_claims_name_are_there_to_be_run():
    known = paths.definitions("backends")
    for claim in load_catalog().claims:
        for system in claim.systems:
            name, _, variant = system.partition("@")
            assert name not in known or not variant or variant in load_backend(name).variants, claim.id


def test_every_scenario_is_of_a_kind_of_work():
    """Those whose requests come from elsewhere are of no kind that could be told ahead."""
    kinds = load_catalog().workloads
    of_none = {
        *("prompt-file", "trace", "cold-start"),
        *("embed-documents", "embed-queries", "rerank-top-100"),  # no claim is about vectors or scores
        *("kv-working-set", "lora-mix", "victim-probe"),  # nor about full caches, adapters, interference
        "impatient-users",  # nor about users who hang up
        *("images-in", "audio-in"),  # nor about images or recordings
        *("agent-sessions", "agentx", "context-depth"),  # nor about whole sessions, contexts of one depth
    }
    missing = set(paths.definitions("workloads")) - set(kinds) - of_none
    assert not missing, "name its kinds in [workloads] of claims.toml, or say here why no claim is about it"
    assert set(kinds) <= set(paths.definitions("workloads"))


def test_an_engine_without_its_own_kernels_decides_no_claim_about_speed():
    """Unless it is about a CPU; what it reuses or keeps to is its own all the same."""
    caveat = "native torch kernels, CPU"
    bare = cell("sglang", conditions={"settings": {"caveat": caveat}})
    pair = {"of": ["vllm", "sglang"], "ratio": [1.0, INF]}
    speed, share = "output_tokens_per_s", "prefix_cache_hit_rate"
    claims = [
        {**pair, "measure": speed},
        {**pair, "measure": speed, "hardware": "cpu"},
        {**pair, "measure": share},
    ]
    found = judged(
        claims,
        cells=[cell("vllm"), bare],
        comparison=[finding("vllm", "sglang", [1.8, 2.0, 2.2])],
        estimates=[estimate("vllm", 0.8, 0.81, 0.82, share), estimate("sglang", 0.4, 0.41, 0.42, share)],
    )
    assert [(one.verdict, one.why) for one in found[:1]] == [("not decidable here", f"sglang: {caveat}")]
    assert [one.verdict for one in found[1:]] == ["reproduced", "reproduced"]
    assert all(f"sglang: {caveat}" in one.differs for one in found)
