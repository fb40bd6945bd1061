"""Checks that advise finds the options that a script has for what saves memory, and that their words do what they say:
with each parser of options, in the release of third_party/python/uv.lock."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import unittest.mock

import events
from recorded import (
    HERE,
    Case,
    Recorded,
    Setting,
    environment,
    main,
)

sys.path.append(str(HERE.parents[1] / "record" / "process"))
from memreplay_record.remedies import parsers

TRAIN = '''
import torch
from torch.utils.checkpoint import checkpoint

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(128, 512), torch.nn.Linear(512, 128)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(x)))

class Model(torch.nn.Module):
    def __init__(self, checkpoints):
        super().__init__()
        self.blocks, self.checkpoints = torch.nn.ModuleList(Block() for _ in range(4)), checkpoints

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpoints and self.training else block(x)
        return x.square().mean()

def train(batch_size, accumulation, gradient_checkpointing, bf16):
    model = Model(gradient_checkpointing).cuda()
    optimizer = torch.optim.SGD(model.parameters())
    for _ in range(2):
        for _ in range(accumulation):
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=bf16):
                loss = model(torch.ones(batch_size, 64, 128, device="cuda")) / accumulation
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        model.eval()(torch.ones(2, 64, 128, device="cuda"))
    with open("samples.txt", "a") as file:
        file.write(f"{batch_size * accumulation} {gradient_checkpointing} {bf16}\\n")
'''
ARGPARSE = TRAIN + '''
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", "-b", type=int, default=64)
parser.add_argument("--accum", type=int, default=1)
parser.add_argument("--grad-checkpointing", action="store_true")
parser.add_argument("--bf16", type=int, default=0)
args = parser.parse_args()
train(args.batch_size, args.accum, args.grad_checkpointing, bool(args.bf16))
'''
TRANSFORMERS = TRAIN + '''
import dataclasses
from transformers import HfArgumentParser

@dataclasses.dataclass
class Arguments:
    per_device_train_batch_size: int = 64
    gradient_accumulation_steps: int = 1
    gradient_checkpointing: bool = False
    bf16: bool = False

args, = HfArgumentParser(Arguments).parse_args_into_dataclasses()
train(args.per_device_train_batch_size, args.gradient_accumulation_steps, args.gradient_checkpointing, args.bf16)
'''
CLICK = TRAIN + '''
import click

@click.command()
@click.option("--batch-size", default=64)
@click.option("--accumulate", default=1)
@click.option("--checkpoint-activations/--no-checkpoint-activations", default=False)
@click.option("--mixed-precision", type=click.Choice(["no", "fp16", "bf16"]), default="no")
def main(batch_size, accumulate, checkpoint_activations, mixed_precision):
    train(batch_size, accumulate, checkpoint_activations, mixed_precision == "bf16")

main()
'''
TYPER = TRAIN + '''
import typer
app = typer.Typer()

@app.command()
def fit(batch_size: int = 64, grad_accum_steps: int = 1, activation_checkpointing: bool = False,
        precision: str = "fp32"):
    train(batch_size, grad_accum_steps, activation_checkpointing, precision == "bf16")

@app.command()
def predict():
    pass

app()
'''
FIRE = TRAIN + '''
import fire

def main(batch_size=64, accum_iter=1, use_checkpoint=False, amp=False):
    train(batch_size, accum_iter, use_checkpoint, amp)

fire.Fire(main)
'''
ABSL = TRAIN + '''
from absl import app, flags

flags.DEFINE_integer("train_batch_size", 64, "")
flags.DEFINE_integer("accumulation_steps", 1, "")
flags.DEFINE_bool("use_gradient_checkpointing", False, "")
flags.DEFINE_enum("dtype", "float32", ["float32", "bfloat16"], "")

def main(words):
    given = flags.FLAGS
    train(given.train_batch_size, given.accumulation_steps, given.use_gradient_checkpointing, given.dtype == "bfloat16")

app.run(main)
'''
TYRO = TRAIN + '''
import dataclasses
import tyro

@dataclasses.dataclass
class Training:
    local_batch_size: int = 64
    gradient_accumulation_steps: int = 1

@dataclasses.dataclass
class Config:
    training: Training = dataclasses.field(default_factory=Training)
    act_ckpt: bool = False
    use_bf16: bool = False

config = tyro.cli(Config)
train(config.training.local_batch_size, config.training.gradient_accumulation_steps, config.act_ckpt, config.use_bf16)
'''
CONFIGURED = TRAIN + '''
batch_size = 8 * 8
gradient_accumulation_steps = 1
grad_checkpoint = False
dtype = "float32"
exec(open("configurator.py").read())
train(batch_size, gradient_accumulation_steps, grad_checkpoint, dtype == "bfloat16")
'''
CONFIGURATOR = '''
import sys
from ast import literal_eval
for word in sys.argv[1:]:
    key, value = word.removeprefix("--").split("=")
    globals()[key] = value if isinstance(globals()[key], str) else literal_eval(value)
'''
LOADER = """
import torch
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Linear(256, 4096).cuda()
optimizer = torch.optim.SGD(model.parameters())
loader = DataLoader(TensorDataset(torch.ones(4096, 256)), 1024, shuffle=True)
for (x,), _ in zip(loader, range(2)):
    model(x.cuda()).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
