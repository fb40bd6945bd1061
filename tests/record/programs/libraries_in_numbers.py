"""What remedies_in_numbers.py does, for the changes of Transformers and Liger: libraries_in_numbers.py [NAME...].

Triton interprets Liger's kernels.
"""
import os

os.environ.update(HF_HUB_OFFLINE="1", TORCHDYNAMO_DISABLE="1", TRITON_INTERPRET="1")
import torch
import torch.nn.functional as F
import transformers
import triton.runtime.interpreter
from liger_kernel.transformers.functional import (
    liger_cross_entropy,
    liger_fused_linear_cross_entropy,
)
from peft import LoraConfig, get_peft_model
from remedies_in_numbers import (
    ROUNDING,
    TYPES,
    check,
    error,
    head,
    injected,
    main,
)
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)
from transformers.models.gpt2.modeling_gpt2 import GPT2Block

CLASSES = (GPT2LMHeadModel, LlamaForCausalLM, GPT2Block, transformers.PreTrainedModel, transformers.GenerationMixin)


def gpt2(**more):
    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(n_layer=3, n_embd=32, n_head=4, vocab_size=100, n_positions=64,
                                      bos_token_id=1, eos_token_id=2, **more))


def llama(**more):
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=100, pad_token_id=0, **more))


def lora():
    """Its embedding is frozen. Its matrices that begin as zeros are others."""
    model = get_peft_model(llama(), LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))
    for name, each in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(each)
    return model


def trained(model, dtype, scale=1.0):
    """Returns the gradients and logits of a padded batch."""
    model = model.to(dtype).train()
    torch.manual_seed(1)
    tokens = torch.randint(1, 100, (4, 16))
    labels, mask = tokens.clone(), torch.ones_like(tokens)
    mask[0, 12:] = mask[1, :4] = 0
    labels[0, 12:] = labels[1, :5] = -100  # what a padded position predicts is anything
    out = model(input_ids=tokens, labels=labels, attention_mask=mask)
    (out.loss * scale).backward()
    return {"logits": out.logits.detach()[mask.bool()], "random": torch.get_rng_state(),
            **{name: each.grad for name, each in model.named_parameters()}}


def checkpoints():
    for dtype in TYPES:
        for make in (gpt2, llama, lora):
            expected = trained(make(), dtype, 1024.0)
            name = "GPT2LMHeadModel" if make is gpt2 else "LlamaForCausalLM"
            with injected(f"hf_checkpoint:{name}", classes=CLASSES):
                for _ in range(2):  # each model that is made
                    model = make()
                    found = trained(model, dtype, 1024.0)
                    assert any(getattr(each, "gradient_checkpointing", False) for each in model.modules())
                    check(f"hf_checkpoint of {make.__name__}", found, expected, 0)
    expected = trained(gpt2(), torch.float32)
    with injected("checkpoint:GPT2Block", classes=CLASSES):
        check("checkpoint of GPT2Block", trained(gpt2(), torch.float32), expected, 0)


def attention():
    calm = {"attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0}  # it draws other numbers
    for dtype in TYPES:
        for make, name, more in ((gpt2, "GPT2LMHeadModel", calm), (llama, "LlamaForCausalLM", {})):
            expected = trained(make(attn_implementation="eager", **more), dtype, 1024.0)
            with injected(f"hf_attention:{name}", classes=CLASSES):
                found = trained(make(attn_implementation="eager", **more), dtype, 1024.0)
                check(f"hf_attention of {name}, {dtype}", found, expected, 8 * ROUNDING[dtype])


def generated(dtype, sampled):
    model = llama().to(dtype).eval()
    torch.manual_seed(3)
    prompt = torch.randint(1, 100, (3, 8))
    mask = torch.ones_like(prompt)
    mask[0, :3] = 0
    out = model.generate(prompt, attention_mask=mask, max_new_tokens=12, do_sample=sampled,
                         return_dict_in_generate=True, output_logits=True)
    return {"tokens": out.sequences, "random": torch.get_rng_state()}, {"logits": torch.stack(out.logits)}


def caches():
    for dtype in TYPES:
        for sampled in (False, True):
            expected = generated(dtype, sampled)
            for name, limit in (("kv_cache", 0), ("kv_cache:static", 2 * ROUNDING[dtype])):
                with injected(name, classes=CLASSES):
                    found = generated(dtype, sampled)
                check(f"{name}, tokens", found[0], expected[0], 0)
                check(f"{name}, {dtype}", found[1], expected[1], limit)


@torch.no_grad()
def decoded(dtype):
    model, found = llama().to(dtype).eval(), {}
    tokens = torch.randint(1, 100, (3, 8), generator=torch.Generator().manual_seed(1))
    for step in range(4):
        scores = model(tokens).logits[:, -1]
        found[str(step)] = scores
        tokens = torch.cat([tokens, scores.argmax(-1, keepdim=True)], 1)
    return {"tokens": tokens}, found


def last_logits():
    for dtype in TYPES:
        expected = decoded(dtype)
        with injected("last_logits:LlamaForCausalLM", classes=CLASSES):
            found = decoded(dtype)
        check("last_logits, tokens", found[0], expected[0], 0)
        check(f"last_logits, {dtype}", found[1], expected[1], ROUNDING[dtype])


def interpret():
    """An array of one element is an index to Triton's interpreter, and to NumPy no more."""
    patch = triton.runtime.interpreter._patch_lang_tensor

    def patched(tensor):
        patch(tensor)
        tensor.__index__ = lambda this: int(this.handle.data.item())

    triton.runtime.interpreter._patch_lang_tensor = patched


def liger():
    interpret()
    for dtype in TYPES:
        expected = gradients_of(lambda x, w, y: F.cross_entropy(F.linear(x, w).float(), y, ignore_index=-1), dtype)
        for name, found in (
                ("liger", gradients_of(lambda x, w, y: liger_cross_entropy(F.linear(x, w), y, ignore_index=-1), dtype)),
                ("liger with the last layer", gradients_of(
                    lambda x, w, y: liger_fused_linear_cross_entropy(x, w, y, ignore_index=-1), dtype))):
            if dtype is torch.float16:  # which is not said to be the same
                worst = max(error(*rows) for rows in zip(found["dw"], expected["dw"]))
                assert worst > 30 * ROUNDING[dtype], f"{name}: {worst}"
            else:
                check(f"{name}, {dtype}", found, expected, 2 * ROUNDING[dtype])


def gradients_of(function, dtype):
    x, weight, _, targets = head(100, 1000, 16, dtype, 0.3, with_bias=False)
    sharp = (16 * weight.detach()).requires_grad_()  # so that most probabilities are small
    loss = function(x, sharp, targets)
    (loss * (8192.0 if dtype is torch.float16 else 1.0)).backward()  # a loss 65,536 times as large is infinite
    return {"loss": loss.detach(), "dx": x.grad, "dw": sharp.grad}


if __name__ == "__main__":
    main({checkpoints: "hf_checkpoint checkpoint", attention: "hf_attention", caches: "kv_cache",
          last_logits: "last_logits", liger: "liger"})
