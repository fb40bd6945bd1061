#!/usr/bin/env python3
"""Writes the first inputs of the fuzzers below tests/fuzz/corpus: small valid files of every format.

  tests/fuzz/make_seeds.py MEMREPLAY      the program, which converts one recording into the other formats

Existing files stay. What the fuzzers found lies next to these files under names that are digests.
"""

import base64
import json
import pathlib
import pickle
import random
import struct
import subprocess
import sys
import tempfile

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
EXAMPLES = pathlib.Path(__file__).resolve().parent.parent.parent / "examples"
BASE = 0x7F0000000000
FRAMES = [{"name": "forward", "filename": "train.py", "line": 12}, {"name": "main", "filename": "train.py", "line": 3}]


def snapshot(expandable=False, devices=1):
    def entry(action, addr, size, **more):
        return {"action": action, "addr": addr, "size": size, "stream": 0, "time_us": 1700000000000000,
                "frames": FRAMES} | more

    trace = [entry("segment_map" if expandable else "segment_alloc", BASE, 2 << 20), entry("alloc", BASE, 300),
             entry("alloc", BASE + 512, 1000), entry("free_requested", BASE + 512, 1000),
             entry("free_completed", BASE + 512, 1000),
             {"action": "oom", "device_free": 1 << 30, "size": 4 << 30, "stream": 0, "frames": []}]
    blocks = [{"address": BASE, "size": 512, "requested_size": 300, "state": "active_allocated", "frames": FRAMES},
              {"address": BASE + 512, "size": (2 << 20) - 512, "requested_size": 0, "state": "inactive", "frames": []}]
    segment = {"device": 0, "address": BASE, "total_size": 2 << 20, "allocated_size": 512, "active_size": 512,
               "requested_size": 300, "stream": 0, "segment_type": "small", "segment_pool_id": (0, 0),
               "is_expandable": expandable, "frames": FRAMES, "blocks": blocks}
    settings = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True" if expandable else "", "max_split_size": -1,
                "garbage_collection_threshold": 0.0, "expandable_segments": expandable,
                "roundup_power2_divisions": {"1": 0}}
    return {"segments": [segment | {"device": d} for d in range(devices)], "device_traces": [trace] * devices,
            "allocator_settings": settings,
            "external_annotations": [{"name": "step", "stage": "START", "device": 0, "time_us": 1}]}


def rows():
    """Entries as PyTorch writes them: a list of frames each, but a free's completion has that of the free."""
    texts = {"compile_context": "N/A", "user_metadata": ""}
    trace = []
    for number in range(30):
        where = {"addr": BASE + 512 * (number % 4), "size": 300 + number, "stream": 0}
        time = 1700000000000000 + 3 * number
        freed = FRAMES[::-1]
        for action, frames in (("alloc", list(FRAMES)), ("free_requested", freed), ("free_completed", freed)):
            trace.append({"action": action} | where | {"time_us": time} | texts | {"frames": frames})
    return {"segments": [], "device_traces": [trace]}


def page(snapshot_pickle):
    """Returns what `python -m torch.cuda._memory_viz trace_plot` writes of a snapshot."""
    snapshot_pickle += bytes(3 - len(snapshot_pickle) % 3)
    files = json.dumps([{"name": "snapshot.pickle", "base64": base64.b64encode(snapshot_pickle).decode()}])
    return ('\n<!DOCTYPE html>\n<html>\n<head>\n</head>\n<body>\n<script type="module">\n'
            'import {add_local_files} from "MemoryViz.js"\n'
            f"const local_files = {files}\n"
            "add_local_files(local_files, 'Active Memory Timeline')\n</script>\n</body>\n")


