"""Compares peaks that others published of their training runs with those of the same source on a simulated GPU:
published.py MEMREPLAY PYTHON MODDED_NANOGPT CACHE RECORD...
published.py MODDED_NANOGPT    only what was published: by how much runs of one source differ among each other

MODDED_NANOGPT is a clone of github.com/KellerJordan/modded-nanogpt, whose logs hold the source, the release of
PyTorch and the peaks of runs on 8 H100. PYTHON is an interpreter with torch and numpy. A RECORD is a folder below
records/, such as track_1_short/2025-05-25_EvenFasterReduce. CACHE keeps what Inductor and Triton compiled and the
token files, which are random here. For each record it prints a row of the table in docs/record_evidence.md: what the
last line of the run reports, published and here, in MiB. A record often has the logs of many runs of the same source:
the row has the range of their figures. FLAGS in the environment are further flags of `memreplay record`.

What is changed of the source is below in EDITS; which of them applied is reported on stderr.
"""
import array
import os
import random
import re
import resource
import shlex
import statistics
import subprocess
import sys
import time

ITERATIONS = 12
TOKENS = {"train_000001": 20_000_000, "train_000002": 20_000_000, "val_000000": 12_000_000}
PEAK = r"^peak memory (?:allocated|consumption): (\d+) MiB(?: reserved: (\d+) MiB)?"
NO_SEARCH = ("import torch._inductor.runtime.triton_heuristics as _heuristics; "
             "_heuristics.CachingAutotuner.coordinate_descent_tuning = "
             "lambda self, launcher, *args, **kwargs: launcher\n")

# What is changed: (name, where, by what). None of them changes a tensor.
EDITS = [
    ("iterations", r"(num_iterations\s*(?::\s*int\s*)?=\s*)\d+", rf"\g<1>{ITERATIONS}"),
    ("validation", r"(val_tokens\s*(?::\s*int\s*)?=\s*)\d+", r"\g<1>2097152"),
    # Inductor's search for the fastest variant of each kernel compiles for half an hour, also on a real machine.
    ("search", r"^([ \t]*)(?=[^#\s]*coordinate_descent_tuning\s*=\s*(?:\(\s*)?True)",
     lambda found: found[1] + NO_SEARCH + found[1]),
    # The records' own later fix: releases check what the nightly build of January 2025 did not.
    ("strides", r"(x_f8\.to\(torch\.bfloat16\), w_f8)(\.to\(torch\.float32\))", r"\1.T.contiguous().T\2"),
    # Python before 3.12.
    ("quotes", r'(f"[^"\n]*\{metadata_fn\(\)\.get\()"filename", "Unknown"', r"\1'filename', 'Unknown'"),
]


def git(repository, *words, check=True):
    return subprocess.run(["git", "-C", repository, *words], capture_output=True,
                          check=check).stdout.decode(errors="replace")


def source_of(log):
    return max(re.split(r"\n=====+\n?", log)[:2], key=len)


def sources_of(repository, record):
    """Returns the logs of the record that have a peak, grouped by their source: lists of texts, in order of names."""
    names = git(repository, "ls-tree", "-r", "-z", "--name-only", "HEAD", f"records/{record}/").split("\0")
    sources = {}
    for name in names:
        # Empty for a file that the clone left out (--filter=blob:limit).
        text = git(repository, "show", f"HEAD:{name}", check=False) if name.endswith((".txt", ".log")) else ""
        if re.search(PEAK, text, re.M):
            sources.setdefault(source_of(text), []).append(text)
    return list(sources.values())


def peaks_of(logs):
    return [re.findall(PEAK, log, re.M)[-1] for log in logs]


def only_published(repository):
    spreads = []
    for track in ("track_1_short", "track_2_medium"):
        folders = git(repository, "ls-tree", "-d", "-z", "--name-only", "HEAD", f"records/{track}/").split("\0")[:-1]
        for record in [folder.removeprefix("records/") for folder in folders]:
            for logs in sources_of(repository, record):
                peaks = peaks_of(logs)
                print(f"| {record} | {len(logs)} | {figures(peaks, 0)} | {figures(peaks, 1)} |")
                if len(logs) >= 5 and all(peak[1] for peak in peaks):
                    columns = zip(*([*map(int, peak)] for peak in peaks))
                    spreads.append([max(column) - min(column) for column in columns])
    for column, what in enumerate(("allocated", "reserved")):
        differing = [spread[column] for spread in spreads]
        print(f"{what}: of {len(spreads)} sources with five runs or more, {sum(map(bool, differing))} differ among "
              f"their runs; median {statistics.median_low(differing):,} MiB")


