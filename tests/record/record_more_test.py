"""Tests scripts under `memreplay record --card` that take long or use libraries next to torch."""
import json
import os
import resource
import subprocess
import sys
import unittest.mock

import events
from recorded import Case, Recorded, Setting, main, needs_libraries, program

# programs/synthesised.py has the same keys.
SYNTH_KEYS = {
    "llama": ["--n_layers=2", "--dim=256", "--n_heads=8", "--n_kv_heads=4", "--ffn_dim=768", "--vocab_size=1000",
              "--seq_len=128"],
    "nanogpt": ["--n_layer=2", "--n_head=4", "--n_embd=256", "--vocab_size=1000", "--block_size=128", "--dropout=0",
                "--bias=False", "--compile=False"],
    "both": ["--batch_size=4", "--gradient_accumulation_steps=1", "--eval_iters=1", "--eval_passes=0",
             "--eval_last=False", "--multiprocessors=128"],
}
SYNTHESISED = [
    ("llama", "--gradient_accumulation_steps=2", "--eval_iters=2", "--batch_size=8", "--seq_len=512"),
    ("llama", "--rms_norm=eager", "--n_kv_heads=1", "--tie_weights=True"),
    ("llama", "--checkpoint=block", "--upcast_logits=True"),
    ("llama", "--dtype=float32", "--optimizer=adamw_single"),
    ("llama", "--attention=efficient", "--optimizer=sgd"),
    ("nanogpt", "--dropout=0.2", "--bias=True", "--batch_size=8", "--block_size=512", "--vocab_size=65"),
    ("nanogpt", "--dtype=float16", "--gradient_accumulation_steps=2"),
    ("nanogpt", "--attention=manual", "--dropout=0.1"),
    ("nanogpt", "--attention=manual", "--dtype=float16"),
    ("nanogpt", "--dtype=float32", "--bias=True", "--optimizer=adamw_foreach"),
    ("nanogpt", "--checkpoint=block", "--n_head=2"),
]


