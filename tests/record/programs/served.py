"""Serves a model that is compiled, as an inference server does, and frees all of it before the end: served.py
[copy|cycle], of layers that are copies of one, or that keep each other alive."""
import copy
import gc
import sys

import torch


@torch.compile(backend="eager")  # what a server has compiled while it is imported
def sampled(logits):
    return logits * 2


class Layer(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        weights = torch.empty(width, width, device="cuda")
        self.weight = torch.nn.Parameter(weights, requires_grad=False)
        self.register_buffer("scale", torch.ones(width, width // 4, device="cuda"))

    def forward(self, values):
        return values @ self.weight * self.scale[0, 0]


def copied(layer):
    return copy.deepcopy(layer) if "copy" in sys.argv else layer


def allocate_kv_cache(layers):
    return [torch.empty(16 << 20, dtype=torch.uint8, device="cuda") for _ in range(layers)]


def serve(width=1024, layers=4):
    model = torch.nn.Sequential(*[copied(Layer(width)) for _ in range(layers)])
    if "cycle" in sys.argv:
        model.own = [model]
    cache = allocate_kv_cache(layers)
    for _ in range(2):
        model(torch.ones(8, width, device="cuda"))
    del model, cache
    gc.collect()
    torch.cuda.empty_cache()


serve()
