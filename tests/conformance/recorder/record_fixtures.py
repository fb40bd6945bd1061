#!/usr/bin/python3
"""Records real PyTorch memory snapshots without a GPU: an installed CUDA build of torch on the fake CUDA runtime.

  record_fixtures.py --python PYTHON --out tests/data/snapshots [--only NAME...]

third_party/python/environment.py prints PYTHON for torch-2.15.0 or another release. torch.empty and del launch no
kernel, so all that the allocator does is real. torch.cuda.memory._snapshot and pickle write the snapshots, or torch's
C++ writer does. Next to each NAME.pickle lies NAME.stats.json, torch.cuda.memory_stats() taken right after it.

Frames would name files of the machine they were recorded on. The Python writer's are cut down before pickling
("torch/..." and this script's name); the scenario for the C++ writer keeps only Python frames of this script, which is
compiled under its bare name.
"""

import argparse
import ctypes
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402

M = 1 << 20


# ------------------------------------------------------------------------------------------- inside the environment

def device_control():
    return ctypes.CDLL("libmemreplay_card.so")


def tensor(torch, size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def train(torch, steps=3, layers=4):
    """Runs a few steps of something like training; returns what is still alive."""
    weights = [tensor(torch, 3 * M + 512 * i) for i in range(layers)]
    state = []
    for _ in range(steps):
        activations = []
        for layer in range(layers):
            work = tensor(torch, 700 * 1024)
            activations.append(forward(torch, layer))
            del work
        gradients = []
        while activations:
            gradients.append(backward(torch, activations.pop()))
        if not state:
            state = [tensor(torch, 3 * M) for _ in weights]
        del gradients
    return weights, state


def forward(torch, layer):
    return [tensor(torch, (5 + layer) * M), tensor(torch, 4096 * (layer + 1))]


def backward(torch, activation):
    return tensor(torch, activation[0].numel() // 2)


def record(torch, **options):
    torch.cuda.memory._record_memory_history(**({"context": "all", "stacks": "python"} | options))


def scenario_training(torch):
    record(torch)
    return train(torch)


def scenario_streams(torch):
    device = device_control()
    device.memreplay_card_explicit(1)
    record(torch)
    side, third = torch.cuda.Stream(), torch.cuda.Stream()
    kept = []
    for i in range(6):
        a = tensor(torch, (2 + i) * M)
        a.record_stream(side)
        if i % 2:
            a.record_stream(third)
        del a  # the streams are busy: it waits
        with torch.cuda.stream(side):
            kept.append(tensor(torch, 300 * 1024 + i))
        if i == 3:
            device.memreplay_card_complete(ctypes.c_uint64(side.cuda_stream))
        kept.append(tensor(torch, M // 2))
    return kept


def scenario_pools(torch):
    record(torch)
    pool = torch.cuda.MemPool()
    outside = tensor(torch, 4 * M)
    with torch.cuda.use_mem_pool(pool):
        inside = [tensor(torch, 3 * M), tensor(torch, 100)]
        gone = tensor(torch, 12 * M)
        del gone
    after = tensor(torch, 2 * M)
    return pool, outside, inside, after


def scenario_expandable(torch):
    record(torch)
    kept = [tensor(torch, 30 * M) for _ in range(4)]
    small = [tensor(torch, 1000 * i + 1) for i in range(5)]
    del kept[1]
    torch.cuda.empty_cache()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        other = tensor(torch, 25 * M)
    return kept, small, other, tensor(torch, 7 * M)


def out_of_memory(torch, size):
    try:
        return tensor(torch, size)
    except torch.OutOfMemoryError as error:
        print(str(error).splitlines()[0][:160])


def scenario_oom(torch):
    record(torch)
    kept = [tensor(torch, 30 * M), tensor(torch, 20 * M), tensor(torch, 1)]
    del kept[0]
    kept.append(tensor(torch, 28 * M))
    out_of_memory(torch, 60 * M)
    return kept


def scenario_expandable_oom(torch):
    record(torch)
    a, b = tensor(torch, 50 * M), tensor(torch, 30 * M)
    del a
    out_of_memory(torch, 70 * M)
    return b, tensor(torch, 3 * M)


def scenario_empty_cache(torch):
    record(torch)
    a, b, c = tensor(torch, 12 * M), tensor(torch, 512), tensor(torch, 40 * M)
    del a, c
    torch.cuda.empty_cache()
    d = tensor(torch, 12 * M)
    return b, d


def scenario_warm(torch):
    """Recording starts in mid-flight: the trace frees blocks it never saw allocated."""
    before = [tensor(torch, (i + 1) * M) for i in range(8)]
    small = [tensor(torch, 3000 * (i + 1)) for i in range(8)]
    del before[2]
    record(torch)
    del before[4], small[3]
    return before, small, tensor(torch, 2 * M), tensor(torch, 9 * M)


def scenario_ring(torch):
    """Makes more events than the ring holds."""
    record(torch, max_entries=100)
    return train(torch, steps=6)


def scenario_settings(torch):
    record(torch)
    kept = [tensor(torch, 60 * M), tensor(torch, 5 * M + 1), tensor(torch, 2561)]
    del kept[0]
    kept.append(tensor(torch, 30 * M))
    torch.cuda.memory._set_allocator_settings("garbage_collection_threshold:0.5")
    kept.append(tensor(torch, 5 * M + 1))
    return kept


def scenario_state_only(torch):
    record(torch, enabled="state")
    return train(torch, steps=1)


def scenario_no_history(torch):
    return train(torch, steps=1)


def scenario_fraction(torch):
    torch.cuda.set_per_process_memory_fraction(0.5)
    record(torch, context=None)
    kept = [tensor(torch, 20 * M), tensor(torch, 10 * M)]
    out_of_memory(torch, 40 * M)
    return kept


def scenario_cpp_writer(torch):
    record(torch)
    return train(torch, steps=2, layers=2), tensor(torch, 511284)


def scenario_cpp_writer_plain(torch):
    record(torch, context=None)
    return train(torch, steps=2, layers=2)


# name -> (scenario, PYTORCH_CUDA_ALLOC_CONF, device bytes, pickle protocol or "c++", oldest release)
SCENARIOS = {
    "training": (scenario_training, "", 8 << 30, 4, "2.1"),
    "training_protocol5": (scenario_training, "", 8 << 30, 5, "2.1"),
    "streams": (scenario_streams, "", 8 << 30, 4, "2.1"),
    "pools": (scenario_pools, "", 8 << 30, 4, "2.5"),
    "expandable": (scenario_expandable, "expandable_segments:True", 1 << 30, 4, "2.1"),
    "oom": (scenario_oom, "", 80 * M, 4, "2.5"),
    "expandable_oom": (scenario_expandable_oom, "expandable_segments:True", 100 * M, 4, "2.5"),
    "empty_cache": (scenario_empty_cache, "", 8 << 30, 4, "2.1"),
    "warm": (scenario_warm, "", 8 << 30, 4, "2.1"),
    "ring": (scenario_ring, "", 8 << 30, 4, "2.1"),
    "settings": (scenario_settings, "max_split_size_mb:40,roundup_power2_divisions:4", 8 << 30, 4, "2.1"),
    "state_only": (scenario_state_only, "", 8 << 30, 4, "2.1"),
    "no_history": (scenario_no_history, "", 8 << 30, 4, "2.1"),
    "fraction": (scenario_fraction, "", 100 * M, 4, "2.5"),
    "cpp_writer": (scenario_cpp_writer, "", 8 << 30, "c++", "2.1"),
    "cpp_writer_plain": (scenario_cpp_writer_plain, "", 8 << 30, "c++", "2.1"),
}


# The code's file name is what frames show; Python would make a script's absolute.
START = ("import sys; sys.argv.pop(0); exec(compile(open(sys.argv[0]).read(), sys.argv[0], 'exec'), "
         "{'__name__': '__main__', '__file__': sys.argv[0]})")


def neutral(filename):
    for mark in ("site-packages/", "lib/python"):
        if mark in filename:
            return filename.rsplit(mark, 1)[1]
    return os.path.basename(filename) if filename.startswith("/") else filename


def cut_names(snapshot):
    """Leaves no file name of this machine in the frames."""
    seen = set()
    stack = [snapshot]
    while stack:  # every frame once; the shared objects stay shared
        item = stack.pop()
        if id(item) in seen or not isinstance(item, (dict, list)):
            continue
        seen.add(id(item))
        if isinstance(item, dict) and "filename" in item:
            item["filename"] = neutral(item["filename"])
        stack.extend(item.values() if isinstance(item, dict) else item)


def child(name, out):
    warnings.simplefilter("ignore")
    scenario, _, total, protocol, _ = SCENARIOS[name]
    device_control().memreplay_card_simulate(ctypes.c_uint64(total))
    import torch

    kept = scenario(torch)
    if protocol == "c++":
        library = ctypes.CDLL(os.environ["CPP_WRITER"])
        library.snapshot_pickled.restype = ctypes.POINTER(ctypes.c_char)
        size = ctypes.c_size_t()
        pointer = library.snapshot_pickled(ctypes.byref(size))
        data = ctypes.string_at(pointer, size.value)
    else:
        snapshot = torch.cuda.memory._snapshot()
        cut_names(snapshot)
        data = pickle.dumps(snapshot, protocol=protocol)
    pathlib.Path(out, name + ".pickle").write_bytes(data)
    stats = torch.cuda.memory_stats()
    pathlib.Path(out, name + ".stats.json").write_text(json.dumps(stats, indent=0) + "\n")
    del kept
    sys.stdout.flush()
    os._exit(0)  # nothing of the simulated GPU needs an orderly end


# -------------------------------------------------------------------------------------------------------- outside

def build(python, folder):
    """Prepares the card's libraries for this environment's torch; returns (files to preload, the C++ writer's shim,
    version)."""
    site = subprocess.run(
        [python, "-c", "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"],
        text=True, capture_output=True, check=True).stdout.strip()
    lib = pathlib.Path(site) / "lib"
    version = subprocess.run([python, "-c", "import importlib.metadata as m; print(m.version('torch'))"], text=True,
                             capture_output=True, check=True).stdout.strip().split("+")[0]
    symbols = subprocess.run(["nm", "-DC", lib / "libc10.so"], text=True, capture_output=True, check=True).stdout
    cxx11 = any("c10::" in line and "__cxx11" in line for line in symbols.splitlines())
    writer = folder / "cpp_writer.so"
    harness.make("g++", "-O1", "-std=c++20", "-w", "-shared", "-fPIC", f"-D_GLIBCXX_USE_CXX11_ABI={int(cxx11)}",
                 HERE / "cpp_writer.cc", lib / "libtorch_cuda.so", "-Wl,--allow-shlib-undefined", "-o", writer)
    return harness.prepare(site, folder), writer, version


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(*options.child)
    with tempfile.TemporaryDirectory() as folder:
        preload, writer, version = build(options.python, pathlib.Path(folder))
        out = options.out.resolve() / ("torch-" + ".".join(version.split(".")[:2]))
        out.mkdir(parents=True, exist_ok=True)
        for name, (_, conf, _, _, since) in SCENARIOS.items():
            if options.only and name not in options.only:
                continue
            if [int(p) for p in version.split(".")[:2]] < [int(p) for p in since.split(".")]:
                continue
            environment = os.environ | {"LD_PRELOAD": ":".join(map(str, preload)), "LD_LIBRARY_PATH": folder,
                                        "CPP_WRITER": str(writer)}
            environment.pop("PYTORCH_CUDA_ALLOC_CONF", None)
            if conf:
                environment["PYTORCH_CUDA_ALLOC_CONF"] = conf
            done = subprocess.run([options.python, "-c", START, "record_fixtures.py", "--child", name, str(out)],
                                  cwd=HERE, env=environment, text=True, capture_output=True)
            size = (out / (name + ".pickle")).stat().st_size if done.returncode == 0 else 0
            print(f"{name}: {size} bytes" if size
                  else f"{name}: FAILED {done.returncode}\n{done.stdout[-500:]}{done.stderr[-1500:]}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
