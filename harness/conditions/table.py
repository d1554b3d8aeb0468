"""The one table of conditions: both comparisons, of the cells of a run and of runs of any time, go by it."""

import re

from harness.conditions.keys import Key
from harness.model import CellResult, known

_PENALTIES = ("repetition_penalty", "repeat_penalty", "frequency_penalty", "presence_penalty")


def _temperature(cell: CellResult) -> float | None:
    return cell.conditions.sampling.temperature if cell.conditions.sampling else None


def _reasoned(cell: CellResult) -> str | None:
    return _on_off(cell.conditions.thinking.seen) if cell.conditions.thinking else None


def _sends(cell: CellResult, *names: str) -> str | None:
    """Tells whether a field is sent: where it cannot be, the engine's or the model file's own value holds."""
    fields = cell.conditions.sent_fields
    return None if fields is None else "yes" if any(name in fields for name in names) else "no"


def _forced(cell: CellResult) -> str | None:
    """Tells whether an exact length was sent, where one was asked for."""
    length = cell.conditions.exact_output
    return None if length is None or not length.asked else "yes" if length.forced else "no"


def _think_time(cell: CellResult) -> str | None:
    return None if (seconds := known(cell.load.think_time_s)) is None else f"{seconds:g} s"


def _abandonment(cell: CellResult) -> str | None:
    nobody = None if cell.imported else "none"  # another tool may not say
    return f"{users.share:g} after {users.after_s:g} s" if (users := known(cell.load.abandonment)) else nobody


def _course(cell: CellResult) -> str | None:
    """`10 s 1× to 2×, …`, `constant`."""
    stretches = known(cell.load.profile)
    words = (f"{part.seconds:g} s {part.start:g}× to {part.end:g}×" for part in stretches or ())
    return None if stretches is None else ", ".join(words) or "constant"


def _limits(cell: CellResult) -> str | None:
    """`ttft_ms.p95 500 ms, …`: a request is good only by these."""
    limits = cell.slo.limits if cell.slo else ()
    return ", ".join(f"{limit.metric}.{limit.share} {limit.limit_ms:g} ms" for limit in limits) or None


def _on_off(value: bool | None) -> str | None:
    return None if value is None else "on" if value else "off"


def width(number_type: str) -> str:
    """`bfloat16`, `f16` and `half` to 16: what is read and written per number."""
    known = {"half": "16", "float": "32", "bfloat16": "16", "bf16": "16"}
    bits = re.search(r"\d+", number_type)
    return known.get(number_type.lower()) or (bits[0] if bits else number_type)


