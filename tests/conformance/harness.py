"""What the conformance scripts share: getting a torch wheel, building the runner for it, running programs.

A wheel is fetched once with pip, and only the allocator's two libraries and the headers are kept of it, under
${MEMREPLAY_CACHE:-~/.cache/memreplay}/torch-VERSION. Nothing of it enters the tree.
"""

import concurrent.futures
import ctypes
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CARD = "libmemreplay_card.so"
COMPILER = os.environ.get("CXX", "g++")
CACHE = pathlib.Path(os.environ.get("MEMREPLAY_CACHE") or pathlib.Path.home() / ".cache" / "memreplay")
KEPT = re.compile(r"torch/(lib/libc10(_cuda)?\.so|lib/libgomp[^/]*|include/c10/.*|include/torch/headeronly/.*|version\.py)$")


class Unavailable(Exception):
    """The wheel cannot be had here (no network, no such release)."""


def version_key(version):
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def minor(version):
    return ".".join(version.split(".")[:2])


def cached_versions():
    found = [path.parent.name[len("torch-"):] for path in CACHE.glob("torch-*/.complete")]
    return sorted(found, key=version_key)


@functools.cache
def published_versions():
    """Releases on the package index, oldest first; empty without a network."""
    try:
        answer = subprocess.run([sys.executable, "-m", "pip", "index", "versions", "torch"], text=True, timeout=120,
                                capture_output=True, check=True).stdout
    except (subprocess.SubprocessError, OSError):
        return []
    line = next((line for line in answer.splitlines() if line.startswith("Available versions:")), "")
    return sorted(re.findall(r"\b\d+\.\d+\.\d+\b", line), key=version_key)


def minor_releases(first="2.1"):
    """The newest patch release of every minor release from `first` on, oldest first."""
    newest = {}
    for version in published_versions() or cached_versions():
        if version_key(version) >= version_key(first):
            newest[minor(version)] = version
    return sorted(newest.values(), key=version_key)


def resolve(wanted):
    """A full version for "2.6", "2.6.0" or "newest"."""
    known = sorted(set(published_versions()) | set(cached_versions()), key=version_key)
    matching = [v for v in known if wanted == "newest" or v == wanted or v.startswith(wanted + ".")]
    if not matching:
        raise Unavailable(f"torch {wanted} is neither cached in {CACHE} nor on a package index that can be reached")
    return matching[-1]


def fetch(version):
    """The unpacked torch folder of a release."""
    home = CACHE / f"torch-{version}"
    if (home / ".complete").exists():
        return home / "torch"
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="download-") as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, f"torch=={version}"]
        done = subprocess.run(command, text=True, capture_output=True)
        wheels = list(pathlib.Path(folder).glob("torch-*.whl"))
        if done.returncode != 0 or not wheels:
            reason = (done.stderr.strip().splitlines() or ["no wheel"])[-1]
            raise Unavailable(f"pip cannot download torch=={version}: {reason}")
        with zipfile.ZipFile(wheels[0]) as wheel:
            for name in wheel.namelist():
                if KEPT.match(name):
                    wheel.extract(name, home)
    if not (home / "torch/lib/libc10_cuda.so").exists():
        shutil.rmtree(home)
        raise Unavailable(f"the wheel of torch {version} for this platform is not a CUDA build")
    (home / ".complete").touch()
    return home / "torch"


def _output(*command):
    return subprocess.run(command, text=True, capture_output=True, check=True).stdout


def card_sources():
    return sorted(p for p in (ROOT / "record" / "card").rglob("*") if p.suffix in (".cc", ".h", ".map"))


def digest(paths):
    return hashlib.sha256(b"".join(p.read_bytes() for p in paths)).hexdigest()[:12]


def make(*command):
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed:\n{done.stderr[:4000]}")


