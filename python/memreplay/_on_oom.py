"""memreplay.on_oom(): explains why memory ran out, without a block around the script."""

from __future__ import annotations

import os
import pathlib
import warnings
from typing import Optional, Union

from memreplay._recording import _dump, _start, _stop
from memreplay._report_oom import report_oom

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
        written = _dump(_path, None)
    except Exception as error:  # whatever it was, the script continues to its own error
        warnings.warn(f"memreplay.on_oom: {_path} was not written: {error}", stacklevel=2)
        return
    if _failures <= _KNOWN:
        report_oom(written)


def on_oom(path: Union[str, "os.PathLike[str]", None] = "oom.pickle", *, max_entries: Optional[int] = None,
           stacks: str = "python") -> None:
    """Writes a snapshot and its page whenever GPU memory runs out, and prints why and what would have helped.

    A script needs only this call, before its model is created; nothing is written unless memory runs out. This happens
    before the error frees anything, so it also serves a script that catches the error: the files are written again each
    time, the first three times with the diagnosis. Each of several ranks writes its own.

    Args:
      path: the snapshot; the page has its name with .html. None: recording ends, and nothing more is written.
      max_entries, stacks: as of recording(), which must not be used at the same time.

    Errors: RuntimeError on a machine without a GPU.
    """
    import torch

    global _path, _attached
    if path is None:
        if _path is not None:
            _stop()
        _path = None
        return
    if not torch.cuda.is_available():
        raise RuntimeError("memreplay.on_oom: PyTorch finds no GPU here, so no memory of one can run out")
    torch.cuda.init()
    if _path is None:
        _start(max_entries, stacks)
    if not _attached:
        torch._C._cuda_attach_out_of_memory_observer(_observe)  # PyTorch has no way to detach it
        _attached = True
    _path = pathlib.Path(path)
