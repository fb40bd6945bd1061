"""Errors within calls whose values are computed: one of a thread, and one that leads to another."""
import sys
import threading
import traceback

import torch


def fails():
    return torch.ones(2, device="cuda") + torch.ones(3, device="cuda")


assert sys.excepthook is sys.__excepthook__
assert threading.excepthook is getattr(threading, "__excepthook__", threading.excepthook)
thread = threading.Thread(target=fails)
thread.start()
thread.join()
if sys.argv[1] == "own":
    def show(kind, error, trace):
        print("the script's own hook", *traceback.format_exception(kind, error, trace), file=sys.stderr)

    sys.excepthook = show
try:
    fails()
except RuntimeError as error:
    if sys.argv[1] == "alone":
        raise
    raise KeyError("after") from error