_WORK = (
    Key("workload", "the requests", "refuses", "refuses", "Other prompts are other work.", "work",
        cell=lambda cell: cell.workload_sha256[:12] or None),
    Key("content", "content of prompts", "refuses", "refuses",
        "Drafts are right more often on one text than on another.", "work",
        cell=lambda cell: cell.conditions.content, scenario=("text.content",)),
    Key("images", "images of the requests", "refuses", "refuses",
        "More pixels are more work, and fetching a file is another way than reading it.", "work",
        cell=lambda cell: cell.conditions.images,
        scenario=tuple(f"images.{key}" for key in ("counts", "sizes", "formats", "states", "send", "place"))),
    Key("simulated", "simulated", "refuses", "refuses", "A scripted server is not an engine.", "work",
        cell=lambda cell: "yes" if cell.simulated else "no"),
    Key("api", "API", "shown", "shown",
        "It may be the question. Prompt lengths and forced lengths have rules of their own.", "work",
        cell=lambda cell: cell.conditions.api, scenario=("request.api",)),
    Key("encoding", "encoding of vectors", "refuses", "refuses", "Base64 has fewer bytes than digits.",
        "work", cell=lambda cell: (cell.conditions.sent_fields or {}).get("encoding_format"),
        scenario=("request.encoding_format",)),
    Key("load", "arrivals", "refuses", "refuses", "Bursts queue longer than steady arrivals.", "work",
        cell=lambda cell: known(cell.load.arrival), scenario=("load.arrival",)),
    Key("burstiness", "burstiness of arrivals", "refuses", "refuses", "As arrivals.", "work",
        cell=lambda cell: f"{shape:g}" if (shape := known(cell.load.burstiness)) else None,
        scenario=("load.burstiness",)),
    Key("rate-profile", "course of the rate", "refuses", "refuses", "As arrivals.", "work", cell=_course,
        scenario=("load.profile",)),
    Key("think-time", "think time", "refuses", "refuses", "Fewer requests are in flight while slots wait.",
        "work", cell=_think_time, scenario=("load.think_time_s",)),
    Key("abandonment", "users who hang up", "refuses", "refuses", "It is another load.", "work",
        cell=_abandonment, scenario=("load.abandon_share", "load.abandon_after_s")),
    Key("start", "start of the slots", "refuses", "refuses", "Slots that begin together send bursts.", "work",
        cell=lambda cell: known(cell.load.start), scenario=("load.start",)),
    Key("in-flight", "requests in flight of a working set", "refuses", "refuses", "It is another load.",
        "work", cell=lambda cell: working.in_flight if (working := known(cell.load.working_set)) else None),
    Key("over-cap", "requests above the cap", "shown", "shown",
        "One that waits is answered late, one that is dropped never.", "work",
        cell=lambda cell: known(cell.load.over_cap), scenario=("load.over_cap",)),
    Key("scenario", "scenario", "refuses", "refuses", "Another scenario is another question.", "work",
        manifest=("scenario.scenario.name",)),
    Key("model", "model", "refuses", "refuses", "Another model is other work.", "work",
        manifest=("model.name",)),
    Key("temperature", "temperature", "refuses", "refuses", "Sampling costs time and sets what is said.",
        "work", cell=_temperature, scenario=("request.temperature",)),
    Key("top-p", "top_p", "refuses", "refuses", "As temperature.", "work",
        cell=lambda cell: cell.conditions.sampling and cell.conditions.sampling.top_p,
        scenario=("request.top_p",)),
    Key("top-k", "top_k sent", "shown", "shown", "An engine without the field uses its own default.", "work",
        cell=lambda cell: _sends(cell, "top_k") if _temperature(cell) else None),
    Key("penalty", "neutral repetition penalty sent", "shown", "shown",
        "An engine without the field uses its own default, or the model file's.", "work",
        cell=lambda cell: _sends(cell, *_PENALTIES)),
    Key("request-fields", "request fields of the scenario", "refuses", "refuses",
        "They may change what is computed, and how much.", "work",
        cell=lambda cell: cell.conditions.fields_stated, scenario=("request.fields",)),
    Key("thinking-asked", "thinking asked for", "refuses", "refuses", "Reasoning is more tokens.", "work",
        cell=lambda cell: cell.conditions.thinking and cell.conditions.thinking.asked,
        scenario=("request.thinking",)),
    Key("thinking", "reasoning text", "refuses", "refuses", "Reasoning is more tokens.", "work",
        cell=_reasoned),
    Key("length-forced", "length of answers forced", "shown", "shown",
        "Answers of other lengths have a rule of their own.", "work", cell=_forced),
    Key("cache-wanted", "prefix cache at the start", "refuses", "refuses",
        "A warm cache skips most of the prompt.", "work",
        cell=lambda cell: cell.conditions.cache and cell.conditions.cache.requested,
        manifest=("scenario.cache.state",)),
    Key("slo", "limits of goodput", "refuses", "refuses", "Other limits count other requests.", "work",
        cell=_limits, scenario=("slo",), metrics=("goodput_requests_per_s",)),
    Key("currency", "currency of costs", "refuses", "refuses", "Amounts of two currencies have no ratio.",
        "work", cell=lambda cell: cell.cost and cell.cost.price.currency,
        metrics=("cost_per_million_output_tokens",)),
    Key("price", "price of an hour", "shown", "shown", "It may be the question.", "work",
        cell=lambda cell: cell.cost and f"{cell.cost.price.per_hour:g}"),
    Key("between-repeats", "engine between repeats", "shown", "shown",
        "Repeats of one start share its memory layout, compiled graphs and clocks.", "work",
        manifest=(".between_repeats",)),
    Key("pairing", "engines that are up together", "refuses", "refuses",
        "What shares a machine has a part of its cores and caches.", "work", manifest=("pairing",)),
    Key("seed", "seed of the run", "shown", "shown", "Other prompts of the same kind.", "work",
        manifest=("seeds.run",)),
)  # fmt: skip

