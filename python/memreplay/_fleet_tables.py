"""The results of a fleet: Parquet tables, the best settings of each job, and a page. Same rows, same bytes."""

from __future__ import annotations

import html
import os
import uuid
from typing import Any, Dict, Iterable, List, Optional, Tuple

from memreplay import report_types as types
from memreplay._fleet_task import STACK, SWEEP, Row, compare, is_like
from memreplay._words import size_text

_HEAD = ["job:string", "rank:int32", "file:string", "device:int32"]
_COLUMNS: Dict[str, List[str]] = {
    "devices": _HEAD + [
        "error:string", "format:string", "torch_release:string", "torch_inferred:bool", "conf:string",
        "capacity_bytes:int64", "events:int64", "compared_events:int64", "matched_events:int64",
        "peak_reserved_bytes:int64", "peak_allocated_bytes:int64", "peak_active_bytes:int64",
        "peak_requested_bytes:int64", "reserved_minus_allocated_bytes:int64", "inactive_split_bytes:int64",
        "fragmentation:float64", "ooms:int64", "alloc_retries:int64", "verdict:string", "faults:string",
        "best_conf:string", "best_peak_reserved_bytes:int64", "best_ooms:int64", "best_saves_bytes:int64"],
    "settings": _HEAD + ["conf:string", "peak_reserved_bytes:int64", "ooms:int64", "is_current:bool"],
    "stacks": _HEAD[:3] + [f"{name}:{kind}" for name, kind in STACK.items()],
    "jobs": ["job:string", "devices:int64", "failed_files:int64", "ooms:int64", "worst_file:string",
             "peak_reserved_bytes:int64", "best_conf:string", "best_ooms:int64", "best_peak_reserved_bytes:int64",
             "saves_bytes:int64", "saves_on_all_devices_bytes:int64", "outliers:string"]}
TABLES = tuple(_COLUMNS)
_DEVICE = dict(column.split(":") for column in _COLUMNS["devices"] if column.split(":")[0] not in (
    "job", "rank", "file", "error"))  # without what is added to the rows of an answer
_SHAPES: Dict[str, Any] = {
    "is_final": "bool", "error": "string", "sweep": SWEEP, "devices": [_DEVICE], "stacks": [STACK]}
_ROWS_AT_ONCE = 20_000
_JOBS_TOLD = 20  # on the terminal; the page and the tables have all


def is_answer(value: Any) -> bool:
    """Returns whether a value that was read from a file is what run_task() returns."""
    return isinstance(value, dict) and "error" in value and bool(value["error"] or "sweep" in value) and all(
        name in _SHAPES and is_like(value[name], _SHAPES[name]) for name in value)


