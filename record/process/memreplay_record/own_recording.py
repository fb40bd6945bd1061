"""Gives scripts that record themselves the snapshots that they would get without memreplay.

PyTorch has one recorder, and memreplay uses it from the first allocation on. When the script turns recording on or off,
the position in the traces is noted; when it takes a snapshot, it gets what was recorded in between, and only blocks
that were made meanwhile have stacks.
"""
import inspect
import pickle

from memreplay_record import frames


class OwnRecording:
    def __init__(self, torch, history):
        memory = torch.cuda.memory
        self.torch, self.history = torch, history
        self.record, self.take_now = memory._record_memory_history, memory._snapshot
        self.earlier = []  # events that PyTorch forgot when recording was turned on once more
        self.spans = []  # [begin, end] positions per device, while it was on; end None: still on
        self.entries, self.keeps_events = None, True
        memory._record_memory_history = self._record
        memory._snapshot = self._snapshot
        memory._dump_snapshot = self._dump
        for function, ours in ((self.record, self._record), (self.take_now, self._snapshot)):
            ours.__func__.__doc__ = function.__doc__

    def keep_events(self, begin):
        """Turns recording on once more, and keeps the events that some releases before 2.6 (2.1) then forget."""
        had = []
        if [int(part) for part in self.torch.__version__.split(".")[:2]] < [2, 6]:
            had = self.take()["device_traces"]
        begin()
        if any(had) and not any(self.take_now()["device_traces"]):
            self.earlier = had

    def take(self, *args, **kwargs):
        snapshot = self.take_now(*args, **kwargs)
        for trace, earlier in zip(snapshot["device_traces"], self.earlier):
            trace[:0] = earlier
        return snapshot

    def _positions(self):
        """Returns the next position in each device's trace."""
        if not self.history.records():
            return []
        # Taking a snapshot is itself an event, noted after it is taken.
        return [len(trace) + 1 if trace else 0 for trace in self.take()["device_traces"]]

    def _record(self, enabled="all", *args, **kwargs):
        positions = self._positions()
        if self.spans and self.spans[-1][1] is None:
            if enabled:
                self._understand(enabled, args, kwargs)
                return
            self.spans[-1][1] = positions
        elif enabled:
            self._understand(enabled, args, kwargs)
            self.spans.append([positions, None])

    def _understand(self, enabled, args, kwargs):
        """Reads from the script's arguments how many events to keep, and whether stacks have C++ frames."""
        self.keeps_events = enabled in ("all", True)
        if isinstance(enabled, bool):
            self.entries = args[1] if len(args) > 1 else kwargs.get("trace_alloc_max_entries", 1)
            return
        given = inspect.signature(self.record).bind_partial(enabled, *args, **kwargs).arguments
        self.entries = given.get("max_entries")
        if given.get("stacks", "all") == "all":
            self.history.record_all_stacks()

    def _on(self, device, position):
        """Returns whether the script recorded at a position of a device's trace."""
        for begin, end in self.spans:
            first = begin[device] if device < len(begin) else 0
            last = None if end is None else end[device] if device < len(end) else 0
            if position >= first and (last is None or position < last):
                return True
        return False

    def _snapshot(self, *args, **kwargs):
        snapshot = self.take(*args, **kwargs)
        if not self.history.records():
            return snapshot
        frames.drop_own(snapshot)
        on = bool(self.spans) and self.spans[-1][1] is None
        made_at = {}  # (device, address) -> position of the last alloc there
        for device, trace in enumerate(snapshot["device_traces"]):
            for position, event in enumerate(trace):
                if event["action"] == "alloc":
                    made_at[device, event["addr"]] = position
            begin = self.spans[-1][0] if on else []
            first = begin[device] if device < len(begin) else 0
            kept = trace[first:] if on and self.keeps_events else []
            trace[:] = kept[-self.entries:] if self.entries else kept
        for segment in snapshot["segments"]:
            device, address = segment["device"], segment["address"]
            segment["frames"] = []
            for block in segment["blocks"]:
                at = block.get("address", address)
                address = at + block["size"]
                position = made_at.get((device, at))
                if position is None or not self._on(device, position):
                    block["frames"] = []
                    block.pop("history", None)
        return snapshot

    def _dump(self, filename="dump_snapshot.pickle", *args, **kwargs):
        with open(filename, "wb") as file:
            pickle.dump(self._snapshot(*args, **kwargs), file)
