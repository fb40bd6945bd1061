"""Turns on the checkpointing that models of Transformers have."""
from memreplay_record.remedies import checkpoint
from memreplay_record.remedies.change import Proposal

NAME = "hf_checkpoint"
# With reentrance, the default of Transformers, layers behind a frozen embedding (LoRA) get no gradients.
_HOW = {"use_reentrant": False}


def propose(seen):
    for model in seen.trained():
        if model.can_checkpoint_itself and not model.checkpoints_itself:
            share = sum(each.share for each in model.repeated[:1])
            yield Proposal(
                f"{NAME}:{model.name}", f"{model.name}.gradient_checkpointing_enable()",
                [f"{model.variable}.gradient_checkpointing_enable(gradient_checkpointing_kwargs={_HOW})",
                 f"# or TrainingArguments(gradient_checkpointing=True, gradient_checkpointing_kwargs={_HOW})"],
                cost="a second forward pass of each layer", cost_rank=1 + share, place=model.call.place,
                group="checkpoint", **_preserved(model))


def _preserved(model):
    if any(each.tracks for each in model.repeated):
        return {"preserves": False,
                "preserves_text": "other results: BatchNorm's running statistics move twice in each step"}
    return checkpoint.preserved(model, set().union(*(each.classes for each in model.repeated)))


def apply(change, argument):
    meet = change.meeting()

    def around(forward, module, args, kwargs):
        if module.training and not module.is_gradient_checkpointing:
            meet()
            module.gradient_checkpointing_enable(gradient_checkpointing_kwargs=_HOW)
        return forward(module, *args, **kwargs)

    change.around_forward(argument, around)
