"""Takes this package's own frames out of a snapshot's stacks, which are then those of a card."""
import os

FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep


def _without_own(stack):
    kept = []
    for frame in stack:  # innermost first
        if frame["filename"].startswith(FOLDER):
            continue
        kept.append(frame)
    return kept


def drop_own(snapshot):
    """Changes the lists of frames in place; one that several events share only once."""
    done = {}

    def clean(holder):
        stack = holder.get("frames")
        if stack and id(stack) not in done:
            done[id(stack)] = stack
            if any(frame["filename"].startswith(FOLDER) for frame in stack):
                stack[:] = _without_own(stack)

    for trace in snapshot["device_traces"]:
        for event in trace:
            clean(event)
    for segment in snapshot["segments"]:
        clean(segment)
        for block in segment["blocks"]:
            clean(block)
            for past in block.get("history", ()):
                clean(past)