LOADERS = """
import argparse
import torch
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=1024)
parser.add_argument("--precompute_ref_log_probs", action="store_true")
args = parser.parse_args()
data = TensorDataset(torch.ones(4096, 256))
of_training = DataLoader(data, args.batch_size, shuffle=True)
first = DataLoader(data, batch_size=512)
second = DataLoader(data, batch_size=512)
model = torch.nn.Linear(256, 4096).cuda()
optimizer = torch.optim.SGD(model.parameters())
for (x,), _ in zip(of_training, range(2)):
    model(x.cuda()).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
model.eval()
with torch.no_grad():
    for x, in (*first, *second):
        model(x.cuda())
"""
# The script, its words, and the words of each proposal.
SCRIPTS = {
    "argparse": (ARGPARSE, [], {
        "batch_size:32": "--batch-size=32 --accum=2", "batch_size:16": "--batch-size=16 --accum=4",
        "grad_checkpointing": "--grad-checkpointing", "bf16": "--bf16=1"}),
    "transformers": (TRANSFORMERS, ["--gradient_accumulation_steps", "3"], {
        "per_device_train_batch_size:32": "--per_device_train_batch_size=32 --gradient_accumulation_steps=6",
        "per_device_train_batch_size:16": "--per_device_train_batch_size=16 --gradient_accumulation_steps=12",
        "gradient_checkpointing": "--gradient_checkpointing=True", "bf16": "--bf16=True"}),
    "click": (CLICK, ["--batch-size", "62"], {
        "batch_size:31": "--batch-size=31 --accumulate=2", "batch_size:15": "--batch-size=15",
        "checkpoint_activations": "--checkpoint-activations", "mixed_precision": "--mixed-precision=bf16"}),
    "typer": (TYPER, ["fit"], {
        "batch_size:32": "--batch-size=32 --grad-accum-steps=2",
        "batch_size:16": "--batch-size=16 --grad-accum-steps=4",
        "activation_checkpointing": "--activation-checkpointing", "precision": "--precision=bf16"}),
    "fire": (FIRE, ["--batch-size=32"], {
        "batch_size:16": "--batch_size=16 --accum_iter=2", "batch_size:8": "--batch_size=8 --accum_iter=4",
        "use_checkpoint": "--use_checkpoint=True", "amp": "--amp=True"}),
    "absl": (ABSL, [], {
        "train_batch_size:32": "--train_batch_size=32 --accumulation_steps=2",
        "train_batch_size:16": "--train_batch_size=16 --accumulation_steps=4",
        "use_gradient_checkpointing": "--use_gradient_checkpointing", "dtype": "--dtype=bfloat16"}),
    "tyro": (TYRO, [], {
        "training.local_batch_size:32": "--training.local-batch-size=32 --training.gradient-accumulation-steps=2",
        "training.local_batch_size:16": "--training.local-batch-size=16 --training.gradient-accumulation-steps=4",
        "act_ckpt": "--act-ckpt", "use_bf16": "--use-bf16"}),
    "configurator": (CONFIGURED, [], {
        "batch_size:32": "--batch_size=32 --gradient_accumulation_steps=2",
        "batch_size:16": "--batch_size=16 --gradient_accumulation_steps=4",
        "grad_checkpoint": "--grad_checkpoint=True", "dtype": "--dtype=bfloat16"})}

