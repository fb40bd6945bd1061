"""Tests memreplay.recording(), on_oom() and the examples for frameworks with PyTorch itself, on a simulated GPU.

PyTorch is that of third_party/python, made on first use: about 1 GB is downloaded. MEMREPLAY_TORCH is a command that
stands before a script instead: MEMREPLAY_TORCH=python3 on a machine with a GPU. With MEMREPLAY_ALL, recording() is
tested with the oldest and the newest release, too.
"""

import functools
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

import memreplay

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "third_party/python"))
import environment  # noqa: E402

TORCH = "torch-2.6.0"
OTHERS = ["torch-2.1.2", "torch-2.15.0"]
LIBRARIES = "torch-2.6.0-libraries"


@functools.lru_cache(maxsize=None)
def card():
    """Returns the environment in which the library of `memreplay record --card` is a GPU of this machine."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([memreplay.program(), "record", "--card", "rtx-4090", "-o", f"{folder}/none.pickle", "--",
                               sys.executable, "-c", "import json, os; print(json.dumps(dict(os.environ)))"],
                              stdout=subprocess.PIPE, check=True, cwd=folder)
    told = json.loads(done.stdout.splitlines()[0])
    kept = {name: found for name, found in told.items() if name.startswith("MEMREPLAY_CARD") and "PROGRESS" not in name}
    return {**kept, "ON_CARD": told["MEMREPLAY_RECORD"], "PYTHONPATH": told["PYTHONPATH"]}


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
STEPS = """
import sys, torch
from torch.autograd.profiler import record_function
print(sys.argv)
for i in range(5):
    with record_function(f"step#{i}"):
        torch.empty(1 << 22, device="cuda")
"""
TRAINER = """
import torch
from hf_trainer import MemoryRecording
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=64, n_head=2, vocab_size=256, n_positions=64))
data = [{"input_ids": torch.arange(32), "labels": torch.arange(32)} for _ in range(12)]
options = TrainingArguments(output_dir="hf", max_steps=4, per_device_train_batch_size=2, report_to=[],
                            save_strategy="no")
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
# A notebook's cells; IPython is that of another environment.
MAGIC = """
import sys
sys.path += [%r]
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "memreplay")
shell.run_cell("import torch")
with capture_output() as out:
    shell.run_cell("%%%%memreplay out.pickle\\nkept = torch.empty(1 << 24, device='cuda')\\n"
                   "torch.empty(1 << 42, device='cuda')")
shell.run_cell("assert kept.numel() == 1 << 24")
print(out.stdout)
page = out.outputs[-1].data["text/html"]
assert page.startswith("<iframe srcdoc=") and len(page) > 300_000, page[:80]
"""
# What a program adds for the diagnosis, and what makes its memory run out in the third step.
ON_OOM = 'import memreplay\nmemreplay.on_oom("out.pickle")\n'
RUN_OUT = """
def run_out():
    global kept
    kept = torch.empty(1 << 30, device="cuda")
    torch.empty(1 << 42, device="cuda")
"""
OOM_PLAIN = ON_OOM + "import torch" + RUN_OUT + """
try:
    run_out()
except torch.cuda.OutOfMemoryError:
    print("caught")
"""
RECORDED_PLAIN = """
import memreplay, torch
""" + RUN_OUT + """
with memreplay.recording("out.pickle"):
    run_out()
"""
RECORDED_TRAINER = TRAINER.replace("import torch", "import torch" + RUN_OUT + """
from transformers import TrainerCallback
class Fails(TrainerCallback):
    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step == 2:
            run_out()
""", 1).replace('MemoryRecording("out.pickle")', 'MemoryRecording("out.pickle"), Fails()')
OOM_TRAINER = ON_OOM + RECORDED_TRAINER.replace('MemoryRecording("out.pickle"), ', "")
RECORDED_LIGHTNING = RUN_OUT + LIGHTNING.replace(
    "return self.layer(batch).sum()", "return run_out() if index == 2 else self.layer(batch).sum()")