_NUMERICS = (
    Key("weights", "weights", "shown", "refuses",
        "A difference is then one of engine and weights together; rank lines carry the weights.",
        manifest=(".track",), cell=lambda cell: cell.quantisation),
    Key("dtype", "number type", "refuses", "refuses", "Twice the bits are twice the memory traffic.",
        info=("*.model_config.dtype", "compute_type"),
        flags=("--dtype", "--quantization-encoding"), values=("dtype",), alike=width),
    Key("pooling", "pooling of vectors", "shown", "shown",
        "Other pooling is another vector: the agreement of the vectors refuses the verdict.",
        flags=("--pooling", "--runner=as the model declares", "--is-embedding=as the model declares")),
    Key("normalisation", "vectors of length 1", "shown", "shown",
        "It does not change a cosine; the client may have to do it."),
    Key("truncation", "texts beyond the context", "shown", "shown",
        "No text of the load is so long; where they are cut, their vectors are of their beginning."),
    Key("quantisation", "quantised at load", "shown", "refuses", "Fewer bits are less memory traffic.",
        info=("*.model_config.quantization",),
        flags=("--quantize", "--quantization", "--model-format", "--load-format")),
    Key("kv-dtype", "number type of the KV cache", "refuses", "refuses",
        "Fewer bits are less traffic, and room for more sequences.",
        info=("*.cache_config.cache_dtype", "kv_cache_dtype"),
        flags=("--kv-cache-dtype", "--cache-type-k", "-ctk", "--cache-type-v", "-ctv",
               "lmdeploy/--quant-policy"),
        variables=("OLLAMA_KV_CACHE_TYPE",), values=("kv_type",), alike=width),
)  # fmt: skip

