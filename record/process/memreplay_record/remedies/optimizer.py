"""What the remedies of optimizers share."""
import ast
import functools

from memreplay_record.remedies.change import Proposal

WITH_STATE = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop")


def proposals(seen, name, value, **words):
    """Yields a proposal for each optimizer with the argument `name`, which decides how the step is made."""
    for each in seen.optimizers.values():
        if _is_free_to_choose(each) and name in each.arguments:
            yield Proposal(f"{name}:{each.name}", f"{each.name}({name}={value})", _lines_of(each, **{name: value}),
                           place=each.call.place, group="optimizer", **words)


def _is_free_to_choose(optimizer):
    """Returns whether the script lets PyTorch choose how the step is made, which then takes lists of temporaries."""
    return optimizer.is_pytorch and "foreach" in optimizer.arguments and not optimizer.fused and \
        optimizer.foreach is not False


def _lines_of(optimizer, **more):
    """Returns the call that makes the optimizer, with these arguments."""
    added = [f"{name}={value}" for name, value in more.items()]

    def call(node):
        kept = [ast.unparse(argument) for argument in (*node.args, *node.keywords)
                if getattr(argument, "arg", None) not in more]
        return f"{ast.unparse(node.func)}({', '.join(kept + added)})"

    return [optimizer.call.with_call(optimizer.name, call) or f"torch.optim.{optimizer.name}(..., {', '.join(added)})"]


def with_arguments(change, name, **more):
    """Makes the optimizers `name` of torch.optim with these arguments."""
    cls, meet = getattr(change.torch.optim, name), change.meeting()
    init = cls.__init__

    @functools.wraps(init)  # scripts read the signature, nanoGPT for "fused"
    def made(optimizer, *args, **kwargs):
        meet()
        init(optimizer, *args, **{**kwargs, **more})

    cls.__init__ = made
