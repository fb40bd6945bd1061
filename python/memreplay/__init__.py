"""memreplay: replays a PyTorch script's requests for GPU memory by the caching allocator's own rules.

A thin layer over the binary of the same name, which is installed with it:

    answer = memreplay.load("snapshot.pickle").sweep()
    answer.best.conf            # 'expandable_segments:True'
    answer.to_pandas()          # all settings, ranked

It also records your own script on its GPU:

    with memreplay.recording("snapshot.pickle"):
        train()

It finds out, without a GPU, which changes to a script make it fit one:

    memreplay.advise("train.py", card="rtx-4070").advice.rows

It runs a script, a function or a model on a GPU that is not there:

    run = memreplay.estimate(make_model, {"input_ids": ((8, 1024), "int64")}, optimizer=torch.optim.AdamW,
                             card="rtx-4090")
    run.fits("rtx-3060"), run.total_bytes, run.breakdown

With one line added to a script, it prints the diagnosis when memory runs out:

    memreplay.on_oom("oom.pickle")

It explains an error about memory from its text, a log or the exception:

    print(memreplay.explain(error))
"""

import importlib.util
from typing import Any

if importlib.util.find_spec("memreplay.report_types") is None:
    raise ImportError(f"{__path__[0]}/report_types.py is not there: it is generated when memreplay is built; run "
                      "./memreplay --version in the checkout once")

from memreplay._advise import advise
from memreplay._answer import Answer
from memreplay._explain import Explanation, explain
from memreplay._load import Recording, load
from memreplay._on_oom import on_oom
from memreplay._program import Error, Unanswered, program, run as _run
from memreplay._recording import recording, step
from memreplay._report_oom import report_oom
from memreplay._simulate import Simulation, estimate, record, simulate

__all__ = [
    "Answer", "Error", "Explanation", "Recording", "Simulation", "Unanswered", "advise", "estimate", "explain", "load",
    "on_oom", "program", "record", "recording", "report_oom", "simulate", "step"]


def load_ipython_extension(shell: Any) -> None:
    """Registers the cell magic %%memreplay for %load_ext memreplay (docs/python.md)."""
    from memreplay._magic import register

    register(shell)


def __getattr__(name: str) -> str:
    if name == "__version__":  # the binary's, which is the one place for it
        return _run(["--version"]).stdout.decode().split()[-1]
    raise AttributeError(f"module 'memreplay' has no attribute {name!r}")
