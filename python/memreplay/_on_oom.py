"""memreplay.on_oom(): explains why memory ran out, without a block around the script."""

from __future__ import annotations

import os
import pathlib
import sys
import warnings
from typing import List, Optional, Union

from memreplay._load import Recording
from memreplay._program import Error, run
from memreplay._recording import _dump, _start, _stop

_REMEDIES = 3
_KNOWN = 3  # how many failures of a script are explained; later ones are only written

_path: Optional[pathlib.Path] = None  # of the snapshot; None: nothing is recorded or written
_failures = 0
_attached = False


def _diagnosis(snapshot: pathlib.Path) -> List[str]:
    """Returns lines: the sentence, and the simulated changes that would have helped. Errors: Error."""
    answer = Recording(snapshot).oom()
    oom = answer.devices[0].oom if answer.devices else None  # devices that ran out come first
    if oom is None:
        return [f"{snapshot} does not show where memory ran out"]
    lines = [oom.sentence]
    helpful = [change for change in oom.counterfactuals if change.survives and change.kind != "nothing"]
    lines += [f"  would have helped: {change.change}" for change in helpful[:_REMEDIES]]
    for row in [device.advice.rows[n] for device in answer.devices if device.advice
                for n in device.advice.serving_rows]:
        lines += [f"  would have served it: {row.change} (cost: {row.cost}); to write:",
                  *(f"    {line}" for line in row.lines)]
    return lines


def report_oom(snapshot: Union[str, "os.PathLike[str]"]) -> None:
    """Explains a snapshot that was written where GPU memory ran out.

    Writes its page next to it, under its name with .html, and prints why memory ran out and what would have helped on
    stderr. This is for frameworks that write such snapshots by themselves. A file that cannot be explained is reported
    on stderr and raises nothing, so that the error of the script remains the one that is seen.
    """
    snapshot = pathlib.Path(snapshot)
    try:
        lines = _diagnosis(snapshot)
        page = snapshot.with_suffix(".html")
        run(["report", str(snapshot), "-o", str(page)])
        lines.append(f"  snapshot {snapshot}, page {page}")
    except (Error, OSError) as error:
        lines = [f"{snapshot} was written, but could not be explained: {error}"]
    print("memreplay: " + "\n".join(lines), file=sys.stderr, flush=True)


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
