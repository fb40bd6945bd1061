#!/usr/bin/env python3
"""Records on a GPU what PyTorch's allocator does, replays it on the same GPU, and prints both next to the simulation.

  compare.py --memreplay MEMREPLAY --out FOLDER [--only NAME...] [--budget SECONDS]
             [--replay-only RECORDINGS | --fake-runtime PYTHON]

It needs the binary, PyTorch (in the Python that runs this) and NVIDIA's driver, and nothing else. FOLDER gets
table.txt, results.json and results.tar.gz, which holds every recording, report and cost table. With --replay-only it
records nothing and takes snapshots, and what lies next to them, from RECORDINGS. With --fake-runtime, PYTHON's PyTorch,
a CUDA build, runs those workloads that compute nothing on the fake CUDA runtime of tests/conformance. The exit status
is 1 if some replay does not agree.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20
LARGEST_ARCHIVE = 15 * MIB
COLUMNS = ("workload", "torch", "recorded", "predicted", "replayed", "differ by", "decisions", "used: seen", "replayed",
           "overhead", "verdict")


def run(command, timeout, **options):
    try:
        return subprocess.run([str(part) for part in command], text=True, capture_output=True, timeout=timeout,
                              **options)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"no answer within {timeout} s")


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1][:200] if lines else "no message"


# ------------------------------------------------------------------------------------------------ recording


class Recorder:
    """Records workloads with the PyTorch of `python`; `environment` is added to its own."""

    def __init__(self, python, release, environment=None):
        self.python, self.release, self.environment = python, release, environment or {}

    def record(self, name, workload, folder):
        """Returns None if NAME.pickle is there now; else why not."""
        if version(self.release) < version(workload.oldest):
            return f"needs PyTorch {workload.oldest}"
        environment = os.environ | self.environment
        for variable in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
            environment.pop(variable, None)
        if workload.conf:
            environment["PYTORCH_CUDA_ALLOC_CONF"] = workload.conf
        done = run([self.python, HERE / "record.py", name, folder], 180, env=environment, cwd=HERE)
        return None if done.returncode == 0 else f"not recorded: {last_line(done.stderr)}"


def recorder_on_gpu():
    import torch

    return Recorder(sys.executable, torch.__version__) if torch.cuda.is_available() else None


def recorder_on_fake_runtime(python, folder):
    import workloads

    folder.mkdir()
    preload, _, release = workloads.shared.build(python, folder)
    return Recorder(python, release, {"LD_PRELOAD": ":".join(map(str, preload)), "LD_LIBRARY_PATH": str(folder)})


def version(text):
    return tuple(int(part) for part in text.split(".")[:2])


# ------------------------------------------------------------------------------------------------- replaying


def flags_for(info):
    """Returns how the recording's process was set up, as flags; a snapshot alone does not say that."""
    flags = []
    if "torch" in info:
        flags += ["--torch", ".".join(info["torch"].split(".")[:2])]
    if info.get("conf"):
        flags += ["--conf", info["conf"]]
    if info.get("fraction") is not None:
        flags += ["--fraction", repr(info["fraction"])]
    if info.get("capacity"):
        flags += ["--capacity", str(info["capacity"])]
    return flags


def replay(memreplay, pickle, info, folder, name, extra=()):
    """Returns (exit status, the device's report or None, message)."""
    done = run([memreplay, "gpu", pickle, "--json", *flags_for(info), *extra], 300)
    (folder / f"{name}.json").write_text(done.stdout)
    if not done.stdout:
        return done.returncode, None, last_line(done.stderr)
    return done.returncode, json.loads(done.stdout)["devices"][0], ""


def summarize(name, info, stats, status, device, message):
    """Returns one row of the table, from one replay."""
    row = {"workload": name, "exit": status, "message": message}
    if device is None:
        return row
    gpu = device["gpu"]
    measured, predicted = gpu["measured"], gpu["predicted"]
    row["predicted"] = int(predicted["peak_reserved_bytes"])
    row["replayed"] = int(measured["peak_reserved_bytes"])
    recorded = int(device.get("recorded", {}).get("peak_reserved_bytes", 0))
    row["recorded"] = recorded
    # Where recording began before the first allocation, PyTorch's own count is the better witness.
    row["torch"] = stats.get("reserved_bytes.all.peak") if stats and not info.get("partial") else None
    row["equal"] = int(gpu["with_addresses"]["equal"])
    row["compared"] = int(gpu["with_addresses"]["compared"])
    row["as_predicted"] = int(gpu["as_predicted"]["equal"])
    row["ooms"] = [len(predicted.get("ooms", [])), len(measured.get("ooms", []))]
    row["faults"] = [fault["sentence"] for fault in gpu.get("faults", [])]
    if "used_at_end_bytes" in info:
        row["used_recorded"] = info["used_peak_bytes"] - info["used_before_bytes"]
    row["used_replayed"] = int(measured["peak_used_bytes"])
    row["overhead"] = int(gpu["calls"]["largest_used_difference_bytes"])
    return row


def verdict(row):
    if "replayed" not in row:
        return row["message"] or "no answer"
    if row["faults"] or row["equal"] != row["compared"]:
        return "NOT CONFIRMED"
    witness = row["torch"] if row["torch"] is not None else row["recorded"]
    if row.get("same_settings", True) and witness and witness != row["replayed"]:
        return "CONFIRMED, BUT NOT AS RECORDED"
    return "confirmed"


def agrees(row):
    return verdict(row) == "confirmed"


# ------------------------------------------------------------------------------------------------- the table


def size(value):
    if value is None:
        return "-"
    return f"{value / MIB:,.1f} MiB" if value % MIB else f"{value // MIB:,} MiB"


