"""Checks that each header compiles alone: headers.py [FILE...]; without FILEs, every header of ours.

A header that passed is not compiled again while it and what it includes of ours are the same: the digests of those
that passed are kept in ${MEMREPLAY_CACHE:-~/.cache/memreplay}/headers. Headers that Bazel makes must be built.
"""

import concurrent.futures
import hashlib
import os
import pathlib
import re
import subprocess
import sys

# cuda/ needs a toolkit; the conformance harness is compiled against a PyTorch wheel; the stubs of elf/ have no C++.
STAGES = ["hardware", "trace", "synth", "sim", "report", "record", "experiment", "cli"]
COMPILE = ["g++", "-std=c++20", "-fsyntax-only", "-Wno-pragma-once-outside-header", "-I.", "-Ibazel-bin", "-x", "c++"]
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def digest(path, known):
    """Returns the digest of a header and of all that it includes of ours."""
    if path in known:
        return known[path]
    known[path] = ""  # a circle ends here
    text = path.read_bytes()
    parts = [hashlib.sha256(text).hexdigest()]
    for name in INCLUDE.findall(text.decode("utf-8")):
        included = pathlib.Path(name)
        if included.exists():
            parts.append(digest(included, known))
        elif pathlib.Path("bazel-bin", included).exists():
            parts.append(hashlib.sha256(pathlib.Path("bazel-bin", included).read_bytes()).hexdigest())
    known[path] = hashlib.sha256("".join(parts).encode()).hexdigest()
    return known[path]


def compiles(path):
    run = subprocess.run([*COMPILE, str(path)], stderr=subprocess.PIPE, text=True, check=False)
    return "" if run.returncode == 0 else run.stderr


def main():
    files = [pathlib.Path(name) for name in sys.argv[1:]] or sorted(
        path for stage in STAGES for path in pathlib.Path(stage).rglob("*.h"))
    home = os.environ.get("MEMREPLAY_CACHE") or pathlib.Path.home() / ".cache" / "memreplay"
    passed = pathlib.Path(home, "headers")
    passed.mkdir(parents=True, exist_ok=True)
    known = {}
    left = [path for path in files if not (passed / digest(path, known)).exists()]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for path, errors in zip(left, pool.map(compiles, left)):
            if errors:
                failed += 1
                print(f"{path} does not compile alone:\n{errors}")
            else:
                (passed / known[path]).touch()
    print(f"{len(files)} headers, {len(left)} compiled, {failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
