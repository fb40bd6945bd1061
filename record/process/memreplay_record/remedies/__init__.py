"""Changes to a script that save GPU memory, made from outside: `memreplay advise` runs the script with each of them.

Each file below is one remedy. It has

    NAME                     "checkpoint"; a change is called NAME, or NAME:ARGUMENT ("checkpoint:Block")
    propose(seen)            yields a Proposal for each change that may help the script in `seen` (survey.py)
    apply(change, argument)  makes the change in this process, right after torch was imported (change.py)

What apply() does must make the same allocations as the change written into the script by hand
(tests/record/remedies_test.py) and as the edits of the proposal (tests/record/edits_test.py).
"""
import importlib

from memreplay_record.remedies.change import Change

NAMES = ("option", "constructor", "fused", "foreach", "set_to_none", "no_grad", "unread_output", "last_logits",
         "empty_cache", "collect", "sdpa", "hf_attention", "kv_cache", "train_mode", "chunked_loss", "fused_head",
         "liger", "compile", "checkpoint", "hf_checkpoint", "micro_batches", "ddp", "zero", "fsdp", "offload",
         "host_state", "sdp_kernel", "autocast", "bf16", "bf16_state", "eight_bit", "adafactor", "sgd",
         "step_in_backward", "roofline")


def module(name):
    return importlib.import_module(f"memreplay_record.remedies.{name}")


def apply(torch, names, rates=None):
    """Makes the changes `names` and returns the Change, which notes those that are met. ValueError: no such change."""
    change = Change(torch, rates)
    for name in names:
        kind, _, argument = name.partition(":")
        if kind not in NAMES:
            raise ValueError(f"there is no remedy {kind}; there are {', '.join(NAMES)}")
        change.name = name
        module(kind).apply(change, argument)
    return change


def proposals(seen):
    """Returns what could help, as plain data in the order of NAMES.

    Of a kind of which something is a keyword of a framework's constructor, nothing that cannot be written is tried,
    and what a keyword switches on is not switched on by a method as well.
    """
    found = [proposal for name in NAMES for proposal in module(name).propose(seen)]
    kinds = {each.group for each in found if each.name.startswith("constructor:")}
    if any(each.name.endswith(":gradient_checkpointing") for each in found):
        found = [each for each in found if not each.name.startswith("hf_checkpoint:")]
    return [each.plain() for each in _named_once(found) if not each.unwritten or each.group not in kinds]


def _named_once(found):
    """Yields proposals with names of their own: edits of several calls are named by place, except for the first."""
    names = set()
    for each in found:
        if each.name in names and each.edits:
            each.name, each.change = f"{each.name}:{each.place}", f"{each.change} at {each.place}"
        if each.name not in names:
            names.add(each.name)
            yield each
