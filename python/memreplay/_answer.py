"""An answer of memreplay: the report with tables for Arrow and pandas, and a view for notebooks."""

from __future__ import annotations

import html
import json
import os
import pathlib
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterable,
    List,
    Optional,
    Tuple,
    Union,
)

from memreplay import report_types as types
from memreplay._message import Message
from memreplay._output import check, written
from memreplay._program import Error, needed
from memreplay._words import category_noun, diagnosis_text, size_text

if TYPE_CHECKING:
    import pandas
    import pyarrow

Columns = Dict[str, List[Any]]


def _columns(rows: Iterable[Dict[str, Any]]) -> Columns:
    """Turns rows with the same keys into columns."""
    table: Columns = {}
    for row in rows:
        for name, found in row.items():
            table.setdefault(name, []).append(found)
    return table


def _row(device: types.DeviceReport, message: Message, **more: Any) -> Dict[str, Any]:
    return {"device": device.device, **dict(message._scalars()), **more}


def _devices(devices: List[types.DeviceReport]) -> Columns:
    return _columns({**dict(device._scalars()), "torch_release": device.torch.release if device.torch else ""}
                    for device in devices)


def _sweep(devices: List[types.DeviceReport]) -> Columns:
    return _columns(_row(device, row, risks="; ".join(row.risks))
                    for device in devices if device.sweep for row in device.sweep.rows)


def _fits(devices: List[types.DeviceReport]) -> Columns:
    return _columns(_row(device, row) for device in devices if device.fits for row in device.fits.rows)


def _timeline(devices: List[types.DeviceReport]) -> Columns:
    table: Columns = {}
    for device in devices:
        if device.page is None or device.page.curve is None:
            continue
        curve = device.page.curve
        columns = {"device": [device.device] * len(curve.position), "position": curve.position,
                   "allocated_bytes": curve.allocated_bytes, "active_bytes": curve.active_bytes,
                   "reserved_bytes": curve.reserved_bytes, "requested_bytes": curve.requested_bytes}
        for name, found in columns.items():
            table.setdefault(name, []).extend(found)
    return table


def _map_blocks(device: types.DeviceReport, page: types.Page) -> Iterable[Dict[str, Any]]:
    states = {"a": "active_allocated", "p": "active_pending_free", "i": "inactive"}
    for block_map in page.maps:
        for segment in block_map.segments:
            address, live = segment.address, 0
            for state, size in zip(segment.states, segment.sizes):
                is_live = state != "i"
                stack = segment.stacks[live] if is_live else -1
                yield {"device": device.device, "moment": block_map.moment, "segment_address": segment.address,
                       "segment_bytes": segment.total_size, "segment_type": segment.segment_type,
                       "stream": segment.stream, "address": address, "size_bytes": size,
                       "requested_bytes": segment.requested_sizes[live] if is_live else 0, "state": states[state],
                       "stack": page.stacks[stack].summary if 0 <= stack < len(page.stacks) else "",
                       "category": "", "phase": "", "module": ""}
                address += size
                live += is_live


def _blocks(devices: List[types.DeviceReport]) -> Columns:
    def rows() -> Iterable[Dict[str, Any]]:
        for device in devices:
            if device.page is not None:
                yield from _map_blocks(device, device.page)
                continue
            for segment in device.segments:
                for block in segment.blocks:
                    requested = 0 if block.state == "inactive" else block.requested_size
                    yield {"device": device.device, "moment": "end", "segment_address": segment.address,
                           "segment_bytes": segment.total_size, "segment_type": segment.segment_type,
                           "stream": segment.stream, "address": block.address, "size_bytes": block.size,
                           "requested_bytes": requested, "state": block.state, "stack": block.stack,
                           "category": block.category, "phase": block.phase, "module": block.module}

    return _columns(rows())


def _stacks(devices: List[types.DeviceReport]) -> Columns:
    """Tabulates by stack what was live at the peak, or when memory ran out.

    Category, phase and module are those of a stack's largest allocation.
    """
    def rows() -> Iterable[Dict[str, Any]]:
        for device in devices:
            if device.page is not None and device.page.holdings is not None:
                page = device.page
                for held in page.holdings.stacks if page.holdings else []:
                    stack = page.stacks[held.stack]
                    yield {"device": device.device, "stack": stack.summary, "category": held.category,
                           "phase": held.phase, "module": held.module, "requested_bytes": held.requested_bytes,
                           "allocations": held.allocations,
                           "frames": "\n".join(page.frames[frame] for frame in stack.frames)}
            elif device.oom is not None:
                for live in device.oom.live:
                    where = live.stack or types.Stack({})
                    yield {"device": device.device, "stack": where.summary, "category": live.category,
                           "phase": live.phase, "module": live.module, "requested_bytes": live.requested_bytes,
                           "allocations": live.allocations, "frames": "\n".join(where.frames)}

    return _columns(rows())


