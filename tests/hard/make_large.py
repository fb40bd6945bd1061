#!/usr/bin/env python3
"""Writes a memory snapshot of any size, as _dump_snapshot() pickles it, without holding it.

  tests/hard/make_large.py GIGABYTES FILE

It shows a training run: each step allocates 200 blocks of sizes of their own and frees them in reverse, with 25 frames
to a stack and 400 stacks. Every block fills a segment, so that the replay is exact. An event takes about 160 bytes, as
in real snapshots.
"""

import struct
import sys

BLOCKS, STACKS, DEPTH, BASE = 200, 400, 25, 0x7F0000000000
MIB = 1 << 20


MARKER = b"-a time-"


def step(event, *marker):
    """Returns the events of a step, in which all blocks are freed, in reverse, and allocated again."""
    pieces = []
    for block in reversed(range(BLOCKS)):
        pieces += [event("free_requested", block, block + 200, *marker),
                   event("free_completed", block, block + 200, *marker)]
    return pieces + [event("alloc", block, block, *marker) for block in range(BLOCKS)]


class Pickle:
    """Writes pickle protocol 4 as it comes; keys and frames are memoized, as Python does it."""

    def __init__(self, file):
        self.file, self.memo, self.written = file, {}, 0

    def put(self, data):
        self.file.write(data)
        self.written += len(data)

    def text(self, value):
        if value not in self.memo:
            self.memo[value] = len(self.memo)
            return b"\x8c" + bytes([len(value)]) + value.encode() + b"\x94"
        return self.get(self.memo[value])

    @staticmethod
    def get(index):
        return b"h" + bytes([index]) if index < 256 else b"j" + index.to_bytes(4, "little")

    @staticmethod
    def number(value):
        if 0 <= value < 256:
            return b"K" + bytes([value])
        if -(1 << 31) <= value < 1 << 31:
            return b"J" + value.to_bytes(4, "little", signed=True)
        return b"\x8a\x08" + value.to_bytes(8, "little", signed=True)

    def value(self, value):
        if isinstance(value, bool):
            return b"\x88" if value else b"\x89"
        if isinstance(value, int):
            return self.number(value)
        if isinstance(value, float):
            return b"G" + struct.pack(">d", value)
        if isinstance(value, str):
            return self.text(value)
        if callable(value):  # memoizes, so that it must be called in its turn
            return value()
        if isinstance(value, tuple):
            return b"(" + b"".join(map(self.value, value)) + b"t"
        if isinstance(value, list):
            return b"](" + b"".join(map(self.value, value)) + b"e"
        return b"}(" + b"".join(self.value(part) for item in value.items() for part in item) + b"u"

    def frame(self, number):
        key = ("frame", number)
        if key in self.memo:
            return self.get(self.memo[key])
        body = self.value({"name": f"forward_{number}", "filename": f"/train/layer_{number % 40}.py", "line": number})
        self.memo[key] = len(self.memo)
        return body + b"\x94"


def main():
    target, path = float(sys.argv[1]) * 1e9, sys.argv[2]
    sizes = [(12 + 2 * i) * MIB for i in range(BLOCKS)]
    addresses = [BASE + sum(sizes[:i]) for i in range(BLOCKS)]
    with open(path, "wb", buffering=MIB) as file:
        out = Pickle(file)
        time_us = 1_700_000_000_000_000

        def stack(number):
            return lambda: b"](" + b"".join(
                out.frame((number % STACKS * 7 + depth * depth) % 2000) for depth in range(DEPTH)) + b"e"

        def event(action, block, number, marker=None):
            nonlocal time_us
            time_us += 3
            time = marker or time_us.to_bytes(8, "little")
            return out.value({"action": action, "addr": addresses[block], "size": sizes[block], "stream": 0,
                              "time_us": lambda: b"\x8a\x08" + time, "frames": stack(number)})

        out.put(b"\x80\x04}" + b"(" + out.text("device_traces") + b"](](")
        for block in range(BLOCKS):
            out.put(event("segment_alloc", block, block) + event("alloc", block, block))
        # From the second step on everything is memoized, and steps differ in their times alone.
        out.put(b"".join(step(event)))
        events, parts = 5 * BLOCKS, [piece.split(MARKER) for piece in step(event, MARKER)]
        while out.written < target:
            pieces = [b"e("]  # another batch of the list
            for head, tail in parts:
                time_us += 3
                pieces += [head, time_us.to_bytes(8, "little"), tail]
            out.put(b"".join(pieces))
            events += 3 * BLOCKS
        out.put(b"ee")
        out.put(out.text("segments"))
        out.put(out.value([{
            "device": 0, "address": addresses[i], "total_size": sizes[i], "allocated_size": sizes[i],
            "active_size": sizes[i], "requested_size": sizes[i], "stream": 0, "segment_type": "large",
            "segment_pool_id": (0, 0), "is_expandable": False, "frames": stack(i),
            "blocks": [{"address": addresses[i], "size": sizes[i], "requested_size": sizes[i],
                        "state": "active_allocated", "frames": stack(i)}]} for i in range(BLOCKS)]))
        out.put(out.value("allocator_settings"))
        out.put(out.value({"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0,
                           "expandable_segments": False, "pinned_num_register_threads": 1,
                           "release_lock_on_cudamalloc": False, "pinned_use_cuda_host_register": False,
                           "roundup_power2_divisions": {"1": 0}}))
        out.put(out.value("external_annotations") + b"]u.")
        print(f"{events} events, {out.written} bytes")


if __name__ == "__main__":
    main()
