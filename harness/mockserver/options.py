"""Settings of the scripted server; cli.py explains the flags of the same names."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.mockserver.declared import declared_dialect
from harness.mockserver.dialect import Dialect
from harness.mockserver.faults import Fault
from harness.mockserver.habits import Habits
from harness.mockserver.known_answers import WrongShare
from harness.mockserver.script import Distribution


@dataclass(frozen=True, slots=True)
class Options:
    habits: Habits
    ttft_ms: Distribution
    gap_ms: Distribution
    faults: tuple[Fault, ...] = ()
    seed: int = 0
    tokens: int = 128  # when the request names no limit
    stop_after_tokens: int | None = None
    prefill_us_per_token: float = 0.0
    no_prefix_cache: bool = False
    cache_tokens: int = 262_144
    cache_block_tokens: int = 16
    host_cache_tokens: int = 0  # of a second cache, which also holds what left the first
    host_us_per_token: float = 0.0  # for which a token comes back from there
    image_tokens: int = 64  # of the prompt, that stand for an image
    image_ms: float = 0.0  # for which an image is encoded, one after the other
    image_cache: int = 0  # images whose encoding is kept
    audio_ms_per_s: float = 0.0  # for which a second of a recording is transcribed
    transfer_ms: float = 0.0  # for which the KV cache of a prompt comes from the engine that read it
    adapters: int = 0  # that it answers for, by the names adapter-1 and so on
    adapter_slots: int = 1  # of them in memory at once; the others have to be loaded
    adapter_swap_ms: float = 0.0  # for which one is loaded
    adapter_us_per_token: float = 0.0  # that an uncached prompt token costs more with one
    dialect: Dialect = field(default_factory=lambda: declared_dialect("truth"))
    loading_s: float = 0.0
    chars_per_token: int = 4
    max_running: int | None = None
    interrupts: bool = False  # a new request ends those that run
    finishes_abandoned: bool = False  # a client that leaves frees nothing
    # Where the dialect does: answers of /v1/responses, for requests that go on from them.
    keeps_turns: bool = True
    cut_prompt_tokens: int | None = None  # of a longer prompt only the end is read
    answers: Mapping[str, str] = field(default_factory=dict)  # right ones, by question
    wrong: WrongShare = field(default_factory=WrongShare)
    model_name: str = "simulated"
    host: str = "127.0.0.1"
    port: int = 0
    tls_pem: str | None = None
    precise: bool = False
    keep_requests: int | None = None  # by the ledger
    until_stdin_closes: bool = False
