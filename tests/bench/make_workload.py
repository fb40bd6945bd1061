#!/usr/bin/env python3
"""Writes a memory snapshot of a made-up training loop, and its op log, to time memreplay on.

  make_workload.py STEPS SNAPSHOT.pickle OP_LOG

A step has about 3,300 events, each with a stack of 20 frames. Sequence lengths, and so sizes, change from step to step.
The addresses do not follow PyTorch's allocator, so the files serve to measure speed, never fidelity.
"""

import pickle
import random
import sys

LAYERS, HIDDEN, STACKS, DEPTH = 24, 2048, 400, 20


class Loop:
    def __init__(self):
        self.random = random.Random(14)
        frames = [{"filename": f"/model/block_{i % 23}.py", "line": 10 + i, "name": f"call_{i}"} for i in range(600)]
        self.stacks = [[frames[(7 * i + 11 * d) % 600] for d in range(DEPTH)] for i in range(STACKS)]
        self.events, self.log = [], []
        self.free_at, self.top, self.time, self.count = {}, 0x7F0000000000, 1_700_000_000_000_000, 0

    def note(self, action, address, size, frames):
        self.time += 2
        context = "".join(("N", "/A"))  # a text of its own, as PyTorch makes it for each event
        self.events.append({"action": action, "addr": address, "size": size, "stream": 0, "time_us": self.time,
                            "compile_context": context, "user_metadata": "", "frames": frames})

    def alloc(self, size, stack):
        rounded = (size + 511) // 512 * 512
        spare = self.free_at.setdefault(rounded, [])
        if spare:
            address = spare.pop()
        else:
            address, self.top = self.top, self.top + rounded
        self.note("alloc", address, size, list(self.stacks[stack % STACKS]))
        self.log.append((self.count, size))
        self.count += 1
        return address, size, rounded, self.count - 1

    def free(self, block):
        address, size, rounded, number = block
        frames = list(self.stacks[number % STACKS])
        self.note("free_requested", address, size, frames)
        self.note("free_completed", address, size, frames)
        self.free_at[rounded].append(address)
        self.log.append((number, -size))

    def step(self, weights):
        tokens = 512 + 64 * self.random.randrange(56)
        kept = []
        for layer in range(LAYERS):
            kept.append([self.alloc(tokens * HIDDEN * wide, 16 * layer + wide) for wide in (2, 6, 2, 8, 8, 2)])
            scratch = [self.alloc(512 * self.random.randrange(1, 60), 16 * layer + i) for i in range(6)]
            for block in scratch:
                self.free(block)
        loss = self.alloc(tokens * 32000 * 2, 390)
        grads = []
        for layer in reversed(range(LAYERS)):
            scratch = [self.alloc(tokens * HIDDEN * wide, 16 * layer + 9) for wide in (8, 2)]
            grads += [self.alloc(size, 16 * layer + 11) for size in weights]
            for block in kept.pop() + scratch:
                self.free(block)
        for block in [loss] + grads:
            self.free(block)


def main():
    steps, snapshot, log = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    loop = Loop()
    weights = [HIDDEN * HIDDEN * wide for wide in (6, 2, 8, 8)] + [HIDDEN * 4]
    live = [loop.alloc(size * share, 391 + share) for _ in range(LAYERS) for size in weights for share in (1, 2, 2)]
    for _ in range(steps):
        loop.step(weights)
    blocks = [{"address": address, "size": rounded, "requested_size": size, "state": "active_allocated", "frames": []}
              for address, size, rounded, _ in live]
    blocks += [{"address": address, "size": size, "requested_size": 0, "state": "inactive", "frames": []}
               for size, addresses in loop.free_at.items() for address in addresses]
    blocks.sort(key=lambda block: block["address"])
    active = sum(block["size"] for block in blocks if block["state"] != "inactive")
    segment = {"device": 0, "address": 0x7F0000000000, "total_size": loop.top - 0x7F0000000000,
               "allocated_size": active, "active_size": active, "requested_size": active, "stream": 0,
               "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": True, "frames": [],
               "blocks": blocks}
    with open(snapshot, "wb") as out:
        pickle.dump({"segments": [segment], "device_traces": [loop.events]}, out, protocol=4)
    with open(log, "w") as out:
        out.writelines(f"{number} {size}\n" for number, size in loop.log)


if __name__ == "__main__":
    main()
