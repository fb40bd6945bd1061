"""The cache of keys and values of generate() of Transformers: on the host, or of its full size from the start."""
import functools

from memreplay_record import on_import
from memreplay_record.remedies import edits
from memreplay_record.remedies.change import Proposal

NAME = "kv_cache"  # kv_cache:static; without an argument the one on the host, of which a layer at a time is on the GPU
_ON_HOST, _STATIC = "offloaded", "static"


def propose(seen):
    call = seen.generation
    if call is None:
        return
    yield Proposal(
        NAME, "keys and values of generate() on the host", edits=_edits(call, _ON_HOST),
        cost="the cache goes over PCIe with each token", cost_rank=2.5, transfers=True, place=call.place,
        preserves_text="the same")
    yield Proposal(
        f"{NAME}:{_STATIC}", "keys and values of generate() in one place from the start", edits=_edits(call, _STATIC),
        cost="Transformers then compiles the model, for minutes, and generates faster", cost_rank=2, place=call.place,
        preserves_text="the same up to rounding", named_only=True)


def _edits(call, implementation):
    return functools.partial(edits.of_keyword, call, "cache_implementation", f'"{implementation}"', "generate")


def apply(change, argument):
    meet = change.meeting()

    def change_generation(module):
        generate = module.GenerationMixin.generate

        @functools.wraps(generate)
        def generating(model, *args, **kwargs):
            meet()
            return generate(model, *args, **{**kwargs, "cache_implementation": argument or _ON_HOST})

        module.GenerationMixin.generate = generating

    on_import.after("transformers.generation.utils", change_generation)
