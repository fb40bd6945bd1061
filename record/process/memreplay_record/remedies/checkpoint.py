"""Activation checkpointing of a repeated or of one large module: what its forward pass saves is computed again in
backward."""
import weakref

from memreplay_record.remedies.change import Proposal, module_text

NAME = "checkpoint"  # checkpoint:CLASS, or checkpoint:CLASS:2 for every second one
_PRESERVES = "the same; random numbers are drawn again as they were"


def propose(seen):
    from memreplay_record.remedies.survey import place_of
    for model in seen.trained():
        for each in model.repeated[:2]:
            for step, which in ((1, "each"), (2, "every second")):
                if each.number < 2 * step:
                    continue
                modules = module_text(model.variable, each.path) if each.path else \
                    f"[m for m in {model.variable}.modules() if isinstance(m, {each.name})]"
                share = each.share / step
                yield Proposal(
                    f"{NAME}:{each.name}" + (f":{step}" if step > 1 else ""),
                    f"{which} {each.name} checkpointed ({(each.number + step - 1) // step} of {each.number})",
                    ["from functools import partial", "from torch.utils.checkpoint import checkpoint",
                     f"for block in {modules}{f'[::{step}]' if step > 1 else ''}:",
                     "    block.forward = partial(checkpoint, block.forward, use_reentrant=False)"],
                    cost=f"a second forward pass of {which} {each.name}, {100 * share:.0f} % of the model's parameters",
                    cost_rank=1 + share, place=each.place, group="checkpoint", preserves_text=_PRESERVES)
        for cls, share in model.large[:1 if model.repeated else 2]:
            name = cls.__name__
            yield Proposal(
                f"{NAME}:{name}", f"the {name} checkpointed",
                ["from functools import partial", "from torch.utils.checkpoint import checkpoint",
                 f"module = next(m for m in {model.variable}.modules() if isinstance(m, {name}))",
                 "module.forward = partial(checkpoint, module.forward, use_reentrant=False)"],
                cost=f"a second forward pass of the {name}, {100 * share:.0f} % of the model's parameters",
                cost_rank=1 + share, place=place_of(cls), group="checkpoint", preserves_text=_PRESERVES)


def apply(change, argument):
    from torch.utils.checkpoint import checkpoint
    torch, meet = change.torch, change.meeting()
    name, _, step = argument.partition(":")
    step = int(step or 1)
    numbers = weakref.WeakKeyDictionary()  # of the modules, in the order in which they are first called

    def around(forward, module, args, kwargs):
        if numbers.setdefault(module, len(numbers)) % step != 0 or not torch.is_grad_enabled():
            return forward(module, *args, **kwargs)
        meet()
        return checkpoint(forward, module, *args, use_reentrant=False, **kwargs)

    change.around_forward(name, around)
