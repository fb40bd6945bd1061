"""Analyses one recording of a fleet and turns the answers into rows. Runs on any machine of a cluster."""

from __future__ import annotations

import json
import re
import tempfile
import time
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

from memreplay import report_types as types
from memreplay._answer import Answer
from memreplay._load import load
from memreplay._program import Error, Unanswered, run

Row = Dict[str, Any]
TOP_STACKS = 20
_RANK = re.compile(r"rank[-_.]?(\d+)|(?:^|[-_.])(\d+)\.[a-z.]+$", re.IGNORECASE)


class Task(NamedTuple):
    """One file to analyse. `confs`: only the results of these settings; empty: everything else."""

    url: str
    stamp: str  # changes when the file does
    confs: Tuple[str, ...] = ()
    timeout: Optional[float] = None
    retries: int = 2
    flags: Tuple[Tuple[str, str], ...] = ()  # capacity, torch ...


def job_and_rank(url: str) -> Tuple[str, int]:
    """Returns the folder as the job, and the rank in the file's name, -1 if it has none.

    >>> job_and_rank("s3://runs/llama-7b/out.rank12.pickle")
    ('s3://runs/llama-7b', 12)
    >>> job_and_rank("/runs/a/snapshot_3.pickle.gz"), job_and_rank("oom.pickle")
    (('/runs/a', 3), ('', -1))
    """
    job, _, name = url.rpartition("/")
    found = _RANK.search(name)
    return job, int(found.group(1) or found.group(2)) if found else -1


def name_of(url: str) -> str:
    """Returns a URL as tables and pages may have it: bytes that are no UTF-8, which names of files may have, are spelt.

    >>> name_of("runs/\\udcff.pickle")
    'runs/\\\\udcff.pickle'
    """
    return url.encode("utf-8", "backslashreplace").decode()


def _sweep(report: types.Report) -> Row:
    """Returns what the comparison of a job needs of a sweep, in the form that memreplay reads."""
    def row(found: types.SweepRow) -> Row:
        return {name: getattr(found, name) for name in ("conf", "peak_reserved_bytes", "ooms", "memory_fraction",
                                                        "needs_call", "refused", "is_current")}

    return {"schema_version": report.schema_version, "command": report.command,
            "devices": [{"device": device.device, "sweep": {
                "searched": device.sweep.searched, "current": row(device.sweep.current or types.SweepRow({})),
                "rows": [row(found) for found in device.sweep.rows]}} for device in report.devices if device.sweep]}


# What an answer consists of, by the types of Arrow; a list has any number of what is in it.
_SWEPT = {"conf": "string", "peak_reserved_bytes": "int64", "ooms": "int64", "memory_fraction": "float64",
          "needs_call": "bool", "refused": "string", "is_current": "bool"}
SWEEP = {"schema_version": "int32", "command": "string", "devices": [
    {"device": "int32", "sweep": {"searched": "bool", "current": _SWEPT, "rows": [_SWEPT]}}]}
STACK = {"device": "int32", "stack": "string", "requested_bytes": "int64", "allocations": "int64", "frames": "string"}


def is_like(value: Any, shape: Any) -> bool:
    """Returns whether a value that was read from a file is one of this shape, and may be added to others of it.

    >>> is_like({"a": [1, 2]}, {"a": ["int64"]}), is_like({"a": [2**60]}, {"a": ["int64"]})
    (True, False)
    """
    if isinstance(shape, list):
        return isinstance(value, list) and all(is_like(each, shape[0]) for each in value)
    if isinstance(shape, dict):
        return isinstance(value, dict) and value.keys() == shape.keys() and all(
            is_like(value[name], of) for name, of in shape.items())
    if shape == "string":
        return isinstance(value, str) and name_of(value) == value
    if shape == "bool":
        return isinstance(value, bool)
    if isinstance(value, bool) or not isinstance(value, (int, float) if shape == "float64" else int):
        return False
    return bool(abs(value) <= (2**31 - 1 if shape == "int32" else 2**56))  # as the binary accepts them; NaN is not


def settings(sweep: Row) -> List[Row]:
    """Returns the settings tried, best first, and the current ones, without those that need an additional call."""
    found = []
    for device in sweep["devices"]:
        rows = [row for row in device["sweep"]["rows"] if not row["refused"] and not row["needs_call"]]
        current = {**device["sweep"]["current"], "is_current": True}
        if device["sweep"]["searched"] and all(row["conf"] != current["conf"] for row in rows):
            rows.append(current)
        found += [{"device": device["device"], **{name: row[name] for name in (
            "conf", "peak_reserved_bytes", "ooms", "is_current")}} for row in rows]
    return found


def sweep_line(url: str, sweep: Row) -> str:
    """Returns the sweep of a file as a line for compare()."""
    return json.dumps({**sweep, "file": url}) + "\n"


def compare(lines: Iterable[str]) -> types.Together:
    """Reports which settings suit all files of a job and which ranks stand out, from the sweeps.

    Errors: Error.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        file.writelines(lines)
        if file.tell() == 0:
            return types.Together({})
        file.flush()
        try:
            answer = Answer.parse(run(["sweep", "--together", "--json", file.name]).stdout)
        except Error as error:
            raise Error(f"fleet: the answers in parts cannot be compared; remove them: {error}") from None
    return answer.together or types.Together({})


def _device_row(report: types.Report, device: types.DeviceReport, oom: Optional[types.DeviceReport]) -> Row:
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
        "ooms": current.ooms, "alloc_retries": current.alloc_retries,
        "verdict": oom.oom.verdict if oom and oom.oom else "", "faults": "; ".join(oom.faults if oom else ()),
        "best_conf": best.conf,
        "best_peak_reserved_bytes": best.peak_reserved_bytes, "best_ooms": best.ooms,
        "best_saves_bytes": current.peak_reserved_bytes - best.peak_reserved_bytes}


def _answer(task: Task) -> Dict[str, Any]:
    recording = load(task.url)
    recording.timeout = task.timeout
    flags = dict(task.flags)
    if task.confs:
        sweep = recording.sweep(conf=task.confs, jobs=1, **flags)
        return {"sweep": _sweep(sweep)}
    sweep = recording.sweep(jobs=1, **flags)
    oom = recording.oom(**flags)
    page = recording.report(**flags)
    ooms = {device.device: device for device in oom.devices}
    stacks = {name: column for name, column in page.columns("stacks").items() if name in STACK}
    return {
        "devices": [_device_row(sweep, device, ooms.get(device.device)) for device in sweep.devices],
        "sweep": _sweep(sweep),
        "stacks": [row for device in sweep.devices for row in [
            dict(zip(stacks, cells)) for cells in zip(*stacks.values()) if cells[0] == device.device][:TOP_STACKS]]}


def run_task(task: Task) -> Dict[str, Any]:
    """Returns the rows of a file, by table, or {"error": ...}. If `is_final`, a retry would give the same."""
    for attempt in range(task.retries + 1):
        try:
            return {"is_final": True, "error": "", **_answer(task)}
        except Unanswered as error:
            # What took too long once takes too long again on this machine.
            if "took longer" in str(error) or attempt == task.retries:
                return {"is_final": False, "error": str(error)}
            time.sleep(0.1 * attempt)
        except Error as error:
            return {"is_final": True, "error": str(error)}
        except Exception as error:  # of a file system; the other files have their answers nevertheless
            return {"is_final": isinstance(error, FileNotFoundError), "error": f"{name_of(task.url)}: {error}"}
    raise AssertionError("not reached")
