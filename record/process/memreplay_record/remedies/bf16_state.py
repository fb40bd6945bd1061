"""Keeps the optimizer's state in bfloat16, and computes with it in the type of the weights."""
from memreplay_record.remedies import optimizer

NAME = "bf16_state"
_WORDS = {"name": "Bfloat16State", "where": "in bfloat16", "used": "value.to(p.dtype)", "kept": "value.bfloat16()"}


def propose(seen):
    if any("float32" in model.dtypes for model in seen.trained()):
        yield from optimizer.state_proposals(
            seen, NAME, "in bfloat16", _WORDS,
            cost="two conversions of the state in each step; parameters are updated one by one",
            cost_rank=3.8, preserves=False, named_only=True,
            preserves_text="other results: the moments are rounded to 8 bits of precision after each step")


def apply(change, argument):
    optimizer.keep_state(change, argument, _WORDS)
