import ray
from ray import serve
from ray.serve.config import HTTPOptions
from ray.serve.llm import LLMConfig, build_openai_app

ray.init(include_dashboard=False)
serve.start(http_options=HTTPOptions(host="0.0.0.0", port=8000))
config = LLMConfig(
    model_loading_config={"model_id": "bench", "model_source": "Qwen/Qwen2.5-7B-Instruct"},
    engine_kwargs={
        "max_model_len": 2048,
        "max_num_seqs": 8,
        "max_num_batched_tokens": 2048,
        "dtype": "bfloat16",
        "tensor_parallel_size": 1,
        "gpu_memory_utilization": 0.9,
        "enable_prefix_caching": True,
        "enable_prompt_tokens_details": True,
        "generation_config": "vllm",
        "seed": 0,
    },
    deployment_config={"num_replicas": 1},
    experimental_configs={"stream_batching_interval_ms": 0},
)
serve.run(build_openai_app({"llm_configs": [config]}), route_prefix="/", blocking=True)
