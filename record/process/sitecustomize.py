"""Runs first in every Python process of a script that `memreplay record` started."""
import os
import sys


def _run_shadowed(folder):
    """Runs the sitecustomize that the environment had before, if there is one."""
    import importlib.machinery
    import importlib.util
    path = [entry for entry in sys.path if os.path.abspath(entry or ".") != folder]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if "MEMREPLAY_RECORD" in os.environ:
    import memreplay_record
    memreplay_record.start()
_run_shadowed(os.path.dirname(os.path.abspath(__file__)))
