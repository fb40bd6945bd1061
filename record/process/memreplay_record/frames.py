"""Frames of Python: which line of the script runs, and stacks without this package, as on a real GPU."""
import dis
import functools
import os
import sys
import threading

from memreplay_record import _lost

FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_OPTIMIZED = 0x01  # co_flags of a function's code
_READ_LOCALS = {"locals", "vars", "dir", "eval", "exec"}


def is_own(path):
    """Returns whether a file is the script's, and neither a package's nor ours."""
    return not path.startswith((FOLDER, "<")) and not any(part in path for part in _INSTALLED) and \
        f"{os.sep}torch{os.sep}" not in path


def locals_of(frame):
    """Returns the local variables of a running frame by name, without making the frame keep their values.

    Before Python 3.13 a function's frame keeps the dict that f_locals returns, and so every tensor in it, until the
    function ends. The dict is left as it is where the function may have it itself, from locals().
    """
    found = frame.f_locals
    if not frame.f_code.co_flags & _OPTIMIZED or not isinstance(found, dict):
        return found
    copy = dict(found)
    if not _reads_locals(frame.f_code):
        found.clear()
    return copy


@functools.lru_cache(maxsize=None)
def _reads_locals(code):
    return any(each.opname.startswith("LOAD_GLOBAL") and each.argval in _READ_LOCALS
               for each in dis.get_instructions(code))  # co_names has attributes as well, such as eval


def place():
    """Returns the innermost line outside of PyTorch, Python's library and this package.

    If there is none, it is the outermost one; in a thread, which begins in Python's library, PyTorch's innermost.
    """
    # Within a compiled function, Dynamo would compile functions of Python's library that are called here.
    torch = sys.modules["torch"].__file__.rpartition(os.sep)[0] + os.sep
    frame = sys._getframe(1)
    innermost = outermost = None
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((FOLDER, "<")):
            innermost, outermost = innermost or frame, frame
            if not file.startswith(torch) and (
                    not file.startswith(_LIBRARY) or "site-packages" in file):
                break
        frame = frame.f_back
    if frame is None:
        frame = innermost if outermost is not None and outermost.f_code.co_name == "_bootstrap" else outermost
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "?"


def hide_own():
    """Makes Python leave this package out of the tracebacks of uncaught errors, unless the script shows those itself.

    What a script formats has all frames. It cannot see the difference: sys.__excepthook__ is replaced as well.
    """
    for module in (sys, threading):
        shown = module.excepthook
        if shown is getattr(module, "__excepthook__", None):
            module.excepthook = module.__excepthook__ = functools.partial(_show, shown)


def _show(shown, *error):
    _hide_own(error[0].exc_value if len(error) == 1 else error[1])  # threading's has one argument
    shown(*error)


@_lost.quietly("which frames of a traceback are the script's")
def _hide_own(error):
    """Changes the traceback of an error, and those of the errors that it came from."""
    errors, done = [error], set()
    while errors:
        error = errors.pop()
        if error is None or id(error) in done:
            continue
        done.add(id(error))
        errors += [error.__cause__, error.__context__, *getattr(error, "exceptions", ())]
        kept, trace = [], error.__traceback__
        while trace is not None:
            if not trace.tb_frame.f_code.co_filename.startswith(FOLDER):
                kept.append(trace)
            trace = trace.tb_next
        for i, trace in enumerate(kept):
            trace.tb_next = kept[i + 1] if i + 1 < len(kept) else None
        if kept:
            error.__traceback__ = kept[0]


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
