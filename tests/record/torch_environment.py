"""A Python that has PyTorch with CUDA, for the tests of `memreplay record`.

Kept in ${MEMREPLAY_CACHE:-~/.cache/memreplay}/record-torch-VERSION, made by pip on first use (about
1 GB is downloaded once). NVIDIA's own wheels are not wanted.
"""
import os
import pathlib
import pwd
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


def python(version, more=()):
    """The path of an interpreter with torch `version` and the packages in `more`."""
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
        missing = [package for package in more if subprocess.run(
            [found, "-c", f"import {package.split('=')[0].replace('-', '_')}"],
            capture_output=True, check=False).returncode != 0]
        if missing:
            subprocess.run([*pip, "--no-deps", *missing], check=True, capture_output=True)
    except subprocess.CalledProcessError as error:
        shutil.rmtree(folder.with_name(f"{folder.name}.{os.getpid()}"), ignore_errors=True)
        lines = (error.stderr or b"").decode(errors="replace").strip().splitlines() or ["pip failed"]
        raise Unavailable(f"torch {version} cannot be had: {lines[-1][:200]}") from None
    return str(found)