class _Job:
    """What is kept of a job while its files are read; `together` is what memreplay reports on all of them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.failed = 0
        self.devices: List[Row] = []
        self.sweeps: List[str] = []  # lines for compare()
        self.together = types.Together({})

    def finish(self) -> None:
        self.together = compare(self.sweeps)
        self.sweeps.clear()

    def best(self) -> types.Together.Row:
        """Returns the settings under which the worst device of the job needs least, or else the current ones."""
        now = [device.peak_reserved_bytes for device in self.together.devices]
        in_force = types.Together.Row({"ooms": sum(device.ooms for device in self.together.devices),
                                       "peak_reserved_bytes": max(now, default=0), "sum_peak_reserved_bytes": sum(now),
                                       "device_peak_bytes": now})
        return self.together.rows[0] if self.together.rows else in_force

    def outliers(self) -> Dict[Tuple[str, int], float]:
        """Returns the scores of the devices that stand out."""
        return {(device.file, device.device): device.score for device in self.together.devices if device.is_outlier}

    def worst(self) -> Optional[Row]:
        return max(self.devices, key=lambda device: (device["ooms"] > 0, device["peak_reserved_bytes"]), default=None)

    def row(self) -> Row:
        best, odd, worst = self.best(), self.outliers(), self.worst()
        peaks = [device["peak_reserved_bytes"] for device in self.devices]
        peak = max(peaks, default=0)
        told = [f"{_short(device)} ({odd[_key(device)]:+.1f})" for device in self.devices if _key(device) in odd]
        return {
            "job": self.name, "devices": len(self.devices), "failed_files": self.failed,
            "ooms": _int64(sum(device["ooms"] for device in self.devices)),
            "worst_file": worst["file"] if worst else "", "peak_reserved_bytes": peak, "best_conf": best.conf,
            "best_ooms": best.ooms,
            "best_peak_reserved_bytes": best.peak_reserved_bytes, "saves_bytes": peak - best.peak_reserved_bytes,
            "saves_on_all_devices_bytes": _int64(sum(peaks) - best.sum_peak_reserved_bytes),
            "outliers": "; ".join(told)}


def _int64(total: int) -> int:
    return max(-2**63, min(total, 2**63 - 1))


def _key(device: Row) -> Tuple[str, int]:
    return device["file"], device["device"]


def _short(device: Row) -> str:
    name = f"rank {device['rank']}" if device["rank"] >= 0 else str(device["file"]).rpartition("/")[2]
    return name if device["device"] <= 0 else f"{name} device {device['device']}"


def is_local(fs: Any) -> bool:
    return "file" in (fs.protocol if isinstance(fs.protocol, (list, tuple)) else [fs.protocol])


class Part:
    """A file of a file system under a temporary name, which is hidden and different in every run, until it is whole."""

    def __init__(self, fs: Any, path: str) -> None:
        self.fs, self.path = fs, os.path.realpath(path) if is_local(fs) else path
        self.name = f"{self.path.rpartition('/')[0]}/.memreplay-{uuid.uuid4().hex}.tmp"

    def place(self) -> None:
        self.fs.mv(self.name, self.path)


class Tables:
    """Takes the rows of one file after the other, in order of the files' names, and writes them as they come."""

    def __init__(self, fs: Any, path: str) -> None:
        import pyarrow
        import pyarrow.parquet

        self.fs, self.path = fs, path.rstrip("/")
        self.schemas = {name: pyarrow.schema([tuple(column.split(":")) for column in columns])
                        for name, columns in _COLUMNS.items()}
        self.rows: Dict[str, List[Row]] = {name: [] for name in _COLUMNS}
        self.parts = {name: Part(fs, f"{self.path}/{name}.parquet") for name in _COLUMNS}
        self.files = {name: fs.open(part.name, "wb") for name, part in self.parts.items()}
        self.writers = {name: pyarrow.parquet.ParquetWriter(self.files[name], self.schemas[name], compression="zstd")
                        for name in _COLUMNS}
        self.job: Optional[_Job] = None
        self.errors: List[Row] = []
        self.failed = self.jobs_seen = 0
        self.saved = self.reserved = 0
        self.shown: List[str] = []
        self.told: List[str] = []

    def add(self, tables: Dict[str, List[Row]], sweeps: List[str]) -> None:
        head = tables["devices"][0]
        if self.job is None or self.job.name != head["job"]:
            self._finish_job()
            self.job = _Job(head["job"])
        if head["error"]:
            self.failed += 1
            self.job.failed += 1
            self.errors.append(head)
        self.job.devices += [row for row in tables["devices"] if row["device"] >= 0]
        self.job.sweeps += sweeps
        for name, rows in tables.items():
            self._write(name, rows)

    def _write(self, name: str, rows: Iterable[Row], is_last: bool = False) -> None:
        import pyarrow

        waiting = self.rows[name]
        waiting.extend(rows)
        if waiting and (is_last or len(waiting) >= _ROWS_AT_ONCE):
            self.writers[name].write_table(pyarrow.Table.from_pylist(waiting, schema=self.schemas[name]))
            waiting.clear()

    def _finish_job(self) -> None:
        if self.job is None:
            return
        self.job.finish()
        row = self.job.row()
        self.jobs_seen += 1
        self.saved += row["saves_on_all_devices_bytes"]
        self.reserved += sum(device["peak_reserved_bytes"] for device in self.job.devices)
        self._write("jobs", [row])
        self.shown.append(_job_html(self.job, row))
        if self.jobs_seen <= _JOBS_TOLD:
            self.told.append(_job_line(row))

    def finish(self) -> None:
        self._finish_job()
        for name, writer in self.writers.items():
            self._write(name, [], is_last=True)
            writer.close()
            self.files[name].close()
            self.parts[name].place()
        part = Part(self.fs, f"{self.path}/fleet.html")
        with self.fs.open(part.name, "w", encoding="utf-8") as file:
            file.write(_page(self.headlines(), self.shown, self.errors))
        part.place()

    def headlines(self) -> List[str]:
        """Summarizes what is saved over all devices; `told` has a line for each of the first jobs."""
        share = self.saved / self.reserved if self.reserved else 0.0
        return [f"the best common settings of each job would save {size_text(self.saved)} of "
                f"{size_text(self.reserved)} reserved over all devices ({share:.1%})"]


