"""Gets a torch wheel, builds the runner for it, and runs programs, for all conformance scripts.

A wheel is fetched once with pip, and only the allocator's two libraries and the headers are kept of it, in the folder
torch-VERSION-... of the cache (third_party/python/cache.py). Nothing of it enters the tree.
"""

import concurrent.futures
import ctypes
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
sys.path.append(str(ROOT / "third_party" / "python"))
import cache  # noqa: E402
import environment  # noqa: E402
from environment import Unavailable  # noqa: E402

CARD = "libmemreplay_card.so"
COMPILER = os.environ.get("CXX", "g++")
KEPT = re.compile(r"torch/(lib/libc10(_cuda)?\.so|lib/libgomp[^/]*|include/c10/.*|include/torch/headeronly/.*"
                  r"|version\.py)$")


def version_key(version):
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def minor(version):
    return ".".join(version.split(".")[:2])


def minor_releases(first="2.1"):
    """Returns the newest patch release of every minor release from `first` on, oldest first."""
    return [version for version in environment.torch_releases() if version_key(version) >= version_key(first)]


def resolve(wanted):
    """Returns a full version for "2.6", "2.6.0" or "newest"."""
    known = environment.torch_releases()
    matching = [v for v in known if wanted == "newest" or v == wanted or v.startswith(wanted + ".")]
    if not matching:
        raise Unavailable(f"torch {wanted} is not in third_party/python/pyproject.toml, which has {', '.join(known)}")
    return matching[-1]


def fetch(version):
    """Returns the unpacked torch folder of a release."""
    def unpack(folder):
        with tempfile.TemporaryDirectory(dir=cache.home()) as download:
            environment.download(f"torch-{version}", "torch", download)
            wheel, = pathlib.Path(download).glob("torch-*.whl")
            with zipfile.ZipFile(wheel) as file:
                file.extractall(folder, [name for name in file.namelist() if KEPT.match(name)])
        if not (folder / "torch/lib/libc10_cuda.so").exists():
            raise Unavailable(f"the wheel of torch {version} for this platform is not a CUDA build")
    return cache.made(f"torch-{version}-{environment.digest(f'torch-{version}', 'torch')}", unpack) / "torch"


def _output(*command):
    return subprocess.run(command, text=True, capture_output=True, check=True).stdout


def card_sources():
    folders = (ROOT / "record" / "card", ROOT / "hardware")
    kinds = (".cc", ".h", ".map", ".py", ".tsv")
    shared = (ROOT / "sim/settings").glob("conf_tokens.*")
    return sorted([*shared, *(p for folder in folders for p in folder.rglob("*") if p.suffix in kinds)])


def digest(paths):
    return hashlib.sha256(b"".join(p.read_bytes() for p in paths)).hexdigest()[:12]


def make(*command):
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed:\n{done.stderr[:4000]}")


def card():
    """Returns the simulated GPU's library (record/card): Bazel's if it is up to date, else one compiled here."""
    built = ROOT / "bazel-bin/record/card/libmemreplay_card.so"
    if built.exists() and built.stat().st_mtime > max(p.stat().st_mtime for p in card_sources()):
        return built

    def compile_all(folder):
        flags = ["-O1", "-std=c++20", "-w", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-I", ROOT]
        others = ("freestanding.cc", "ends_of_errors.cc", "pass_through.cc")  # of Bazel's libraries
        sources = [p for p in card_sources() if p.suffix == ".cc" and p.name not in others]
        names = folder / "public_names.cc"  # as the rule public_names of record/card/stubs/BUILD.bazel makes it
        make(sys.executable, ROOT / "bazel/embed.py", "record/card/stubs/public_names.h", names,
             f"PublicNames={ROOT}/third_party/cuda/public_names.txt")
        sources.append(names)
        for script, made in (("card_rows.py", "card_rows.cc"), ("outside_reports.py", "outside_figures.cc")):
            make(sys.executable, ROOT / "hardware" / script, folder / made)  # as those of hardware/BUILD.bazel
            sources.append(folder / made)
        objects = [folder / f"{n}.o" for n in range(len(sources))]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda pair: make(COMPILER, *flags, "-c", pair[0], "-o", pair[1]), zip(sources, objects)))
        make(COMPILER, "-shared", *objects, f"-Wl,-soname,{CARD}",
             f"-Wl,--version-script={ROOT}/record/card/exports.map", "-static-libgcc", "-o", folder / CARD)
    return cache.made(f"card-{digest(card_sources())}", compile_all) / CARD


def prepare(folders, out):
    """Puts the card and the libraries that a torch needs into `out`; returns their paths in the order to load."""
    shutil.copy(card(), out / CARD)
    core = ctypes.CDLL(str(out / CARD))
    core.memreplay_card_error.restype = ctypes.c_char_p
    if core.memreplay_card_prepare(str(folders).encode(), str(out).encode()) != 0:
        raise RuntimeError(core.memreplay_card_error().decode())
    return (out / "libraries").read_text().split()


def build(version):
    """Returns the path of the runner for this release, built if its sources or the release are new."""
    torch = fetch(version)
    sources = card_sources() + sorted(p for p in (HERE / "runner").rglob("*") if p.is_file())
    name = f"build-{version}-{digest(sources)}"
    lib = torch / "lib"

    def compile_runner(folder):
        for old in cache.home().glob(f"build-{version}-*"):  # made from other sources, perhaps another checkout's
            if old != folder and old.stat().st_mtime < time.time() - 86400:
                cache.remove(old)
        cxx11 = re.search(r"c10::.*__cxx11", _output("nm", "-DC", lib / "libc10.so")) is not None
        release = version_key(version)[0] * 100 + version_key(version)[1]
        libraries = [f"-l:{pathlib.Path(path).name}" for path in prepare(torch, folder)]
        # This sets DT_RPATH, not DT_RUNPATH, because it must also serve what the wheel's libraries need.
        make(COMPILER, "-O1", "-std=c++20", "-w", f"-D_GLIBCXX_USE_CXX11_ABI={int(cxx11)}",
             f"-DTORCH_RELEASE={release}", "-I", HERE / "runner/include", "-I", torch / "include", "-I", ROOT,
             *sorted((HERE / "runner").glob("*.cc")), "-o", folder / "runner",
             f"-Wl,--disable-new-dtags,-rpath,{cache.home() / name}:{lib}",
             "-Wl,--no-as-needed,--allow-shlib-undefined,--unresolved-symbols=ignore-all", "-L", folder, *libraries,
             lib / "libc10.so", lib / "libc10_cuda.so")
    return cache.made(name, compile_runner) / "runner"


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
