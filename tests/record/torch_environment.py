"""A Python that has PyTorch with CUDA, for the tests of `memreplay record`.

Kept in ${MEMREPLAY_CACHE:-~/.cache/memreplay}/record-torch-VERSION, made by pip on first use (about
1 GB is downloaded once). NVIDIA's own wheels are not wanted.
"""
import json
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys

# What torch imports; the versions do not matter here.
NEEDS = ["numpy", "sympy", "filelock", "jinja2", "networkx", "fsspec", "typing_extensions", "setuptools"]


class Unavailable(Exception):
    """There is none, and it cannot be had."""


def cache():
    home = os.environ.get("MEMREPLAY_CACHE")
    return pathlib.Path(home) if home else \
        pathlib.Path(pwd.getpwuid(os.getuid()).pw_dir) / ".cache" / "memreplay"


def _missing(python_path, packages):
    """Those of `packages` that an interpreter does not have, of whatever version."""
    ask = "import importlib.metadata as m, json, sys\nnames = {d.name.lower().replace('_', '-') for d in m.distributions()}\n" \
          "print(json.dumps(sorted(names)))"
    there = json.loads(subprocess.run([python_path, "-c", ask], capture_output=True, check=True).stdout)
    return [package for package in packages
            if re.match(r"[\w.-]+", package).group().lower().replace("_", "-") not in there]


def python(version, more=()):
    """The path of an interpreter with torch `version` and the packages in `more`, which are installed without what
    they require."""
    folder = cache() / f"record-torch-{version}"
    found = folder / "bin" / "python3"
    pip = [str(found), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        if not found.exists():
            made = folder.with_name(f"{folder.name}.{os.getpid()}")
            subprocess.run([sys.executable, "-m", "venv", made], check=True, capture_output=True)
            making = [str(made / "bin" / "python3"), *pip[1:]]
            subprocess.run([*making, "--no-deps", f"torch=={version}"], check=True, capture_output=True)
            subprocess.run([*making, *NEEDS], check=True, capture_output=True)
            made.rename(folder)
        missing = _missing(found, more)
        if missing:
            subprocess.run([*pip, "--no-deps", *missing], check=True, capture_output=True)
    except subprocess.CalledProcessError as error:
        shutil.rmtree(folder.with_name(f"{folder.name}.{os.getpid()}"), ignore_errors=True)
        lines = (error.stderr or b"").decode(errors="replace").strip().splitlines() or ["pip failed"]
        raise Unavailable(f"torch {version} cannot be had: {lines[-1][:200]}") from None
    return str(found)
