"""Runs a script with PyTorch on a simulated GPU, which nothing records but the script: on_card.py SCRIPT ARGUMENTS.

The GPU is that of `memreplay record --card`, found by its environment (torch_test.py).
"""

import os
import runpy
import sys

import memreplay_record
from memreplay_record import card, on_import

settings = memreplay_record.read_wishes(os.environ["ON_CARD"])
on_import.watch("torch", lambda spec: card.load(settings, os.path.dirname(spec.origin)), lambda torch: None)
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
