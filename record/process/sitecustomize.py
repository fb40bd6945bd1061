"""Runs first in every Python process of a script that `memreplay record` started, whatever Python that is."""
import os
import sys

_OLDEST = (3, 8)  # that a PyTorch which can be recorded runs on


class _NoRecordingOfTorch:
    """A finder in front of all others, which finds nothing but says why an older Python's torch is not recorded."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return
        import binascii
        import json
        wishes = json.loads(os.environ["MEMREPLAY_RECORD"])
        name = str(os.getpid()) + wishes["files"]["problem"]
        place = os.path.join(binascii.a2b_base64(wishes["folder"]), name.encode("ascii"))
        try:
            with open(place, "w") as file:
                file.write("Python {}.{} is too old; record needs {}.{} or later".format(
                    *(sys.version_info[:2] + _OLDEST)))
        except Exception:  # the script goes on
            pass

    find_module = find_spec  # as Python 2 calls it


def _run_shadowed(folder):
    """Runs the sitecustomize that the environment had before, if there is one."""
    import importlib.machinery
    import importlib.util
    path = [entry for entry in sys.path if os.path.abspath(entry or ".") != folder]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if "MEMREPLAY_RECORD" in os.environ and sys.version_info < _OLDEST:
    sys.meta_path.insert(0, _NoRecordingOfTorch())
elif "MEMREPLAY_RECORD" in os.environ:
    import memreplay_record
    memreplay_record.start()
if sys.version_info >= (3, 5):
    _run_shadowed(os.path.dirname(os.path.abspath(__file__)))
