"""memreplay.report_oom(): explains a snapshot that was written where memory ran out."""

from __future__ import annotations

import os
import pathlib
import sys
from typing import List, Union

from memreplay import report_types as types
from memreplay._load import Recording
from memreplay._output import PAGE_MARK, check, file_name
from memreplay._program import Error, as_file, run

_REMEDIES = 3


def _diagnosis(snapshot: pathlib.Path) -> List[str]:
    """Returns lines: what happened, why, what to do, and the simulated changes that would help. Errors: Error."""
    answer = Recording(snapshot).oom()
    oom = answer.devices[0].oom if answer.devices else None  # devices that ran out come first
    if oom is None:
        return [f"{snapshot} does not show where memory ran out"]
    said = answer.devices[0].diagnosis or types.Diagnosis({})
    lines = [said.what, f"  why: {said.why}", f"  do: {said.do}"]
    helpful = [change for change in oom.counterfactuals if change.survives and change.kind != "nothing"]
    lines += [f"  would have helped: {change.change}" for change in helpful[:_REMEDIES]]
    for row in [device.advice.rows[n] for device in answer.devices if device.advice
                for n in device.advice.serving_rows]:
        lines += [f"  would have served it: {row.change} (cost: {row.cost}); to write:",
                  *(f"    {line}" for line in row.lines)]
    return lines


def _page(snapshot: pathlib.Path) -> str:
    """Writes the page, and returns what to say of it."""
    page = snapshot.with_name(file_name(snapshot.stem, ".html"))
    try:
        check(page, mark=PAGE_MARK)
        run(["report", as_file(str(snapshot)), "-o", str(page)])
    except (Error, OSError) as error:
        return f"no page: {error}"
    return f"page {page}"


def report_oom(snapshot: Union[str, "os.PathLike[str]"]) -> None:
    """Explains a snapshot that was written where GPU memory ran out.

    Writes its page next to it, under its name with .html, and prints why memory ran out and what would have helped on
    stderr. A file of that name which is no page of memreplay stays as it is. This is for frameworks that write such
    snapshots by themselves. A file that cannot be explained is reported on stderr and raises nothing, so that the error
    of the script remains the one that is seen.
    """
    snapshot = pathlib.Path(snapshot)
    try:
        lines = [*_diagnosis(snapshot), f"  snapshot {snapshot}, {_page(snapshot)}"]
    except (Error, OSError) as error:
        lines = [f"{snapshot} was written, but could not be explained: {error}"]
    print("memreplay: " + "\n".join(lines), file=sys.stderr, flush=True)
