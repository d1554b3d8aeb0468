"""What the files of other tools state: each figure under the measure that the tool gives its name to."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

Key = tuple[str, str]  # measure, statistic; no statistic of a rate
Said = dict[Key, float]


def _serve(document: Any, e2e: str = "e2el") -> Said:
    """Of `vllm bench serve` and of what descends from it."""
    said = {("output", ""): document["output_throughput"], ("requests", ""): document["request_throughput"]}
    for measure, name in (("TTFT", "ttft"), ("ITL", "itl"), ("TPOT", "tpot"), ("E2E", e2e)):
        said |= {
            (measure, "mean"): document[f"mean_{name}_ms"],
            (measure, "p50"): document[f"median_{name}_ms"],
        }
    return said


def _aiperf(document: Any) -> Said:
    names = {"TTFT": "time_to_first_token", "ITL": "inter_token_latency", "E2E": "request_latency"}
    said = {
        ("output", ""): document["output_token_throughput"]["avg"],
        ("requests", ""): document["request_throughput"]["avg"],
    }
    for measure, name in names.items():
        said |= {(measure, "mean"): document[name]["avg"], (measure, "p50"): document[name]["p50"]}
    return said


def _guidellm(document: Any) -> Said:
    metrics = document["benchmarks"][0]["metrics"]
    names = {
        "TTFT": ("time_to_first_token_ms", 1),
        "ITL": ("inter_token_latency_ms", 1),
        "TPOT": ("time_per_output_token_ms", 1),
        "E2E": ("request_latency", 1000),
    }
    said = {("output", ""): metrics["output_tokens_per_second"]["successful"]["mean"]}
    for measure, (name, scale) in names.items():
        found = metrics[name]["successful"]
        said |= {
            (measure, "mean"): found["mean"] * scale,
            (measure, "p50"): found["percentiles"]["p50"] * scale,
        }
    return said


def _inference_perf(document: Any) -> Said:
    latency, rates = document["successes"]["latency"], document["successes"]["throughput"]
    names = {
        "TTFT": "time_to_first_token",
        "ITL": "inter_token_latency",
        "TPOT": "time_per_output_token",
        "E2E": "request_latency",
    }
    said = {("output", ""): rates["output_tokens_per_sec"], ("requests", ""): rates["requests_per_sec"]}
    for measure, name in names.items():
        said |= {
            (measure, "mean"): 1e3 * latency[name]["mean"],
            (measure, "p50"): 1e3 * latency[name]["median"],
        }
    return said


def _genai(document: Any) -> Said:
    of = document["aggregated_metrics"]
    said = {
        ("output", ""): of["mean_output_throughput_tokens_per_s"],
        ("requests", ""): of["requests_per_second"],
    }
    for measure, name in (("TTFT", "ttft"), ("TPOT", "tpot"), ("E2E", "e2e_latency")):
        found = of["stats"][name]
        said |= {(measure, "mean"): 1e3 * found["mean"], (measure, "p50"): 1e3 * found["p50"]}
    return said


def _inferencex(document: Any) -> Said:
    """A row: seconds, and rates per GPU, of which it has one here."""
    said = {("output", ""): document["output_tput_per_gpu"]}
    for measure, name in (("TTFT", "ttft"), ("ITL", "itl"), ("TPOT", "tpot"), ("E2E", "e2el")):
        said[measure, "mean"] = 1e3 * document[f"mean_{name}"]
        said[measure, "p50"] = 1e3 * document[f"median_{name}"]
    return said


def _mlperf(document: Any) -> Said:
    said = {("output", ""): document["tps"], ("requests", ""): document["qps"]}
    for measure, name in (("TTFT", "ttft"), ("TPOT", "tpot"), ("E2E", "latency")):
        said[measure, "mean"] = document[name]["avg"] / 1e6
        said[measure, "p50"] = document[name]["median"] / 1e6
    return said


def _evalscope(document: Any) -> Said:
    return {
        ("output", ""): document["Output Throughput (tok/s)"],
        ("requests", ""): document["Req Throughput (req/s)"],
        ("TTFT", "mean"): document["Avg TTFT (ms)"],
        ("ITL", "mean"): document["Avg ITL (ms)"],
        ("TPOT", "mean"): document["Avg TPOT (ms)"],
        ("E2E", "mean"): 1e3 * document["Avg Latency (s)"],
    }


# Of each tool: the file that states its figures, and how.
PRINTED: Mapping[str, tuple[str, Callable[[Any], Said]]] = {
    "vllm": ("r.json", _serve),
    "vllm-rs": ("r.json", _serve),
    "sglang": ("r.json", partial(_serve, e2e="e2e_latency")),
    "aiperf": ("profile_export_aiperf.json", _aiperf),
    "guidellm": ("r.json", _guidellm),
    "inference-perf": ("summary_lifecycle_metrics.json", _inference_perf),
    "genai-bench": ("D*.json", _genai),
    "inferencex": ("agg_r.json", _inferencex),
    "mlperf": ("result_summary.json", _mlperf),
    "genai-perf": ("profile_export_genai_perf.json", _aiperf),
    "evalscope": ("benchmark_summary.json", _evalscope),
}
# What the tool shows for the time between tokens, where that is not its ITL.
GAP = {
    "guidellm": "TPOT",
    "inference-perf": "TPOT",
    "genai-bench": "TPOT",
    "mlperf": "TPOT",
    "evalscope": "TPOT",
}
# What a tool makes of other counts or answers than its records have.
OTHERWISE = {
    "inference-perf": ("ITL", "TPOT", "output"),  # of tokens by its own tokenizer
    "genai-perf": ("ITL", "output"),  # of tokens by its own tokenizer
    "evalscope": ("TPOT",),  # to the end of the stream
    "genai-bench": ("TPOT",),  # without answers whose text its client read within 1 ms
}


def printed(tool: str, out: Path) -> Said:
    """By its file below `out`. Raises LookupError, TypeError or ValueError where that is not what it was."""
    name, read = PRINTED[tool]
    return read(json.loads(next(out.rglob(name)).read_text()))
