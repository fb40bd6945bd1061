"""Runs the forward pass in bfloat16 with weights in float32."""
import ast
import functools

from memreplay_record.remedies import bf16, edits
from memreplay_record.remedies.change import Proposal

NAME = "autocast"


def propose(seen):
    for model in seen.trained():
        if model.autocast or model.dtypes != {"float32"}:
            continue
        yield Proposal(
            f"{NAME}:{model.name}", f"{model.name} under bfloat16 autocast", edits=functools.partial(_edits, model),
            cost=bf16.COST if bf16.is_fast(seen.torch) else bf16.SLOW, cost_rank=3,
            preserves=False, preserves_text="other results: matrix products and convolutions in bfloat16",
            place=model.call.place)


def _edits(model):
    """Returns the edits that wrap the call and, if the model returns no loss, what follows it up to backward()."""
    source = edits.source_of(model.call.path)
    first = last = source.simple(source.call(model.call))
    block = source.block_of(first)
    behind = block[block.index(first) + 1:]
    end = next((i for i, each in enumerate(behind) if ".backward(" in ast.unparse(each)), 0)
    if end > 0 and not model.returns_loss:
        last = behind[end - 1]
    return [*source.add_import("import torch", first),
            *source.wrap(first, last, 'with torch.autocast("cuda", dtype=torch.bfloat16):')]


def apply(change, argument):
    torch, meet = change.torch, change.meeting()

    def around(forward, module, args, kwargs):
        meet()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return forward(module, *args, **kwargs)

    change.around_forward(argument, around)
