#!/usr/bin/python3
"""Python environments of the tests. pyproject.toml names each and what it contains, uv.lock has the versions and
the hashes of all of it, as resolved by uv.

    environment.py NAME         prints the path of its interpreter; makes it first where there is none
    environment.py --lock       renews uv.lock after a change of pyproject.toml
    environment.py --upgrade    the same, with the newest versions that pyproject.toml allows

An environment lies in the cache (cache.py), under a name that hashes what is installed in it, and is never changed.
It runs Debian 12's Python 3.11. Exit status 77, and a line that begins with "skipped": it cannot be had here.
"""
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tomllib

import cache

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"


class Unavailable(Exception):
    """Something cannot be had here, mostly from the package index; the text says what and why."""


def _call(what, *command, **variables):
    """What a command prints. Raises Unavailable with its error, of which `what` was wanted."""
    environment = {**os.environ, "UV_CACHE_DIR": str(cache.home() / "uv"), "UV_SYSTEM_CERTS": "1",
                   "UV_NO_PROGRESS": "1", "UV_PYTHON_DOWNLOADS": "never", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
                   **variables}
    try:
        return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True,
                              env=environment).stdout
    except subprocess.CalledProcessError as error:
        lines = [line.strip() for line in (error.stderr or error.stdout).splitlines() if line.strip()]
        reason = " / ".join(lines[-4:])[:600] or f"exit status {error.returncode}"
        raise Unavailable(f"{what} cannot be had: {reason}") from None


def _uv():
    """The path of uv, which itself stands in the lock."""
    lock = tomllib.loads((HERE / "uv.lock").read_text(encoding="utf-8"))
    package = next(package for package in lock["package"] if package["name"] == "uv")
    requirement = " ".join([f"uv=={package['version']}", *(f"--hash={wheel['hash']}" for wheel in package["wheels"])])

    def make(folder):
        (folder / "requirements.txt").write_text(requirement + "\n", encoding="utf-8")
        _call(requirement.split()[0], PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes",
              "--target", folder, "--requirement", folder / "requirements.txt")
    return cache.made(f"uv-{package['version']}", make) / "bin" / "uv"


def _locked(name):
    """What the lock says of an environment: lines PACKAGE==VERSION with hashes."""
    return _call(name, _uv(), "export", "--quiet", "--project", HERE, "--frozen", "--only-group", name, "--no-header",
                 "--no-annotate", "--no-emit-project")


def _digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def python(name):
    """The path of the interpreter of an environment. Raises Unavailable."""
    text = _locked(name)

    def make(folder):
        (folder / "requirements.txt").write_text(text, encoding="utf-8")
        _call(name, _uv(), "venv", "--quiet", "--relocatable", "--python", PYTHON, "--allow-existing", folder)
        # Compiled: a process that finds its modules compiled has another heap than one that compiles them.
        _call(name, _uv(), "pip", "install", "--quiet", "--python", folder / "bin" / "python3", "--no-deps",
              "--require-hashes", "--no-build", "--compile-bytecode", "--requirement", folder / "requirements.txt")
    return str(cache.made(f"python-{name}-{_digest(text)}", make) / "bin" / "python3")


def _requirement(name, package):
    return re.search(rf"^{re.escape(package)}==.*(\n .*)*", _locked(name), re.MULTILINE).group()


def digest(name, package):
    """Of the version and the hashes of one package of an environment. Raises Unavailable."""
    return _digest(_requirement(name, package))


def download(name, package, folder):
    """Puts the wheel of one package of an environment into a folder. Raises Unavailable."""
    text = _requirement(name, package)
    requirement = pathlib.Path(folder, "requirements.txt")
    requirement.write_text(text + "\n", encoding="utf-8")
    _call(text.split()[0], PYTHON, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
          "--require-hashes", "--dest", folder, "--requirement", requirement)


def torch_releases():
    """Returns the PyTorch releases with an environment torch-RELEASE, oldest first: the newest of each minor one."""
    groups = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    found = [name.removeprefix("torch-") for name in groups if re.fullmatch(r"torch-[\d.]+", name)]
    return sorted(found, key=lambda version: [int(part) for part in version.split(".")])


def main(words):
    try:
        if words in (["--lock"], ["--upgrade"]):
            _call("uv.lock", _uv(), "lock", "--project", HERE, "--python", PYTHON, *words[words == ["--lock"]:])
        elif len(words) == 1 and not words[0].startswith("-"):
            print(python(words[0]))
        else:
            print(__doc__, file=sys.stderr)
            return 2
    except Unavailable as why:
        print(f"skipped: {why}")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
