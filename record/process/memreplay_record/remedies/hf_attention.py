"""attn_implementation="sdpa" of Transformers, in a model whose attention is written out ("eager")."""
import functools

from memreplay_record import on_import
from memreplay_record.remedies import micro_batches
from memreplay_record.remedies.change import Proposal

NAME = "hf_attention"  # hf_attention:CLASS, of the model that is made with a config


def propose(seen):
    for model in seen.models.values():
        if model.attends_by_hand:
            yield Proposal(
                f"{NAME}:{model.attends_by_hand}", f'attn_implementation="sdpa" in {model.attends_by_hand}',
                [f'{model.attends_by_hand}.from_pretrained(..., attn_implementation="sdpa")',
                 "# or the same argument of from_config() or of the model's config"],
                cost="nothing; it is faster", cost_rank=0.2, place=model.call.place,
                preserves_text="the same up to rounding; attention weights cannot be returned"
                + micro_batches.other_numbers(model))


def apply(change, argument):
    meet = change.meeting()

    def change_models(module):
        init = module.PreTrainedModel.__init__

        @functools.wraps(init)
        def made(model, config, *args, **kwargs):
            if type(model).__name__ == argument:
                meet()
                config._attn_implementation = "sdpa"
            init(model, config, *args, **kwargs)

        module.PreTrainedModel.__init__ = made

    on_import.after("transformers.modeling_utils", change_models)
