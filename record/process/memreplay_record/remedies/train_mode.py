"""train() of a model that is trained in eval() mode, in which the checkpointing of Transformers does nothing."""
import ast
import functools

from memreplay_record.remedies import edits
from memreplay_record.remedies.change import Proposal

NAME = "train_mode"  # train_mode:MODEL


def propose(seen):
    for model in seen.trained():
        own = model.checkpointing
        if own is not None and own.is_on and not model.trained:
            yield Proposal(
                f"{NAME}:{model.name}",
                f"train() of {model.name}: checkpointing is on and does nothing, as the model is in eval mode",
                edits=functools.partial(_edits, model), cost="a second forward pass of each layer", cost_rank=0.9,
                place=model.call.place, group="checkpoint", preserves=False,
                preserves_text="dropout and what else differs in training then does what it is there for")


def _edits(model):
    """Returns the edits that put it before the innermost loop around the call, as evaluation may come in between."""
    source = edits.source_of(model.call.path)
    inner = outer = source.simple(source.call(model.call))
    while not isinstance(outer, (ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
        outer = source.parents[outer]
    return source.before(outer if isinstance(outer, (ast.For, ast.While)) else inner, [f"{model.variable}.train()"])


def apply(change, argument):
    torch, meet = change.torch, change.meeting()

    def around(call, module, args, kwargs, frame):
        if not module.training and torch.is_grad_enabled():
            meet()
            module.train()
        return call(module, *args, **kwargs)

    change.around_call(argument, around)
