"""Divides a GPU as an inference server does: weights, a run to measure, a cache of keys and values, a CUDA graph."""
import sys
import types

import torch


class KVCacheConfig:
    """Has the fields of vLLM's class of that name."""

    def __init__(self, num_blocks, sizes):
        self.num_blocks = num_blocks
        self.kv_cache_groups = [types.SimpleNamespace(kv_cache_spec=types.SimpleNamespace(block_size=size))
                                for size in sizes]


def take(mib):
    return torch.empty(mib << 20, dtype=torch.uint8, device="cuda")


def _allocate_kv_cache_tensors():
    return [take(64) for _ in range(2)]


sys.modules["vllm"] = types.ModuleType("vllm")
weights = take(96)
measured = take(40)
del measured
cache = _allocate_kv_cache_tensors()
configs = [KVCacheConfig(1, [16]), KVCacheConfig(128, [16, 32])]
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    held = take(4)
