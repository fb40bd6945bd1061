"""Runs clang-tidy on C++ sources, two at a time, and remembers what was clean.

Usage: lint.py FILE... (headers are linted through the sources that include them)

A file is linted again when it, a header of ours that it includes (at any depth) or .clang-tidy changed. Most of the
time goes into headers, so the files of a folder that are due are one translation unit, except for those that its BUILD
file has `apart`; where that does not compile (two files use one name for different things), its halves are. The
generated headers are needed (bazel build //...).
"""

import concurrent.futures
import hashlib
import itertools
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

CUDA = pathlib.Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda", "include")
FLAGS = ["-std=c++20", "-I.", "-isystem", "bazel-bin", "-isystem", str(CUDA), "-Wall", "-Wextra",
         "-Wno-unknown-warning-option"]
CLEAN = pathlib.Path(".bazel/lint")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
OURS = r"(^|/)(trace|sim|report|cuda|cli|record|experiment|tests)/.*\.(h|cc)$"
CPU_SECONDS_PER_FILE = 180  # of CPU time: by the clock, a busy machine has taken that long over what needs eight


def closure(path, seen):
    """Returns the file and every header of ours that it includes."""
    if path in seen:
        return seen
    seen.add(path)
    for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
        header = pathlib.Path(name)
        if not header.exists():
            header = pathlib.Path("bazel-bin", name)
        if header.exists():
            closure(header, seen)
    return seen


def stamp_of(source):
    digest = hashlib.sha256(repr(FLAGS).encode())
    for path in [pathlib.Path(".clang-tidy"), *sorted(closure(source, set()))]:
        digest.update(str(path).encode() + b"\0" + path.read_bytes())
    return CLEAN / digest.hexdigest()


def needs_cuda(source):
    return any("#include <cuda.h>" in path.read_text(encoding="utf-8") for path in closure(source, set()))


def tidy(sources):
    """Returns what clang-tidy says about the files together, "" if they are clean; None if they do not compile so."""
    with tempfile.TemporaryDirectory() as folder:
        unit = sources[0]
        if len(sources) > 1:
            unit = pathlib.Path(folder, "unit.cc")
            unit.write_text("".join(f'#include "{source}"\n' for source in sources), encoding="utf-8")
        limit = CPU_SECONDS_PER_FILE * len(sources)
        run = subprocess.run(
            ["prlimit", f"--cpu={limit}", "clang-tidy-14", "--quiet", "--config-file=.clang-tidy",
             f"--header-filter={OURS}", str(unit), "--", *FLAGS],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if run.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"{sources[0]}: clang-tidy was ended by signal {-run.returncode} (it may take {limit} s of CPU time)\n"
    if run.returncode == 0:
        return ""
    if len(sources) > 1 and "[clang-diagnostic-error]" in run.stdout:
        return None
    # On stderr are counts of suppressed warnings, and what it has to say when it crashes.
    return run.stdout or run.stderr


def lint(sources):
    """Returns what clang-tidy says about the files, "" if they are clean."""
    complaint = tidy(sources)
    if complaint is None:
        half = len(sources) // 2
        return lint(sources[:half]) + lint(sources[half:])
    if not complaint:
        for source in sources:
            stamp_of(source).touch()
    return complaint


def unit_of(source):
    """Returns the folder, or the file itself if the BUILD file has it apart or excludes it."""
    build = source.parent / "BUILD.bazel"
    text = build.read_text(encoding="utf-8") if build.exists() else ""
    lists = re.findall(r"\b(?:apart|exclude) = \[(.*?)\]", text, re.DOTALL)
    return str(source) if any(f'"{source.name}"' in names for names in lists) else str(source.parent)


def main(names):
    CLEAN.mkdir(parents=True, exist_ok=True)
    sources = [pathlib.Path(name) for name in names if name.endswith(".cc")]
    if not (CUDA / "cuda.h").exists():  # without a toolkit such sources are not built either
        sources = [source for source in sources if not needs_cuda(source)]
    wanted = sorted((source for source in sources if not stamp_of(source).exists()),
                    key=lambda source: (unit_of(source), source))
    units = [list(files) for _, files in itertools.groupby(wanted, key=unit_of)]
    units.sort(key=len, reverse=True)  # the longest first: two run at a time
    with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
        complaints = [complaint for complaint in pool.map(lint, units) if complaint]
    print("".join(complaints), end="")
    print(f"{len(sources)} files, {len(wanted)} looked at, {len(complaints)} folders with complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