_RESOURCES = (
    Key("threads", "CPU threads", "refuses", "refuses", "More cores are more speed.",
        flags=("--threads", "-t", "--n_threads", "--n_threads_batch"),
        variables=("OMP_NUM_THREADS", "RAYON_NUM_THREADS"), values=("threads",)),
    Key("thread-wait", "threads without work", "shown", "shown",
        "Threads that spin answer sooner, and slow down whatever shares their cores.",
        variables=("OMP_WAIT_POLICY", "KMP_BLOCKTIME", "GOMP_SPINCOUNT")),
    Key("thread-binding", "CPU binding", "shown", "shown", "It decides which cores compute.",
        variables=("VLLM_CPU_OMP_THREADS_BIND", "VLLM_CPU_NUM_OF_RESERVED_CPU", "KMP_AFFINITY")),
    Key("tensor-parallel", "tensor parallel", "refuses", "refuses", "It is the number of GPUs.",
        info=("*.parallel_config.tensor_parallel_size",),
        flags=("--tensor-parallel-size", "-tp", "--tp", "--tp-size", "--tp_size", "--num-shard"),
        values=("tensor_parallel",)),
    Key("pipeline-parallel", "pipeline parallel", "refuses", "refuses", "It is the number of GPUs.",
        flags=("--pipeline-parallel-size", "-pp", "--pp-size", "--pp_size")),
    Key("data-parallel", "data parallel", "refuses", "refuses", "It is the number of GPUs.",
        flags=("--data-parallel-size", "-dp", "--dp", "--dp-size")),
    Key("replicas", "servers", "shown", "refuses", "More servers are more hardware.",
        cell=lambda cell: str(len(cell.replicas.urls)) if cell.replicas else "1"),
    Key("balance", "requests spread over servers", "shown", "shown", "It decides which server queues.",
        cell=lambda cell: cell.replicas and cell.replicas.balance),
    Key("gpus-visible", "GPUs visible", "refuses", "refuses", "More or other GPUs.",
        variables=("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                   "ROCR_VISIBLE_DEVICES")),
    Key("offload", "layers on the GPU", "shown", "refuses", "What is not on the GPU is slow.",
        flags=("--gpu-layers", "-ngl", "--n-gpu-layers", "--cpu-offload-gb"), values=("gpu_layers",)),
    Key("memory-share", "memory share", "shown", "shown",
        "It sets the room for the KV cache; each engine takes it of something else.",
        info=("mem_fraction_static",), values=("memory_share",),
        flags=("--gpu-memory-utilization", "--mem-fraction-static", "--cache-max-entry-count",
               "--cuda-memory-fraction", "--kv_cache_free_gpu_memory_fraction", "--pa-memory-fraction",
               "--device-memory-utilization")),
    Key("kv-tokens", "KV cache in tokens", "shown", "shown",
        "It matters once it is full: preemptions and the limiter tell.",
        info=("*.cache_config.kv_cache_size_tokens", "max_total_num_tokens"),
        flags=("--ctx-size", "-c", "sglang/--max-total-tokens", "--cache-tokens"), values=("cache_tokens",)),
    Key("kv-memory", "memory of the KV cache", "shown", "shown", "As the KV cache in tokens.",
        flags=("--kv-cache-memory-bytes", "--num-gpu-blocks-override", "--cache_size", "--kv-cache-gib"),
        variables=("VLLM_CPU_KVCACHE_SPACE",), values=("kv_cache_gib",),
        units={"--kv-cache-memory-bytes": "bytes", "--num-gpu-blocks-override": "blocks",
               "--cache_size": "GiB", "--kv-cache-gib": "GiB", "VLLM_CPU_KVCACHE_SPACE": "GiB",
               "kv_cache_gib": "GiB"}),
    Key("kv-block", "tokens per KV block", "shown", "shown", "A prefix is reused in whole blocks.",
        info=("*.cache_config.block_size", "page_size"), flags=("--block-size", "--page-size")),
    Key("context", "context per sequence", "shown", "shown", "It bounds a prompt, and sizes buffers.",
        info=("*.model_config.max_model_len", "default_generation_settings.n_ctx",
              "max_total_tokens"),
        flags=("--max-model-len", "--context-length", "--session-len", "--max_seq_len",
               "--contextsize", "--max-length", "--n_ctx", "tgi/--max-total-tokens"),
        variables=("OLLAMA_CONTEXT_LENGTH",), values=("context_tokens",)),
    Key("prompt-limit", "longest prompt", "shown", "shown", "It bounds a prompt, and sizes buffers.",
        info=("max_input_tokens",), flags=("--max-input-tokens",), values=("input_tokens",)),
)  # fmt: skip

_SCHEDULING = (
    Key("max-sequences", "sequences at once", "refuses", "refuses",
        "Where the load exceeds one of them (else shown): requests wait in one and run in the other.",
        info=("*.scheduler_config.max_num_seqs", "total_slots", "max_running_requests"),
        flags=("--max-num-seqs", "--parallel", "-np", "--max-running-requests", "--max-batch-size",
               "--max_batch_size", "--decode-concurrency", "--prompt-concurrency", "--max_num_seqs",
               "--max-seqs"), variables=("OLLAMA_NUM_PARALLEL",), values=("max_sequences",)),
    Key("queue", "requests accepted at once", "shown", "shown", "Above it requests are refused, and fail.",
        info=("max_concurrent_requests", "max_client_batch_size", "validation_workers"),
        flags=("--max-concurrent-requests", "--multiuser"), variables=("OLLAMA_MAX_QUEUE",),
        values=("queue",)),
    Key("prefill-tokens", "tokens per step", "shown", "shown",
        "More favours throughput and TTFT, less favours ITL: each engine has its own best.",
        info=("*.scheduler_config.max_num_batched_tokens", "chunked_prefill_size"),
        flags=("--max-num-batched-tokens", "--chunked-prefill-size", "--max-prefill-token-num",
               "--max-batch-prefill-tokens", "--max_num_tokens", "--batch-size", "-b",
               "--max_num_batched_tokens", "--max-batch-input-tokens", "--n_batch"),
        values=("prefill_tokens", "batch_tokens")),
    Key("micro-batch", "tokens per computation", "shown", "shown", "As tokens per step.",
        flags=("--ubatch-size", "-ub", "--n_ubatch"), values=("micro_batch_tokens",)),
    Key("chunked-prefill", "chunked prefill", "shown", "shown",
        "Without it a long prompt holds back the answers of others.",
        info=("*.scheduler_config.enable_chunked_prefill",),
        flags=("--enable-chunked-prefill=on", "--no-enable-chunked-prefill=off"),
        values=("chunked_prefill",)),
    Key("continuous-batching", "continuous batching", "shown", "shown",
        "Without it requests are computed one after another, or in fixed batches.",
        flags=("--continuous-batching=on",)),
    Key("scheduling", "order of the queue", "shown", "shown", "It trades one request's wait for another's.",
        info=("schedule_policy",),
        flags=("--schedule-policy", "--scheduling-policy", "--disable-overlap-schedule=without overlap")),
    Key("idle", "idle engine", "shown", "shown", "One that sleeps leaves its core to others, and wakes late.",
        flags=("--sleep-on-idle=sleeps",)),
    Key("interrupts", "a new request ends those that run", "shown", "shown", "Their answers are cut short.",
        flags=("--interrupt_requests",)),
    Key("eager", "eager mode", "shown", "shown", "Slower than the engine's makers ship it.",
        info=("*.model_config.enforce_eager",),
        flags=("--enforce-eager=on", "--disable-cuda-graph=on")),
    Key("compilation", "graphs and compilation", "shown", "shown", "It sets the time of each step.",
        info=("*.compilation_config.mode",), variables=("VLLM_USE_AOT_COMPILE",),
        flags=("--compilation-config", "-O", "--cuda-graphs", "--enable-torch-compile=on",
               "--cuda-graph-backend-decode", "--cuda-graph-backend-prefill")),
    Key("compiler", "compiler", "shown", "shown", "It sets the time of each step.",
        info=("*.compilation_config.backend",)),
    Key("prefix-cache", "prefix cache", "shown", "shown", "Without it every prompt is processed whole.",
        info=("*.cache_config.enable_prefix_caching", "disable_radix_cache"),
        flags=("--enable-prefix-caching=on", "--no-enable-prefix-caching=off", "--disable-radix-cache=off",
               "--enable_prefix_caching"),
        variables=("PREFIX_CACHING",), values=("block_reuse",), manifest=(".engine.prefix_cache.enabled",),
        cell=lambda cell: _on_off(cell.conditions.prefix_cache)),
    Key("host-cache", "prompts kept besides", "shown", "shown",
        "A prefix that left the KV cache can come back.",
        flags=("--cache-ram", "--prompt-cache-size", "--prefix-cache-n", "--kv-offloading-size",
               "--kv-offloading-backend", "--kv-transfer-config", "--hicache-ratio",
               "--enable-hierarchical-cache=on"),
        values=("cache_ram_mib", "prompt_cache")),
    Key("adapters", "LoRA adapters", "shown", "shown",
        "Requests that name them share one server.", values=("lora_adapters",)),
    Key("adapter-slots", "LoRA adapters in memory", "shown", "shown",
        "Others are loaded when a request names them.", flags=("--max-loras",), values=("lora_slots",)),
    Key("adapter-rank", "rank of LoRA adapters", "shown", "shown", "More of it is more work.",
        flags=("--max-lora-rank",), values=("lora_rank",)),
    Key("attention", "attention", "shown", "shown", "Another kernel, another speed.",
        info=("attention_backend",), flags=("--attention-backend", "--flash-attn", "-fa", "--paged-attn"),
        variables=("VLLM_ATTENTION_BACKEND", "ATTENTION", "OLLAMA_FLASH_ATTENTION"),
        values=("flash_attention",)),
    Key("kernels", "kernels", "shown", "shown", "Another kernel, another speed.",
        flags=("--enable-deterministic-inference=deterministic",), variables=("SGLANG_USE_AITER",)),
    Key("caveat", "what figures do not show", "shown", "shown",
        "Figures of a stand-in for the usual kernels.", manifest=(".engine.caveat",)),
    Key("sampling-kernels", "sampling by", "shown", "shown", "It takes a part of each step.",
        flags=("--sampling-backend",)),
    Key("speculative", "speculative decoding", "shown", "shown",
        "Several tokens per step where the drafts hold: on one kind of text only.",
        flags=("--speculative-config", "--speculate", "--speculative-algorithm",
               "--speculative-num-draft-tokens", "--model-draft", "-md", "--draft-max", "--spec-type",
               "--spec-ngram-simple-size-n", "--spec-synth-len"),
        values=("draft_model", "drafted_tokens")),
    Key("implementation", "implementation", "shown", "shown", "Engines that hold several engines.",
        flags=("--backend", "--device", "--devices", "--target_device", "--usecpu=CPU"),
        values=("implementation",), variables=("SGLANG_USE_CPU_ENGINE",)),
    Key("structured-engine", "structured output by", "shown", "shown", "It masks the tokens of each step.",
        info=("*.structured_outputs_config.backend", "grammar_backend"),
        flags=("--structured-outputs-config.backend", "--grammar-backend"), values=("structured_engine",)),
    Key("stream-interval", "tokens between events", "shown", "shown", "It sets the first token and the gaps.",
        info=("*.scheduler_config.stream_interval", "stream_interval"),
        flags=("--stream-interval",)),
    Key("stream-batch", "output held back, ms", "shown", "shown",
        "It makes gaps of 0, and waits between them.", values=("stream_batch_ms",)),
)  # fmt: skip

_INTERFACE = (
    Key("chat-template", "chat template", "shown", "shown",
        "Another template is another prompt; the lengths of prompts have a rule of their own.",
        flags=("--chat-template",)),
    Key("engine-seed", "seed of the engine", "ignored", "shown", "Requests that draw send their own.",
        flags=("--seed", "--random-seed", "--default-seed"), values=("seed",)),
    Key("interface", "names and routes", "ignored", "shown",
        "What the server is called and which routes it opens takes no time from a request.",
        info=("build_info", "model_alias", "model_path", "docker_label", "sha", "model_id", "models"),
        flags=("--served-model-name", "--alias", "--model-name", "--model", "--model-path", "--model-id",
               "--hf-repo", "--embeddings", "--metrics", "--slots", "--enable-metrics", "--reasoning-parser",
               "--enable-cache-report", "--structured-outputs-config.enable_in_reasoning",
               "--enable-prompt-tokens-details", "--usage-stats", "--generation-config",
               "--sampling-defaults", "--enable-auto-tool-choice", "--tool-call-parser",
               "--extra_llm_api_options", "--model-repository", "--tokenizer", "--default-max-tokens",
               "--discovery-backend", "--config", "--quiet", "--skiplauncher", "--jinja", "--model_path",
               "--model_name", "--task", "--metrics_enable", "--log_level", "-P", "-m", "--no-ui",
               "--enable-structured-output", "--allow-extra-request-fields", "--model_alias", "--verbose",
               "--enable-lora", "--lora-modules", "--lora", "--lora-init-without-apply", "--mmproj"),
        variables=("VLLM_SERVER_DEV_MODE", "VLLM_NO_USAGE_STATS", "APHRODITE_SERVER_DEV_MODE",
                   "DO_NOT_TRACK", "HF_HUB_OFFLINE", "OLLAMA_KEEP_ALIVE", "LOCALAI_MODELS_CONFIG_FILE",
                   "LOCALAI_LOAD_TO_MEMORY", "LOCALAI_ALLOW_INSECURE_PUBLIC_BIND", "KCPP_DONT_TUNNEL",
                   "KCPP_ARGS", "RAY_USAGE_STATS_ENABLED", "MODULAR_TELEMETRY_ENABLED", "OTEL_SDK_DISABLED"),
        values=("tool_parser",), several=True),
    Key("place", "address and folders", "ignored", "ignored", "They differ at every start.",
        flags=("--host", "--port", "--hostname", "--server-name", "--server-port", "--slot-save-path",
               "--openai-port", "--rest_port", "--rest_bind_address", "-p", "--scratch"),
        values=("port",),
        variables=("PATH", "PWD", "OLDPWD", "HOME", "SHLVL", "TMPDIR", "BENCH_CACHE", "_", "OLLAMA_HOST",
                   "OLLAMA_MODELS", "VLLM_CACHE_ROOT", "LOCALAI_ADDRESS", "MAX_SERVE_METRICS_ENDPOINT_PORT",
                   "RAY_TMPDIR", "VLLM_RPC_BASE_PATH", "PORT", "PYTHONPATH"), several=True),
    Key("shell", "settings of the shell", "ignored", "shown", "Every engine that bench starts sees the same.",
        variables=("LANG", "LC_*", "TZ", "XDG_*", "SSL_CERT_*", "REQUESTS_CA_BUNDLE", "*_proxy", "*_PROXY",
                   "LD_LIBRARY_PATH", "LD_PRELOAD", "CUDA_DEVICE_ORDER"), several=True),
)  # fmt: skip

_BUILD = (
    Key("backend", "backend", "shown", "shown", "It is the question.", "build", manifest=(".backend",)),
    Key("variant", "variant", "shown", "shown", "It is the question.", "build", manifest=(".variant",)),
    Key("engine-version", "engine version", "ignored", "shown", "It may be the question.", "build",
        manifest=(".engine.package_version", ".engine.server_version")),
    Key("launch", "started as", "shown", "shown", "A container may cost network and memory.", "build",
        manifest=(".launch.mode",), cell=lambda cell: cell.launch),
    Key("image", "image", "ignored", "shown", "It may be the question.", "build",
        manifest=(".engine.container.image.name",)),
    Key("image-digest", "image digest", "ignored", "shown", "One tag may name other images later.", "build",
        manifest=(".engine.container.image.digest",)),
    Key("weights-file", "weights file", "ignored", "shown", "Engines read files of their own form.", "build",
        manifest=(".engine.weights.sha256",)),
    Key("answered-model", "model in answers", "ignored", "shown", "One name may stand for others later.",
        "build", cell=lambda cell: cell.conditions.models_stated),
    Key("harness-version", "harness version", "shown", "shown", "Figures may be defined otherwise.", "build",
        manifest=("packages.llm-servebench",)),
)  # fmt: skip

_HOST = (
    Key("gpus", "GPUs", "refuses", "refuses", "Other chips.", "host", manifest=("host.gpus",), null="none"),
    Key("cpu", "CPU", "refuses", "refuses", "Other hardware.", "host", manifest=("host.cpu",)),
    Key("cpu-features", "vector instructions", "refuses", "refuses",
        "Other kernels: bf16 in hardware or in software.", "host", manifest=("host.cpu_features",)),
    Key("cores", "usable cores", "refuses", "refuses", "Other hardware.", "host",
        manifest=("host.cpus_usable",)),
    Key("cpu-quota", "limit of CPU time", "refuses", "refuses", "More cores are more speed.", "host",
        manifest=("host.cpu_quota",)),
    Key("cpu-limit", "CPU limit", "refuses", "refuses", "More cores are more speed.", "host",
        manifest=(".engine.container.nano_cpus",)),
    Key("cpu-set", "CPUs of the container", "refuses", "refuses", "More cores are more speed.", "host",
        manifest=(".engine.container.cpuset",)),
    Key("memory-limit", "memory limit", "shown", "shown", "It matters once it is reached.", "host",
        manifest=(".engine.container.memory_bytes",)),
    Key("machine", "machine", "shown", "shown", "Two machines of one kind may differ.", "host",
        manifest=("host.hostname",)),
    Key("kernel", "kernel", "shown", "shown", "Scheduler, network stack.", "host", manifest=("host.kernel",)),
    Key("gpu-driver", "GPU driver", "shown", "shown", "It compiles and schedules kernels.", "host",
        manifest=("host.gpu_driver",)),
    Key("gpu-power-limit", "power limit of the GPUs", "shown", "shown", "It sets the clock.", "host",
        cell=lambda cell: cell.gpu and cell.gpu.power_limits),
    Key("governor", "CPU governor", "shown", "shown", "It sets the clock.", "host",
        manifest=("host.cpu_governor",)),
    Key("client-workers", "client workers", "shown", "shown",
        "They take cores of the engine's machine.", "host", manifest=("options.workers",)),
    Key("load-nodes", "load nodes", "shown", "shown",
        "Load from several machines takes other ways to the server.", "host",
        manifest=("options.load_from.nodes",)),
)  # fmt: skip

TABLE = (*_WORK, *_NUMERICS, *_RESOURCES, *_SCHEDULING, *_INTERFACE, *_BUILD, *_HOST)
