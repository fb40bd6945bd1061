"""Releases cached memory to the driver between training and evaluation, whose tensors have other sizes."""
import functools

from memreplay_record.remedies.change import Proposal

NAME = "empty_cache"


def propose(seen):
    for model in seen.trained():
        if model.evaluated:
            yield Proposal(
                NAME, "empty_cache() between training and evaluation",
                ["torch.cuda.empty_cache()", f"{model.variable}.eval()", "...", "torch.cuda.empty_cache()",
                 f"{model.variable}.train()"],
                cost="a synchronisation and new cudaMallocs at each change", cost_rank=0.5, preserves_text="the same",
                place=model.call.place)
            return


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
