"""Updates each parameter in the backward pass as soon as its gradient is there, which is then freed."""
import functools
import inspect

from memreplay_record.remedies.change import Proposal

NAME = "step_in_backward"
_DEFINITION = '''\
def step_in_backward(optimizer):
    """Updates each parameter as soon as its gradient is there. The optimizer's own step then finds none."""
    optimizers = {p: type(optimizer)([{**group, "params": [p]}])
                  for group in optimizer.param_groups for p in group["params"] if p.requires_grad}

    def update(p):
        optimizers[p].step()
        optimizers[p].zero_grad()

    for p in optimizers:
        p.register_post_accumulate_grad_hook(update)
'''


def propose(seen):
    if seen.needs_all_gradients or not seen.backward:
        return
    for each in seen.optimizers.values():
        if each.is_pytorch and each.name != "LBFGS":
            yield Proposal(
                f"{NAME}:{each.name}", f"the step of {each.name} in the backward pass",
                edits=functools.partial(_edits, each),
                cost="an optimizer's step for each parameter", cost_rank=0.6, place=each.call.place,
                group="micro_batches",
                preserves_text="the same, if nothing reads gradients between the backward pass and the step; learning "
                               "rate schedulers must set the rate of each optimizer")


def _edits(optimizer):
    optimizer.made.source()
    found = optimizer.made.binding(optimizer.name)
    return found.after([f"step_in_backward({found.name})"], definition=_DEFINITION.splitlines())


def apply(change, argument):
    cls, meet = getattr(change.torch.optim, argument), change.meeting()
    init = cls.__init__
    inside = []  # an optimizer of one parameter is made
    defined = {}
    exec(_DEFINITION, defined)

    def made(optimizer, *args, **kwargs):
        init(optimizer, *args, **kwargs)
        if inside or type(optimizer) is not cls:
            return
        meet()
        inside.append(optimizer)
        defined["step_in_backward"](optimizer)
        inside.pop()

    made.__signature__ = inspect.signature(init)  # scripts read it: nanoGPT for "fused"
    cls.__init__ = made
