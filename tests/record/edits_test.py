"""Checks the edits of a script's own files that `memreplay advise` proposes: they apply, they run, and they save what
the same change saves that is made from outside."""
import json
import os
import pathlib
import subprocess
import sys

from recorded import HERE, Case, Recorded, Setting, main, needs_libraries

sys.path.insert(0, str(HERE.parents[1] / "record" / "process"))
from memreplay_record.remedies import edits

MODEL = '''\
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(64, 192), nn.Linear(64, 64)
        self.mlp = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))
        self.register_buffer("mask", torch.ones(64, 64).tril().bool())

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(-2, -1) * 0.125  # written out
        weights = F.softmax(scores.masked_fill(~self.mask, float("-inf")), dim=-1)
        y = weights @ v
        x = x + self.out(y)
        return x + self.mlp(x)


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(4000, 64)
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self.head = nn.Linear(64, 4000, bias=False)

    def forward(self, tokens, targets):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        logits = self.head(x)
        return logits, F.cross_entropy(logits.view(-1, 4000), targets.view(-1), ignore_index=-1)
'''
# One with a loop at the top of the file; the edits meet comments, several lines, and several statements in a line.
LOOP = f'''\
#!/usr/bin/env python3
"""Trains a model."""
import torch, torch.nn.functional as F
from torch import nn, optim

{MODEL}
model = GPT().cuda()
optimizer = optim.AdamW(
    model.parameters(),  # all of them
    lr=1e-3, weight_decay=(0.1
                           ),
)
for step in range(3):
    model.train()
    x = torch.randint(4000, (32, 64), device="cuda"); y = x.roll(-1, 1)
    logits, loss = model(x, y)
    loss.backward()
    optimizer.step(); optimizer.zero_grad(set_to_none=False)
    model.eval()
    x = torch.randint(4000, (16, 64), device="cuda")
    validation = model(x, x.roll(-1, 1))[1].item()
    print(step, validation)
'''
# One with objects and functions, and no more than it needs of what changes need.
OBJECTS = f'''\
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import AdamW

{MODEL}

class Training:
    def __init__(self, options):
        self.model = make_model().to("cuda")
        self.optimizer = AdamW(self.model.parameters(), **options)

    def loss_of(self, tokens):
        with torch.autocast("cuda", enabled=False): return self.model(tokens, tokens)[1]

    def run(self):
        for _ in range(3):
            tokens = torch.randint(4000, (32, 64), device="cuda")
            self.loss_of(tokens).backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
        self.model.eval()
        for _ in range(2):
            self.loss_of(torch.cat([tokens, tokens]))


def make_model():
    return GPT()


def main():
    options = dict(lr=1e-3)
    Training(options).run()


if __name__ == "__main__":
    main()
'''
EVALUATED = '''\
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from peft import LoraConfig, get_peft_model

model = LlamaForCausalLM(LlamaConfig(
    vocab_size=4000, hidden_size=128, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4,
    num_key_value_heads=4)).cuda().eval()
if {is_on}: model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=dict(use_reentrant=False))
model = get_peft_model(model, LoraConfig(r=8, target_modules=["q_proj", "v_proj"], lora_dropout=0.0))
model.{mode}()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
for _ in range(2):
    tokens = torch.randint(4000, (8, 256), device="cuda")
    outputs = model(input_ids=tokens, labels=tokens)
    outputs.loss.backward(); optimizer.step(); optimizer.zero_grad()
'''
# A library's loop: the optimizer is its own.
TRAINER = '''\
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        tokens = torch.randint(0, 4000, (128,))
        return {"input_ids": tokens, "labels": tokens}


model = GPT2LMHeadModel(GPT2Config(n_layer=4, n_embd=128, n_head=4, vocab_size=4000))
arguments = TrainingArguments(output_dir="out", per_device_train_batch_size=8, num_train_epochs=1, report_to=[],
                              save_strategy="no", disable_tqdm=True)
Trainer(model=model, args=arguments, train_dataset=Tokens()).train()
'''
# Made from outside, these take what is computed apart in another way.
OTHERWISE = {"autocast", "micro_batches"}


def applied(found):
    """Returns the text of the one file that edits change."""
    path, = {edit["file"] for edit in found}
    data, parts, at = pathlib.Path(path).read_bytes(), [], 0
    for edit in found:
        parts += [data[at:int(edit.get("begin", 0))], edit.get("text", "").encode("utf-8")]
        at = int(edit["end"])
    return b"".join([*parts, data[at:]]).decode("utf-8")


