"""Makes no logits but the last token's where the script reads no others, by an argument that models of Transformers
have."""
import functools
import inspect

from memreplay_record.remedies import edits, reads
from memreplay_record.remedies.change import Proposal

NAME = "last_logits"  # last_logits:CLASS
_NAMES = ("logits_to_keep", "num_logits_to_keep")  # the latter up to Transformers 4.48


def argument_of(module, args, kwargs):
    """Returns the name of the argument that a call of a module lacks, or "" if it has it or needs all logits."""
    try:
        signature = inspect.signature(type(module).forward)
        name = next((each for each in _NAMES if each in signature.parameters), "")
        given = signature.bind_partial(module, *args, **kwargs).arguments if name else {}
    except (TypeError, ValueError):  # it is no function of Python, or the call fails
        return ""
    return "" if name in given or given.get("labels") is not None else name


def makes_others(torch, output):
    """Returns whether at least 1 MiB of the logits in `output` is not the last token's."""
    logits = output.get("logits") if isinstance(output, dict) else None
    if not isinstance(logits, torch.Tensor) or not logits.is_cuda or logits.dim() != 3:
        return False
    return (logits.numel() - logits.size(0) * logits.size(2)) * logits.element_size() >= reads.SMALLEST


def propose(seen):
    for model in seen.models.values():
        if model.last_logits is not None:
            call, argument = model.last_logits
            yield Proposal(
                f"{NAME}:{model.name}", f"{model.name} makes the last token's logits alone, where only they are read",
                edits=functools.partial(edits.of_keyword, call, argument, "1"), cost="nothing; it is faster",
                cost_rank=0.02, place=call.place,
                preserves_text="the same up to rounding")


def apply(change, argument):
    meet = change.meeting()

    def around(call, module, args, kwargs, frame):
        name = argument_of(module, args, kwargs)
        found = reads.output_of(module, frame) if name else None
        if found is None or not found.reads_last_logits:
            return call(module, *args, **kwargs)
        meet()
        return call(module, *args, **{**kwargs, name: 1})

    change.around_call(argument, around)
