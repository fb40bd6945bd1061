"""Writes files that are whole or as they were, by the rules of trace/bytes/output_file.h: what Python itself writes."""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import stat
from typing import BinaryIO, Iterable, Iterator, Optional

PAGE_MARK = b" - memreplay</title>"  # kPageMark of report/page/render_html.h
SNAPSHOT_MARK = b"torch_version"  # kSnapshotMark of record/gather.cc
_MAX_NAME = 255  # bytes
_LOOKED_AT = 8 << 10  # bytes at the beginning and at the end of a file


def _status(path: "os.PathLike[str]") -> Optional[os.stat_result]:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def file_name(stem: str, ending: str) -> str:
    """Returns stem + ending, with a shorter stem if that is too long for a name.

    >>> len(os.fsencode(file_name("ü" * 127, ".oom.pickle")))
    255
    """
    while len(os.fsencode(stem + ending)) > _MAX_NAME and len(stem) > 1:
        stem = stem[:-1]
    return stem + ending


def check(path: "os.PathLike[str]", inputs: Iterable[str] = (), mark: Optional[bytes] = None) -> None:
    """Returns if `path` can be written and is none of the inputs. Folders that are missing are no error.

    Args:
      mark: the user did not give this name, so that it replaces only files with this mark, and empty ones.

    Errors: OSError.
    """
    old = _status(path)
    if old is None:
        folder = os.path.dirname(os.path.realpath(path))
        if os.path.exists(folder) and not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return
    if stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    if not stat.S_ISREG(old.st_mode):
        return
    for name in inputs:
        try:
            is_read = os.path.samestat(os.stat(name), old)
        except (OSError, ValueError):
            continue
        if is_read:
            raise FileExistsError(errno.EEXIST, "is also an input and would be overwritten; write to another file",
                                  str(path))
    if mark is not None and old.st_size > 0:
        with open(path, "rb") as file:
            seen = file.read(_LOOKED_AT)
            file.seek(max(0, old.st_size - _LOOKED_AT))
            if mark not in seen and mark not in file.read(_LOOKED_AT):
                raise FileExistsError(errno.EEXIST, "was not written by memreplay and would be overwritten; name "
                                                    "another file", str(path))


@contextlib.contextmanager
def written(path: "os.PathLike[str]") -> Iterator[BinaryIO]:
    """Yields a file whose content replaces that of `path` when the block ends, unless it raises.

    Links are followed and permissions kept; a device or a pipe is written directly. Missing folders are made.
    """
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    check(path)
    old = _status(path)
    if old is not None and not stat.S_ISREG(old.st_mode):
        with open(path, "wb") as direct:
            yield direct
        return
    place = os.path.realpath(path)
    part = os.path.join(os.path.dirname(place), f".memreplay-{os.urandom(8).hex()}.tmp")
    try:
        with open(part, "xb") as file:
            yield file
            if old is not None:
                os.chmod(part, stat.S_IMODE(old.st_mode))
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, place)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
