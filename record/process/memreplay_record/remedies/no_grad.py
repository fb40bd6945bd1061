"""Evaluates without the activations for a backward pass that never comes."""
import functools

from memreplay_record.remedies import edits
from memreplay_record.remedies.change import Proposal

NAME = "no_grad"


def propose(seen):
    for model in seen.models.values():
        if model.needless_gradients and not model.differentiated_in_evaluation:
            (path, line), *_ = model.needless_gradients
            yield Proposal(
                f"{NAME}:{model.name}", f"torch.no_grad() where {model.name} is evaluated",
                edits=functools.partial(_edits, model), cost="nothing; it is faster", cost_rank=0.02,
                place=edits.place(path, line), preserves_text=_outputs(model))


def _edits(model):
    """Returns the edits of the statements in which the model is evaluated and not trained."""
    found = {}
    for calls in model.needless_gradients.values():
        call = next((each for each in calls if (each.path, each.line) not in model.training_lines), None)
        if call is None:
            raise edits.Unwritten("the same lines train and evaluate")
        source = edits.source_of(call.path)
        found[source.simple(source.call(call))] = source
    return [edit for statement, source in found.items()
            for edit in (*source.add_import("import torch", statement),
                         *source.wrap(statement, statement, "with torch.no_grad():"))]


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
