"""What is asked of one recording of a fleet, and how the answers become rows. Runs on any machine of a cluster."""

from __future__ import annotations

import re
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from memreplay import report_types as types
from memreplay._load import load
from memreplay._program import Error, Unanswered

Row = Dict[str, Any]
TOP_STACKS = 20
_RANK = re.compile(r"rank[-_.]?(\d+)|(?:^|[-_.])(\d+)\.[a-z.]+$", re.IGNORECASE)


class Task(NamedTuple):
    """One file to look at. `confs`: only what these settings come to; empty: everything else."""

    url: str
    stamp: str  # changes when the file does
    confs: Tuple[str, ...] = ()
    timeout: Optional[float] = None
    retries: int = 2
    top: int = 4  # how many of a file's best settings are tried on all files of its job
    flags: Tuple[Tuple[str, str], ...] = ()  # capacity, torch ...


def job_and_rank(url: str) -> Tuple[str, int]:
    """A job is a folder; the rank is in the file's name; -1: it tells none.

    >>> job_and_rank("s3://runs/llama-7b/out.rank12.pickle")
    ('s3://runs/llama-7b', 12)
    >>> job_and_rank("/runs/a/snapshot_3.pickle.gz"), job_and_rank("oom.pickle")
    (('/runs/a', 3), ('', -1))
    """
    job, _, name = url.rpartition("/")
    found = _RANK.search(name)
    return job, int(found.group(1) or found.group(2)) if found else -1


def _settings(device: types.DeviceReport) -> List[Row]:
    """The settings that were tried, best first, and those in force."""
    if device.sweep is None:
        return []
    # A fraction of memory that is set by a call is no setting that can be handed on.
    rows = [row for row in device.sweep.rows
            if not row.refused and (row.memory_fraction in (0, 1) or "per_process_memory_fraction" in row.conf)]
    if device.sweep.current is not None and all(row.conf != device.sweep.current.conf for row in rows):
        rows.append(device.sweep.current)
    return [{"conf": row.conf, "peak_reserved_bytes": row.peak_reserved_bytes, "ooms": row.ooms,
             "is_current": row.is_current or row is device.sweep.current} for row in rows]


def _device_row(report: types.Report, device: types.DeviceReport, verdict: str) -> Row:
    fragmentation = device.fragmentation or types.Fragmentation({})
    fidelity = device.fidelity or types.Fidelity({})
    current = device.sweep.current if device.sweep else None
    current = current or types.SweepRow({})
    best = device.sweep.rows[0] if device.sweep and device.sweep.rows else current
    return {
        "device": device.device, "format": report.format, "torch_release": device.torch.release if device.torch else "",
        "torch_inferred": bool(device.torch and device.torch.inferred), "conf": device.conf,
        "capacity_bytes": device.capacity_bytes, "events": device.events,
        "compared_events": fidelity.compared_events, "matched_events": fidelity.matched_events,
        "peak_reserved_bytes": current.peak_reserved_bytes, "peak_allocated_bytes": current.peak_allocated_bytes,
        "peak_active_bytes": device.peak_active_bytes, "peak_requested_bytes": device.peak_requested_bytes,
        "reserved_minus_allocated_bytes": current.reserved_minus_allocated_bytes,
        "inactive_split_bytes": fragmentation.inactive_split_bytes, "fragmentation": current.fragmentation,
        "ooms": current.ooms, "alloc_retries": current.alloc_retries, "verdict": verdict, "best_conf": best.conf,
        "best_peak_reserved_bytes": best.peak_reserved_bytes, "best_ooms": best.ooms,
        "best_saves_bytes": current.peak_reserved_bytes - best.peak_reserved_bytes}


def _answer(task: Task) -> Dict[str, List[Row]]:
    recording = load(task.url)
    recording.timeout = task.timeout
    flags = dict(task.flags)
    if task.confs:
        sweep = recording.sweep(conf=task.confs, jobs=1, **flags)
        return {"settings": [{"device": device.device, **row} for device in sweep.devices for row in _settings(device)]}
    sweep = recording.sweep(jobs=1, **flags)
    oom = recording.oom(**flags)
    page = recording.report(**flags)
    verdicts = {device.device: device.oom.verdict if device.oom else "" for device in oom.devices}
    stacks = page.columns("stacks")
    return {
        "devices": [_device_row(sweep, device, verdicts.get(device.device, "")) for device in sweep.devices],
        "settings": [{"device": device.device, **row} for device in sweep.devices for row in _settings(device)],
        "stacks": [row for device in sweep.devices for row in
                   [dict(zip(stacks, cells)) for cells in zip(*stacks.values()) if cells[0] == device.device][:TOP_STACKS]]}


def run_task(task: Task) -> Dict[str, Any]:
    """The rows of a file, by table, or {"error": ...}; `is_final`: asking again would give the same."""
    for attempt in range(task.retries + 1):
        try:
            return {"is_final": True, "error": "", **_answer(task)}
        except Unanswered as error:
            # What took too long once takes too long again, on this machine.
            if "took longer" in str(error) or attempt == task.retries:
                return {"is_final": False, "error": str(error)}
            time.sleep(0.1 * attempt)
        except Error as error:
            return {"is_final": True, "error": str(error)}
        except Exception as error:  # of a file system; the other files have their answers nevertheless
            return {"is_final": isinstance(error, FileNotFoundError), "error": f"{task.url}: {error}"}
    raise AssertionError("not reached")
