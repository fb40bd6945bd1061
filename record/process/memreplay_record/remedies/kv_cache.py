"""Keys and values of generate() of Transformers on the host, of which a layer at a time is on the GPU.

A static cache is not proposed: Transformers 4.51 reads its length from its values, which a simulated GPU keeps only for
tensors of up to 64 KiB.
"""
import functools

from memreplay_record import on_import
from memreplay_record.remedies import reads
from memreplay_record.remedies.change import Proposal

NAME = "kv_cache"
_ADDED = "cache_implementation='offloaded'"


def propose(seen):
    call = seen.generation
    if call is not None:
        yield Proposal(
            NAME, "keys and values of generate() on the host",
            [call.call_of("generate", lambda node: reads.with_argument(node, _ADDED)) or
             f"model.generate(..., {_ADDED})"],
            cost="the cache goes over PCIe with each token", cost_rank=2.5, place=call.place, preserves_text="the same")


def apply(change, argument):
    meet = change.meeting()

    def change_generation(module):
        generate = module.GenerationMixin.generate

        @functools.wraps(generate)
        def generating(model, *args, **kwargs):
            meet()
            return generate(model, *args, **{**kwargs, "cache_implementation": "offloaded"})

        module.GenerationMixin.generate = generating

    on_import.after("transformers.generation.utils", change_generation)
