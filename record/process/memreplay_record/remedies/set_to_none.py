"""Frees gradients between steps instead of filling them with zeros."""
import functools

from memreplay_record.remedies import edits
from memreplay_record.remedies.change import Proposal

NAME = "set_to_none"


def propose(seen):
    call = seen.keeps_gradients
    if call is not None:
        yield Proposal(
            NAME, "zero_grad(set_to_none=True)", edits=functools.partial(_edits, call),
            cost="nothing", cost_rank=0.05, place=call.place,
            preserves_text="the same, except that parameters without a gradient are skipped by the optimizer")


def _edits(call):
    source = edits.source_of(call.path)
    node = source.call(call, "zero_grad")
    return source.replace(node.args[0], "True") if node.args else source.set_keyword(node, "set_to_none", "True")


def apply(change, argument):
    optimizer, meet = change.torch.optim.Optimizer, change.meeting()
    zero_grad = optimizer.zero_grad

    @functools.wraps(zero_grad)
    def to_none(this, set_to_none=True):
        meet()
        return zero_grad(this, True)

    optimizer.zero_grad = to_none
