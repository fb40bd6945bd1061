"""Starts vLLM as `vllm serve` would, from a folder with a config.json alone: server.py FOLDER [--NAME=VALUE...]"""
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--max-model-len", type=int, default=8192)
parser.add_argument("--gpu-memory-utilization", type=float, default=0.95)
parser.add_argument("--tensor-parallel-size", type=int, default=1)
parser.add_argument("--enforce-eager", action="store_true")
options = parser.parse_args()

if __name__ == "__main__":  # vLLM may import this file once more
    from vllm import LLM

    LLM(load_format="dummy", skip_tokenizer_init=True, enable_prefix_caching=False, max_num_batched_tokens=8192,
        max_num_seqs=1024, **vars(options))
