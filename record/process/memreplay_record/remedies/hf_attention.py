"""attn_implementation="sdpa" of Transformers, in a model whose attention is written out ("eager")."""
import ast
import functools

from memreplay_record import on_import
from memreplay_record.remedies import edits, micro_batches
from memreplay_record.remedies.change import Proposal

NAME = "hf_attention"  # hf_attention:CLASS, of the model that is made with a config


def propose(seen):
    for model in seen.models.values():
        if model.attends_by_hand:
            yield Proposal(
                f"{NAME}:{model.attends_by_hand}", f'attn_implementation="sdpa" in {model.attends_by_hand}',
                edits=functools.partial(_edits, model),
                cost="nothing; it is faster", cost_rank=0.2, place=model.call.place,
                preserves_text="the same up to rounding; attention weights cannot be returned"
                + micro_batches.other_numbers(model))


def _edits(model):
    """Returns the edits of what the script says it is, or of the call that makes the model."""
    if model.made is None or not model.made.calls:
        raise edits.Unwritten(f"no line of the script is known that makes {model.name}")
    call = model.made.calls[0]
    source = edits.source_of(call.path)
    values = [each.value for each in ast.walk(source.tree)
              if isinstance(each, ast.keyword) and each.arg == "attn_implementation" or
              isinstance(each, ast.Assign) and ast.unparse(each.targets[0]).endswith("._attn_implementation")]
    values = [each for each in values if isinstance(each, ast.Constant) and each.value == "eager"]
    if values:
        return [edit for each in values for edit in source.replace(each, '"sdpa"')]
    node = source.call(call)
    if ast.unparse(node.func).rpartition(".")[2] not in ("from_pretrained", "from_config", "_from_config"):
        source.refuse(node, "gets its attention from a config")
    return source.set_keyword(node, "attn_implementation", '"sdpa"')


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
