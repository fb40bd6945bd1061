"""memreplay run: a script recorded on its GPU, without a change to it."""

import argparse
import importlib
import os
import runpy
import sys
from typing import List

from memreplay._recording import recording


def main(args: List[str]) -> int:
    """Runs a script as `python SCRIPT ARGS` would, inside memreplay.recording(). Returns nothing that the script did not."""
    parser = argparse.ArgumentParser(
        prog="memreplay run", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Runs a Python script on this machine's GPU, records what it asks of GPU memory and writes a snapshot\n"
        "that all commands read; one for each rank under torchrun:\n\n"
        "  memreplay run train.py --lr 3e-4\n"
        "  torchrun --nproc-per-node 8 --no-python memreplay run train.py\n\n"
        "The script's errors and exit status are its own. Where memory runs out, NAME.oom.pickle has that moment.")
    parser.add_argument("-o", "--out", default="snapshot.pickle", help="the snapshot (snapshot.pickle)")
    parser.add_argument("--max-entries", type=int, help="how many events PyTorch keeps; without it all")
    parser.add_argument("--stacks", choices=["python", "all"], default="python", help="all: C++ frames too")
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module")
    parser.add_argument("script")
    parser.add_argument("args", nargs=argparse.REMAINDER)
    options = parser.parse_args(args)
    try:
        importlib.import_module("torch")
    except ImportError as error:
        print(f"memreplay: run: {sys.executable} cannot import torch: {error}", file=sys.stderr)
        return 2
    sys.argv = [options.script, *options.args]
    sys.path[0] = os.getcwd() if options.module else os.path.dirname(os.path.abspath(options.script))
    try:
        with recording(options.out, max_entries=options.max_entries, stacks=options.stacks):
            if options.module:
                runpy.run_module(options.script, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(options.script, run_name="__main__")
    except RuntimeError as error:
        if not str(error).startswith("memreplay.recording"):
            raise
        print(f"memreplay: run: {error}", file=sys.stderr)
        return 2
    return 0
