"""Evaluates without the activations for a backward pass that never comes."""
from memreplay_record.remedies.change import Proposal

NAME = "no_grad"


def propose(seen):
    for model in seen.models.values():
        call = model.needless_gradients
        if call is not None and not model.differentiated_in_evaluation:
            text = call.text or f"... = {model.variable}(...)"
            yield Proposal(
                f"{NAME}:{model.name}", f"torch.no_grad() where {model.name} is evaluated",
                ["with torch.no_grad():", f"    {text}"],
                cost="nothing; it is faster", cost_rank=0.02, place=call.place,
                preserves_text=_outputs(model))


def _outputs(model):
    text = "the same outputs"
    if model.has_fast_path:
        text += " up to rounding, but zeros where nn.TransformerEncoder is told of padding"
    if model.autocast:
        text += "; not inside an autocast that also trains, which before 2.11 may keep the weights that it casts here"
    return text


def apply(change, argument):
    torch, meet = change.torch, change.meeting()

    def around(forward, module, args, kwargs):
        if module.training or not torch.is_grad_enabled():
            return forward(module, *args, **kwargs)
        meet()
        with torch.no_grad():
            return forward(module, *args, **kwargs)

    change.around_forward(argument, around)