class RecordMoreTest(Case):
    @needs_libraries
    def test_transformers(self):
        for kind in ("gpt2", "llama", "lora", "generate"):
            with self.subTest(kind):
                self.runs("hugging_face.py", kind)

    def test_operators(self):
        run = self.runs("operators.py")
        self.assertIn("all ran", run.output)

    @needs_libraries
    def test_another_package_with_code_for_cuda(self):
        run = self.runs("eight_bit.py")
        self.assertIn("eight bit", run.output)
        assumed = [row["what"] for row in run.process["card"]["assumptions"]]
        self.assertTrue(any("bitsandbytes" in what for what in assumed), assumed)

    @needs_libraries
    def test_resnet(self):
        if Setting.torch != "2.6.0":
            self.skipTest(f"the environment of torch {Setting.torch} has no torchvision")
        run = self.runs("vision.py", "resnet")
        assumed = [row["what"] for row in run.process["card"]["assumptions"]]
        self.assertTrue(any(what.startswith("the cuDNN workspace is assumed to be 0 bytes") for what in assumed),
                        assumed)
        self.same_left_alone(run, "vision.py", "resnet")
        # To compare plans, PyTorch empties the cache in the middle of an operator.
        self.runs("vision.py", "resnet", flags=["--cudnn-workspace", "256MiB"], figures_of="vision.py with workspaces")

    def test_unet(self):
        run = self.runs("vision.py", "unet")
        self.same_left_alone(run, "vision.py", "unet")

    def test_compile(self):
        """Triton compiles real kernels, and the compiler sees nothing of us."""
        empty = {name: os.path.join(self.folder, name) for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")}
        with unittest.mock.patch.dict(os.environ, empty):  # Triton compiles C, too, and links it
            words = ["gpt.py", "compile=1", "steps=2", "layers=2"]
            run = self.runs(*words)
            self.assertEqual(len(run.answer["processes"]), 1, "workers of the compiler record nothing")
            self.assertNotIn("graph_breaks", run.output)
            plain = self.runs(*words[:1], *words[2:])
            self.assertNotEqual(run.process["replays"][0]["peak_allocated"],
                                plain.process["replays"][0]["peak_allocated"])

    def test_compile_on_a_default_device(self):
        run = self.record("default_device.py", environment={
            "TORCHINDUCTOR_CACHE_DIR": os.path.join(self.folder, "inductor")})
        self.assertEqual(run.status, 0, run.said)
        self.assertIn("compiled", run.output)

    def test_attention_and_types(self):
        for words in (("attention=efficient", "dtype=float16"), ("attention=manual",),
                      ("dtype=float32", "bias=1"), ("checkpoint=1", "accumulate=2", "fused=0")):
            with self.subTest(words):
                run = self.runs("gpt.py", "steps=2", *words)
                self.same_left_alone(run, "gpt.py", "steps=2", *words)

    def test_synth(self):
        """What `synth` writes down is what PyTorch requests: each allocation, its size and when it is freed."""
        allocations = 0
        for model, *words in SYNTHESISED:
            with self.subTest(f"{model} {' '.join(words)}"):
                run = self.record("synthesised.py", model, *words)
                self.assertEqual(run.status, 0, run.said)
                made = subprocess.run([Setting.memreplay, "synth", model, *SYNTH_KEYS[model], *SYNTH_KEYS["both"],
                                       *words, f"--torch_version={Setting.torch}"],
                                      capture_output=True, text=True, check=True)
                there = events.lives((event["addr"], event["size"] if event["action"] == "alloc" else None)
                                     for event in events.load(run.snapshot)["device_traces"][0]
                                     if event["action"] in ("alloc", "free_completed"))
                here = events.lives((row["id"], row.get("b"))
                                    for row in map(json.loads, made.stdout.splitlines()) if row["k"] in "af")
                self.assertGreater(len(there), 400)
                for number, (recorded, written) in enumerate(zip(there, here)):
                    self.assertEqual(recorded, written, f"allocation {number}")
                self.assertEqual(len(there), len(here))
                allocations += len(there)
        print(f"{allocations} allocations alike")

    def test_fsdp1(self):
        self.runs("ranks.py", "fsdp1", flags=["--ranks", "8", "--rank", "3"])

    def test_torchrun(self):
        """There are two real processes; each is, event by event, what one process for one rank is."""
        torchrun = os.path.join(os.path.dirname(Setting.python), "torchrun")
        for mode in ("ddp", "fsdp2"):
            job = Recorded(self.folder, [torchrun, "--standalone", "--nproc_per_node", "2",
                                         *program("ranks.py", mode)], ["--cards", "2"], name=mode)
            self.assertEqual(job.status, 0, job.output)
            self.assertEqual([process["name"] for process in job.answer["processes"]],
                             ["rank 0", "rank 1"])
            for rank, process in enumerate(job.answer["processes"]):
                alone = self.record("ranks.py", mode, flags=["--ranks", "2", "--rank", str(rank)],
                                    name=f"{mode}{rank}")
                self.assertIsNone(events.difference(
                    events.events_of(events.load(process["snapshot"]), rank),
                    events.events_of(events.load(alone.snapshot))))

    def test_what_ranks_send_each_other(self):
        """The processes are real: small values are those of the other ranks, and a barrier is one."""
        torchrun = os.path.join(os.path.dirname(Setting.python), "torchrun")
        job = Recorded(self.folder, [torchrun, "--standalone", "--nproc_per_node", "3",
                                     *program("exchanges.py"), self.folder], ["--cards", "3"])
        self.assertEqual(job.status, 0, job.output)
        self.assertEqual(job.output.count("of 3: all true"), 3, job.output)

    def test_pipeline(self):
        """Ranks send each other objects: several processes do, and a lone rank says that it cannot."""
        torchrun = os.path.join(os.path.dirname(Setting.python), "torchrun")
        job = Recorded(self.folder, [torchrun, "--standalone", "--nproc_per_node", "2", *program("pipeline.py")],
                       ["--cards", "2"])
        self.assertEqual(job.status, 0, job.output)
        self.holds(job, "pipeline.py")
        alone = self.record("pipeline.py", flags=["--ranks", "2", "--rank", "1"], name="alone")
        self.assertEqual(alone.status, 1)
        self.assertIn("rank 1 waits for objects that only rank 0 can make", alone.answer["faults"][0])

    def cost(self, *words, flags=()):
        """Returns a run, and the seconds of CPU that it took with all its processes."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = self.record(*words, flags=flags)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertEqual(run.status, 0, run.said)
        return run, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def test_speed(self):
        """For GPT-2's 124 million parameters, ten iterations take 5 microseconds an op plus importing torch twice."""
        words = ["gpt.py", "layers=12", "heads=12", "width=768", "context=1024", "vocabulary=50304", "batch=12",
                 "steps=10", "dropout=0"]
        flags = ["--capacity", "80GiB", "--fast-init"]
        for _attempt in range(3):  # there may be other work on the machine
            _, importing = self.cost("takes.py", "--pieces=0")
            run, training = self.cost(*words, flags=flags)
            kernels, calls = run.process["card"]["launches"], run.process["replays"][0]["events"]
            print(f"import {importing:.2f} s, training {training:.2f} s, {kernels} kernels, {calls} events")
            if training <= 2 * importing + 5e-6 * (int(kernels) + int(calls)):
                return
        self.fail("too slow three times")

    def test_a_large_model(self):
        """The memory of a card with 70 billion parameters takes none of the host's."""
        for built_on in ("meta", "card"):
            run = self.record("large_model.py", built_on, flags=["--card", "h200"], card=None)
            self.assertEqual(run.status, 0, run.said)
            self.holds(run, f"large_model.py {built_on}")
            self.assertGreater(int(run.process["cards"][0]["peak_reserved"]), 128 << 30)
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10  # of all runs of this test
        print(f"{largest >> 20} MiB")
        self.assertLess(largest, 4 << 30)

    def test_torchrun_on_gpus(self):
        """There is one file a rank, whether the command starts torchrun or torchrun the command."""
        torchrun = os.path.join(os.path.dirname(Setting.python), "torchrun")
        start = [torchrun, "--standalone", "--nproc_per_node", "2"]
        gpus = self.gpu(COUNT=2)
        job = Recorded(self.folder, [*start, *program("takes.py", "--pieces=2")], card=None, environment=gpus)
        self.assertEqual(job.status, 0, job.output)
        self.assertEqual([process["name"] for process in job.answer["processes"]], ["rank 0", "rank 1"])
        done = subprocess.run(
            [*start, "--no-python", Setting.memreplay, "record", "--python", Setting.python, "-o", "each.pickle",
             *program("takes.py", "--pieces=2")], cwd=self.folder, capture_output=True, text=True, timeout=600,
            check=False, env={**os.environ, **gpus})
        self.assertEqual(done.returncode, 0, done.stderr)
        for rank, process in enumerate(job.answer["processes"]):
            self.assertIsNone(events.difference(
                events.events_of(events.load(process["snapshot"]), rank),
                events.events_of(events.load(os.path.join(self.folder, f"each.rank{rank}.pickle")), rank)))


if __name__ == "__main__":
    sys.exit(main(RecordMoreTest))