def card():
    """The imaginary card (record/card): Bazel's where it is up to date, else one compiled here."""
    built = ROOT / "bazel-bin/record/card/libmemreplay_card.so"
    if built.exists() and built.stat().st_mtime > max(p.stat().st_mtime for p in card_sources()):
        return built
    out = CACHE / f"card-{digest(card_sources())}"
    if not (out / CARD).exists():
        out.mkdir(parents=True, exist_ok=True)
        flags = ["-O1", "-std=c++20", "-w", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-I", ROOT]
        with tempfile.TemporaryDirectory(dir=out) as folder:
            sources = [p for p in card_sources() if p.suffix == ".cc" and p.name != "freestanding.cc"]
            objects = [pathlib.Path(folder) / f"{n}.o" for n in range(len(sources))]
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                list(pool.map(lambda pair: make(COMPILER, *flags, "-c", pair[0], "-o", pair[1]), zip(sources, objects)))
            whole = pathlib.Path(folder) / CARD
            make(COMPILER, "-shared", *objects, f"-Wl,-soname,{CARD}", f"-Wl,--version-script={ROOT}/record/card/exports.map",
                 "-static-libgcc", "-o", whole)
            whole.rename(out / CARD)
    return out / CARD


def prepare(folders, out):
    """Puts the card and the libraries that a torch wants into `out`; returns their paths in the order to load."""
    shutil.copy(card(), out / CARD)
    core = ctypes.CDLL(str(out / CARD))
    core.memreplay_card_error.restype = ctypes.c_char_p
    if core.memreplay_card_prepare(str(folders).encode(), str(out).encode()) != 0:
        raise RuntimeError(core.memreplay_card_error().decode())
    return (out / "libraries").read_text().split()


def build(version):
    """The path of the runner for this release, built if its sources or the release are new."""
    torch = fetch(version)
    sources = card_sources() + sorted(p for p in (HERE / "runner").rglob("*") if p.is_file())
    out = CACHE / f"build-{version}-{digest(sources)}"
    if (out / "runner").exists():
        return out / "runner"
    for old in CACHE.glob(f"build-{version}-*"):  # of other states of the sources, perhaps another checkout's
        if old.stat().st_mtime < time.time() - 86400:
            shutil.rmtree(old, ignore_errors=True)
    final, out = out, pathlib.Path(tempfile.mkdtemp(dir=CACHE, prefix="building-"))
    lib = torch / "lib"
    cxx11 = re.search(r"c10::.*__cxx11", _output("nm", "-DC", lib / "libc10.so")) is not None
    release = version_key(version)[0] * 100 + version_key(version)[1]
    try:
        libraries = [f"-l:{pathlib.Path(path).name}" for path in prepare(torch, out)]
        # DT_RPATH, not DT_RUNPATH: it must also serve what the wheel's libraries ask for.
        make(COMPILER, "-O1", "-std=c++20", "-w", f"-D_GLIBCXX_USE_CXX11_ABI={int(cxx11)}", f"-DTORCH_RELEASE={release}",
             "-I", HERE / "runner/include", "-I", torch / "include", "-I", ROOT, *sorted((HERE / "runner").glob("*.cc")),
             "-o", out / "runner", f"-Wl,--disable-new-dtags,-rpath,{final}:{lib}",
             "-Wl,--no-as-needed,--allow-shlib-undefined,--unresolved-symbols=ignore-all", "-L", out, *libraries,
             lib / "libc10.so", lib / "libc10_cuda.so")
    except RuntimeError:
        shutil.rmtree(out)
        raise
    try:
        out.rename(final)
    except OSError:  # someone else was faster
        shutil.rmtree(out)
    return final / "runner"


class Outcome:
    """What one program did: trace entries (as text lines) and the result."""

    def __init__(self, text):
        lines = text.splitlines()
        self.result = {}
        while lines and not lines[-1].startswith('{"action"'):
            self.result = json.loads(lines.pop()) | self.result
        self.lines = lines

    @property
    def events(self):
        return [json.loads(line) for line in self.lines]


def run_library(runner, programs, outputs, jobs=1):
    """Runs each program file in a process of its own and writes its output file."""
    batches = [[] for _ in range(max(1, jobs))]
    for index, pair in enumerate(zip(programs, outputs)):
        batches[index % len(batches)].append("%s %s\n" % pair)
    processes = []
    with tempfile.TemporaryDirectory() as folder:
        for index, batch in enumerate(batches):
            if not batch:
                continue
            listing = pathlib.Path(folder) / f"list{index}"
            listing.write_text("".join(batch))
            processes.append(subprocess.Popen([runner, "--list", listing], stderr=subprocess.DEVNULL))
        for process in processes:
            if process.wait() != 0:
                raise RuntimeError(f"the runner ended with {process.returncode}")


def run_texts(runner, texts):
    """Runs programs given as text; returns their outcomes in order."""
    with tempfile.TemporaryDirectory() as folder:
        programs, outputs = [], []
        for index, text in enumerate(texts):
            program = pathlib.Path(folder) / f"{index}.jsonl"
            program.write_text(text)
            programs.append(program)
            outputs.append(pathlib.Path(folder) / f"{index}.out")
        run_library(runner, programs, outputs)
        return [Outcome(path.read_text()) for path in outputs]