def write(target, name, content):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def main():
    memreplay = pathlib.Path(sys.argv[1]).resolve()
    readable = []
    for number, value in enumerate([snapshot(), snapshot(True), snapshot(devices=2), [snapshot()["segments"][0]]]):
        for protocol in (2, 4):
            write("pickle", f"seed{number}-{protocol}", pickle.dumps(value, protocol=protocol))
        write("snapshot_json", f"seed{number}", json.dumps(value))
    write("pickle", "seed4-4", pickle.dumps(rows(), protocol=4))
    write("pickle", "seed5-page", page(pickle.dumps(snapshot(), protocol=4)))
    readable.append(pickle.dumps(snapshot(), protocol=4))
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "source"
        source.write_bytes(readable[0])
        for target, form in (("protobuf", "protobuf"), ("flat_jsonl", "flat_jsonl")):
            out = pathlib.Path(folder) / "out"
            subprocess.run([memreplay, "convert", source, out, "--to", form], check=True, stderr=subprocess.DEVNULL)
            write(target, "seed0", out.read_bytes())
            readable.append(out.read_bytes())
    steps = [{"k": "h", "format": "memsched-flat", "version": 1, "unit": "B", "streams": 2, "total": 104857600,
              "conf": "max_split_size_mb:21", "fraction": 0.5, "completion": "explicit"},
             {"k": "a", "id": 1, "b": 31457280}, {"k": "a", "id": 2, "b": 1000, "s": 1},
             {"k": "u", "id": 1, "s": 1}, {"k": "f", "id": 1}, {"k": "done", "s": 1}, {"k": "c"},
             {"k": "conf", "v": "expandable_segments:True"},
             {"k": "bp", "p": [0, 1]}, {"k": "a", "id": 3, "b": 512}, {"k": "ep", "p": [0, 1]}, {"k": "f", "id": 2}]
    write("flat_jsonl", "seed1", "".join(json.dumps(step) + "\n" for step in steps))
    readable.append((CORPUS / "flat_jsonl" / "seed1").read_bytes())
    write("op_log", "seed0", "0 512\n1 2097152\n0 0\n2 31457280\n1 0\n")
    for name in ("patterns", "pipeline_1f1b", "random_load", "two_streams", "fsdp"):
        program = (EXAMPLES / f"{name}.txtpb").read_bytes()
        write("program", name, program)
        readable.append(program)
    for number, conf in enumerate(["expandable_segments:True", "max_split_size_mb:128,garbage_collection_threshold:0.8",
                                   "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]", "backend:cudaMallocAsync",
                                   "per_process_memory_fraction:0.5,large_segment_size_mb:32",
                                   "expandable_segments_reserve:0.25"]):
        write("settings", f"seed{number}", bytes([number * 2 + 1]) + conf.encode())
    # Of each family of forms the first.
    forms = pathlib.Path(__file__).parents[1] / "data/messages/forms.txt"
    messages = forms.read_text(encoding="utf-8").split("\n#### ")[1:]
    for name, text in {entry.split(" ")[0].split("_")[0]: entry.split("\n", 1)[1]
                       for entry in reversed(messages)}.items():
        write("oom_message", name, text)
    write("oom_message", "seed0",
          "CUDA out of memory. Tried to allocate 22.78 GiB. GPU 0 has a total capacity of 31.47 GiB of which 12.73 GiB "
          "is free. Including non-PyTorch memory, this process has 18.73 GiB memory in use. Of the allocated memory "
          "9.08 GiB is allocated by PyTorch, with 1.00 GiB allocated in private pools (e.g., CUDA Graphs), and 9.35 "
          "GiB is reserved by PyTorch but unallocated.")
    write("oom_message", "seed1",
          "CUDA out of memory. Tried to allocate 1.50 GiB (GPU 0; 15.78 GiB total capacity; 14.25 GiB already "
          "allocated; 1.00 MiB free; 14.50 GiB reserved in total by PyTorch)")
    draw = random.Random(15)
    for number in range(8):
        write("requests", f"seed{number}", bytes([number * 2, number, number, number, 0])
              + b"".join(struct.pack("<BBHB", draw.randrange(256), draw.randrange(5), draw.randrange(65536),
                                     draw.randrange(14)) for _ in range(60)))
    for number in range(40):  # a command each, on one of the recordings, with a few changes
        head = bytes([number, number % 3, number % 10, number, 40 + 5 * number, 0 if number % 2 else 32])
        write("recordings", f"seed{number}", head + bytes(draw.randrange(256) for _ in range(40)))
    for number in range(24):  # what is chosen first, and choices
        for target in ("record_folder", "fleet_lines"):
            write(target, f"seed{number}", bytes([number]) + bytes(draw.randrange(256) for _ in range(150)))
    for number, content in enumerate(readable):
        for command in range(15) if number == 0 else [number, number + 6]:
            write("commands", f"seed{number}-{command}", bytes([command]) + content)


if __name__ == "__main__":
    main()
