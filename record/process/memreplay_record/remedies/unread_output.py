"""Frees at once what a model returns and the script never reads, such as the logits next to a loss.

Until the name is assigned again they are live otherwise: through the backward pass, and while the next ones are made.
"""
import functools
import sys

from memreplay_record.remedies import edits, reads
from memreplay_record.remedies.change import Proposal

NAME = "unread_output"  # unread_output:CLASS


def propose(seen):
    for model in seen.models.values():
        if model.unread:
            (path, line), *_ = model.unread
            yield Proposal(
                f"{NAME}:{model.name}", f"what {model.name} returns and nothing reads is freed at once",
                edits=functools.partial(_edits, model), cost="nothing", cost_rank=0.02,
                place=edits.place(path, line), preserves_text="the same")


def _edits(model):
    found = []
    for call, line in model.unread.values():
        source = edits.source_of(call.path)
        found += source.after(source.simple(source.call(call)), [line])
    return found


def _count_of_a_local():
    """Returns the count of references to what only one local variable has, which depends on Python's version."""
    value = {}
    return sys.getrefcount(value)


def apply(change, argument):
    torch, meet, owned = change.torch, change.meeting(), _count_of_a_local()

    def around(call, module, args, kwargs, frame):
        output = call(module, *args, **kwargs)
        found = reads.output_of(module, frame)
        parts = found.unread(torch, output) if found is not None else []
        if not parts or (isinstance(output, dict) and sys.getrefcount(output) > owned):  # the model keeps it
            return output
        meet()
        return reads.without(output, parts)

    change.around_call(argument, around)