class EditsTest(Case):
    def script(self, text, name="script.py"):
        path = pathlib.Path(self.folder, name)
        path.write_text(text, encoding="utf-8")
        return str(path)

    def run_script(self, path, *flags, name="run"):
        run = Recorded(self.folder, [path], flags, name=name)
        self.assertEqual(run.status, 0, run.said)
        return run.process

    def peak(self, process):
        return int(process["cards"][0]["peak_allocated"])

    def proposals(self, path):
        """Returns the proposals for a script by name, and its peak."""
        process = self.run_script(path, "--survey", name="survey")
        self.assertEqual(process.get("lost", []), [])
        return {each["name"]: each for each in process["proposals"]}, self.peak(process)

    def try_each(self, text, names):
        """Makes each change in a copy of the script and from outside, and compares; returns the proposals."""
        path = self.script(text)
        proposals, as_is = self.proposals(path)
        for name in names:
            with self.subTest(name):
                self.assertEqual(proposals[name].get("unwritten", ""), "")
                changed = self.script(applied(proposals[name]["edits"]), "changed.py")
                written = self.peak(self.run_script(changed, name="written"))
                if name.partition(":")[0] in OTHERWISE:
                    self.assertLess(written, as_is)
                    continue
                injected = self.run_script(path, "--remedy", name, name="injected")
                self.assertEqual(written, self.peak(injected))
        return proposals

    def test_a_loop(self):
        proposals = self.try_each(LOOP, [
            "set_to_none", "unread_output:GPT", "sdpa:Block", "fused_head:GPT:head", "checkpoint:Block",
            "micro_batches:GPT:2", "offload:GPT", "sgd:AdamW", "step_in_backward:AdamW"])
        self.assertEqual([name for name, each in proposals.items() if not each["edits"]], [])

    def test_objects(self):
        proposals = self.try_each(OBJECTS, ["no_grad:GPT", "chunked_loss", "checkpoint:Block:2", "foreach:AdamW"])
        self.assertEqual({name.partition(":")[0]: each["unwritten"] for name, each in proposals.items()
                          if not each["edits"]},
                         {"micro_batches": "script.py:43 is not followed by backward() in its block",
                          **{name: "script.py:40 is given its arguments by **" for name in ("adafactor", "sgd")}})

    @needs_libraries
    def test_a_model_in_evaluation(self):
        """Checkpointing does nothing in it; where it is off and the model is trained, it can be turned on."""
        proposals = self.try_each(EVALUATED.format(mode="eval", is_on=True), ["train_mode:PeftModel"])
        self.assertIn("checkpointing is on and does nothing", proposals["train_mode:PeftModel"]["change"])
        self.assertNotIn("hf_checkpoint:LlamaForCausalLM", proposals)
        proposals = self.try_each(EVALUATED.format(mode="train", is_on=False), ["hf_checkpoint:LlamaForCausalLM",
                                                                                  "unread_output:PeftModel"])
        self.assertNotIn("train_mode:PeftModel", proposals)

    @needs_libraries
    def test_a_loop_of_a_library(self):
        """What its constructor has a keyword for is not made otherwise, and no place is a line of it."""
        proposals = self.try_each(TRAINER, ["chunked_loss"])
        self.assertEqual([name for name in proposals
                          if name.startswith(("hf_checkpoint:", "micro_batches:", "fused:", "sgd:"))], [])
        self.assertLessEqual({"constructor:TrainingArguments:gradient_checkpointing",
                              "constructor:TrainingArguments:optim:adamw_torch_fused"}, set(proposals))
        self.assertEqual({each["place"].partition(":")[0] for each in proposals.values()}, {"script.py"})

    def test_the_answer(self):
        """advise runs the edits themselves, and answers with them as a patch, which applies."""
        path = self.script(LOOP)
        done = subprocess.run([Setting.memreplay, "advise", "--json", "--python", Setting.python, "--card", "rtx-4090",
                               "--try", "checkpoint:Block", "--", path], capture_output=True, text=True, check=False,
                              env={**os.environ, "XDG_CACHE_HOME": os.path.join(self.folder, "cache")})
        self.assertEqual(done.returncode, 0, done.stderr)
        row = next(each for each in json.loads(done.stdout)["advice"]["rows"] if "checkpoint:Block" in each["remedies"])
        self.assertEqual((row["error"], row["unwritten"]), ("", ""))
        subprocess.run(["patch", "-p1"], input=row["patch"], text=True, check=True, cwd=self.folder)
        self.assertEqual(self.peak(self.run_script(path)), int(row["peak_allocated_bytes"]))

    def test_a_repository(self):
        """A file outside of the script's folder is patched from the root of the repository that holds both."""
        for name in (".git", "tools"):
            os.mkdir(os.path.join(self.folder, name))
        self.script(LOOP, "loop.py")
        path = self.script("import os, sys\nsys.path.append(os.path.dirname(sys.path[0]))\nimport loop\n",
                           "tools/train.py")
        command = [Setting.memreplay, "advise", "--python", Setting.python, "--card", "rtx-4090", "--try",
                   "checkpoint:Block"]
        environment = {**os.environ, "XDG_CACHE_HOME": os.path.join(self.folder, "cache")}
        done = subprocess.run([*command, "--json", "--", path], capture_output=True, text=True, check=False,
                              env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(done.stdout)["advice"]["rows"]
        number = next(i for i, each in enumerate(rows) if each["remedies"] == ["checkpoint:Block"])
        folder = os.path.realpath(self.folder)
        self.assertEqual((rows[number]["unwritten"], rows[number]["patch_folder"]), ("", folder))
        printed = subprocess.run([*command, "--patch", str(number + 1), "--", path], capture_output=True, text=True,
                                 check=True, env=environment).stdout
        self.assertEqual(printed, f"In {folder}:\n{rows[number]['patch']}")
        subprocess.run(["patch", "-p1"], input=printed, text=True, check=True, cwd=self.folder)
        self.assertEqual(self.peak(self.run_script(path)), int(rows[number]["peak_allocated_bytes"]))

    def test_together(self):
        """Edits of several changes are right together."""
        path = self.script(LOOP)
        proposals, as_is = self.proposals(path)
        names = ("fused:AdamW", "set_to_none", "no_grad:GPT", "unread_output:GPT", "checkpoint:Block", "offload:GPT",
                 "step_in_backward:AdamW")
        found = []
        for edit in [edit for name in names for edit in proposals[name]["edits"]]:
            if edit not in found:
                found.append(edit)
        found = edits.checked([{"text": "", **edit, "begin": int(edit.get("begin", 0)), "end": int(edit["end"])}
                               for edit in found])
        self.assertLess(self.peak(self.run_script(self.script(applied(found), "changed.py"))), as_is)


if __name__ == "__main__":
    sys.exit(main(EditsTest))