def _peak(device: Row, of: str) -> str:
    known = "" if device["events"] else "at least "  # only the final state is in the file
    return known + size_text(device[of])


def _job_line(row: Row) -> str:
    if not row["devices"]:
        return f"{row['job']}: failed"
    line = f"{row['job']}: {size_text(row['peak_reserved_bytes'])} on the worst device"
    if row["saves_bytes"] or row["ooms"] > row["best_ooms"]:
        line += f", {size_text(row['best_peak_reserved_bytes'])} with {row['best_conf'] or 'the defaults'}"
    if row["ooms"]:
        line += f"; OUT OF MEMORY {row['ooms']} time{'s' * (row['ooms'] != 1)}, {row['best_ooms']} with the best " \
                "settings"
    return line + (f"; outliers: {row['outliers']}" if row["outliers"] else "")


_STYLE = """body { font: 14px system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em }
table { border-collapse: collapse; width: 100% } td, th { padding: 2px 10px 2px 0; text-align: left }
td.n { text-align: right } td.n, td.name { white-space: nowrap } td.bar { width: 30% }
.bar i { display: block; height: 10px; background: #4b78a8 } .bar i i { background: #a8c4e0 } .odd { font-weight: bold }
.bad { color: #b00020 } code { background: #f2f2f2; padding: 1px 4px }"""


def _job_html(job: _Job, told: Row) -> str:
    best, odd = job.best(), job.outliers()
    after = {(device.file, device.device): peak for device, peak in zip(job.together.devices, best.device_peak_bytes)}
    most = max(told["peak_reserved_bytes"], 1)
    worst = job.worst()
    lines = [f"<h2>{html.escape(job.name or 'files without a folder')}</h2><p>{told['devices']} "
             f"device{'s' * (told['devices'] != 1)}"]
    if worst:
        lines.append(f"; worst: {html.escape(worst['file'])}, {_peak(worst, 'peak_reserved_bytes')}"
                     f"{', out of memory' * (worst['ooms'] > 0)}.")
    if job.together.rows:
        lines.append(f" Best for all at once: <code>{html.escape(best.conf or 'the defaults')}</code>, "
                     f"{size_text(told['best_peak_reserved_bytes'])} on the worst, "
                     f"{size_text(told['saves_on_all_devices_bytes'])} "
                     "saved on all together.")
    rows = []
    for device in job.devices:
        then = after.get(_key(device), int(device["peak_reserved_bytes"]))
        wide, inner = 100 * device["peak_reserved_bytes"] / most, 100 * then / max(device["peak_reserved_bytes"], 1)
        name = html.escape(_short(device))
        rows.append([
            ("", f'<a href="{html.escape(device["link"])}">{name}</a>' if device["link"] else name),
            ("bar", f'<i style="width:{wide:.1f}%"><i style="width:{min(inner, 100):.1f}%"></i></i>'),
            ("n", _peak(device, "peak_reserved_bytes")),
            ("n", size_text(then) if job.together.rows else ""),
            ("n", _peak(device, "peak_allocated_bytes")),
            ("n", f"{odd[_key(device)]:+.1f}" if _key(device) in odd else ""),
            ("bad", html.escape(device["faults"]))])
    heads = ["rank", "", "peak reserved", "best for all", "allocated", "deviations from the median", "problem"]
    shown = [i for i in range(len(heads)) if any(row[i][1] for row in rows)]
    lines += ["</p><table><tr>", *(f"<th>{heads[i]}</th>" for i in shown), "</tr>"]
    for device, row in zip(job.devices, rows):
        lines.append(f"<tr{' class=odd' if _key(device) in odd else ''} title=\"{html.escape(device['file'])}\">")
        lines += [f"<td class={row[i][0] or 'name'}>{row[i][1]}</td>" for i in shown]
        lines.append("</tr>")
    return "".join(lines) + "</table>"


def _page(headlines: List[str], jobs: List[str], errors: List[Row]) -> str:
    told = (row["error"] if row["file"] in row["error"] else f"{row['file']}: {row['error']}" for row in errors)
    failed = "".join(f"<li class=bad>{html.escape(text)}</li>" for text in told)
    return (f"<!doctype html><meta charset=utf-8><title>memreplay fleet</title><style>{_STYLE}</style>"
            f"<h1>Ranks side by side</h1>{''.join(f'<p>{html.escape(line)}</p>' for line in headlines)}"
            f"{f'<h2>Failed</h2><ul>{failed}</ul>' if failed else ''}{''.join(jobs)}\n")
