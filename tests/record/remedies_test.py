"""Checks that each change that `memreplay advise` makes to a running script gives the events that the same change gives
when it is written into the script by hand, and checks what the command says about a script."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import events
from recorded import (
    HERE,
    Case,
    Recorded,
    Setting,
    main,
    needs_libraries,
    older_than,
    program,
)

# Of programs/remedies.py.
CHANGES = {
    "gpt": ("", "fused:AdamW", "foreach:AdamW", "set_to_none", "no_grad:GPT", "empty_cache", "chunked_loss",
            "fused_head:GPT:head",
            "checkpoint:Block", "checkpoint:Block:2", "micro_batches:GPT:2", "step_in_backward:AdamW", "offload:GPT",
            "offload:GPT:large",
            "host_state:AdamW", "autocast:GPT", "bf16:GPT", "bf16_state:AdamW", "adafactor:AdamW", "sgd:AdamW"),
    "named": ("", "unread_output:GPT"),
    "attention": ("", "sdpa:Block"),
    "math": ("", "sdp_kernel"),
    "tower": ("", "checkpoint:Tower"),
    "perceptron": ("", "compile:Perceptron"),
    "few_rows": ("", "host_state:AdamW", "bf16_state:AdamW"),
    "network": ("", "foreach:AdamW", "step_in_backward:AdamW", "no_grad:Network", "chunked_loss", "checkpoint:Residual",
                "checkpoint:Residual:2", "offload:Network", "autocast:Network",
                "bf16:Network:inputs")}
# Of the same programs, as one rank of four.
JOB_CHANGES = {
    "gpt": ("", "ddp:GPT", "zero:AdamW:GPT:split", "fsdp:GPT:Block:split"),
    "scaled": ("", "fsdp:GPT:Block:split"),
    "replicated": ("", "ddp", "zero:AdamW", "fsdp:GPT:Block"),
    "named_replicated": ("", "unread_output:GPT"),
    "network": ("", "zero:AdamW:Network", "fsdp:Network:Residual")}
# Its blocks count their calls, next to statistics that are kept as they should be.
COUNTING = """
import torch

class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norm = torch.nn.Linear(64, 64), torch.nn.BatchNorm1d(64)
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.calls += 1
        return self.norm(self.layer(x))

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Counting() for _ in range(2))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

model = Model().cuda()
model(torch.ones(8, 64, device="cuda")).sum().backward()
"""
EVALUATED = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2)
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.calls += 1
        return self.encoder(x).square().mean()

model = Model().cuda()
optimizer, scaler = torch.optim.AdamW(model.parameters()), torch.amp.GradScaler()
for _ in range(2):
    with torch.autocast("cuda", dtype=torch.float16):
        scaler.scale(model(torch.ones(8, 16, 64, device="cuda"))).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        model.eval()(torch.ones(8, 16, 64, device="cuda"))
    model.train()
"""
OTHER = {"autocast", "bf16", "bf16_state", "eight_bit", "adafactor", "sgd"}  # say that results are others
OF_LIBRARIES = {"hf_attention", "hf_checkpoint", "kv_cache", "last_logits", "liger"}
SAME = {"fused", "foreach", "set_to_none", "no_grad", "unread_output", "empty_cache", "sdpa", "chunked_loss",
        "fused_head", "compile", "checkpoint", "micro_batches", "ddp", "zero", "fsdp", "offload", "host_state",
        "sdp_kernel", "step_in_backward", "collect"} | OF_LIBRARIES
MIB = 1 << 20
RESERVE = ["--reserve", "500MiB"]  # the capacities below are this and what the script has


def changes_of(model):
    """Returns those of CHANGES that this PyTorch can make."""
    return [change for change in CHANGES[model] if not (change.startswith("adafactor") and older_than("2.5"))]


