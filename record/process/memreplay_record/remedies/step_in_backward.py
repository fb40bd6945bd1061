"""Updates each parameter in the backward pass as soon as its gradient is there, which is then freed."""
import ast
import inspect

from memreplay_record.remedies.change import Proposal

NAME = "step_in_backward"


def propose(seen):
    if seen.needs_all_gradients or not seen.backward:
        return
    for each in seen.optimizers.values():
        if each.is_pytorch and each.name != "LBFGS":
            yield Proposal(
                f"{NAME}:{each.name}", f"the step of {each.name} in the backward pass",
                [f"optimizers = {{p: {_call(each)} for p in model.parameters()}}",
                 "", "def update(p):", "    optimizers[p].step()", "    optimizers[p].zero_grad()", "",
                 "for p in optimizers:", "    p.register_post_accumulate_grad_hook(update)",
                 "# optimizer.step() and optimizer.zero_grad() in the loop are no longer needed"],
                cost="an optimizer's step for each parameter", cost_rank=0.6, place=each.call.place,
                group="micro_batches",
                preserves_text="the same, if nothing reads gradients between the backward pass and the step; learning "
                               "rate schedulers must set the rate of each optimizer")


def _call(optimizer):
    """Returns what makes the optimizer of one parameter `p`."""
    def of_one(call):
        if not call.args or any(isinstance(argument, ast.Starred) for argument in call.args):
            return None
        return (f"{ast.unparse(call.func)}"
                f"({', '.join(['[p]', *(ast.unparse(each) for each in (*call.args[1:], *call.keywords))])})")

    return optimizer.call.call_of(optimizer.name, of_one) or f"torch.optim.{optimizer.name}([p], ...)"


def apply(change, argument):
    cls, meet = getattr(change.torch.optim, argument), change.meeting()
    init = cls.__init__
    inside = []  # an optimizer of one parameter is made

    def made(optimizer, *args, **kwargs):
        init(optimizer, *args, **kwargs)
        if inside or type(optimizer) is not cls:
            return
        meet()
        inside.append(optimizer)
        for group in optimizer.param_groups:
            options = {name: group[name] for name in inspect.signature(init).parameters
                       if name in group and name != "params"}
            for parameter in group["params"]:
                _update_in_backward(parameter, cls([parameter], **options))
        inside.pop()

    made.__signature__ = inspect.signature(init)  # scripts read it: nanoGPT for "fused"
    cls.__init__ = made


def _update_in_backward(parameter, optimizer):
    def update(_):
        optimizer.step()
        optimizer.zero_grad()

    parameter.register_post_accumulate_grad_hook(update)
