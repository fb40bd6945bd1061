"""memreplay.on_oom(): explains why memory ran out, without a block around the script."""

from __future__ import annotations

import os
import pathlib
from typing import Optional, Union

from memreplay import _lost, _recording
from memreplay._recording import _check, _dump, _of_rank, _start, _stop, _warn
from memreplay._report_oom import report_oom

_DEFAULT = pathlib.PurePath("oom.pickle")
_KNOWN = 3  # how many failures of a script are explained; later ones are only written

_path: Optional[pathlib.Path] = None  # of the snapshot; None: nothing is recorded or written
_failures = 0
_attached = False


def _observe(device: int, size: int, device_total: int, device_free: int) -> None:
    global _failures
    if _path is None:
        return
    _failures += 1
    try:
        written = _dump(_of_rank(_path), _recording._blocks[-1] if _recording._blocks else None)
    except Exception as error:  # whatever it was, the script continues to its own error
        _warn(f"memreplay.on_oom: {_path} was not written: {_lost.text_of(error)}")
        return
    if _failures <= _KNOWN:
        _lost.quietly("why memory ran out")(report_oom)(written)


def on_oom(path: Union[str, "os.PathLike[str]", None] = _DEFAULT, *, max_entries: Optional[int] = None,
           stacks: str = "python") -> None:
    """Writes a snapshot and its page whenever GPU memory runs out, and prints why and what would have helped.

    A script needs only this call, before its model is created; nothing is written unless memory runs out. This happens
    before the error frees anything, so it also serves a script that catches the error: the files are written again each
    time, the first three times with the diagnosis. Each of several ranks writes its own.

    Args:
      path: the snapshot; the page has its name with .html. None: recording ends, and nothing more is written.
      max_entries, stacks: as of recording(). During such a block its recording serves both, with its own, and what
        runs out is written and explained once, here.

    Errors: RuntimeError on a machine without a GPU; OSError, as of recording(), if `path` cannot be written.
    """
    import torch

    global _path, _attached
    if path is None:
        if _path is not None and not _recording._blocks:
            _stop()
        _path = _recording._watch = None
        return
    if not torch.cuda.is_available():
        raise RuntimeError("memreplay.on_oom: PyTorch finds no GPU here, so no memory of one can run out")
    checked = _check(path, _DEFAULT)
    torch.cuda.init()
    if _path is None:
        _recording._watch = max_entries, stacks
        if not _recording._blocks:
            _start(max_entries, stacks)
    if not _attached:
        torch._C._cuda_attach_out_of_memory_observer(_observe)  # PyTorch has no way to detach it
        _attached = True
    _path = checked