def _advice(advice: Optional[types.Advice]) -> Columns:
    rows = advice.rows if advice else []
    return _columns({**dict(row._scalars()), "remedies": list(row.remedies), "lines": "\n".join(row.lines)}
                    for row in rows)


def _categories(devices: List[types.DeviceReport]) -> Columns:
    """Tabulates what is live when each phase peaks, and at the peak of all or when memory runs out (`phase` "peak")."""
    def rows() -> Iterable[Dict[str, Any]]:
        for device in devices:
            found = device.categories
            if found is None:
                continue
            moments = [(phase.name, phase.step, phase.event, phase.bytes_by_category) for phase in found.phases]
            moments.append(("peak", found.peak_step, found.peak_event, found.bytes_by_category))
            for name, step, event, by_category in moments:
                for category, size in sorted(by_category.items(), key=lambda item: -item[1]):
                    yield {"device": device.device, "phase": name, "step": step, "event": event, "category": category,
                           "live_bytes": size}

    return _columns(rows())


def _modules(devices: List[types.DeviceReport]) -> Columns:
    return _columns({"device": device.device, "module": module.path, "live_bytes": module.live_bytes,
                     "peak_live_bytes": module.peak_live_bytes}
                    for device in devices if device.categories for module in device.categories.modules)


def _lines(devices: List[types.DeviceReport]) -> Columns:
    return _columns(_row(device, line) for device in devices if device.categories for line in device.categories.lines)


_SHOWN = 10  # rows of a printed table


def _best_settings(device: types.DeviceReport) -> Columns:
    rows = device.sweep.rows[:_SHOWN] if device.sweep else []
    return _columns({"settings": (row.conf or "default settings") + (" (current)" if row.is_current else ""),
                     "peak reserved": size_text(row.peak_reserved_bytes), "out of memory": row.ooms,
                     "retries": row.alloc_retries} for row in rows if not row.refused)


def _smallest_devices(device: types.DeviceReport) -> Columns:
    rows = device.fits.rows[:_SHOWN] if device.fits else []
    return _columns({"settings": row.conf or "default settings",
                     "safe from": size_text(row.safe_bytes) if row.safe_bytes else "none"}
                    for row in rows if not row.refused)


def _holders(device: types.DeviceReport) -> Columns:
    found = device.categories.bytes_by_category if device.categories else {}
    return _columns({"category": category_noun(category), "live": size_text(size)}
                    for category, size in sorted(found.items(), key=lambda item: -item[1]))


def _best_changes(advice: Optional[types.Advice]) -> Columns:
    rows = [row for row in advice.rows if not row.error][:_SHOWN] if advice else []
    return _columns({"change": row.change, "needs": size_text(row.smallest_bytes),
                     "fits": "yes" if row.fits else "unknown" if row.survives else "no",
                     "results": "same" if row.preserves else "CHANGED", "cost": row.cost} for row in rows)


_MATTERS: Dict[str, Callable[[types.DeviceReport], Columns]] = {
    "sweep": _best_settings, "fit": _smallest_devices, "advise": lambda device: _best_changes(device.advice)}


def _text_table(columns: Columns) -> str:
    rows = [list(columns), *[[str(cell) for cell in row] for row in zip(*columns.values())]]
    widths = [max(len(row[n]) for row in rows) for n in range(len(columns))]
    return "\n".join("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def _html_table(columns: Columns) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>"
                   for row in zip(*columns.values()))
    return f"<table><tr>{head}</tr>{body}</table>"


_TABLES: Dict[str, Callable[[List[types.DeviceReport]], Columns]] = {
    "devices": _devices, "sweep": _sweep, "fits": _fits, "timeline": _timeline, "blocks": _blocks, "stacks": _stacks,
    "categories": _categories, "modules": _modules, "lines": _lines}
_OF_COMMAND = {"sweep": "sweep", "fit": "fits", "report": "timeline", "replay": "blocks", "oom": "stacks",
               "advise": "advice"}


