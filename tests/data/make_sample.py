"""Writes the bundled sample: a small language-model server, as a program of allocations.

Usage: make_sample.py > tests/data/serving.jsonl

Four layers. The weights stay. Requests of different lengths come and go, four
at a time; each decoding step takes an activation buffer, and every 128 tokens the
key-value cache of each layer is copied into one that is 128 tokens longer, as
concatenation does. Long-lived blocks of ever new sizes between short-lived ones
are what fragments the caching allocator. Same output every time.
"""

import json
import random

LAYERS = 4
HIDDEN = 4096
BYTES = 2  # half precision
STEP = 128  # tokens by which a cache grows
IN_FLIGHT = 4
REQUESTS = 14

records = []
next_id = 0


def emit(**record):
    records.append(json.dumps(record, separators=(",", ":")))


def alloc(size, tag):
    global next_id
    next_id += 1
    emit(k="a", id=next_id, b=size, t=tag)
    return next_id


def free(handle):
    emit(k="f", id=handle)


def cache_bytes(tokens):
    return 2 * tokens * HIDDEN * BYTES


def main():
    rng = random.Random(20)
    emit(k="h", format="memsched-flat", version=1, unit="B", streams=1, devices=1, total=16 << 30)
    emit(k="p", n="weights")
    for _ in range(LAYERS):
        for width in (3 * HIDDEN, HIDDEN, 4 * HIDDEN, 4 * HIDDEN):
            alloc(HIDDEN * width * BYTES, "parameter")

    waiting = [(rng.randrange(8, 64) * STEP, rng.randrange(3, 12)) for _ in range(REQUESTS)]
    running = []  # [tokens, steps left, cache of each layer]
    started = 0
    while waiting or running:
        while waiting and len(running) < IN_FLIGHT:
            tokens, steps = waiting.pop(0)
            started += 1
            emit(k="p", n=f"request{started}")
            caches = []
            for _ in range(LAYERS):
                activation = alloc(tokens * 4 * HIDDEN * BYTES, "activation")
                caches.append(alloc(cache_bytes(tokens), "kv_cache"))
                free(activation)
            running.append([tokens, steps, caches])
        for request in running:
            request[0] += STEP
            request[1] -= 1
            for layer, old in enumerate(request[2]):
                activation = alloc(STEP * 4 * HIDDEN * BYTES, "activation")
                request[2][layer] = alloc(cache_bytes(request[0]), "kv_cache")
                free(old)
                free(activation)
        for request in [request for request in running if request[1] == 0]:
            running.remove(request)
            for cache in request[2]:
                free(cache)
    print("\n".join(records))


if __name__ == "__main__":
    main()
