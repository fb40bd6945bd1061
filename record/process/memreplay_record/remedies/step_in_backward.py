"""Updates each parameter in the backward pass as soon as its gradient is there, which is then freed."""
import inspect

from memreplay_record.remedies.change import Proposal

NAME = "step_in_backward"
_LINES = '''\
optimizers = {{p: {cls}([{{**group, "params": [p]}}])
              for group in optimizer.param_groups for p in group["params"] if p.requires_grad}}

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
                ["# after the line that makes the optimizer:",
                 *_LINES.format(cls=f"torch.optim.{each.name}").splitlines(),
                 "# optimizer.step() and optimizer.zero_grad() in the loop are no longer needed"],
                cost="an optimizer's step for each parameter", cost_rank=0.6, place=each.call.place,
                group="micro_batches",
                preserves_text="the same, if nothing reads gradients between the backward pass and the step; learning "
                               "rate schedulers must set the rate of each optimizer")


def apply(change, argument):
    cls, meet = getattr(change.torch.optim, argument), change.meeting()
    init = cls.__init__
    inside = []  # an optimizer of one parameter is made
    lines = _LINES.format(cls=f"torch.optim.{argument}")

    def made(optimizer, *args, **kwargs):
        init(optimizer, *args, **kwargs)
        if inside or type(optimizer) is not cls:
            return
        meet()
        inside.append(optimizer)
        exec(lines, {"torch": change.torch, "optimizer": optimizer})
        inside.pop()

    made.__signature__ = inspect.signature(init)  # scripts read it: nanoGPT for "fused"
    cls.__init__ = made