class Answer(types.Report):
    """What memreplay reports on a file: all of `Report` in proto/report.proto, as attributes.

    `is_good` says whether it ended with status 0: no difference from the recording, no out of memory where there should
    be none, no contradiction in the file. str() is for people: the diagnosis and the main table.
    """

    def __init__(self, data: Dict[str, Any], is_good: bool = True, page: Optional[Callable[[], str]] = None) -> None:
        super().__init__(data)
        self.is_good = is_good
        self._page = page

    @property
    def diagnosis(self) -> str:
        """What happened, why and what to do, as one text: a line per device or script."""
        return "\n".join(diagnosis for diagnosis, _ in self._matters() if diagnosis)

    def _matters(self) -> List[Tuple[str, Columns]]:
        """Returns the diagnosis and the main table of each device, or of a script."""
        if not self.devices and self.advice is not None:
            return [(diagnosis_text(self.advice.diagnosis), _best_changes(self.advice))]
        table = _MATTERS.get(self.command, _holders)
        several = len(self.devices) > 1
        return [((f"device {device.device}: " if several else "") + diagnosis_text(device.diagnosis), table(device))
                for device in self.devices]

    def __str__(self) -> str:
        parts = []
        for diagnosis, columns in self._matters():
            parts.append(diagnosis or "no diagnosis")
            if columns:
                parts.append(_text_table(columns))
        return "\n".join([f"{self.command} {self.file}".rstrip(), *parts])

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the page of this run to "NAME.html", or the answer itself to "NAME.json".

        Errors: ValueError for another ending; Error for an answer without a page (diff); OSError.
        """
        path = pathlib.Path(path)
        if path.suffix not in (".html", ".json"):
            raise ValueError(f"save(): expected a name that ends in .html or .json, found {str(path)!r}")
        if path.suffix == ".json":
            text = json.dumps(self.to_dict(), indent=1)
        elif self._page is None:
            raise Error(f"save(): {self.command} has no page")
        else:
            text = self._page()
        check(path, [self.file])
        with written(path) as file:
            file.write(text.encode("utf-8"))

    @classmethod
    def parse(cls, text: bytes, is_good: bool = True, page: Optional[Callable[[], str]] = None) -> "Answer":
        """Parses the answer that `--json` printed."""
        try:
            return cls(json.loads(text), is_good, page)
        except ValueError as error:
            raise Error(f"the JSON printed by memreplay cannot be read: {error}") from None

    @property
    def only_device(self) -> types.DeviceReport:
        """The one device of the file. Errors: Error if there are several or none."""
        if len(self.devices) != 1:
            raise Error(f"{self.file}: has {len(self.devices)} devices; use one of .devices")
        return self.devices[0]

    @property
    def best(self) -> types.SweepRow:
        """The best settings of a sweep: survives if any does, then the lowest peak of reserved memory."""
        rows = self.only_device.sweep.rows if self.only_device.sweep else []
        if not rows:
            raise Error(f"{self.file}: no settings were tried; only sweep() has .best")
        return rows[0]

    def columns(self, table: Optional[str] = None) -> Columns:
        """Returns a table as lists of equal length; units are in the names of the columns.

        Tables: `devices` (one row each), `sweep`, `fits`, `timeline`, `blocks`, `stacks`, `categories` (what is live at
        the peak of each phase), `modules` and `lines` (of code, at the peak), `advice`; without a name, the main one of
        the command. Empty if this answer has no such table.
        """
        name = table or _OF_COMMAND.get(self.command, "devices")
        if name == "advice":
            return _advice(self.advice)
        if name not in _TABLES:
            raise Error(f"no table {name!r}; there are {', '.join(_TABLES)}, advice")
        return _TABLES[name](self.devices)

    def to_arrow(self, table: Optional[str] = None) -> "pyarrow.Table":
        """Returns `columns()` as a pyarrow.Table. Errors: ImportError without pyarrow."""
        made: "pyarrow.Table" = needed("pyarrow", "to_arrow()").table(self.columns(table))
        return made

    def to_pandas(self, table: Optional[str] = None) -> "pandas.DataFrame":
        """Returns `columns()` as a pandas.DataFrame. Errors: ImportError without pandas."""
        made: "pandas.DataFrame" = needed("pandas", "to_pandas()").DataFrame(self.columns(table))
        return made

    def _repr_html_(self) -> str:
        if self._page is not None and self.command in ("replay", "report"):
            return frame(self._page())
        parts = [f"<p>{html.escape(self.command)} {html.escape(self.file)}</p>"]
        for diagnosis, columns in self._matters():
            parts.append(f"<p>{html.escape(diagnosis)}</p>{_html_table(columns)}")
        return "".join(parts)


def frame(page: str) -> str:
    """Wraps a page for a notebook's output in a frame of its own, where its scripts run and reach nothing outside."""
    return (f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts" '
            'style="width: 100%; height: 720px; border: 0"></iframe>')
