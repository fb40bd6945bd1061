#!/bin/bash
# How fast memreplay is, as ratios on this machine:
#   * `memreplay inspect SNAPSHOT` against CPython's pickle.load (gc off) of the
#     same file, and its peak memory against the file's size;
#   * replay of OP_LOG (lines "id size" / "id -size") against a plain best-fit
#     model; without OP_LOG a built-in synthetic program.
#
# usage: tests/bench.sh [SNAPSHOT.pickle [OP_LOG]]
# Best of several runs; on a busy machine only the ratios mean anything.
set -euo pipefail
if [[ "${1:-}" == -h || "${1:-}" == --help || $# -gt 2 ]]; then
  sed -n '2,10s/^# \{0,1\}//p' "$0"
  exit 2
fi
for file in "$@"; do
  [[ -r "$file" ]] || { echo "$0: cannot read $file" >&2; exit 2; }
done
snapshot=${1:+$(realpath "$1")}
log=${2:+$(realpath "$2")}
cd "$(dirname "$0")/.."
bazel build --config=release //cli:memreplay //tests/bench:replay_benchmark >/dev/null 2>&1 ||
  { echo "$0: the build failed: bazel build --config=release //cli:memreplay //tests/bench:replay_benchmark" >&2; exit 2; }
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
cp bazel-bin/cli/memreplay bazel-bin/tests/bench/replay_benchmark "$bin"

if [[ -n "$snapshot" ]]; then
  python3 - "$bin/memreplay" "$snapshot" <<'PYTHON'
import gc, os, pickle, resource, subprocess, sys, time

tool, path = sys.argv[1:]
size = os.path.getsize(path)

def best(run, times=3):
    return min(run() for _ in range(times))

def inspect():
    # CPU time of the child: user and system, reading the input included.
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    if subprocess.run([tool, "inspect", path], stdout=subprocess.DEVNULL).returncode not in (0, 1):
        sys.exit(f"memreplay inspect cannot read {path}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

def load():
    gc.disable()
    start = time.process_time()
    with open(path, "rb") as file:
        value = pickle.load(file)
    taken = time.process_time() - start
    del value
    return taken

def anonymous_peak():
    """Highest anonymous resident memory seen; pages of the mapped input are not counted."""
    process = subprocess.Popen([tool, "inspect", path], stdout=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status") as status:
                for line in status:
                    if line.startswith("RssAnon:"):
                        peak = max(peak, int(line.split()[1]) * 1024)
        except OSError:
            pass
        time.sleep(0.0005)
    return peak

read, python, peak = best(inspect), best(load), max(anonymous_peak() for _ in range(3))
print(f"{os.path.basename(path)}: {size / 2**20:.1f} MiB")
print(f"inspect {read:.3f} s, CPython pickle.load {python:.3f} s, ratio {read / python:.2f} (CPU time, best of 3)")
print(f"inspect peak memory {peak / 2**20:.1f} MiB, file {size / 2**20:.1f} MiB, ratio {peak / size:.2f} "
      "(anonymous pages, sampled)")
PYTHON
fi
${log:+env MEMREPLAY_OP_LOG="$log"} "$bin/replay_benchmark" --benchmark_repetitions=3 \
  --benchmark_filter='BM_Replay$|BM_PlainBestFit' 2>/dev/null | tail -n 1
