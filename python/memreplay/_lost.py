"""What could not be noted of a script, which goes on as if nothing had been tried.

`memreplay record` and memreplay.recording() use this file, as they do _notes.py, so it imports nothing of either.
"""

from __future__ import annotations

import functools
import signal
from typing import Any, Callable, Dict, List, Set, Tuple

_LONGEST = 200  # maximum characters of a reason

_found: Dict[Tuple[str, str], str] = {}  # what, and the class of the error -> the first such error

name_of: Callable[[type], str] = type.__dict__["__name__"].__get__  # of a class, whatever its metaclass says


def fields_of(value: Any) -> Dict[str, Any]:
    """Returns the attributes that are set on an object, without running code of its class."""
    fields: Dict[str, Any] = object.__getattribute__(value, "__dict__")
    return fields


def text_of(value: Any) -> str:
    """Returns str(value), or "" where that raises."""
    try:
        return str.__getitem__(str(value), slice(None))  # of str itself
    except Exception:
        return ""


def quietly(what: str, otherwise: Any = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates what a script runs without knowing it: its errors are kept for texts() under `what`, which it notes.

    It then returns `otherwise`. What a signal brings (Ctrl+C, a handler of the script that raises) is passed on.
    """
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except BaseException as error:
                if not keep(what, error):
                    raise
            return otherwise
        return called
    return decorate


def keep(what: str, error: BaseException) -> bool:
    """Keeps an error for texts(), unless it is one that a signal brought. Returns whether it did."""
    if not is_by_signal(error):
        _found.setdefault((what, name_of(type(error))), text_of(error)[:_LONGEST])
        return True
    return False


def texts() -> List[str]:
    """Returns what was lost so far, and why: once for each kind of error."""
    return [f"{what} ({kind}{': ' if why else ''}{why})" for (what, kind), why in _found.items()]


def is_by_signal(error: BaseException) -> bool:
    """Returns whether an error is Ctrl+C, the end of the process, or what a signal's handler in the script raised."""
    if issubclass(type(error), (KeyboardInterrupt, SystemExit)):
        return True
    codes: Set[Any] = set()
    for handler in map(signal.getsignal, signal.valid_signals()):
        if callable(handler):
            function = handler if hasattr(handler, "__code__") else getattr(handler, "__func__", type(handler).__call__)
            codes.add(getattr(function, "__code__", None))
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False
