"""Runs the forward pass in bfloat16 with weights in float32."""
from memreplay_record.remedies import bf16
from memreplay_record.remedies.change import Proposal

NAME = "autocast"


def propose(seen):
    for model in seen.trained():
        if model.autocast or model.dtypes != {"float32"}:
            continue
        text = model.call.text or f"... = {model.variable}(...)"
        yield Proposal(
            f"{NAME}:{model.name}", f"{model.name} under bfloat16 autocast",
            ['with torch.autocast("cuda", dtype=torch.bfloat16):', f"    {text}"],
            cost=bf16.COST if bf16.is_fast(seen.torch) else bf16.SLOW, cost_rank=3,
            preserves=False, preserves_text="other results: matrix products and convolutions in bfloat16",
            place=model.call.place)


def apply(change, argument):
    torch, meet = change.torch, change.meeting()

    def around(forward, module, args, kwargs):
        meet()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return forward(module, *args, **kwargs)

    change.around_forward(argument, around)