def cells(row):
    if "replayed" not in row:
        return [row["workload"], *[""] * 9, verdict(row)]
    witness = row["torch"] if row["torch"] is not None else row["recorded"]
    return [row["workload"], size(row["torch"]), size(row["recorded"]), size(row["predicted"]), size(row["replayed"]),
            f"{row['replayed'] - witness:,} B", f"{row['equal']:,} of {row['compared']:,}",
            size(row.get("used_recorded")), size(row["used_replayed"]), f"{row['overhead']:,} B", verdict(row)]


def table(rows):
    """Returns a table of peak reserved as PyTorch counted it, and as recording, simulation and replay have it."""
    lines = [list(COLUMNS), *(cells(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]
    text = ""
    for line in lines:
        shown = [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:-1], widths[1:-1])),
                 line[-1]]
        text += "  ".join(shown).rstrip() + "\n"
    return text


def costs_table(costs):
    text = f"{'call':24} {'size':>12} {'count':>8} {'median':>12} {'least':>12} {'most':>12}\n"
    for time_row in costs["times"]:
        values = [int(time_row[key]) / 1000 for key in ("median_ns", "min_ns", "max_ns")]
        bytes_ = int(time_row["size"])
        text += f"{time_row['call']:24} {size(bytes_) if bytes_ else '':>12} {int(time_row['count']):8,}"
        text += "".join(f" {value:9.1f} us" for value in values) + "\n"
    return text


def measure_costs(memreplay, folder):
    """Returns text for the end of the table."""
    path = folder / "costs.json"
    done = run([memreplay, "gpu", "--costs-out", path], 300)
    if done.returncode != 0:
        return f"\ncosts: {last_line(done.stderr)}\n"
    return "\nwhat the driver's calls cost\n" + costs_table(json.loads(path.read_text()))


# ------------------------------------------------------------------------------------------------- the whole


def pack(folder, archive, limit=LARGEST_ARCHIVE):
    """Writes results.tar.gz within `limit`; returns the names of what had to be left out, the largest first."""
    files = sorted((path for path in folder.iterdir() if path.is_file()), key=lambda path: path.stat().st_size)
    left_out = []
    while True:
        with tarfile.open(archive, "w:gz") as tar:
            for path in files:
                tar.add(path, arcname=f"results/{path.name}")
        if archive.stat().st_size <= limit or not files:
            return left_out
        left_out.append(files.pop().name)


def load(path):
    return json.loads(path.read_text()) if path.exists() else {}


def rows_for(options, name, pickle, info, stats, work):
    """Yields the rows of one recording: PyTorch's allocator, verified, and for one of them the other backends."""
    yield summarize(name, info, stats, *replay(options.memreplay, pickle, info, work, name, ["--repeat", "3"]))
    yield summarize(f"  {name}, verified", info, stats,
                    *replay(options.memreplay, pickle, info, work, f"{name}.verified", ["--verify"]))
    if name in ("eager", "training"):
        for backend in ("direct", "async"):
            row = summarize(f"  {name}, {backend}", info, None,
                            *replay(options.memreplay, pickle, {"torch": info["torch"]} if "torch" in info else {},
                                    work, f"{name}.{backend}", ["--backend", backend, "--start", "fresh"]))
            row["same_settings"] = False
            yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memreplay", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only", nargs="*", help="these workloads")
    parser.add_argument("--budget", type=float, default=1500, help="seconds after which nothing new is begun")
    parser.add_argument("--fake-runtime", metavar="PYTHON")
    parser.add_argument("--replay-only", type=pathlib.Path, metavar="RECORDINGS")
    options = parser.parse_args()
    options.memreplay = options.memreplay.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        return compare(options, pathlib.Path(work))


def compare(options, work):
    began = time.monotonic()
    rows = []
    if options.replay_only:
        names = sorted(path.stem for path in options.replay_only.glob("*.pickle"))
    else:
        import workloads

        names = [name for name, workload in workloads.WORKLOADS.items()
                 if not (options.fake_runtime and workload.kernels)]
        recorder = (recorder_on_fake_runtime(options.fake_runtime, work / "runtime") if options.fake_runtime
                    else recorder_on_gpu())
        if recorder is None:
            print("compare.py: PyTorch finds no GPU here")
            return 2
    for name in names:
        if options.only and name not in options.only:
            continue
        if time.monotonic() - began > options.budget:
            rows.append({"workload": name, "message": "not begun: the time was up"})
            continue
        source = options.replay_only or work
        problem = None if options.replay_only else recorder.record(name, workloads.WORKLOADS[name], work)
        if problem:
            rows.append({"workload": name, "message": problem})
        else:
            info, stats = load(source / f"{name}.info.json"), load(source / f"{name}.stats.json")
            rows.extend(rows_for(options, name, source / f"{name}.pickle", info, stats, work))
        print("  ".join(cells(rows[-1])), flush=True)

    text = table(rows) + measure_costs(options.memreplay, work)
    (options.out / "table.txt").write_text(text)
    (options.out / "results.json").write_text(json.dumps(rows, indent=1) + "\n")
    left_out = pack(work, options.out / "results.tar.gz")
    if left_out:
        text += f"\nleft out of results.tar.gz, for its size: {', '.join(left_out)}\n"
    print("\n" + text)
    replayed = [row for row in rows if "replayed" in row]
    bad = [row["workload"].strip() for row in replayed if not agrees(row)]
    print(f"{len(replayed)} replays, {len(bad)} that do not agree" + (f": {'; '.join(bad)}" if bad else ""))
    return 1 if bad or not replayed else 0


if __name__ == "__main__":
    sys.exit(main())