OOM_LIGHTNING = ON_OOM + RECORDED_LIGHTNING.replace('callbacks=[MemoryRecording("out.pickle")]', "")
# torchtitan's own command trains a small model on tokens that are all alike; in the third step memory runs out.
TORCHTITAN = """
import os, sys
os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
import torch
from dataclasses import dataclass
from torchtitan.components.dataloader import BaseDataLoader
from torchtitan.components.loss import CrossEntropyLoss
from torchtitan.components.optimizer import default_adamw
from torchtitan.components.tokenizer import BaseTokenizer
from torchtitan.config import TrainingConfig
from torchtitan.models.common import Embedding, Linear
from torchtitan.protocols.model import BaseModel
from torchtitan.protocols.model_spec import ModelSpec
from torchtitan.train import main
from torchtitan.trainer import Trainer
class Model(BaseModel):
    @dataclass(kw_only=True, slots=True)
    class Config(BaseModel.Config):
        embedding: Embedding.Config
        head: Linear.Config
        def update_from_config(self, *, config, **others):
            pass
        def get_nparams_and_flops(self, model, seq_len):
            return sum(parameter.numel() for parameter in model.parameters()), 1
    def __init__(self, config):
        super().__init__()
        self.embedding, self.head = config.embedding.build(), config.head.build()
    def forward(self, tokens):
        return self.head(self.embedding(tokens))
class Tokens(BaseDataLoader):
    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):
        pass
    def __init__(self, config, *, seq_len, local_batch_size, **others):
        self.shape = (local_batch_size, seq_len)
    def __iter__(self):
        for step in range(9):
            if step == 2:
                run_out()
            yield {"input": torch.zeros(self.shape, dtype=torch.int64)}, torch.zeros(self.shape, dtype=torch.int64)
    def state_dict(self):
        return {}
    def load_state_dict(self, state):
        pass
class NoTokenizer(BaseTokenizer):
    @dataclass(kw_only=True, slots=True)
    class Config(BaseTokenizer.Config):
        pass
    def __init__(self, config, **others):
        super().__init__()
    encode = decode = get_vocab_size = None
def small():
    init = {"weight": torch.nn.init.normal_}
    return Trainer.Config(
        model_spec=ModelSpec(
            name="small", flavor="small", parallelize_fn=lambda model, **others: model, pipelining_fn=None,
            post_optimizer_build_fn=None, state_dict_adapter=None, model=Model.Config(
                embedding=Embedding.Config(num_embeddings=2048, embedding_dim=256, param_init=init),
                head=Linear.Config(in_features=256, out_features=2048, param_init=init))),
        loss=CrossEntropyLoss.Config(global_vocab_size=2048), optimizer=default_adamw(lr=1e-3),
        tokenizer=NoTokenizer.Config(), dataloader=Tokens.Config(),
        training=TrainingConfig(local_batch_size=2, seq_len=256, steps=9, disable_cuda_graphs=True))
sys.modules["small_config"] = sys.modules["__main__"]
sys.argv[1:] = ["--module", "small_config", "--config", "small", "--profiler.enable_memory_snapshot",
                "--override.imports", "torchtitan_oom.explained"]
main()
"""
# What each worker of verl does: the profiler of global_profiler.tool=torch_memory around a step of training.
VERL = """
import os
os.environ["VERL_USE_EXTERNAL_MODULES"] = "verl_oom"
import torch, verl
from verl.utils.profiler import DistProfiler, ProfilerConfig
from verl.utils.profiler.config import TorchMemoryToolConfig
profiler = DistProfiler(0, ProfilerConfig(tool="torch_memory", enable=True, all_ranks=True, save_path="profile"),
                        tool_config=TorchMemoryToolConfig())
model = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(9):
    profiler.start(profile_step=step)
    model(torch.zeros(64, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    if step == 2:
        run_out()
    profiler.stop()
"""


