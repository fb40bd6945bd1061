"""memreplay.recording() and the two callbacks with PyTorch itself.

MEMREPLAY_TORCH is the command that runs a Python script where a CUDA build of PyTorch finds a GPU, be it imagined; it
stands before the script's name. Without it these tests are skipped: PyTorch is no part of the environment of the others.
"""

import os
import pathlib
import shlex
import subprocess
import tempfile
import unittest

import memreplay

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = shlex.split(os.environ.get("MEMREPLAY_TORCH", ""))

RECORD = """
import memreplay, torch
weights = [torch.empty(1 << 20, device="cuda") for _ in range(3)]
with memreplay.recording("out.pickle"):
    kept = []
    for i in range(5):
        memreplay.step(i)
        activations = [torch.empty(1 << 22, device="cuda") for _ in range(4)]
        kept.append(torch.empty(1 << 18, device="cuda"))
        del activations
    try:
        torch.empty(1 << 42, device="cuda")
    except torch.cuda.OutOfMemoryError:
        print("out of memory")
torch.empty(1 << 20, device="cuda")  # after the recording
"""
TRAINER = """
import torch
from hf_trainer import MemoryRecording
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=64, n_head=2, vocab_size=256, n_positions=64))
data = [{"input_ids": torch.arange(32), "labels": torch.arange(32)} for _ in range(12)]
options = TrainingArguments(output_dir="hf", max_steps=4, per_device_train_batch_size=2, report_to=[], save_strategy="no")
Trainer(model=model, args=options, train_dataset=data, callbacks=[MemoryRecording("out.pickle")]).train()
"""
LIGHTNING = """
import torch
from lightning.pytorch import LightningModule, Trainer
from lightning_callback import MemoryRecording
class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(32, 32)
    def training_step(self, batch, index):
        return self.layer(batch).sum()
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())
data = torch.utils.data.DataLoader(torch.zeros(8, 32), batch_size=2)
Trainer(max_epochs=1, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        callbacks=[MemoryRecording("out.pickle")]).fit(Model(), data)
"""


@unittest.skipUnless(COMMAND, "MEMREPLAY_TORCH is not set")
class Torch(unittest.TestCase):
    def run_script(self, text, module="torch"):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "script.py").write_text(f"import importlib.util as u, sys\nu.find_spec({module!r}) or sys.exit(77)\n{text}")
        path = ":".join([str(ROOT / "python"), str(ROOT / "examples"), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run([*COMMAND, str(self.folder / "script.py")], cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, env={**os.environ, "PYTHONPATH": path})
        if done.returncode == 77:
            self.skipTest(f"{module} is not installed there")
        self.assertEqual(done.returncode, 0, done.stdout)
        return memreplay.load(self.folder / "out.pickle")

    def steps(self, recording):
        return recording.inspect(deep=True).only_device.loop.steps

    def test_recording(self):
        recording = self.run_script(RECORD)
        replay = recording.replay()
        self.assertTrue(replay.is_good)
        fidelity = replay.only_device.fidelity
        self.assertGreater(fidelity.compared_events, 70)
        self.assertEqual(fidelity.matched_events, fidelity.compared_events)
        steps = self.steps(recording)
        self.assertEqual((steps.name, steps.steps), ("memreplay.step#", 5))
        self.assertEqual(steps.growth_bytes_per_step, 1 << 20)
        self.assertEqual(recording.inspect().only_device.inventory.actions["oom"], 1)
        self.assertEqual(memreplay.load(self.folder / "out.oom.pickle").oom().oom.verdict, "true_shortage")

    def test_hugging_face(self):
        steps = self.steps(self.run_script(TRAINER, "transformers"))
        self.assertEqual((steps.name, steps.steps), ("memreplay.step#", 4))

    def test_lightning(self):
        steps = self.steps(self.run_script(LIGHTNING, "lightning"))
        self.assertEqual((steps.name, steps.steps), ("memreplay.step#", 4))


if __name__ == "__main__":
    unittest.main()
