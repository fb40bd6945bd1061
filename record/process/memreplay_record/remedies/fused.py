"""The optimizer's step in one kernel for many tensors, without lists of temporaries."""
from memreplay_record.remedies import optimizer
from memreplay_record.remedies.change import Proposal

NAME = "fused"


def propose(seen):
    for each in seen.optimizers.values():
        if optimizer.is_free_to_choose(each) and "fused" in each.arguments:
            yield Proposal(
                f"{NAME}:{each.name}", f"{each.name}(fused=True)", optimizer.lines_of(each, fused=True),
                cost="nothing; the step is faster", cost_rank=0.1, place=each.call.place, group="optimizer",
                preserves_text="the same update by another kernel; the last digits may differ")


def apply(change, argument):
    optimizer.with_arguments(change, argument, foreach=None, fused=True)
