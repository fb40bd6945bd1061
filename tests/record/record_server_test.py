"""Tests `memreplay record` of vLLM, which must be installed: $MEMREPLAY_VLLM_PYTHON is an interpreter that has it.

An environment of vLLM takes 5 GB, so third_party/python has none, and the test is skipped without that variable.
"""
import json
import os
import pathlib
import re
import sys

import report_xml
from recorded import Case, Recorded, Setting, program

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16", "hidden_act": "silu",
    "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 8,
    "num_key_value_heads": 4, "vocab_size": 32000, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0, "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2}
PARAMETERS = 2 * 32000 * 512 + 2 * ((2 * 8 + 2 * 4) * 64 * 512 + 3 * 512 * 1024 + 2 * 512) + 512


class RecordServerTest(Case):
    def start(self, *flags):
        """Records the start of a server with 2 layers, which allocates nothing before its weights."""
        pathlib.Path(self.folder, "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
        run = Recorded(self.folder, program("server.py", self.folder, "--max-model-len=1024", *flags), card="h100-sxm",
                       timeout=1800, environment={"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"})
        self.assertEqual(run.status, 0, run.output)
        self.assertEqual(len(run.answer["processes"]), 1)
        (replay,) = run.process["replays"]
        self.assertTrue(replay["agrees"], replay["sentence"])
        said = re.search(r"Model loading took ([\d.]+) GiB", run.output)
        self.assertAlmostEqual(float(said[1]), 2 * PARAMETERS / 2**30, delta=0.01)
        self.assertGreater(int(replay["peak_reserved"]), 0.9 * 0.95 * 79 * 2**30)  # its cache of keys and values
        return run

    def test_eager(self):
        self.start("--enforce-eager")

    def test_graphs(self):
        self.assertIn("Graph capturing finished", self.start().output)


def main():
    Setting.memreplay = os.path.abspath(sys.argv[1])
    Setting.python = os.environ.get("MEMREPLAY_VLLM_PYTHON")
    if Setting.python is None:
        return report_xml.skip("MEMREPLAY_VLLM_PYTHON does not name an interpreter that has vLLM")
    return report_xml.run(RecordServerTest, sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
