"""Splits a batch: one part after the other runs forward and backward, and their gradients are added.

This requires that the model itself returns its loss. The first part runs where the script calls the model, the others
when its backward pass is over, with the factor by which that multiplied the loss.
"""
import ast
import contextlib
import functools

from memreplay_record.remedies import checkpoint, edits
from memreplay_record.remedies.change import Proposal

NAME = "micro_batches"  # micro_batches:CLASS:PARTS
EQUAL_WEIGHTS = "the same up to rounding, if the loss is a mean over samples of equal weight, of which none is ignored"


def propose(seen):
    for model in seen.trained():
        for parts in (2, 4):
            if not model.returns_loss or model.batch % parts != 0 or model.batch < 2 * parts:
                continue
            yield Proposal(
                f"{NAME}:{model.name}:{parts}", f"the batch in {parts} micro-batches of {model.batch // parts}",
                edits=functools.partial(_edits, model, parts), cost=f"{parts} smaller passes in place of one",
                cost_rank=1.5 + parts / 8,
                place=model.call.place, **preserved(model))


def preserved(model):
    if model.mixes_samples:
        return {"preserves": False,
                "preserves_text": "other statistics of batch normalisation, which sees a part of the batch"}
    if model.moves:
        return {"preserves": False,
                "preserves_text": f"other results: {checkpoint.what_moves(model.moves)} is changed by each part"}
    return {"preserves_text": EQUAL_WEIGHTS + other_numbers(model)}


def other_numbers(model):
    """Says that a change makes a model draw other random numbers, if it draws any."""
    return "; dropout draws other numbers" if model.draws else ""


def _edits(model, parts):
    """Returns the edits that put a loop over the parts around the statements from the call to backward()."""
    source = edits.source_of(model.call.path)
    call = source.call(model.call)
    first = source.simple(call)
    block = source.block_of(first)
    while isinstance(source.parents[first], ast.With) and ".backward(" not in "".join(map(ast.unparse, block)):
        first = source.parents[first]
        block = source.block_of(first)
    behind = block[block.index(first):]
    last, backward = next(((each, node) for each in behind for node in ast.walk(each) if isinstance(node, ast.Call) and
                           isinstance(node.func, ast.Attribute) and node.func.attr == "backward"), (None, None))
    if last is None or hasattr(last, "body"):
        source.refuse(first, "is not followed by backward() in its block")
    given = [*call.args, *(each.value for each in call.keywords)]
    names = list(dict.fromkeys(each.id for each in given if isinstance(each, ast.Name)))
    if not names or not all(isinstance(each, (ast.Name, ast.Constant)) for each in given):
        source.refuse(call, "calls the model with more than names")
    inside = [node for each in behind[:behind.index(last) + 1] for node in ast.walk(each)]
    if any(isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Store) for node in inside):
        source.refuse(call, f"is followed by what assigns to {' or '.join(names)}, up to backward()")
    known = {node for each in block[:behind.index(last) + block.index(first) + 1] for node in ast.walk(each)}
    if any(node not in known and not source.is_bound_before(node)
           for node in source.loads(names, source.scope_of(first))):
        source.refuse(call, f"is not all that reads {' and '.join(names)}")
    # accelerator.backward(loss), loss.backward(), scaler.scale(loss).backward()
    loss = backward.func.value
    while isinstance(loss, ast.Call) and len(loss.args) == 1:
        loss = loss.args[0]
    loss = backward.args[0] if backward.args else loss
    begin, end = source.span(loss)
    chunks = ", ".join(f"{name}.chunk({parts})" for name in names)
    header = f"for {names[0]} in {chunks}:" if len(names) == 1 else f"for {', '.join(names)} in zip({chunks}):"
    samples = source.free_name("samples", "all_samples")
    return [*source.before(first, [f"{samples} = len({names[0]})"]), *source.wrap(first, last, header),
            source.edit(begin, begin, "("), source.edit(end, end, f" * len({names[0]}) / {samples})")]


def find_loss(torch, output):
    """Returns (where it is, the scalar that a model returns), or None."""
    if isinstance(output, torch.Tensor):
        return (None, output) if output.dim() == 0 and output.requires_grad else None
    items = output.items() if isinstance(output, dict) else \
        enumerate(output) if isinstance(output, (tuple, list)) else ()
    return next(((at, one) for at, one in items
                 if isinstance(one, torch.Tensor) and one.dim() == 0 and one.requires_grad), None)


def _with_loss(output, at, loss):
    if at is None:
        return loss
    if isinstance(output, dict):
        output[at] = loss
        return output
    return type(output)([*output[:at], loss, *output[at + 1:]])


def batch_of(torch, args, kwargs):
    """Returns the size of the first dimension that all tensors with one share; 0 if they differ or there are none."""
    sizes = {value.size(0) for value in (*args, *kwargs.values())
             if isinstance(value, torch.Tensor) and value.dim() > 0}
    return sizes.pop() if len(sizes) == 1 else 0


def part_of(torch, value, parts, number):
    """Returns one of the parts of a batch, of which the last may be smaller; of anything else all of it."""
    is_split = isinstance(value, torch.Tensor) and value.dim() > 0
    return value.chunk(parts)[number] if is_split else value


def apply(change, argument):
    torch, meet = change.torch, change.meeting()
    name, _, parts = argument.partition(":")
    parts = int(parts or 2)
    waiting = []  # (module, parts of a batch and their shares of it, factors of the loss, autocast)
    inside = []

    def around(forward, module, args, kwargs):
        batch = batch_of(torch, args, kwargs)
        if inside or not module.training or not torch.is_grad_enabled() or batch < parts:
            return forward(module, *args, **kwargs)
        meet()
        shares = [len(part) / batch for part in torch.arange(batch, device="cpu").chunk(parts)]
        pieces = [([part_of(torch, value, parts, i) for value in args],
                   {key: part_of(torch, value, parts, i) for key, value in kwargs.items()}, share)
                  for i, share in enumerate(shares)]
        output = forward(module, *pieces[0][0], **pieces[0][1])
        found = find_loss(torch, output)
        if found is None:
            raise RuntimeError(f"{name} returns no loss, so its batch cannot be split")
        loss, factors = found[1] * shares[0], []
        loss.register_hook(factors.append)
        autocast = torch.autocast("cuda", dtype=torch.get_autocast_gpu_dtype()) if torch.is_autocast_enabled() else None
        waiting.append((module, pieces[1:], factors, autocast))
        return _with_loss(output, found[0], loss)

    run_backward = torch.Tensor.backward

    def backward(this, *args, **kwargs):
        run_backward(this, *args, **kwargs)
        while waiting and not inside:
            module, pieces, factors, autocast = waiting.pop()
            inside.append(module)
            for piece_args, piece_kwargs, share in pieces if factors else ():
                with autocast or contextlib.nullcontext():
                    loss = find_loss(torch, module(*piece_args, **piece_kwargs))[1] * share
                run_backward(loss, factors[0])
            inside.pop()

    torch.Tensor.backward = backward
    change.around_forward(name, around)
