"""Generates texts by models of Transformers that are made here, with all kinds of search: generates.py [END]"""
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from transformers import (GPT2Config, GPT2LMHeadModel, GPTNeoXConfig, GPTNeoXForCausalLM, LlamaConfig,
                          LlamaForCausalLM)

small = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
torch.manual_seed(0)
if len(sys.argv) > 1:  # a text ends with this token
    models = [GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=32, eos_token_id=int(sys.argv[1])))]
else:
    models = [
        GPTNeoXForCausalLM(GPTNeoXConfig(vocab_size=50432, bos_token_id=0, eos_token_id=0, **small)),
        GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=32)),
        LlamaForCausalLM(LlamaConfig(vocab_size=32000, **small)),
        LlamaForCausalLM(LlamaConfig(vocab_size=151936, eos_token_id=[151643, 151645], **small))]
for model in models:
    model = model.to("cuda", torch.float16).eval()
    for rows in (1, 3):
        prompt = torch.randint(5, 9000, (rows, 8), device="cuda")
        for search in ({}, {"do_sample": True, "top_k": 50, "top_p": 0.9}, {"num_beams": 4},
                       {"num_beams": 3, "do_sample": True}):
            text = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=6, pad_token_id=1,
                                  **search)
            print(type(model).__name__, rows, search, text.shape[1] - 8, text[0, 8].item())
