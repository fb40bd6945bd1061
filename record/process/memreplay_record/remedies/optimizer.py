"""What remedies of optimizers share."""
import ast
import functools


def is_free_to_choose(optimizer):
    """Whether the script left it to PyTorch how the step is made, which then takes lists of temporaries."""
    return optimizer.is_pytorch and "foreach" in optimizer.arguments and not optimizer.fused and \
        optimizer.foreach is not False


def lines_of(optimizer, **more):
    """The call that makes the optimizer, with these arguments."""
    added = [f"{name}={value}" for name, value in more.items()]

    def call(node):
        kept = [ast.unparse(argument) for argument in (*node.args, *node.keywords)
                if getattr(argument, "arg", None) not in more]
        return f"{ast.unparse(node.func)}({', '.join(kept + added)})"

    return [optimizer.call.with_call(optimizer.name, call) or f"torch.optim.{optimizer.name}(..., {', '.join(added)})"]


def with_arguments(change, name, **more):
    """The optimizers `name` of torch.optim are made with these arguments."""
    cls, meet = getattr(change.torch.optim, name), change.meeting()
    init = cls.__init__

    @functools.wraps(init)  # scripts look at the signature, nanoGPT for "fused"
    def made(optimizer, *args, **kwargs):
        meet()
        init(optimizer, *args, **{**kwargs, **more})

    cls.__init__ = made
