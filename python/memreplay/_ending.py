"""What ended a script, or a block of it.

`memreplay record` and memreplay.recording() use this file, as they do _notes.py.
"""

from __future__ import annotations

import linecache
import os
from collections import deque
from typing import Deque, List, NamedTuple, Optional

from ._lost import name_of, quietly, text_of

_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
_MAX_FRAMES, _MAX_CODE = 400, 160  # of an error; characters of a line


class Frame(NamedTuple):
    """A line that runs."""

    file: str
    line: int
    function: str
    code: str


def frames_of(error: BaseException) -> List[Frame]:
    """Returns the frames of a traceback outside of this package, the innermost last, at most _MAX_FRAMES of them."""
    found: Deque[Frame] = deque(maxlen=_MAX_FRAMES)
    trace = error.__traceback__
    while trace is not None:
        file, line = trace.tb_frame.f_code.co_filename, trace.tb_lineno or 0
        if not file.startswith(_FOLDER):
            code = linecache.getline(file, line).strip()[:_MAX_CODE]
            found.append(Frame(file, line, trace.tb_frame.f_code.co_name, code))
        trace = trace.tb_next
    return list(found)


def line_of(frames: List[Frame]) -> Optional[Frame]:
    """Returns the innermost of these frames outside of PyTorch."""
    own = (each for each in reversed(frames) if f"{os.sep}torch{os.sep}" not in each.file and each.file[:1] != "<")
    return next(own, None)


def message_of(error: BaseException, line: Optional[Frame]) -> str:
    """Returns the message of an exception, or the script's line that raised it: an assertion rarely has a message."""
    return text_of(error) or (line.code if line is not None else "")


@quietly("what ended the block", otherwise="an error")
def words_for(error: BaseException) -> str:
    """Returns what ended a block, as AddEnds() of report/words/record_faults.cc says it; "" if that is no failure."""
    if issubclass(type(error), SystemExit):
        status = error.code  # type: ignore[attr-defined]
        return f"exit status {status if isinstance(status, int) else 1}" if status else ""
    line = line_of(frames_of(error))
    place = ""
    if line is not None:
        function = "" if line.function.startswith("<") else f" in {line.function}"
        place = f" ({os.path.basename(line.file)}:{line.line}{function})"
    message = message_of(error, line).partition("\n")[0]
    return f"{name_of(type(error))}{': ' if message else ''}{message}{place}"
