"""Activation checkpointing of a repeated or of one large module: what its forward pass saves is computed again in
backward."""
import contextlib
import functools
import weakref

from memreplay_record.remedies.change import Proposal, module_text

NAME = "checkpoint"  # checkpoint:CLASS, or checkpoint:CLASS:2 for every second one
_WITH_STATISTICS = '''\
@contextmanager
def with_copied_statistics(module):
    """The second forward pass moves copies of running statistics, which the first one has moved."""
    norms = [m for m in module.modules() if getattr(m, "track_running_stats", False)]
    kept = [dict(m._buffers) for m in norms]
    for m in norms:
        m._buffers.update({name: each.clone() for name, each in m._buffers.items() if each is not None})
    try:
        yield
    finally:
        for m, buffers in zip(norms, kept):
            m._buffers.update(buffers)


def contexts(module):
    return nullcontext(), with_copied_statistics(module)
'''


def _edits(model, each, modules):
    """Returns the edits that checkpoint each of the expression `modules`, in which {} is the model."""
    found = model.binding()
    name = found.source.free_name("block", "each")
    return found.after(
        _lines(each, modules.format(found.name), name),
        ["import functools", "import torch.utils.checkpoint",
         *(["from contextlib import contextmanager, nullcontext"] if each.tracks else [])],
        _WITH_STATISTICS.splitlines() if each.tracks else ())


def _lines(each, modules, name):
    more = f", context_fn=functools.partial(contexts, {name})" if each.tracks else ""
    return [f"for {name} in {modules}:",
            f"    {name}.forward = functools.partial(torch.utils.checkpoint.checkpoint, {name}.forward, "
            f"use_reentrant=False{more})"]


def what_moves(classes):
    return f"what forward() of {', '.join(sorted(classes))} changes in its buffers"


def preserved(model, classes):
    """Says what a second forward pass of modules that have these classes in them computes, as arguments of Proposal."""
    moved = classes & model.moves
    if moved:
        return {"preserves": False, "preserves_text": f"other results: {what_moves(moved)} is changed twice"}
    return {"preserves_text": "the same; random numbers are drawn again as they were"}


def propose(seen):
    for model in seen.trained():
        if model.fills_cache:
            continue  # which a second forward pass would fill once more
        for each in model.repeated[:2]:
            for step, which in ((1, "each"), (2, "every second")):
                if each.number < 2 * step:
                    continue
                modules = module_text("{}", each.path) if each.path else _of_class(each)
                share = each.share / step
                yield Proposal(
                    f"{NAME}:{each.name}" + (f":{step}" if step > 1 else ""),
                    f"{which} {each.name} checkpointed ({(each.number + step - 1) // step} of {each.number})",
                    edits=functools.partial(_edits, model, each, f"{modules}{f'[::{step}]' if step > 1 else ''}"),
                    cost=f"a second forward pass of {which} {each.name}, {100 * share:.0f} % of the model's parameters",
                    cost_rank=1 + share, place=each.place(model), group=f"{NAME}:{each.name}",
                    **preserved(model, each.classes))
        for each in model.large[:1 if model.repeated else 2]:
            name, share = each.name, each.share
            yield Proposal(
                f"{NAME}:{name}", f"the {name} checkpointed",
                edits=functools.partial(_edits, model, each, _of_class(each)),
                cost=f"a second forward pass of the {name}, {100 * share:.0f} % of the model's parameters",
                cost_rank=1 + share, place=each.place(model), group=f"{NAME}:{each.name}",
                **preserved(model, each.classes))


def _of_class(each):
    return f'[m for m in {{}}.modules() if type(m).__name__ == "{each.name}"]'


def apply(change, argument):
    from torch.utils.checkpoint import checkpoint
    torch, meet = change.torch, change.meeting()
    name, _, step = argument.partition(":")
    step = int(step or 1)
    numbers = {}  # by the modules' ids: a weak reference, and which of them it is, in the order of their first calls
    made = {"contextmanager": contextlib.contextmanager, "nullcontext": contextlib.nullcontext}
    exec(_WITH_STATISTICS, made)

    def number_of(module):
        known = numbers.get(id(module))
        if known is None or known[0]() is not module:
            known = numbers[id(module)] = weakref.ref(module), len(numbers)
        return known[1]

    def around(forward, module, args, kwargs):
        if number_of(module) % step != 0 or not torch.is_grad_enabled():
            return forward(module, *args, **kwargs)
        meet()
        return checkpoint(forward, module, *args, use_reentrant=False,
                          context_fn=functools.partial(made["contexts"], module), **kwargs)

    change.around_forward(name, around)