# Of the frameworks. Their words say what holds the peak: the size of a batch, of one in evaluation (of how many
# samples), and the width.
TRAINER = '''
import sys
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer
from transformers import TrainingArguments as Settings

batch, evaluated, samples, width = map(int, sys.argv[1:])

class Tokens(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, at):
        return {"input_ids": torch.arange(128), "labels": torch.arange(128)}

model = LlamaForCausalLM(LlamaConfig(
    vocab_size=4096, hidden_size=width, intermediate_size=4 * width, num_hidden_layers=4, num_attention_heads=4))
settings = Settings("out", per_device_train_batch_size=batch,  # of one pass
                    per_device_eval_batch_size=evaluated, max_steps=2, report_to=[], save_strategy="no",
                    eval_strategy="steps", eval_steps=2, disable_tqdm=True)
trainer = Trainer(model, settings, train_dataset=Tokens(64), eval_dataset=Tokens(samples),
                  compute_metrics=(lambda found: {"samples": len(found.predictions)}) if samples > evaluated else None)
trainer.train()
'''
ACCELERATE = '''
import sys
import torch
from accelerate import Accelerator

batch, evaluated, width = map(int, sys.argv[1:])
accelerator = Accelerator()
model = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width))
samples = torch.utils.data.TensorDataset(torch.ones(2048, width))
optimizer = torch.optim.AdamW(model.parameters())
model, optimizer, loader = accelerator.prepare(
    model, optimizer, torch.utils.data.DataLoader(samples, batch, shuffle=True))
for step, (x,) in enumerate(loader):
    with accelerator.accumulate(model):
        accelerator.backward(model(x).square().mean())
        optimizer.step()
        optimizer.zero_grad()
    if step == 3:
        break
with torch.no_grad():
    for x, in torch.utils.data.DataLoader(samples, batch_size=evaluated):
        model.eval()(x.cuda())
        break
'''
LIGHTNING = '''
import sys
import lightning
import torch
from torch.utils.data import DataLoader

batch, evaluated, width = map(int, sys.argv[1:])

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(8)))

    def training_step(self, samples, at):
        return self.layers(samples).square().mean()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())

trainer = lightning.Trainer(max_steps=2, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                            enable_model_summary=False)
trainer.fit(Model(), DataLoader(torch.ones(4096, width), batch_size=batch, shuffle=True))
'''
# The script, its words, and the changes that its peak falls by, of the framework that the words name.
ROWS = [
    (TRAINER, "16 1 1 128", [
        "TrainingArguments:gradient_checkpointing", "TrainingArguments:bf16", "TrainingArguments:use_liger_kernel",
        "TrainingArguments:per_device_train_batch_size:8", "TrainingArguments:per_device_train_batch_size:4"]),
    (TRAINER, "1 32 32 128", [
        "TrainingArguments:per_device_eval_batch_size:16", "TrainingArguments:per_device_eval_batch_size:8"]),
    (TRAINER, "1 8 64 128", [
        "TrainingArguments:eval_accumulation_steps", "TrainingArguments:prediction_loss_only"]),
    (TRAINER, "1 1 1 512", [
        "TrainingArguments:optim:adamw_torch_fused", "TrainingArguments:optim:adamw_bnb_8bit",
        "TrainingArguments:optim:adafactor"]),
    (ACCELERATE, "512 1 256", [
        "Accelerator:mixed_precision", "DataLoader:batch_size:256", "DataLoader:batch_size:128"]),
    (ACCELERATE, "2 2048 256", ["DataLoader:batch_size:1024", "DataLoader:batch_size:512"]),
    (LIGHTNING, "2048 1 256", ["Trainer:precision", "DataLoader:batch_size:1024", "DataLoader:batch_size:512"])]


