"""Frees garbage in reference cycles after each step of an optimizer, instead of when Python comes to it."""
import functools
import gc
import sys

from memreplay_record.remedies import edits
from memreplay_record.remedies.change import Proposal

NAME = "collect"  # collect:OPTIMIZER


def propose(seen):
    for each in seen.optimizers.values() if seen.leaves_garbage else ():
        yield Proposal(
            f"{NAME}:{each.name}", f"gc.collect() after each step of {each.name}, as cycles of references keep tensors",
            edits=functools.partial(_edits, each.stepped), cost="a collection of all objects in each step",
            cost_rank=0.55, place=each.stepped.place, preserves_text="the same")


def _edits(call):
    source = edits.source_of(call.path)
    statement = source.simple(source.call(call, "step"))
    return [*source.add_import("import gc", statement), *source.after(statement, ["gc.collect()"])]


def apply(change, argument):
    meet = change.meeting()

    def collect(optimizer, args, kwargs):
        if type(optimizer).__name__ == argument:
            meet()
            gc.collect()

    # torch.optim has no such attribute
    sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(collect)