class Torch(unittest.TestCase):
    def new_folder(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return pathlib.Path(folder.name)

    def environment(self, name):
        """Returns what stands before a script, and the variables that it needs."""
        given = shlex.split(os.environ.get("MEMREPLAY_TORCH", ""))
        if given:
            return given, {}
        try:
            python = environment.python(name)
        except environment.Unavailable as why:
            self.skipTest(str(why))
        return [python, str(ROOT / "tests/python/on_card.py")], card()

    def test_classes_that_break_everything(self):
        """What a script prints and its status are the same with and without recording(), whatever its classes raise."""
        command, variables = self.environment(TORCH)
        ran = [subprocess.run([*command, str(ROOT / "tests/record/programs/hostile.py"), "cuda", *more],
                              cwd=self.new_folder(), capture_output=True, text=True, check=False,
                              env={**os.environ, **variables,
                                   "PYTHONPATH": f"{ROOT / 'python'}:{variables.get('PYTHONPATH', '')}"})
               for more in ((), ("recording",))]
        self.assertIn("unhashable optimizer", ran[0].stdout, ran[0].stderr)  # it came to its end
        self.assertEqual(ran[0].stdout, ran[1].stdout, ran[1].stderr)
        self.assertEqual(ran[0].returncode, ran[1].returncode)
        self.assertIn("memreplay.recording: not noted: ", ran[1].stderr)

    def run_script(self, text, module="torch", name=TORCH, status=0, snapshot="out.pickle"):
        self.folder = self.new_folder()
        (self.folder / "script.py").write_text(
            f"import importlib.util as u, sys\nu.find_spec({module!r}) or sys.exit(77)\n{text}")
        command, variables = self.environment(name)
        path = ":".join([str(ROOT / "python"), str(ROOT / "examples"),
                         variables.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))])
        done = subprocess.run([*command, str(self.folder / "script.py")], cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False,
                              env={**os.environ, **variables, "PYTHONPATH": path})
        if done.returncode == 77:
            self.skipTest(f"{module} is not installed there")
        self.assertEqual(done.returncode, status, done.stdout)
        self.printed = done.stdout
        [path] = self.folder.glob(snapshot)
        return memreplay.load(path)

    def steps(self, recording):
        return recording.inspect(deep=True).only_device.loop.steps

    def test_recording(self):
        for name in [TORCH, *(OTHERS if "MEMREPLAY_ALL" in os.environ else [])]:
            with self.subTest(name):
                self.record_with(name)

    def record_with(self, name):
        recording = self.run_script(RECORD, name=name)
        replay = recording.replay()
        self.assertTrue(replay.is_good)
        fidelity = replay.only_device.fidelity
        self.assertGreater(fidelity.compared_events, 70)
        self.assertEqual(fidelity.matched_events, fidelity.compared_events)
        steps = self.steps(recording)
        # Older releases keep no marks; the loop is then found by its repetition.
        keeps_marks = [int(part) for part in name.removeprefix("torch-").split(".")[:2]] >= [2, 6]
        self.assertEqual((steps.name, steps.steps), ("memreplay.step#" if keeps_marks else "", 5))
        self.assertEqual(steps.growth_bytes_per_step, 1 << 20)
        self.assertEqual(recording.inspect().only_device.inventory.actions["oom"], 1)
        self.assertEqual(memreplay.load(self.folder / "out.oom.pickle").oom().only_device.oom.verdict, "true_shortage")

    def test_record_without_a_card_is_the_gpu_of_the_machine(self):
        """Runs memreplay record, and run, its other name; the machine's GPU is one whose driver only counts it."""
        folder = self.new_folder()
        (folder / "driver.c").write_text(
            "int cuInit(unsigned f) { return 0; } int cuDeviceGetCount(int* n) { *n = 1; return 0; }")
        if subprocess.run(["gcc", "-shared", "-o", "libcuda.so.1", "driver.c"], cwd=folder, check=False).returncode:
            self.skipTest("no compiler for the stand-in of a driver")
        (folder / "script.py").write_text(STEPS)
        command, variables = self.environment(TORCH)
        # As pip leaves it, the binary lies next to an interpreter that PyTorch is installed for.
        environment = folder / "venv"
        (environment / "bin").mkdir(parents=True)
        (environment / "lib/python3.11/site-packages/torch").mkdir(parents=True)
        shutil.copy(memreplay.program(), environment / "bin/memreplay")
        (environment / "bin/python3").write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        (environment / "bin/python3").chmod(0o755)
        for job, name in (({}, "out.pickle"), ({"RANK": "3", "WORLD_SIZE": "8"}, "out.rank3.pickle"),
                          ({"SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "4"}, "out.rank2.pickle")):
            done = subprocess.run(["venv/bin/memreplay", "record", "-o", "out.pickle", "script.py", "--lr", "3"],
                                  cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                                  env={**os.environ, **variables, "LD_LIBRARY_PATH": str(folder), **job})
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertIn("['script.py', '--lr', '3']", done.stdout)
            self.assertIn("the replay agrees with the recording", done.stdout)
            self.assertIn(name, {path.name for path in folder.iterdir()})
            self.assertEqual(self.steps(memreplay.load(folder / name)).name, "step#")
            (folder / name).unlink()

    def test_a_cell_of_a_notebook(self):
        try:
            python = pathlib.Path(environment.python("python"))
        except environment.Unavailable as why:
            self.skipTest(str(why))
        [packages] = (python.parent.parent / "lib").glob("python3*/site-packages")
        recording = self.run_script(MAGIC % str(packages))
        self.assertIn("OutOfMemoryError", self.printed)
        self.assertIn(recording.inspect(deep=True).diagnosis, self.printed)
        self.assertEqual(recording.inspect().only_device.inventory.actions["oom"], 1)

    def test_hugging_face(self):
        steps = self.steps(self.run_script(TRAINER, "transformers", LIBRARIES))
        self.assertEqual((steps.name, steps.steps), ("memreplay.step#", 4))

    def test_diagnosis_where_memory_runs_out(self):
        for name, text, module, status, stem in (("plain", OOM_PLAIN, TORCH, 0, "out"),
                                                 ("transformers", OOM_TRAINER, LIBRARIES, 1, "out"),
                                                 ("lightning", OOM_LIGHTNING, LIBRARIES, 1, "out"),
                                                 ("plain", RECORDED_PLAIN, TORCH, 1, "out.oom"),
                                                 ("transformers", RECORDED_TRAINER, LIBRARIES, 1, "out.oom"),
                                                 ("lightning", RECORDED_LIGHTNING, LIBRARIES, 1, "out.oom")):
            with self.subTest(name, stem=stem):
                recording = self.run_script(text, "torch" if name == "plain" else name, module, status,
                                            f"{stem}.pickle")
                self.check_diagnosis(recording, f"{stem}.html")
                self.assertIn("caught" if status == 0 else "OutOfMemoryError", self.printed)
                self.assertEqual(self.printed.count("memreplay: "), 1)
                self.assertEqual(len(list(self.folder.glob("out.pickle"))), 1)

    def check_diagnosis(self, recording, page):
        found = recording.oom().devices[0]
        self.assertIn(f"memreplay: {found.diagnosis.what}\n  why: {found.diagnosis.why}\n", self.printed)
        self.assertEqual(found.oom.requested_bytes, 4 << 42)
        [page] = self.folder.glob(page)
        self.assertIn(f"page {page.relative_to(self.folder)}", self.printed)
        self.assertIn("<!doctype html>", page.read_text(encoding="utf-8"))

    def test_torchtitan(self):
        recording = self.run_script(RUN_OUT + TORCHTITAN, "torchtitan", "torchtitan", 1,
                                    "outputs/profiling/memory_snapshot/*_exit/*.pickle")
        self.check_diagnosis(recording, "outputs/profiling/memory_snapshot/step_*_exit/000000_step_*.html")
        self.assertIn("OutOfMemoryError", self.printed)

    def test_verl(self):
        recording = self.run_script(RUN_OUT + VERL, "verl", "verl", 1, "profile/oom_*/torch_memory_oom_*.pickle")
        self.check_diagnosis(recording, "profile/oom_*/*.html")
        self.assertIn("OutOfMemoryError", self.printed)
        # Those of the steps that ended are not explained.
        self.assertEqual(len(list(self.folder.glob("profile/step*/*.pickle"))), 2)
        self.assertEqual(self.printed.count("memreplay: "), 1)

    def test_lightning(self):
        steps = self.steps(self.run_script(LIGHTNING, "lightning", LIBRARIES))
        self.assertEqual((steps.name, steps.steps), ("memreplay.step#", 4))


if __name__ == "__main__":
    unittest.main()
