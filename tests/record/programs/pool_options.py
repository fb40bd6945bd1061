"""Fills MemPools with options: one that does not split its segments, one that serves other requests when memory runs
out, or both; and one without options. With "gone", another one with the options came before, and is gone.

    pool_options.py no_split|use_on_oom|both SEED [gone]
"""
import random
import sys

import torch

MIB = 1 << 20
options = {"no_split": ["no_split"], "use_on_oom": ["use_on_oom"], "both": ["no_split", "use_on_oom"]}[sys.argv[1]]
numbers = random.Random(sys.argv[2])
refused = 0


def take(held):
    global refused
    if held and numbers.random() < 0.45:
        del held[numbers.randrange(len(held))]
        return
    size = int(numbers.choice([0.01, 0.9, 4, 30]) * numbers.uniform(0.2, 1) * MIB)
    try:
        held.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
    except torch.cuda.OutOfMemoryError:
        refused += 1


def fill(pool, held, steps):
    with torch.cuda.use_mem_pool(pool):
        for _ in range(steps):
            take(held)


held, plain = [], []
for _ in range(60):
    take(held)
pool = torch.cuda.MemPool()
for _ in range(2 if sys.argv[3:] == ["gone"] else 1):
    with_options, inside = torch.cuda.MemPool(**dict.fromkeys(options, True)), []
    for _ in range(4):
        fill(pool, plain, 20)
        fill(with_options, inside, 30)
        for _ in range(60):
            take(held)
    if sys.argv[3:] == ["gone"]:
        del inside, with_options
        torch.cuda.empty_cache()
print("refused", refused, "reserved", torch.cuda.memory_reserved())
