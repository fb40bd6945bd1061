"""Programs under `memreplay record --card`; the slow ones are in record_more_test.py."""
import json
import os
import pathlib
import signal
import subprocess
import sys

import events
from recorded import Case, Recorded, Setting, main, older_than, program


class RecordTest(Case):
    def test_mlp(self):
        run = self.runs("mlp.py")
        self.same_without_values(run, "mlp.py")

    def test_gpt_flash(self):
        run = self.runs("gpt.py")
        self.same_without_values(run, "gpt.py")
        asked = run.process["values"]["asked"]
        self.assertTrue(any("gpt.py:" in row["place"] and row["what"] == "item" for row in asked), asked)

    def test_gpt_expandable_segments(self):
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
        try:
            self.runs("gpt.py", "steps=1", figures_of="gpt.py expandable")
        finally:
            del os.environ["PYTORCH_CUDA_ALLOC_CONF"]

    def test_same_program_same_bytes(self):
        """The host's addresses, by which autocast clears its cache, hang on nothing that is not the program."""
        folder = os.path.join(self.folder, "a-folder-of-another-length")
        os.mkdir(folder)
        one = self.record("gpt.py", "steps=1")
        other = self.record("gpt.py", "steps=000000000000000001", name="another-name", cwd=folder,
                            environment={"ANOTHER": "x" * 700, "AND_MORE": "y"})
        traces = [[(event["action"], event["addr"], event["size"], event["stream"])
                   for event in events.load(run.snapshot)["device_traces"][0]] for run in (one, other)]
        self.assertGreater(len(traces[0]), 1000)
        self.assertEqual(traces[0], traces[1])

    def test_transformer(self):
        run = self.runs("transformer.py")
        self.same_without_values(run, "transformer.py")

    def test_values_are_true(self):
        run = self.runs("truths.py")
        self.assertIn("all true", run.output)

    def test_recurrent_networks(self):
        self.runs("recurrent.py")

    def test_loop_on_an_unknown_value_ends(self):
        run = self.record("unknown_loop.py", flags=["--unknown-limit", "100"])
        self.assertEqual(run.status, 1)
        self.assertEqual(run.process["error"], "EndlessWait")
        self.assertIn("unknown_loop.py:5 asked 100 times", run.process["error_text"])

    def test_out_of_memory(self):
        for phase in ("forward", "backward", "optimizer", "evaluation"):
            with self.subTest(phase):
                run = self.record("oom.py", phase, flags=["--capacity", "6GiB", "--reserve", "400MiB"], name=phase)
                self.assertEqual(run.status, 1, run.output)
                self.assertEqual(run.process["error"], "OutOfMemoryError")
                self.assertIn(f"out of memory in {phase}", run.output)
                self.holds(run, f"oom.py {phase}")
        run = self.record("oom.py", "forward", "catch", flags=["--capacity", "6GiB", "--reserve", "400MiB"])
        self.assertEqual((run.status, run.answer["exit_status"]), (1, 0), run.output)

    def test_own_recording(self):
        run = self.runs("own_recording.py", self.folder, figures_of="own_recording.py")
        self.assertIn("as on a card", run.output)

    def test_graphs(self):
        run = self.runs("graphs.py")
        self.same_without_values(run, "graphs.py")

    def test_on_a_gpu(self):
        """Without --card: PyTorch's own recording on the GPU there is, with nothing of the card's beside it."""
        run = self.record("transformer.py", card=None, environment=self.gpu())
        self.assertEqual(run.status, 0, run.output)
        self.holds(run, "transformer.py")  # the same events as on the imagined card
        self.assertNotIn("card", run.process)
        self.assertNotIn("values", run.process)
        frames = [frame for event in events.load(run.snapshot)["device_traces"][0] for frame in event["frames"]]
        self.assertTrue(frames and all(frame["filename"].endswith(".py") for frame in frames[-100:]))
        run = self.record("oom.py", "forward", card=None, name="oom", environment=self.gpu(
            CAPACITY=6 << 30, RESERVE=400 << 20))
        self.assertEqual((run.status, run.process["error"]), (1, "OutOfMemoryError"), run.output)
        self.holds(run, "oom.py forward")

    def extension(self, name):
        return os.path.join(os.path.dirname(Setting.memreplay), "..", "tests", "record", "extension", name)

    def test_extension(self):
        """Kernels that are not PyTorch's: launched as any, and the summary says that nobody computed them."""
        kernels = self.extension("libkernels.so")
        run = self.runs("extension.py", kernels, figures_of="extension.py")
        self.assertIn({"what": "kernels of libkernels.so compute nothing; tensors that they write hold what they held",
                       "calls": 2}, run.process["card"]["assumptions"])
        self.assertEqual(run.process["cards"][0]["besides"], 100 << 20)
        run = self.record("extension.py", kernels, self.extension("libunknown.so"))
        self.assertEqual(run.status, 1)
        self.assertIn("the imagined card has no cudaSomethingThatNobodyKnows", run.answer["faults"][0])

    def test_side_stream(self):
        lagging = self.runs("side_stream.py")
        at_once = self.runs("side_stream.py", flags=["--completion", "at-once"],
                            figures_of="side_stream.py at once")
        (slow,), (quick,) = lagging.process["replays"], at_once.process["replays"]
        self.assertGreater(slow["peak_reserved"], 10 * quick["peak_reserved"])
        self.assertEqual(slow["at_once_peak_reserved"], quick["peak_reserved"])
        self.assertEqual(quick["at_once_peak_reserved"], 0)
        self.assertIn("with --completion lagging it would still run",
                      json.dumps(at_once.process["card"]["assumptions"]))
        self.assertNotIn("lagging", json.dumps(lagging.process["card"]["assumptions"]))

    def test_several_cards(self):
        self.runs("several_cards.py", flags=["--cards", "4"])

    def test_pools(self):
        if older_than("2.5"):
            self.skipTest("torch.cuda.MemPool came with 2.5")
        run = self.runs("pools.py")
        self.same_without_values(run, "pools.py")
        run = self.runs("gone_pools.py")
        told = " ".join(run.process["replays"][0]["notes"])
        self.assertEqual("taken as of private pools" in told, older_than("2.13"), told)

    def test_one_rank_of_a_job(self):
        flags = ["--ranks", "8", "--rank", "3", "--nccl", "256MiB"]
        # Earlier releases have no fully_shard() or no device meshes.
        for mode in ("ddp", "fsdp1") if older_than("2.6") else ("ddp", "fsdp2", "tensor"):
            with self.subTest(mode):
                run = self.runs("ranks.py", mode, flags=flags)
                self.assertIn("rank 3 of 8 is done", run.output)
                self.assertEqual(run.process["name"], "rank 3")
                self.assertIn("256 MiB", json.dumps(run.process["card"]["assumptions"]))

    def test_what_a_rank_asks_of_its_group(self):
        for end in ((), ("left",)):
            run = self.record("ranks.py", "calls", *end, flags=["--ranks", "8", "--rank", "3"])
            self.assertEqual(run.status, 0, run.output)

    def test_fast_init(self):
        run = self.record("large_init.py", flags=["--fast-init"])
        self.assertEqual(run.status, 0, run.output)

    def test_no_cuda(self):
        run = self.record("no_cuda.py")
        self.assertEqual((run.status, run.answer["processes"]), (0, []), run.output)
        self.assertFalse(os.path.exists(run.snapshot))

    def test_a_script_that_fails(self):
        run = self.record("fails.py")
        self.assertEqual((run.status, run.answer["exit_status"]), (1, 1))
        self.assertEqual(run.process["error"], "ValueError")
        self.assertIn("this program fails", run.answer["faults"][0])
        self.holds(run, "fails.py")

    def test_ctrl_c(self):
        snapshot = os.path.join(self.folder, "snapshot.pickle")
        child = subprocess.Popen(
            [Setting.memreplay, "record", "--json", "--python", Setting.python, "--card", "rtx-4090", "-o", snapshot,
             *program("sleeps.py")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True)
        self.assertEqual(child.stderr.readline(), "ready\n")
        child.send_signal(signal.SIGINT)
        answer, output = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 1, output)
        self.assertEqual(json.loads(answer)["processes"][0]["error"], "KeyboardInterrupt")
        self.assertTrue(os.path.exists(snapshot))

    def script(self, command, *words):
        """`fit script` or `sweep script` on a card that has 1,000 MiB to give."""
        done = subprocess.run(
            [Setting.memreplay, command, "script", "--json", "--card", "rtx-4090", "--capacity", "1GiB",
             "--reserve", "24MiB", "--python", Setting.python, *words],
            capture_output=True, text=True, timeout=300, check=False,
            env={**os.environ, "XDG_CACHE_HOME": os.path.join(self.folder, "cache")})
        return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr

    def test_fit_script_and_sweep_script(self):
        status, answer = self.script("fit", "--pieces=?", "--", *program("takes.py"))
        self.assertEqual(status, 0, answer)
        found = answer["cases"][0]
        self.assertEqual(found["largest"], 15)
        rows = {row["value"]: row for row in found["rows"]}
        self.assertTrue(rows[15]["fits"])
        self.assertEqual(rows[15]["peak_reserved"], 15 * 64 << 20)
        self.assertEqual(rows[15]["spare"], 40 << 20)
        self.assertFalse(rows[16]["fits"])
        self.assertIn("takes.py:9", rows[16]["error_place"])
        self.assertEqual((answer["runs"], answer["from_cache"]), (len(rows), 0))
        # Again, and the values that are known already in the place of a "?": nothing is run.
        status, again = self.script("fit", "--pieces=?", "--", *program("takes.py", "--pieces=?"))
        self.assertEqual((again["runs"], again["cases"][0]["largest"]), (0, 15))
        status, answer = self.script("sweep", "--pieces=16,15,8", "--", *program("takes.py"))
        self.assertEqual((status, answer["runs"]), (0, 0))
        status, answer = self.script("fit", "--pieces=?", "--step", "13", "--", *program("takes.py"))
        self.assertEqual(status, 2)
        self.assertIn("ValueError: an unlucky number", answer)

    def test_module(self):
        pathlib.Path(self.folder, "package").mkdir()
        pathlib.Path(self.folder, "package", "__main__.py").write_text(
            "import sys, torch\ntorch.ones(5, device='cuda')\nassert sys.argv[1:] == ['--flag', 'x']\n",
            encoding="utf-8")
        run = Recorded(self.folder, ["-m", "package", "--flag", "x"])
        self.assertEqual(run.status, 0, run.output)

    def test_unusable(self):
        for words, flags, card, why in (
                (["train.py"], [], None, "no GPU is here"),
                (["no-such-program"], [], "no-such-card", "--card no-such-card: no such card; there are b200,"),
                (["no-such-program"], [], "rtx", "--card rtx: several cards match"),
                (["no-such-program"], [], "rtx-4090", "cannot start no-such-program")):
            with self.subTest(why):
                run = Recorded(self.folder, words, flags, card=card)
                self.assertEqual(run.status, 2)
                self.assertIn(why, run.output)


if __name__ == "__main__":
    sys.exit(main(RecordTest))
