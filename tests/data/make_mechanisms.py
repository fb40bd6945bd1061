"""Writes small programs that run out of memory, one for each way in which that happens.

Usage: make_mechanisms.py DIRECTORY    (tests/data/mechanisms in this repository)

Each is built after a public report, named below, and kept to the requests that
matter. Same output every time.
"""

import json
import pathlib
import sys

MIB = 1 << 20
GIB = 1 << 30


class Program:
    def __init__(self, **header):
        self.records = []
        self.next_id = 0
        self.emit(k="h", format="memsched-flat", version=1, unit="B", devices=1, **header)

    def emit(self, **record):
        self.records.append(json.dumps(record, separators=(",", ":")))

    def alloc(self, size, tag, name=None, stream=0):
        self.next_id += 1
        record = {"k": "a", "id": self.next_id, "b": size}
        if stream:
            record["s"] = stream
        record["t"] = tag
        if name:
            record["n"] = name
        self.emit(**record)
        return self.next_id

    def free(self, *handles):
        for handle in handles:
            self.emit(k="f", id=handle)


def growing_pair():
    """pytorch#193400, #123548: each cycle leaves a fence of 2 MiB behind two large blocks.

    It fills the card with cached memory; under pressure that is given back, so that it survives.
    """
    program = Program(streams=1, total=8 * GIB,
                      conf="max_split_size_mb:128,expandable_segments:True")
    for _ in range(101):
        large = program.alloc(91 * MIB, "activation", "A")
        half = program.alloc(91 * MIB // 2, "activation", "B")
        program.alloc(2 * MIB, "state", "fence")
        program.free(large, half)
    return program


def stranded_weights():
    """vllm#41268: 530 MiB blocks are cached, weights of 270 MiB are put into them."""
    program = Program(streams=1, total=4 * GIB)
    for layer in range(8):
        shard = program.alloc(530 * MIB, "staging", "shard")
        program.free(shard)
        program.alloc(270 * MIB, "parameter", f"layer{layer}")
    return program


def split_giant():
    """pytorch#35901: a block of 11,643,387,904 bytes is freed, small ones are put into its segment."""
    program = Program(streams=1, total=16 * GIB)
    giant = program.alloc(11643387904, "workspace", "first")
    program.free(giant)
    for layer in range(6):
        program.alloc(2 * MIB, "state", f"small{layer}")
    program.free(program.alloc(11643387904, "workspace", "second"))
    return program


def stray_stream():
    """Megatron-LM#6885: what is initialised on another stream keeps its segments there."""
    program = Program(streams=2, total=10 * GIB)
    for layer in range(4):
        init = program.alloc(1536 * MIB, "initialisation", f"layer{layer}", stream=1)
        program.free(init)
        program.alloc(800 * MIB, "parameter", f"layer{layer}", stream=1)
    for layer in range(8):
        program.alloc(700 * MIB, "activation", f"layer{layer}")
    return program


def pending_free():
    """pytorch#189504: the fitting block waits for another stream, and comes back too late."""
    program = Program(streams=2, total=16 * GIB, completion="explicit")
    program.free(program.alloc(12 * GIB, "workspace", "warm up"))
    gathered = program.alloc(11 * GIB, "gather", "bucket")
    program.alloc(512 * MIB, "parameter", "weights")
    program.emit(k="u", id=gathered, s=1)
    program.free(gathered)
    program.free(program.alloc(11 * GIB, "gather", "next bucket"))
    return program


def leak():
    """A training loop that keeps the loss of every step, with what hangs on it."""
    program = Program(streams=1, total=6 * GIB)
    for layer in range(4):
        program.alloc(256 * MIB, "parameter", f"layer{layer}")
    for _ in range(40):
        kept = [program.alloc(200 * MIB + 40 * MIB * layer, "activation", f"layer{layer}")
                for layer in range(4)]
        program.alloc(96 * MIB, "history", "losses.append(loss)")
        for activation in reversed(kept):
            gradient = program.alloc(256 * MIB, "gradient", "backward")
            program.free(activation, gradient)
    return program


def shortage():
    """One forward pass that is too deep for the card: layer after layer keeps its activations."""
    program = Program(streams=1, total=4 * GIB)
    for layer in range(24):
        program.alloc(160 * MIB, "activation", "mlp")
        scratch = program.alloc(64 * MIB, "scratch", "mlp")
        program.alloc(96 * MIB, "activation", "attention")
        program.free(scratch)
    return program


PROGRAMS = (growing_pair, stranded_weights, split_giant, stray_stream, pending_free, leak, shortage)


def main(directory):
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    for make in PROGRAMS:
        text = "\n".join(make().records) + "\n"
        (directory / f"{make.__name__}.jsonl").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    main(sys.argv[1])
