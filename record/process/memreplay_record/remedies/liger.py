"""Liger's cross entropy, or its last layer with cross entropy: kernels that leave the gradient in place of the logits.

A simulated GPU launches these kernels of Triton but does not compute them.
"""
import functools
import importlib.util

from memreplay_record.remedies import fused_head
from memreplay_record.remedies.change import Proposal
from memreplay_record.remedies.chunked_loss import edits_of_loss, is_plain_or_sum

NAME = "liger"  # liger, or liger:MODEL:lm_head with the last layer


def _preserved(seen):
    if any("float16" in model.dtypes for model in seen.trained()):
        return {"preserves": False, "preserves_text": "other results in float16: gradients are divided by the number "
                "of rows before they are scaled, and vanish"}
    return {"preserves_text": "the same up to rounding; nothing may read the logits after the loss"}


def propose(seen):
    if importlib.util.find_spec("liger_kernel") is None:
        return
    if seen.cross_entropy is not None and seen.backward:
        yield Proposal(
            NAME, "cross entropy of Liger",
            edits=functools.partial(
                edits_of_loss, seen,
                ["import torch", "from liger_kernel.transformers.functional import liger_cross_entropy"], (),
                lambda source, call: source.replace(call.func, "liger_cross_entropy"),
                ["torch.nn.functional.cross_entropy = liger_cross_entropy"]),
            cost="nothing", cost_rank=0.42, place=seen.cross_entropy.place, group="chunked_loss",
            **_preserved(seen))
    for model, path, layer, call, has_bias, ignore_index in fused_head.found(seen):
        def applied(x, targets, layer=layer, has_bias=has_bias, ignore_index=ignore_index):
            bias = f", {layer}.bias" if has_bias else ""
            return f"liger_fused_linear_cross_entropy({x}.flatten(0, -2), {layer}.weight, {targets}{bias}, " \
                f"ignore_index={ignore_index})"

        yield Proposal(
            f"{NAME}:{model.name}:{path}", f"the last layer ({layer}) and cross entropy of Liger",
            edits=functools.partial(
                fused_head.edits_of, call, layer, applied,
                ["from liger_kernel.transformers.functional import liger_fused_linear_cross_entropy"]),
            cost="nothing", cost_rank=0.47, place=call.place, group="chunked_loss", **_preserved(seen))


def apply(change, argument):
    if argument:
        def fused(x, targets, weight, bias, ignore_index):
            from liger_kernel.transformers.functional import (
                liger_fused_linear_cross_entropy,
            )
            return liger_fused_linear_cross_entropy(x, weight, targets, bias, ignore_index=ignore_index)

        fused_head.put_in_place(change, argument, fused)
        return
    functional, meet = change.torch.nn.functional, change.meeting()
    cross_entropy = functional.cross_entropy

    @functools.wraps(cross_entropy)
    def ligers(input, target, *args, **kwargs):
        if args or not is_plain_or_sum(input, target, **kwargs):
            return cross_entropy(input, target, *args, **kwargs)
        from liger_kernel.transformers.functional import liger_cross_entropy
        meet()
        return liger_cross_entropy(input, target, **kwargs)

    functional.cross_entropy = ligers
