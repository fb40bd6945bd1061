"""Finds the native binary and runs it."""

from __future__ import annotations

import importlib
import os
import pathlib
import subprocess
import sys
import sysconfig
from typing import Any, Iterator, Optional, Sequence


class Error(Exception):
    """The binary could not answer. The message is its own: one line that says what is wrong and where."""

    __module__ = "memreplay"


class Unanswered(Error):
    """The binary came to no answer: it was killed, or took too long. Asking again may help."""

    __module__ = "memreplay"


def printable(text: str) -> str:
    """Returns a text as a terminal may get it: letters that cannot be printed become "?".

    >>> printable("a\\x1b[31m\\udcff\\n")
    'a?[31m??'
    """
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def needed(module: str, who: str) -> Any:
    """Imports a package that not every installation has.

    Errors: ImportError that says who requires it, and how to install it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{who} requires the package {module} ({error}); pip install {module}") from None


def _candidates() -> Iterator[pathlib.Path]:
    package = pathlib.Path(__file__).resolve().parent
    if (package.parents[1] / "WORKSPACE").is_file():  # a checkout
        yield package.parents[1] / "memreplay"
    yield pathlib.Path(sysconfig.get_path("scripts")) / "memreplay"
    yield pathlib.Path(sys.executable).parent / "memreplay"
    # pip install --user and --target, pipx and containers that copy site-packages.
    user = "osx_framework_user" if sys.platform == "darwin" else f"{os.name}_user"
    yield pathlib.Path(sysconfig.get_path("scripts", scheme=user)) / "memreplay"
    yield package.parent / "bin" / "memreplay"
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        yield pathlib.Path(folder) / "memreplay"


def program() -> str:
    """Returns the path of the native binary: $MEMREPLAY_PROGRAM, or the one installed with this package."""
    given = os.environ.get("MEMREPLAY_PROGRAM")
    if given:
        return given
    for path in _candidates():
        if os.access(path, os.X_OK) and path.is_file():
            return str(path)
    raise Error("the binary memreplay is not installed next to this package; pip install --force-reinstall memreplay")


def as_file(name: str) -> str:
    """Returns a file's name so that the binary takes it for one: not for a flag, standard input, a model or `script`.

    >>> as_file("--help"), as_file("script"), as_file("rank0.pickle")
    ('./--help', './script', 'rank0.pickle')
    """
    return f"./{name}" if name.startswith("-") or not {".", "/"} & set(name) else name


def as_recording(name: str) -> str:
    """Returns as_file() of what `advise` shall read. Errors: Error for a script, which it would run."""
    if name.endswith(".py"):
        raise Error(f"advise: expected a recording, found a script: {name}")
    return as_file(name)


def start(args: Sequence[str], timeout: Optional[float] = None,
          input: Optional[bytes] = None) -> "subprocess.CompletedProcess[bytes]":
    """Runs the binary for at most `timeout` seconds, with `input` as its standard input, whatever its status.

    Errors: Error if it cannot be started with these words; Unanswered if it was killed or took longer. The binary ends
    if this process is killed.
    """
    try:
        # Without input, the standard input is closed, not the caller's.
        done = subprocess.run([program(), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              timeout=timeout, input=input or b"",
                              env={**os.environ, "MEMREPLAY_PARENT": str(os.getpid())})
    except subprocess.TimeoutExpired:
        raise Unanswered(f"{args[0]}: took longer than {timeout:g} s") from None
    except (OSError, ValueError) as error:  # too many words, or one with a null byte
        raise Error(f"{args[0]}: memreplay cannot be started: {error}") from None
    if done.returncode < 0:
        raise Unanswered(f"{args[0]}: memreplay was ended by signal {-done.returncode}")
    return done


def failure(done: "subprocess.CompletedProcess[bytes]") -> Error:
    """Returns the binary's message as an error."""
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    message = lines[-1] if lines else f"ended with status {done.returncode} and without a message"
    return Error(message[len("memreplay: "):] if message.startswith("memreplay: ") else message)


def run(args: Sequence[str], timeout: Optional[float] = None,
        input: Optional[bytes] = None) -> "subprocess.CompletedProcess[bytes]":
    """Runs the binary as start() does.

    Errors: those of start(); Error, with the binary's message, unless it answered (status 0, or 1: a bad answer).
    """
    done = start(args, timeout, input)
    if done.returncode not in (0, 1):
        raise failure(done)
    return done
