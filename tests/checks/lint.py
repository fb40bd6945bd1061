"""Runs clang-tidy on C++ sources, two at a time, and remembers what was clean.

Usage: lint.py FILE... (headers are linted through the sources that include them)

A file is looked at again when it, a header of ours that it includes (at any
depth) or .clang-tidy changed. Wants the generated headers (bazel build //...).
"""

import concurrent.futures
import hashlib
import os
import pathlib
import re
import subprocess
import sys

CUDA = pathlib.Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda", "include")
FLAGS = ["-std=c++20", "-I.", "-isystem", "bazel-bin", "-isystem", str(CUDA), "-Wall", "-Wextra",
         "-Wno-unknown-warning-option"]
CLEAN = pathlib.Path(".bazel/lint")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
SECONDS_PER_FILE = 180


def closure(path, seen):
    """The file and every header of ours that it includes."""
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


def lint(source):
    """(source, None if clean, else what clang-tidy says)."""
    stamp = stamp_of(source)
    if stamp.exists():
        return source, None
    try:
        run = subprocess.run(
            ["clang-tidy-14", "--quiet", str(source), "--", *FLAGS],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
            timeout=SECONDS_PER_FILE)
    except subprocess.TimeoutExpired:
        return source, f"{source}: clang-tidy took more than {SECONDS_PER_FILE} s\n"
    if run.returncode == 0:
        stamp.touch()
        return source, None
    # On stderr are counts of suppressed warnings, and what it has to say when it crashes.
    return source, run.stdout or run.stderr


def main(names):
    CLEAN.mkdir(parents=True, exist_ok=True)
    sources = [pathlib.Path(name) for name in names if name.endswith(".cc")]
    if not (CUDA / "cuda.h").exists():  # without a toolkit such sources are not built either
        sources = [source for source in sources if not needs_cuda(source)]
    dirty = 0
    with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
        for _, complaint in pool.map(lint, sources):
            if complaint is not None:
                dirty += 1
                print(complaint, end="")
    print(f"{len(sources)} files, {dirty} with complaints")
    return 1 if dirty else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
