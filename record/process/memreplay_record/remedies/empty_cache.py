"""Releases cached memory to the driver between training and evaluation, whose tensors have other sizes."""
import ast
import functools

from memreplay_record.remedies import edits
from memreplay_record.remedies.change import Proposal

NAME = "empty_cache"


def propose(seen):
    for model in seen.trained():
        if model.is_evaluated_itself:
            yield Proposal(
                NAME, "empty_cache() between training and evaluation", edits=functools.partial(_edits, seen),
                cost="a synchronisation and new cudaMallocs at each change", cost_rank=0.5, preserves_text="the same",
                place=model.call.place)
            return


def _edits(seen):
    """Returns the edits of the statements that change the mode."""
    found = {}
    for call in seen.mode_changes.values():
        source = edits.source_of(call.path)
        node = source.call(call)
        if ast.unparse(node.func).rpartition(".")[2] not in ("train", "eval"):
            source.refuse(node, "calls what changes the mode")
        found[source.simple(node)] = source
    if not found:
        raise edits.Unwritten("no line of the script changes the mode")
    return [edit for statement, source in found.items()
            for edit in (*source.add_import("import torch", statement),
                         *source.before(statement, ["torch.cuda.empty_cache()"]))]


def apply(change, argument):
    torch, meet = change.torch, change.meeting()
    train = torch.nn.Module.train
    inside = []

    @functools.wraps(train)
    def emptying(this, mode=True):
        if not inside and this.training != mode and torch.cuda.is_initialized():
            meet()
            torch.cuda.empty_cache()
        inside.append(this)
        try:
            return train(this, mode)
        finally:
            inside.pop()

    torch.nn.Module.train = emptying