def edited(text, changes):
    data = text.encode()
    for each in reversed(sorted(changes, key=lambda each: int(each.get("begin", 0)))):
        data = data[:int(each["begin"])] + each["text"].encode() + data[int(each["end"]):]
    return data.decode()


class OptionsTest(Case):
    def use_frameworks(self):
        try:
            python = environment.python(f"torch-{Setting.torch}-frameworks")
        except environment.Unavailable as reason:
            self.skipTest(str(reason))
        self.enterContext(unittest.mock.patch.object(Setting, "python", python))

    def run_script(self, text, words=(), flags=()):
        path = pathlib.Path(self.folder, "train.py")
        path.write_text(text, encoding="utf-8")
        pathlib.Path(self.folder, "configurator.py").write_text(CONFIGURATOR, encoding="utf-8")
        run = Recorded(self.folder, [str(path), *words], flags, name="survey" if flags else "plain")
        self.assertEqual(run.status, 0, run.said)
        self.assertEqual(run.process["lost"], [])
        samples = pathlib.Path(self.folder, "samples.txt")
        return run, samples.read_text(encoding="utf-8").splitlines()[-1] if samples.exists() else ""

    def check(self, *names):
        for name in names:
            text, words, expected = SCRIPTS[name]
            survey, samples = self.run_script(text, words, ["--survey"])
            proposed = {each["name"].partition(":")[2]: each for each in survey.process["proposals"]
                        if each["name"].startswith("option:")}
            self.assertEqual({key: " ".join(each["arguments"]) for key, each in proposed.items()}, expected)
            pairs = [each for each in proposed.values() if each["group"] == "micro_batches"]
            switches = [each for each in proposed.values() if each["group"] != "micro_batches"]
            for changes in ([pairs[0]], [pairs[1]], switches):
                with self.subTest(f"{name}: {[each['name'] for each in changes]}"):
                    given = [word for each in changes for word in each["arguments"]]
                    changed, of_it = self.run_script(text, [*words, *given])
                    peaks = [int(run.process["cards"][0]["peak_allocated"]) for run in (changed, survey)]
                    self.assertLess(peaks[0], 0.95 * peaks[1])
                    batch, *on = of_it.split()
                    is_same = len(given) == 2 or changes is switches  # in the number of samples of a step
                    self.assertEqual(batch == samples.split()[0], is_same)
                    self.assertEqual(on, [str(changes is switches)] * 2)
                    self.assertEqual(changes[0].get("preserves", False), is_same)
            self.assertEqual([each.get("preserves", False) for each in switches], [True, False])

    def test_argparse(self):
        self.check("argparse")
        found = [events.events_of(events.load(self.run_script(ARGPARSE, flags=flags)[0].snapshot))
                 for flags in ([], ["--survey"])]
        self.assertIsNone(events.difference(*found))

    def test_nanogpt(self):
        self.check("configurator")

    def test_of_libraries(self):
        self.use_frameworks()
        self.check("transformers", "click", "typer", "fire", "absl", "tyro")

    def test_trainer(self):
        self.check_rows(TRAINER)

    def test_accelerate_and_lightning(self):
        self.check_rows(ACCELERATE)
        self.check_rows(LIGHTNING)

    def test_advice_runs_what_it_prints(self):
        """An edit of a loader, next to the same one by hand, and an argument."""
        for text, name, change in ((LOADER, "constructor:DataLoader:batch_size:512", ("1024", "512")),
                                   (ARGPARSE, "option:batch_size:32", None)):
            path = pathlib.Path(self.folder, f"{name.rpartition(':')[2]}.py")
            path.write_text(text, encoding="utf-8")
            done = subprocess.run(
                [Setting.memreplay, "advise", "--json", "--python", Setting.python, "--card", "rtx-4090", "--try", name,
                 "--", str(path)], capture_output=True, text=True, check=False, cwd=self.folder,
                env={**os.environ, "XDG_CACHE_HOME": os.path.join(self.folder, "cache")})
            self.assertEqual(done.returncode, 0, done.stderr)
            row, = [row for row in json.loads(done.stdout)["advice"]["rows"] if row["remedies"] == [name]]
            self.assertEqual(row["error"], "")
            by_hand, _ = self.run_script(text.replace(*change) if change else text, row.get("arguments", []))
            self.assertEqual(bool(row.get("arguments")), change is None)
            self.assertEqual(int(row["peak_allocated_bytes"]), int(by_hand.process["cards"][0]["peak_allocated"]))

    def test_several_loaders(self):
        """Each is named, and no batch is halved in the file that an option of the script halves."""
        survey, _ = self.run_script(LOADERS, [], ["--survey"])
        proposed = {each["name"]: each for each in survey.process["proposals"]}
        self.assertEqual(len(proposed), len(survey.process["proposals"]))
        self.assertLessEqual({"option:batch_size:512", "option:precompute_ref_log_probs"}, set(proposed))
        loaders = {name: each for name, each in proposed.items() if name.startswith("constructor:")}
        self.assertEqual(sorted(name.partition(".py")[2] for name in loaders), ["", "", ":13", ":13"])
        for name, each in loaders.items():
            changed = edited(LOADERS, each["edits"]).splitlines()
            line = int(each["place"].rpartition(":")[2])
            self.assertIn(each["change"].partition("=")[2].partition(")")[0], changed[line - 1], name)
            self.assertEqual(each["change"].endswith(f" at {each['place']}"), line == 13)

    def check_rows(self, script):
        """Each change makes the peak of its script smaller, as it is written."""
        self.use_frameworks()
        for words, expected in [(words.split(), rows) for text, words, rows in ROWS if text is script]:
            survey, _ = self.run_script(script, words, ["--survey"])
            proposed = {each["name"].partition(":")[2]: each for each in survey.process["proposals"]
                        if each["name"].startswith("constructor:")}
            self.assertLessEqual(set(expected), set(proposed), words)
            for name in expected:
                with self.subTest(name):
                    changed, _ = self.run_script(edited(script, proposed[name]["edits"]), words)
                    peaks = [int(run.process["cards"][0]["peak_allocated"]) for run in (changed, survey)]
                    self.assertLess(peaks[0], 0.99 * peaks[1])

    def test_what_is_not_of_the_command(self):
        """Words at the end are those of the last parser that reads them."""
        def make(*names, **more):
            parser = argparse.ArgumentParser(**more)
            for name in names:
                parser.add_argument(name, type=int, default=1)
            return parser

        def found(parse, *words):
            sys.argv = ["train.py", *words]
            parsers._found.clear()
            parse()
            return {option.name: option.value for option in parsers.found()}

        def subcommands():
            parser = make("--outer")
            inner = parser.add_subparsers().add_parser("train")
            inner.add_argument("--inner", type=float, default=0.5)
            parser.parse_args()

        def two():
            rest = make("--first").parse_known_args()[1]
            make("--second").parse_args(rest)

        kept, function = sys.argv, argparse.ArgumentParser.parse_known_args
        try:
            parsers.begin()
            self.assertEqual(found(subcommands, "--outer", "3", "train"), {"inner": 0.5})
            self.assertEqual(found(two, "--second=4"), {"first": 1, "second": 4})
            self.assertEqual(found(make("--own").parse_args, "--own", "7"), {"own": 7})
            self.assertEqual(found(lambda: make("--own").parse_args(["--own=2"]), "other"), {})
            self.assertEqual(found(lambda: make("--own", "words").parse_args(), "--", "5"), {})
            with self.assertRaises(SystemExit), open(os.devnull, "w", encoding="utf-8") as sys.stderr:
                found(make("--own").parse_args, "--others")
        finally:
            sys.argv, sys.stderr = kept, sys.__stderr__
            argparse.ArgumentParser.parse_known_args = function


if __name__ == "__main__":
    sys.exit(main(OptionsTest))
