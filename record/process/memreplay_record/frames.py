"""Removes this package's own frames from a snapshot's stacks, which are then those of a real GPU."""
import os

FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep


def drop_own(snapshot):
    """Changes the lists of frames in place; one that several events share is changed once."""
    done = {}

    def clean(holder):
        stack = holder.get("frames")
        if stack and id(stack) not in done:
            done[id(stack)] = stack
            kept = [frame for frame in stack if not frame["filename"].startswith(FOLDER)]
            if len(kept) != len(stack):
                stack[:] = kept

    for trace in snapshot["device_traces"]:
        for event in trace:
            clean(event)
    for segment in snapshot["segments"]:
        clean(segment)
        for block in segment["blocks"]:
            clean(block)
            for past in block.get("history", ()):
                clean(past)
