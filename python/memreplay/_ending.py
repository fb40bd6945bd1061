"""What ended a script, or a block of it.

`memreplay record` and memreplay.recording() use this file, as they do _notes.py.
"""

from __future__ import annotations

import linecache
import os
from types import CodeType
from typing import Optional, Tuple

from ._lost import name_of, quietly, text_of

_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep


def line_of(error: BaseException) -> Optional[Tuple[CodeType, int]]:
    """Returns the code and the number of the innermost line of a traceback outside of PyTorch and this package."""
    found, trace = None, error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if f"{os.sep}torch{os.sep}" not in code.co_filename and not code.co_filename.startswith((_FOLDER, "<")):
            found = code, trace.tb_lineno
        trace = trace.tb_next
    return found


def message_of(error: BaseException) -> str:
    """Returns the message of an exception, or the script's line that raised it: an assertion rarely has a message."""
    line = line_of(error)
    return text_of(error) or (linecache.getline(line[0].co_filename, line[1]).strip() if line is not None else "")


@quietly("what ended the block", otherwise="an error")
def words_for(error: BaseException) -> str:
    """Returns what ended a block, as AddEnds() of report/words/record_faults.cc says it; "" if that is no failure."""
    if issubclass(type(error), SystemExit):
        status = error.code  # type: ignore[attr-defined]
        return f"exit status {status if isinstance(status, int) else 1}" if status else ""
    line = line_of(error)
    place = ""
    if line is not None:
        code, number = line
        function = "" if code.co_name.startswith("<") else f" in {code.co_name}"
        place = f" ({os.path.basename(code.co_filename)}:{number}{function})"
    message = message_of(error).partition("\n")[0]
    return f"{name_of(type(error))}{': ' if message else ''}{message}{place}"
