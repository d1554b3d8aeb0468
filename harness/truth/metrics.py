"""Prometheus text under vLLM's names."""

from harness.truth.engine import Engine


def prometheus_text(engine: Engine, model: str) -> str:
    series = (
        ("num_requests_running", "gauge", len(engine.running)),
        ("num_requests_waiting", "gauge", len(engine.waiting)),
        ("kv_cache_usage_perc", "gauge", engine.cache.used_share),
        ("prompt_tokens_total", "counter", engine.prompt_tokens),
        ("generation_tokens_total", "counter", engine.generated_tokens),
        ("prefix_cache_queries_total", "counter", engine.prompt_tokens),
        ("prefix_cache_hits_total", "counter", engine.cached_tokens),
    )
    return "".join(
        f'# TYPE vllm:{name} {kind}\nvllm:{name}{{model_name="{model}",engine="0"}} {value}\n'
        for name, kind, value in series
    )
