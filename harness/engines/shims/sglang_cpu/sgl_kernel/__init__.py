"""Names of SGLang's kernel library, which has no build for a CPU in the package index.

Nothing is computed here. SGLang's own PyTorch code computes (`forward_native`, the attention backend
`torch_native`). It imports these names on an x86-64 CPU for any model and calls them for speculative decoding
and to move a KV cache; a call raises NotImplementedError. Other processors need more names.
"""

from collections.abc import Callable
from typing import NoReturn


def _absent(name: str) -> Callable[..., NoReturn]:
    def kernel(*_arguments: object, **_named: object) -> NoReturn:
        raise NotImplementedError(f"sgl_kernel.{name} has no build for a CPU here")

    return kernel


assign_draft_cache_locs_contiguous_cpu = _absent("assign_draft_cache_locs_contiguous_cpu")
assign_extend_cache_locs_cpu = _absent("assign_extend_cache_locs_cpu")
assign_req_to_token_pool_cpu = _absent("assign_req_to_token_pool_cpu")
build_tree_kernel_efficient_cpu = _absent("build_tree_kernel_efficient_cpu")
copy_all_layer_kv_cache_cpu = _absent("copy_all_layer_kv_cache_cpu")
fill_accept_out_cache_loc_cpu = _absent("fill_accept_out_cache_loc_cpu")
fill_bonus_tokens_cpu = _absent("fill_bonus_tokens_cpu")
rotate_input_ids_cpu = _absent("rotate_input_ids_cpu")
verify_tree_greedy_cpu = _absent("verify_tree_greedy_cpu")
