"""What the remedies of optimizers share."""
import functools
import inspect

from memreplay_record.remedies.change import Proposal
from memreplay_record.remedies.edits import Unwritten

WITH_STATE = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop")
_STATE = '''\
class {name}(torch.optim.{base}):
    """Keeps its state {where}, except that of the parameter that it updates."""

    def step(self, closure=None):
        loss, groups = closure() if closure else None, self.param_groups
        for group in groups:
            for p in group["params"]:
                self.param_groups = [{{**group, "params": [p]}}]
                self.put(p, lambda value: {used})
                super().step()
                self.put(p, lambda value: {kept})
        self.param_groups = groups
        return loss

    def put(self, p, made):
        for name, value in self.state[p].items():
            if torch.is_tensor(value) and value.numel() > 1:
                self.state[p][name] = made(value)
'''


def proposals(seen, name, value, other, **words):
    """Yields a proposal for each optimizer with the argument `name`, which decides how the step is made.

    `other` is the argument that decides the same, and goes.
    """
    def edits(each):
        source, call = _made_by(each)
        return [*source.set_keyword(call, name, repr(value)),
                *source.drop_keywords(call, lambda keyword: keyword == other)]

    for each in seen.optimizers.values():
        if _is_free_to_choose(each) and name in each.arguments:
            yield Proposal(f"{name}:{each.name}", f"{each.name}({name}={value})", edits=functools.partial(edits, each),
                           place=each.call.place, group="optimizer", **words)


def _is_free_to_choose(optimizer):
    """Returns whether the script lets PyTorch choose how the step is made, which then takes lists of temporaries."""
    return optimizer.is_pytorch and "foreach" in optimizer.arguments and not optimizer.fused and \
        optimizer.foreach is not False


def _made_by(optimizer):
    """Returns the Source and the call that makes an optimizer. Raises Unwritten if that stands in a library."""
    if optimizer.made is None:
        raise Unwritten("no line of the script is known that makes it")
    source = optimizer.made.source()
    return source, source.call(optimizer.call)


def edits_of_class(optimizer, made, kept=None, imports=("import torch",), definition=()):
    """Returns the edits that make the class `made` in place of the script's optimizer: of its keyword arguments those
    that `kept` has, or all of them."""
    source, call = _made_by(optimizer)
    if kept is not None and len(call.args) > 2:
        source.refuse(call, "has arguments without names")
    drops = source.drop_keywords(call, lambda keyword: keyword not in kept) if kept is not None else []
    return [*source.above(call, imports, definition), *source.replace(call.func, made), *drops]


def in_place_proposals(seen, name, ours, kept, **more):
    """Yields a proposal of the optimizer `ours` of torch.optim, with the arguments `kept` of the script, for each with
    state."""
    for each in seen.optimizers.values():
        if each.is_pytorch and each.name in WITH_STATE:
            yield Proposal(
                f"{name}:{each.name}", f"{ours} in place of {each.name}",
                edits=functools.partial(edits_of_class, each, f"torch.optim.{ours}", {"params", *kept}),
                cost="another training: learning rates must be found anew", preserves=False, place=each.call.place,
                group="optimizer", **more)


def put_in_place(change, name, ours, kept):
    """Makes `ours`, with the arguments `kept`, where the script makes the optimizer `name` of torch.optim."""
    theirs, meet = getattr(change.torch.optim, name), change.meeting()
    signature = inspect.signature(theirs.__init__)

    class InPlace(ours):
        def __init__(self, *args, **kwargs):
            meet()
            given = signature.bind(self, *args, **kwargs).arguments
            super().__init__(given["params"], **{each: given[each] for each in kept if each in given})

    InPlace.__name__ = InPlace.__qualname__ = name
    InPlace.__init__.__signature__ = signature  # scripts read it: nanoGPT for "fused"
    setattr(change.torch.optim, name, InPlace)


def state_proposals(seen, name, where, words, **more):
    """Yields a proposal for each optimizer with state, which a class of it, made of `words`, keeps elsewhere."""
    for each in seen.optimizers.values():
        if each.is_pytorch and each.name in WITH_STATE:
            yield Proposal(
                f"{name}:{each.name}", f"the state of {each.name} {where}",
                edits=functools.partial(edits_of_class, each, words["name"],
                                        definition=_STATE.format(base=each.name, **words).splitlines()),
                place=each.call.place, group="optimizer", **more)


def keep_state(change, base, words):
    """Puts the class of state_proposals() in the place of the optimizer `base` of torch.optim."""
    made = {"torch": change.torch}
    exec(_STATE.format(base=base, **words), made)
    setattr(change.torch.optim, base, made[words["name"]])
    with_arguments(change, base)


def with_arguments(change, name, **more):
    """Makes the optimizers `name` of torch.optim with these arguments."""
    cls, meet = getattr(change.torch.optim, name), change.meeting()
    init = cls.__init__

    @functools.wraps(init)  # scripts read the signature, nanoGPT for "fused"
    def made(optimizer, *args, **kwargs):
        meet()
        init(optimizer, *args, **{**kwargs, **more})

    cls.__init__ = made
