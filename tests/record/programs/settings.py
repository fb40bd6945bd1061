"""Allocations and frees under allocator settings that change on the way."""
import random
import sys
import warnings

import torch

MIB = 1 << 20
CHANGES = ["max_split_size_mb:24", "", "roundup_power2_divisions:8", "garbage_collection_threshold:0.6",
           "expandable_segments:True", "expandable_segments:False,max_split_size_mb:64", "expandable_segments:True,"
           "roundup_power2_divisions:[256:1,512:2,>:4]", "expandable_segments:False"]
numbers = random.Random(7)
held = []


def change(settings):
    setter = getattr(torch._C, "_accelerator_setAllocatorSettings", None)
    if setter is not None and numbers.random() < 0.5:
        return setter(settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.cuda.memory._set_allocator_settings(settings)


def work(steps):
    for _ in range(steps):
        if held and numbers.random() < 0.48:
            held.pop(numbers.randrange(len(held)))
        elif numbers.random() < 0.01:
            torch.cuda.empty_cache()
        else:
            most = numbers.choice([4096, MIB, 8 * MIB, 24 * MIB, 90 * MIB])
            held.append(torch.empty(numbers.randrange(1, most), dtype=torch.uint8, device="cuda"))


if sys.argv[1:] == ["early"]:
    change(CHANGES[0])  # before CUDA is up
torch.empty(1, device="cuda")
if sys.argv[1:] == ["once"]:  # there and back, as a server does while it loads weights
    changes = ["max_split_size_mb:21", ""]
else:
    changes = CHANGES[1:] if sys.argv[1:] == ["early"] else CHANGES + CHANGES[2:]
for settings in changes:
    work(150)
    change(settings)
work(150)
