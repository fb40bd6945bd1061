"""Compares two snapshots, event by event: events.py A.pickle B.pickle [DEVICE].

It compares action, size and stream (numbered by first use). Consecutive frees count as a set: when
autocast clears its cache of weights, and when Python drops a dict, their order is that of host
addresses, which differ between runs.
"""
import pickle
import sys

_FREES = ("free_requested", "free_completed")


class _Data(pickle.Unpickler):
    """Reads snapshots as plain data: lists, dicts, numbers and texts."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name} is no data")


def load(path):
    with open(path, "rb") as file:
        return _Data(file).load()


def events_of(snapshot, device=0):
    """Returns [(action, size, stream number)] and, for each, its innermost Python frame outside of torch."""
    streams, events, places = {}, [], []
    for event in snapshot["device_traces"][device]:
        if event["action"] == "snapshot":
            continue
        stream = streams.setdefault(event.get("stream", 0), len(streams))
        events.append((event["action"], event["size"], stream))
        frames = [frame for frame in event.get("frames", ()) if "/torch/" not in frame["filename"]]
        places.append(f"{frames[0]['filename']}:{frames[0]['line']}" if frames else "?")
    return events, places


def lives(events):
    """Returns for each allocation, in order, its size, and how many there had been when it was freed (None: never).

    `events` are (name, size) where something is allocated, (name, None) where it is freed.
    """
    found, live = [], {}
    for name, size in events:
        if size is None:
            number = live.pop(name)
            found[number] = (found[number][0], len(found))
        else:
            live[name] = len(found)
            found.append((size, None))
    return found


def _in_sets(events):
    """Returns the same with each run of frees sorted; positions stay those of the run."""
    out, start = list(events), None
    for i, event in enumerate([*events, ("end", 0, 0)]):
        if event[0] in _FREES:
            start = i if start is None else start
        elif start is not None:
            out[start:i] = sorted(events[start:i])
            start = None
    return out


def difference(a, b):
    """Returns the first difference in words, or None; `a` and `b` are from events_of()."""
    one, other = _in_sets(a[0]), _in_sets(b[0])
    for i, (x, y) in enumerate(zip(one, other)):
        if x != y:
            return f"event {i}: {x} at {a[1][i]}, {y} at {b[1][i]}"
    if len(one) != len(other):
        return f"{len(one)} events, {len(other)} events"
    return None


def main():
    device = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    a, b = (events_of(load(path), device) for path in sys.argv[1:3])
    found = difference(a, b)
    print(found or f"{len(a[0])} events, all alike")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