class RemediesTest(Case):
    def run_each(self, how, changes, flags=()):
        """Returns (events, peak of allocated bytes) of each change."""
        words = [f"{model}/{change}" for model, names in changes.items() for change in names]
        caches = os.path.join(self.folder, f"{how}-caches")  # what Inductor finds compiled it does not compile
        run = self.record("remedies.py", how, *words, name=how, flags=flags, environment={
            "TMPDIR": self.folder, "TORCHINDUCTOR_CACHE_DIR": caches, "TRITON_CACHE_DIR": caches,
            "TORCHINDUCTOR_COMPILE_THREADS": "1"})
        self.assertEqual(run.status, 0, run.said)
        pids = dict(line.split() for line in run.output.splitlines() if "/" in line and line.split()[0].isdigit())
        self.assertEqual(list(pids.values()), words, run.output)
        found = {}
        for process in run.answer["processes"]:
            pid = pathlib.Path(process["snapshot"]).stem.rpartition("process")[2]
            self.assertTrue(all(replay["agrees"] for replay in process["replays"]), process["replays"])
            found[pids[pid]] = (events.events_of(events.load(process["snapshot"])),
                                int(process["cards"][0]["peak_allocated"]))
        return found

    def test_injected_as_written(self):
        peaks = self.same_events({model: changes_of(model) for model in CHANGES})
        # In 2.6 the peak is at the step, which has the state of one of two large matrices; in 2.15 it is before that.
        weights = 4 * (2 * 256 * 1024 + 256 + 1024)  # bytes of those of "few_rows", and of each moment
        as_is, on_host, in_bf16 = (peaks[f"few_rows/{change}"] for change in CHANGES["few_rows"])
        self.assertLess(on_host, as_is - 1.25 * weights)
        self.assertLess(in_bf16, as_is - 0.75 * weights)

    def test_injected_as_written_in_a_job(self):
        """The first and the last rank of four; ZeRO gives them different parameters."""
        peaks = [self.same_events(JOB_CHANGES, flags=("--ranks", "4", "--rank", rank)) for rank in ("0", "3")]
        different = {name for name in peaks[0] if peaks[0][name] != peaks[1][name]}
        self.assertEqual(different, {name for name in peaks[0] if "zero" in name})

    def same_events(self, changes, flags=()):
        """Compares the events of each change, and returns the peaks of the written ones."""
        injected, written = (self.run_each(how, changes, flags) for how in ("injected", "written"))
        for name, (its_events, peak) in written.items():
            with self.subTest(name):
                if "micro_batches" in name:  # the factor of the loss is known only when the first part is over
                    self.assertAlmostEqual(injected[name][1], peak, delta=peak / 200)
                    continue
                self.assertIsNone(events.difference(injected[name][0], its_events))
                self.assertEqual(injected[name][1], peak)
        for model, names in changes.items():
            for change in names[1:]:
                with self.subTest(f"{model}/{change} changes something"):
                    self.assertIsNotNone(events.difference(written[f"{model}/{change}"][0], written[f"{model}/"][0]))
        return {name: peak for name, (_, peak) in written.items()}

    def test_in_numbers(self):
        """What the changes compute, on the CPU with real numbers, next to what the script does without them."""
        expected = SAME - OF_LIBRARIES - {"compile"} - ({"fsdp"} if older_than("2.7") else set())
        self.assertEqual(self.computed("remedies_in_numbers.py"), expected)

    @unittest.skipIf(shutil.which("g++") is None, "Inductor needs a compiler")
    def test_compiled_in_numbers(self):
        self.assertEqual(self.computed("remedies_in_numbers.py", "compiled"), {"compile"})

    @needs_libraries
    def test_of_libraries_in_numbers(self):
        self.assertEqual(self.computed("libraries_in_numbers.py") - {"checkpoint"}, OF_LIBRARIES)

    def computed(self, *words):
        """Runs a program of tests/record/programs and returns the names of the changes that it has computed."""
        process = HERE.parents[1] / "record" / "process"
        run = subprocess.run([Setting.python, *program(*words)], text=True, check=False, capture_output=True,
                             env={**os.environ, **self.gpu(), "PYTHONPATH": str(process), "TMPDIR": self.folder,
                                  "TORCHINDUCTOR_COMPILE_THREADS": "1"})
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return {change for line in run.stdout.splitlines() if line.startswith("computed ") for change in
                line.split()[2:]}

    def test_what_results_are_said_to_be(self):
        """A second forward pass moves buffers once more, and dropout draws other numbers for a part of a batch."""
        script = pathlib.Path(self.folder, "script.py")
        script.write_text(COUNTING, encoding="utf-8")
        run = Recorded(self.folder, [str(script)], ["--survey"])
        proposed = {each["name"]: each for each in run.process["proposals"]}
        self.assertEqual((proposed["checkpoint:Counting"].get("preserves", False),
                          proposed["checkpoint:Counting"]["preserves_text"]),
                         (False, "other results: what forward() of Counting changes in its buffers is changed twice"))
        for name, text, has_contexts in (("network", "the same; random numbers are drawn again as they were", True),
                                         ("gpt", "the same; random numbers are drawn again as they were", False)):
            proposed = {each["name"]: each for each in self.record(
                "remedies.py", "train", name, flags=["--survey"], name=name).process["proposals"]}
            block = "Residual" if name == "network" else "Block"
            found = proposed[f"checkpoint:{block}"]
            self.assertEqual((found["preserves"], found["preserves_text"]), (True, text))
            text = "".join(each["text"] for each in found["edits"])
            self.assertEqual("context_fn" in text, has_contexts, text)
            for change, each in proposed.items():
                kind = change.partition(":")[0]
                self.assertIn(kind, SAME | OTHER)
                self.assertFalse(kind in OTHER and each.get("preserves", False), change)
        self.assertTrue(proposed["micro_batches:GPT:2"]["preserves_text"].endswith("; dropout draws other numbers"))

    def test_what_no_change_keeps(self):
        """A part of a batch moves buffers once more, and there is a fast path without gradients."""
        script = pathlib.Path(self.folder, "script.py")
        script.write_text(EVALUATED, encoding="utf-8")
        proposed = {each["name"]: each for each in
                    Recorded(self.folder, [str(script)], ["--survey"]).process["proposals"]}
        parts, outputs = proposed["micro_batches:Model:2"], proposed["no_grad:Model"]
        self.assertFalse(parts.get("preserves", False))
        self.assertEqual(parts["preserves_text"], "other results: what forward() of Model changes in its buffers is "
                                                  "changed by each part")
        self.assertEqual(outputs["preserves_text"], "the same outputs up to rounding, but zeros where "
                         "nn.TransformerEncoder is told of padding; not inside an autocast that also trains, which "
                         "before 2.11 may keep the weights that it casts here")
        self.assertEqual([name for name in proposed if name.startswith("step_in_backward")], [])  # it has a scaler

    def test_a_job(self):
        """Every rank is run of a script that a change makes a job; the rank that needs most counts."""
        tried = [word for name in ("zero:AdamW:GPT:split", "chunked_loss") for word in ("--try", name)]
        advice = self.advise("remedies.py", "train", "gpt", flags=[*tried, "--ranks", "4"])
        # And one of each for its time, and one of the first setting.
        self.assertEqual(int(advice["runs"]), 1 + 4 + 1 + 3 + 1, advice["notes"])
        self.assertTrue(any("Every rank" in note for note in advice["notes"]), advice["notes"])
        rows = {row["remedies"][0]: row for row in advice["rows"]}
        ranks = [self.record("remedies.py", "train", "gpt", name=f"rank{rank}",
                             flags=["--remedy", "zero:AdamW:GPT:split", "--ranks", "4", "--rank", str(rank)])
                 for rank in range(4)]
        peaks = [int(run.process["cards"][0]["peak_allocated"]) for run in ranks]
        self.assertGreater(len(set(peaks)), 1)
        self.assertEqual(int(rows["zero:AdamW:GPT:split"]["peak_allocated_bytes"]), max(peaks))

    @needs_libraries
    def test_a_model_of_trainer(self):
        for name, kind in (("hf_checkpoint:GPT2LMHeadModel", "checkpointed"),
                           ("chunked_loss", "chunked")):  # Trainer's loss is a sum
            injected = self.record("hugging_face.py", "gpt2", flags=["--remedy", name])
            self.assertEqual(injected.status, 0, injected.output)
            self.assertEqual(injected.process["met"], [name])
            written = self.record("hugging_face.py", kind, name="written")
            self.assertIsNone(events.difference(*(events.events_of(events.load(run.snapshot))
                                                  for run in (injected, written))))
        proposals = {each["name"]: each for each in self.record(
            "hugging_face.py", "gpt2", flags=["--survey"], name="survey").process["proposals"]}
        self.assertLessEqual({"constructor:TrainingArguments:gradient_checkpointing", "checkpoint:GPT2Block",
                              "chunked_loss", "liger"}, set(proposals))
        self.assertNotIn("hf_checkpoint:GPT2LMHeadModel", proposals)
        of_llama = {each["name"] for each in self.record(
            "hugging_face.py", "loop", flags=["--survey"], name="survey_llama").process["proposals"]}
        self.assertIn("hf_checkpoint:LlamaForCausalLM", of_llama)
        self.assertNotIn("checkpoint:LlamaDecoderLayer", of_llama)  # of which a second pass fills the cache once more
        self.assertNotIn("autocast:GPT2LMHeadModel", proposals)  # which Trainer has on, in the model's forward()

    @needs_libraries
    def test_of_transformers(self):
        """Attention, caches and logits, as the arguments of Transformers have them."""
        for kind, name, written in (("eager", "hf_attention:GPT2LMHeadModel", "gpt2"),
                                    ("generate", "kv_cache", "offloaded"),
                                    ("generate", "kv_cache:static", "static"),
                                    ("loop", "unread_output:LlamaForCausalLM", "freed"),
                                    ("decode", "last_logits:LlamaForCausalLM", "last")):
            with self.subTest(name):
                survey, injected, by_hand = (
                    self.record("hugging_face.py", of, flags=flags, name=f"{written}-{len(flags)}",
                                environment={"TORCHDYNAMO_DISABLE": "1"})  # Transformers compiles for a static cache
                    for of, flags in ((kind, ["--survey"]), (kind, ["--remedy", name]), (written, [])))
                self.assertIn(name, [each["name"] for each in survey.process["proposals"]])
                self.assertEqual(injected.process["met"], [name], injected.output)
                self.assertEqual(by_hand.status, 0, by_hand.output)
                found = [events.events_of(events.load(run.snapshot)) for run in (survey, injected, by_hand)]
                self.assertIsNone(events.difference(found[1], found[2]))
                self.assertIsNotNone(events.difference(found[0], found[2]))

    @needs_libraries
    def test_kernels_of_libraries(self):
        """The optimizer of bitsandbytes and the losses of Liger; a simulated GPU launches their kernels."""
        names = {"gpt": ("", "eight_bit:AdamW", "liger", "liger:GPT:head")}
        peaks = self.same_events(names)
        for model, is_same in (("gpt", True), ("scaled", False)):  # in float16
            survey = self.record("remedies.py", "train", model, flags=["--survey"], name=f"survey_{model}")
            proposed = {each["name"]: each for each in survey.process["proposals"]}
            self.assertLessEqual(set(names["gpt"][1:]), set(proposed))
            self.assertEqual([proposed[name].get("preserves", False) for name in names["gpt"][2:]], [is_same] * 2)
        self.assertLess(peaks["gpt/liger:GPT:head"], peaks["gpt/liger"])
        self.assertLess(peaks["gpt/liger"], peaks["gpt/"])

    def advise(self, *words, flags=(), status=0):
        done = subprocess.run([Setting.memreplay, "advise", "--json", "--python", Setting.python, "--card", "rtx-4090",
                               *RESERVE, *flags, "--", *program(*words)],
                              capture_output=True, text=True, check=False, cwd=self.folder,
                              env={**os.environ, "XDG_CACHE_HOME": os.path.join(self.folder, "cache")})
        self.assertEqual(done.returncode, status, done.stderr)
        return json.loads(done.stdout)["advice"]

    def test_advice(self):
        """The script needs 160 MiB as it is, and there are less than 150. What fits is in the order of time."""
        tried = ["--try", "checkpoint:Block", "--try", "checkpoint:AdamW", "--try", "chunked_loss"]
        advice = self.advise("remedies.py", "train", "gpt", flags=[*tried, "--capacity", "650MiB"])
        self.assertFalse(advice["as_is"]["fits"])
        best = advice["rows"][0]
        self.assertTrue(best["fits"] and best["is_confirmed"], best)
        of_the_script = [row for row in advice["rows"] if row["fits"] and
                         "expandable_segments:True" not in row["remedies"]]  # which is enough alone in 2.15
        self.assertEqual({*map(tuple, (row["remedies"] for row in of_the_script[:2]))},
                         {("chunked_loss",), ("checkpoint:Block",)})
        times = [row["step_seconds"] for row in of_the_script]
        self.assertEqual(times, sorted(times))
        self.assertLess(int(best["smallest_bytes"]), int(advice["goal_bytes"]))
        failed = [row for row in advice["rows"] if row["error"]]
        self.assertEqual([row["remedies"] for row in failed], [["checkpoint:AdamW"]])
        self.assertIn("never gets to it", failed[0]["error"])
        self.assertIn("activations", advice["diagnosis"]["why"])

    def test_each_part_is_needed(self):
        """With less memory than any change alone needs, each part of the winning combination is missed."""
        names = ("chunked_loss", "checkpoint:Block", "host_state:AdamW", "step_in_backward:AdamW")
        flags = [f"--try={name}" for name in names]

        def advise(capacity, **more):
            return self.advise("remedies.py", "train", "gpt", flags=[*flags, "--capacity", str(capacity)], **more)

        alone = advise(1 << 30)
        self.assertEqual([row["error"] for row in alone["rows"]], [""] * len(alone["rows"]))
        goal = min(int(row["smallest_bytes"]) for row in alone["rows"]) - MIB
        capacity = (1 << 30) - int(alone["goal_bytes"]) + goal
        best = advise(capacity)["rows"][0]
        self.assertTrue(best["fits"] and best["is_confirmed"], best)
        self.assertGreater(len(best["remedies"]), 1)
        for missing in (None, *best["remedies"]):
            kept = [name for name in best["remedies"] if name != missing]
            conf = [name for name in kept if name not in names]
            run = self.record("remedies.py", "train", "gpt", name=f"without_{missing}".replace(":", "_"),
                              flags=[*RESERVE, "--capacity", str(capacity),
                                     *(f"--remedy={name}" for name in kept if name in names)],
                              environment={"PYTORCH_CUDA_ALLOC_CONF": ",".join(conf)} if conf else {})
            with self.subTest(missing=missing):
                self.assertEqual(run.status == 0, missing is None, run.said)

    def test_a_class_that_the_script_lacks(self):
        """It is refused when the script has run once, as it is; record says that the change was not made."""
        for name, near in (("checkpoint:Blok", "did you mean checkpoint:Block?"),
                           ("fused:AdamV", "did you mean fused:AdamW?"),
                           ("checkpoint:Nothing", "advise would try checkpoint:Block, checkpoint:Block:2")):
            done = subprocess.run(
                [Setting.memreplay, "advise", "--python", Setting.python, "--card", "rtx-4090", "--try", name,
                 "--try", "checkpoint:Block", "--", *program("remedies.py", "train", "gpt")],
                capture_output=True, text=True, check=False,
                env={**os.environ, "XDG_CACHE_HOME": os.path.join(self.folder, "cache")})
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(f"--try {name}: the script uses no class {name.partition(':')[2]}; {near}", done.stderr)
        runs = pathlib.Path(self.folder, "cache/memreplay/runs")
        self.assertEqual(len(list(runs.iterdir())), 1)
        run = self.record("remedies.py", "train", "gpt",
                          flags=["--remedy=checkpoint:Blok", "--remedy=checkpoint:Block"])
        self.assertEqual(run.status, 1)
        self.assertEqual(run.answer["faults"],
                         ["--remedy checkpoint:Blok was not made: the script never gets to it"])

    def test_what_fails_in_the_script(self):
        """Is one line, and the others go on."""
        names = ("fused_head:GPT:head", "checkpoint:AdamW", "checkpoint:Block")
        advice = self.advise("remedies.py", "train", "reading", flags=[f"--try={name}" for name in names])
        errors = {row["remedies"][0]: row["error"] for row in advice["rows"] if row["error"]}
        self.assertEqual(set(errors), set(names[:2]), errors)
        self.assertIn("the script reads logits after their loss", errors[names[0]])
        self.assertEqual(errors[names[1]], "the script never gets to it")
        self.assertNotIn("\n", "".join(errors.values()))
        self.assertIn([names[2]], [row["remedies"] for row in advice["rows"]])

    def test_the_largest_batch(self):
        """Found on a GPU without a limit; the runs on one of that size agree: one more does not fit."""
        answer = self.advise("remedies.py", "train", "gpt", "?",
                             flags=["--try", "chunked_loss", "--capacity", "650MiB", "--batch=16", "--batch=?"])
        self.assertEqual((answer["key"], int(answer["value"])), ("--batch", 16))
        rows = {tuple(row["remedies"]): row for row in (answer["as_is"], *answer["rows"])}
        found = {names: int(row["largest"]) for names, row in rows.items() if row["largest_is_proven"]}
        self.assertEqual(set(found), set(rows), answer["notes"])
        self.assertLess(found[()], found[("chunked_loss",)])
        for remedy in ("", "chunked_loss"):
            largest = found[(remedy,) if remedy else ()]
            for batch in (largest, largest + 1):
                with self.subTest(f"{remedy} {batch}"):
                    flags = [*RESERVE, "--capacity", "650MiB", *(["--remedy", remedy] if remedy else [])]
                    run = self.record("remedies.py", "train", "gpt", str(batch), name=f"{remedy}{batch}", flags=flags)
                    self.assertEqual(run.status == 0, batch == largest, run.said)

    def test_a_batch_that_was_not_recorded(self):
        """Recordings of two batch sizes say what others need; recordings of those agree. The gradient of an embedding
        is computed otherwise with up to 3,072 tokens."""
        def recorded(batch, layers=2):
            run = self.record("gpt.py", f"layers={layers}", "steps=2", f"batch={batch}", name=f"{batch}of{layers}")
            self.assertEqual(run.status, 0, run.said)
            return run.snapshot

        def answer(*words, status=0):
            done = subprocess.run([Setting.memreplay, *words], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, status, done.stderr)
            return json.loads(done.stdout) if status < 2 else done.stderr

        peaks = ("peak_reserved_bytes", "peak_allocated_bytes")
        files = {batch: f"{recorded(batch)}={batch}" for batch in (13, 16, 24)}
        two = answer("advise", "--json", files[13], files[16], "--batch=24")["advice"]
        self.assertEqual((two["key"], int(two["value"]), two["source"]), ("--batch", 24, "edit"))
        third, = answer("replay", "--json", files[24].rpartition("=")[0])["devices"]
        self.assertEqual([two["as_is"][key] for key in peaks], [third[key] for key in peaks])
        three = answer("advise", "--json", *files.values(), "--batch=16")["advice"]["scaling"]
        self.assertEqual([int(value) for value in three["values"]], [13, 16, 24])
        self.assertGreater(int(three["growing"]), 100)
        self.assertLess(int(three["bent"]), 10)  # scratch memory of kernels, which is rounded

        for other in (f"{recorded(16, layers=3)}=16", f"{recorded(8)}=8"):
            error = answer("advise", files[13], other, "--batch=?", "--card", "300MiB", status=2)
            self.assertRegex(error, r"^memreplay: .*do not correspond: event \d+ of .* is .*, event \d+ of .* is ")
            self.assertEqual(error.count("\n"), 1)
        self.assertIn("expected each recording with its value", answer("advise", "a.pickle", "--batch=?", status=2))

    def test_nothing_helps(self):
        advice = self.advise("remedies.py", "train", "gpt", flags=["--try", "set_to_none", "--capacity", "560MiB"],
                             status=1)
        self.assertFalse(any(row["fits"] for row in advice["rows"]))
        self.assertGreater(int(advice["bound_bytes"]), 0)

    def test_roofline(self):
        """The FLOPs are those of three training passes and of the forward pass of an evaluation with gradients, worked
        out by hand; checkpointed blocks compute their forward passes again, and a fused head computes its gradients in
        each forward pass, also in that of an evaluation with gradients."""
        batch, context, width = 16, 128, 64  # of programs/remedies.py
        products = 2 * batch * context * (3 + 1 + 4 + 4) * width ** 2
        attention = 4 * batch * context ** 2 * width
        head = 2 * batch * context * width * 4000
        forward = 4 * (products + attention) + head
        backward = 4 * (2 * products + 2.5 * attention) + 2 * head  # 2.5: scores are computed again
        found = []
        for more in ((), ("--remedy", "checkpoint:Block"), ("--remedy", "fused_head:GPT:head")):
            run = self.record("remedies.py", "train", "gpt", flags=[*more, "--remedy", "roofline"])
            self.assertEqual(run.status, 0, run.said)
            found.append(run.process["work"])
            self.assertEqual(found[-1]["steps"], 3)
        self.assertEqual(found[0]["flops"], 4 * forward + 3 * backward)
        self.assertEqual(found[1]["flops"], found[0]["flops"] + 3 * 4 * (products + attention))
        self.assertEqual(found[2]["flops"], found[0]["flops"] + 2 * head)
        self.assertGreater(found[1]["seconds"], found[0]["seconds"])

    def test_what_needs_all_gradients_is_seen(self):
        """Clipped gradients forbid a step in backward; attention that is written out gets the call to replace it."""
        run = self.record("gpt.py", "layers=2", "steps=1", "attention=manual", flags=["--survey"], name="survey")
        names = {each["name"]: each for each in run.process["proposals"]}
        self.assertNotIn("step_in_backward:AdamW", names)
        self.assertIn("checkpoint:Block", names)
        line = names["sdpa:Attention"]["edits"][-1]["text"]
        self.assertEqual(line, "y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, "
                               "dropout_p=o.dropout if self.training else 0.0, scale=k.size(-1) ** (-0.5))")

    def test_a_survey_changes_no_event(self):
        """Proposals have the lines of this script, and the events are those without a survey."""
        proposals_of = {}
        for model in ("named", "gpt"):
            found = {}
            for flags in ((), ("--survey",)):
                run = self.record("remedies.py", "train", model, flags=flags, name="survey" if flags else "plain")
                self.assertEqual(run.status, 0, run.said)
                found[flags] = events.events_of(events.load(run.snapshot))
            with self.subTest(model):
                self.assertIsNone(events.difference(*found.values()))
            proposals_of[model] = {each["name"]: each for each in run.process["proposals"]}
        lines = [each["text"].strip() for each in proposals_of["named"]["unread_output:GPT"]["edits"]]
        self.assertEqual(lines, ["del logits  # nothing reads it"] * 2)
        proposals = proposals_of["gpt"]
        self.assertNotIn("unread_output:GPT", proposals)
        for name in (*changes_of("gpt")[1:], "compile:GPT"):
            self.assertIn(name, proposals)
        self.assertEqual([name for name, each in proposals.items() if each["named_only"]],
                         ["compile:GPT", "offload:GPT:large", "bf16:GPT", "bf16_state:AdamW", "adafactor:AdamW"])
        self.assertNotIn("sdpa:Block", proposals)  # its lines are never run
        self.assertRegex(proposals["offload:GPT"]["place"], r"^remedies\.py:\d+$")


if __name__ == "__main__":
    sys.exit(main(RemediesTest))
