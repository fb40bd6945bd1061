"""Writes small programs that waste memory without running out of it, sized as reported.

Usage: make_sweep_cases.py DIRECTORY    (tests/data/sweep in this repository)

growth        max_split_size_mb:128 with expandable_segments:True grows without
              bound, each of them alone does not. Each cycle allocates 91 MiB and
              45.5 MiB, then 2 MiB that stay, and frees the two large ones
              (pytorch#193400, pytorch#123548).
stranding     530 MiB blocks are cached, then 270 MiB that stay are put into them:
              260 MiB are stranded each; max_split_size_mb:20 avoids it (vllm#41268).
stray_stream  a model is loaded on one stream and, freed, again on another: what is
              cached for the first never serves the second (Megatron-LM#6885).
"""

import json
import pathlib
import sys

MIB = 1 << 20


class Program:
    def __init__(self, gib, streams=1):
        self.records = []
        self.next_id = 0
        self.emit(k="h", format="memsched-flat", version=1, unit="B", streams=streams, devices=1,
                  total=gib << 30)

    def emit(self, **record):
        self.records.append(json.dumps(record, separators=(",", ":")))

    def alloc(self, size, tag, stream=0):
        self.next_id += 1
        self.emit(k="a", id=self.next_id, b=int(size), s=stream, t=tag)
        return self.next_id

    def free(self, handle):
        self.emit(k="f", id=handle)


def growth():
    program = Program(gib=16)
    program.alloc(64 * MIB, "parameter")
    for cycle in range(101):
        program.emit(k="p", n=f"cycle{cycle}")
        first = program.alloc(91 * MIB, "activation")
        second = program.alloc(45.5 * MIB, "activation")
        program.alloc(2 * MIB, "kept")
        program.free(first)
        program.free(second)
    return program


def stranding():
    program = Program(gib=24)
    weights = 20
    for layer in range(weights):
        program.emit(k="p", n=f"layer{layer}")
        loaded = program.alloc(530 * MIB, "loaded")
        program.free(loaded)
        program.alloc(270 * MIB, "weight")
    return program


def stray_stream():
    program = Program(gib=80, streams=2)
    program.emit(k="p", n="load")
    stray = [program.alloc(512 * MIB, "parameter", stream=1) for _ in range(41)]
    program.emit(k="p", n="train")
    for handle in stray:
        program.free(handle)
    for _ in range(41):
        program.alloc(512 * MIB, "parameter")
    for _ in range(20):
        activation = program.alloc(96 * MIB, "activation")
        gradient = program.alloc(160 * MIB, "gradient")
        program.free(activation)
        program.free(gradient)
    return program


def main(directory):
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    for make in (growth, stranding, stray_stream):
        text = "\n".join(make().records) + "\n"
        (directory / f"{make.__name__}.jsonl").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    main(sys.argv[1])
