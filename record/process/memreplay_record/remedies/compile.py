"""torch.compile of a model: what lies between the operations that one kernel fuses is never in memory."""
import functools

from memreplay_record.remedies import micro_batches
from memreplay_record.remedies.change import Proposal, class_of

NAME = "compile"  # compile:CLASS


def propose(seen):
    for model in seen.models.values():
        if not seen.compiled and hasattr(model.cls, "compile") and model.parameter_bytes:
            yield Proposal(
                f"{NAME}:{model.name}", f"torch.compile of {model.name}",
                edits=functools.partial(_edits, model),
                cost="it is compiled when it begins and where shapes change, for minutes; then it is faster",
                cost_rank=0.3, place=model.call.place, named_only=True,
                preserves_text="the same up to rounding" + micro_batches.other_numbers(model))


def _edits(model):
    found = model.binding()
    return found.after([f"{found.name}.compile()"])


def apply(change, argument):
    meet = change.meeting()

    def around(call, module, args, kwargs, frame):
        if class_of(module).__name__ == argument and module._compiled_call_impl is None:  # DDP itself is not compiled
            meet()
            module.compile()
        return call(module, *args, **kwargs)

    change.around_call(argument, around)
