"""Tests `memreplay record` of vLLM."""
import json
import os
import pathlib
import re
import sys

import report_xml
from recorded import Case, Recorded, Setting, environment, program

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16", "hidden_act": "silu",
    "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 8,
    "num_key_value_heads": 4, "vocab_size": 32000, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0, "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2}
PARAMETERS = 2 * 32000 * 512 + 2 * ((2 * 8 + 2 * 4) * 64 * 512 + 3 * 512 * 1024 + 2 * 512) + 512
KEYS_AND_VALUES = 2 * 2 * 4 * 64 * 2  # bytes of a token: layers, of either kind, heads, of numbers, of bfloat16


def said(pattern, run):
    """Returns the figure in a line of the server's log."""
    return float(re.search(pattern, run.output)[1].replace(",", ""))


class RecordServerTest(Case):
    def start(self, *flags, ranks=1):
        """Records the start of a server with 2 layers, and holds the budget of each rank against its log."""
        pathlib.Path(self.folder, "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
        run = Recorded(self.folder, program("server.py", self.folder, "--max-model-len=1024",
                                            f"--tensor-parallel-size={ranks}", *flags),
                       [f"--cards={ranks}"], card="h100-sxm", timeout=1800,
                       environment={"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1",
                                    "VLLM_USE_FLASHINFER_SAMPLER": "0"})
        self.assertEqual(run.status, 0, run.said)
        self.assertEqual([process["name"] for process in run.answer["processes"]],
                         [""] if ranks == 1 else [f"rank {rank}" for rank in range(ranks)])
        budgets = []
        for rank, process in enumerate(run.answer["processes"]):
            (replay,) = process["replays"]
            self.assertEqual(replay["device"], rank)
            self.assertTrue(replay["agrees"], replay["sentence"])
            budget, cache = replay["server"], process["cache"]
            self.assertGreater(int(budget["weights"]), 2 * PARAMETERS / ranks)  # and the server's buffers
            self.assertEqual(int(cache["tokens"]), said(r"KV cache size: ([\d,]+) tokens", run))
            self.assertEqual(int(budget["cache"]), int(cache["tokens"]) * KEYS_AND_VALUES // ranks)
            self.assertAlmostEqual(int(budget["cache"]) / 2**30,
                                   said(r"Available KV cache memory: ([\d.]+) GiB", run), delta=0.01)
            worker = "" if ranks == 1 else rf"Worker_TP{rank} .*"
            self.assertAlmostEqual(said(worker + r"Model loading took ([\d.]+) GiB", run),
                                   2 * PARAMETERS / ranks / 2**30, delta=0.01)
            budgets.append(budget)
        return run, budgets

    def test_eager(self):
        _, (budget,) = self.start("--enforce-eager")
        self.assertEqual(int(budget["graphs"]), 0)

    def test_graphs(self):
        run, (budget,) = self.start()
        self.assertIn("Graph capturing finished", run.output)
        self.assertGreater(int(budget["graphs"]), 0)

    def test_graphs_of_ranks(self):
        _, (first, second) = self.start(ranks=2)
        self.assertEqual(first, second)
        self.assertGreater(int(first["graphs"]), 0)

    def test_ranks(self):
        run, (first, second) = self.start("--enforce-eager", ranks=2)
        self.assertEqual(first, second)
        for process in run.answer["processes"]:
            self.assertEqual(process["group"], 2)


def main():
    Setting.memreplay = os.path.abspath(sys.argv[1])
    try:
        Setting.python = environment.python("vllm")
    except environment.Unavailable as reason:
        return report_xml.skip(reason)
    return report_xml.run(RecordServerTest, sys.argv[3:])


if __name__ == "__main__":
    sys.exit(main())