def figures(peaks, column):
    """Returns the range of a column of the peaks, as the table has it."""
    numbers = sorted(int(peak[column]) for peak in peaks if peak[column])
    return " to ".join(f"{number:,}" for number in sorted({*numbers[:1], *numbers[-1:]})) or "-"


def changed(source, log):
    applied = []
    for name, where, by in EDITS:
        source, count = re.subn(where, by, source, count=1, flags=re.M)
        applied += [name] * count
    # A step takes as long as it did there. The tensors of a collective that nobody waits for by Work.wait() are held
    # until a thread of NCCL's process group looks, which it does every 100 ms of real time.
    pace = float(re.findall(r"step_avg:([\d.]+)ms", log)[-1]) / 1000
    source, count = re.subn(r"^( +)model\.zero_grad\(set_to_none=True\)$", rf"\g<0>\n\g<1>time.sleep({pace})", source,
                            flags=re.M)
    return source, applied + ["pace"] * (count > 0)


def write_tokens(folder):
    os.makedirs(folder, exist_ok=True)
    generator = random.Random(0)
    for name, count in TOKENS.items():
        path = os.path.join(folder, f"fineweb_{name}.bin")
        if os.path.exists(path):
            continue
        tokens = array.array("H", generator.randbytes(2 * count))
        for index, token in enumerate(tokens):
            if token > 50255:
                tokens[index] = token - 50256
        tokens[::400] = array.array("H", [50256]) * len(tokens[::400])  # a document ends
        header = array.array("i", [20240520, 1, count]) + array.array("i", [0]) * 253
        with open(path + ".new", "wb") as file:
            header.tofile(file)
            tokens.tofile(file)
        os.replace(path + ".new", path)


def run(memreplay, python, repository, cache, record):
    sources = sources_of(repository, record)
    if not sources:
        sys.exit(f"published.py: no log of records/{record} has a line 'peak memory ...'")
    logs = sources[0]
    log = logs[0]
    source, applied = changed(source_of(log), log)
    folder = os.path.join(cache, record)
    os.makedirs(os.path.join(folder, "logs", "final"), exist_ok=True)  # some write into the second
    with open(os.path.join(folder, "train_gpt.py"), "w", encoding="utf-8") as file:
        file.write(source)
    write_tokens(os.path.join(cache, "data", "fineweb10B"))
    if not os.path.lexists(os.path.join(folder, "data")):
        os.symlink(os.path.join(cache, "data"), os.path.join(folder, "data"))
    release = subprocess.run([python, "-c", "import importlib.metadata as it; print(it.version('torch'))"],
                             capture_output=True, text=True, check=True).stdout.strip()
    compiled = os.path.join(cache, release)
    tools = os.path.join(cache, "bin")  # most records run nvidia-smi, for their log
    os.makedirs(tools, exist_ok=True)
    with open(os.path.join(tools, "nvidia-smi"), "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n")
    os.chmod(os.path.join(tools, "nvidia-smi"), 0o755)
    command = [memreplay, "record", "--card", "h100-sxm", "--ranks", "8", "--fast-init", "--python", python,
               "--out", os.path.join(folder, "snapshot.pickle"), *shlex.split(os.environ.get("FLAGS", "")), "--",
               "train_gpt.py"]
    begin = time.monotonic()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env={
        **os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "DATA_PATH": folder,
        "TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": os.path.join(compiled, "inductor"),
        "TRITON_CACHE_DIR": os.path.join(compiled, "triton")})
    seconds, usage = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    said = done.stdout + done.stderr
    with open(os.path.join(folder, "output"), "w", encoding="utf-8") as file:
        file.write(said)
    published, here = peaks_of(logs), re.findall(PEAK, said, re.M)[-1:]
    nightly = re.findall(r"[Pp]y[Tt]orch (?:version )?(\d[\w.]*)", log)
    both = [f"{figures(published, column)} and {figures(here, column)}" for column in range(2)]
    print(f"| {record} | {nightly[0] if nightly else '?'}, {release} | {len(logs)} | {' | '.join(both)} |", flush=True)
    print(f"{record}: changed {', '.join(applied)}; exit status {done.returncode}, {seconds:.0f} s, "
          f"{usage.ru_utime + usage.ru_stime:.0f} s of CPU so far, largest process so far {usage.ru_maxrss >> 10} MiB, "
          f"see {folder}/output", file=sys.stderr, flush=True)


def main():
    if len(sys.argv) == 2:
        only_published(sys.argv[1])
        return
    memreplay, python, repository, cache, *records = sys.argv[1:]
    for record in records:
        run(os.path.abspath(memreplay), python, repository, os.path.abspath(cache), record)


if __name__ == "__main__":
    sys.exit(main())
