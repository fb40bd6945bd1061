"""Turns on the checkpointing that models of Transformers and Diffusers have."""
import functools

from memreplay_record.remedies import checkpoint
from memreplay_record.remedies.change import Proposal, module_text

NAME = "hf_checkpoint"  # hf_checkpoint:CLASS
# With reentrance, the default of Transformers, layers behind a frozen embedding (LoRA) get no gradients.
_ARGUMENTS = {"gradient_checkpointing_enable": {"gradient_checkpointing_kwargs": {"use_reentrant": False}}}


def propose(seen):
    for model in seen.trained():
        own = model.checkpointing
        if own is not None and not own.is_on and model.trained:
            share = sum(each.share for each in model.repeated[:1])
            yield Proposal(
                f"{NAME}:{own.cls.__name__}", f"{own.cls.__name__}.{own.method}()",
                edits=functools.partial(_edits, model), cost="a second forward pass of each layer",
                cost_rank=1 + share, place=model.call.place, group="checkpoint", **preserved(model))


def _edits(model):
    found, own = model.binding(), model.checkpointing
    given = ", ".join(f"{name}={value}" for name, value in _ARGUMENTS.get(own.method, {}).items()).replace("'", '"')
    return found.after([f"{module_text(found.name, own.path)}.{own.method}({given})"])


def preserved(model):
    if any(each.tracks for each in model.repeated):
        return {"preserves": False,
                "preserves_text": "other results: BatchNorm's running statistics move twice in each step"}
    return checkpoint.preserved(model, set().union(*(each.classes for each in model.repeated)))


def apply(change, argument):
    meet = change.meeting()

    def around(forward, module, args, kwargs):
        if module.training and not module.is_gradient_checkpointing:
            meet()
            method = next(each for each in ("gradient_checkpointing_enable", "enable_gradient_checkpointing")
                          if hasattr(module, each))
            getattr(module, method)(**_ARGUMENTS.get(method, {}))
        return forward(module, *args, **kwargs)

    change.around_forward(argument, around)
