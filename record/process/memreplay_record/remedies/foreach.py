"""The optimizer's step tensor by tensor: its temporaries are those of one tensor."""
from memreplay_record.remedies import optimizer
from memreplay_record.remedies.change import Proposal

NAME = "foreach"


def propose(seen):
    for each in seen.optimizers.values():
        if optimizer.is_free_to_choose(each):
            yield Proposal(
                f"{NAME}:{each.name}", f"{each.name}(foreach=False)", optimizer.lines_of(each, foreach=False),
                cost="more kernels in the optimizer's step", cost_rank=0.3, place=each.call.place, group="optimizer",
                preserves_text="the same update, tensor by tensor")


def apply(change, argument):
    optimizer.with_arguments(change, argument, foreach=False, fused=None)
