"""Trains models of Transformers, from configurations (nothing is downloaded):
hugging_face.py gpt2|eager|checkpointed|chunked|llama|lora|generate|offloaded|static|loop|freed|decode|last"""
import os
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import torch.nn.functional as F
from by_hand import ChunkedCrossEntropy
from transformers import (GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, Trainer,
                          TrainingArguments)

kind = sys.argv[1]
torch.manual_seed(0)


class Tokens(torch.utils.data.Dataset):
    def __init__(self, vocabulary):
        self.vocabulary = vocabulary

    def __len__(self):
        return 32

    def __getitem__(self, index):
        tokens = torch.randint(0, self.vocabulary, (256,))
        return {"input_ids": tokens, "labels": tokens, "attention_mask": torch.ones_like(tokens)}


def gpt2(**more):
    return GPT2LMHeadModel(GPT2Config(n_layer=4, n_embd=256, n_head=4, vocab_size=8000, **more))


def chunked_cross_entropy(input, target, ignore_index=-100, reduction="mean"):
    loss = ChunkedCrossEntropy.apply(input, target, ignore_index)
    if reduction != "sum":
        return loss
    count = (target != ignore_index).sum()
    return (loss * count).where(count > 0, 0)


def llama():
    return LlamaForCausalLM(LlamaConfig(
        hidden_size=512, intermediate_size=1408, num_hidden_layers=4, num_attention_heads=8,
        num_key_value_heads=4, vocab_size=8000, pad_token_id=0))


def train(model, **more):
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, per_device_train_batch_size=8, num_train_epochs=1, bf16=True,
            logging_steps=1, report_to=[], save_strategy="no", disable_tqdm=True, **more)
        Trainer(model=model, args=arguments, train_dataset=Tokens(8000)).train()


def train_in_loop():
    """Nothing reads the logits and the cache that the model returns; they are live to the next step unless freed."""
    model = llama().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        tokens = torch.randint(1, 8000, (8, 256), device="cuda")
        if kind == "freed":
            loss = model(input_ids=tokens, labels=tokens).loss
        else:
            outputs = model(input_ids=tokens, labels=tokens)
            loss = outputs.loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@torch.no_grad()
def decode():
    model, tokens = llama().cuda().eval(), torch.randint(1, 8000, (4, 256), device="cuda")
    for _ in range(8):
        if kind == "last":
            scores = model(tokens, logits_to_keep=1).logits[:, -1]
        else:
            scores = model(tokens).logits[:, -1]
        tokens = torch.cat([tokens, scores.argmax(-1, keepdim=True)], 1)


if kind in ("loop", "freed"):
    train_in_loop()
elif kind in ("decode", "last"):
    decode()
elif kind == "gpt2":
    train(gpt2(), gradient_accumulation_steps=2)
elif kind == "eager":
    train(gpt2(attn_implementation="eager"), gradient_accumulation_steps=2)
elif kind == "chunked":
    F.cross_entropy = chunked_cross_entropy
    train(gpt2(), gradient_accumulation_steps=2)
elif kind == "checkpointed":
    train(gpt2(), gradient_accumulation_steps=2, gradient_checkpointing=True,
          gradient_checkpointing_kwargs={"use_reentrant": False})
elif kind == "llama":
    train(llama(), gradient_checkpointing=True)
elif kind == "lora":
    from peft import LoraConfig, get_peft_model
    model = get_peft_model(llama(), LoraConfig(r=8, target_modules=["q_proj", "v_proj"]))
    train(model)
else:
    more = {"cache_implementation": kind} if kind in ("offloaded", "static") else {}
    model = llama().to("cuda", torch.bfloat16).eval()
    for sampled in (False, True):
        prompt = torch.randint(1, 8000, (4, 64), device="cuda")
        out = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=32,
                             min_new_tokens=32, do_sample=sampled, **more)
        assert out.shape == (4, 96), out.shape
    print("generated")
