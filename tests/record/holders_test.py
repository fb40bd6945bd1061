"""Tests who holds memory, as `memreplay record` says it: by scripts that have a kind, and by ones that must not."""
import json
import pathlib
import subprocess
import sys

import events
from recorded import Case, Setting, main, program


class HoldersTest(Case):
    def found(self, kind, status=0):
        """Returns who holds memory by a run of holders.py, whose events are those of a run without any look."""
        run = self.record("holders.py", kind)
        self.assertEqual(run.status, status, run.said)
        plain = self.record("holders.py", kind, flags=["--no-notes"], name="plain")
        self.assertIsNone(events.difference(events.events_of(events.load(run.snapshot)),
                                            events.events_of(events.load(plain.snapshot))))
        self.assertEqual(run.process["lost"], [])
        self.snapshot = run.snapshot
        return run.process["holding"]

    def nothing(self, kind):
        holding = self.found(kind)
        self.assertFalse(holding.get("growth") or holding["kept"] or holding["held"], holding)

    def grows(self, kind, path):
        """Checks that a run grows by what `path` holds. Returns the holder."""
        holding = self.found(kind)
        growth = holding["growth"]
        self.assertEqual((growth["step"], int(growth["steps"])), ("step of SGD", 24))
        self.assertEqual(growth["holders"][0]["path"], path)
        self.assertEqual(len(growth["holders"]), 1)
        self.assertEqual((holding["kept"], holding["held"]), ([], []))
        return int(growth["bytes"]), growth["holders"][0]

    def test_list(self):
        grown, holder = self.grows("logged", "`trainer.log[]` in train() (holders.py:71)")
        self.assertEqual(grown, 1 << 20)
        self.assertEqual((int(holder["tensors"]), int(holder["bytes"])), (8, 8 << 20))  # after eight steps

    def asked(self, command, snapshot):
        return json.loads(subprocess.run([Setting.memreplay, command, "--json", snapshot], capture_output=True,
                                         text=True, check=False).stdout)

    def said(self, command, snapshot):
        """Returns the diagnosis of a question about the snapshot, and who holds memory by it."""
        device, = self.asked(command, snapshot)["devices"]
        return device["diagnosis"], device.get("holding")

    def test_snapshot(self):
        """A snapshot says what the process was asked, so that all who read it know."""
        holding = self.found("mean")
        diagnosis, found = self.said("inspect", self.snapshot)
        self.assertEqual(found, holding)
        self.assertEqual(diagnosis["what"], "Grows 2.00 MiB with each step of SGD.")
        self.assertRegex(diagnosis["why"], r"^Held: .* by the autograd graph of `trainer\.mean`")
        self.assertTrue(diagnosis["do"].startswith("To free it: "), diagnosis)
        holding = self.found("exception", status=1)
        diagnosis, found = self.said("oom", self.snapshot)
        self.assertEqual(found["held"], holding["held"])
        self.assertTrue(diagnosis["why"].startswith("Held when memory ran out: "), diagnosis)
        self.assertTrue(diagnosis["do"].startswith("To free it: "), diagnosis)  # not what reduces a category
        self.nothing("warm")
        self.assertIsNone(self.said("inspect", self.snapshot)[1])

    def test_graph(self):
        self.grows("mean", "the autograd graph of `trainer.mean` in train() (holders.py:71)")
        self.nothing("mean_detached")

    def test_closure(self):
        self.assertEqual(self.grows("closure", "closure of `count` in train() (holders.py:72)")[0], 1 << 20)

    def test_cycle(self):
        kept = self.found("cycle")["kept"][0]
        self.assertEqual(kept["path"],
                         "a cycle of references that Python has not collected yet: Tensor -> DoubledBackward.kept")
        self.assertGreaterEqual(int(kept["tensors"]), 4)
        self.nothing("saved")

    def test_what_a_collection_frees(self):
        """advise runs the script with a collection after each step, and writes it."""
        script = pathlib.Path(self.folder, "holders.py")
        script.write_bytes(pathlib.Path(program("holders.py")[0]).read_bytes())
        run = self.record("holders.py", "cycle", flags=["--remedy", "collect:SGD"], name="injected")
        self.assertEqual(run.process["met"], ["collect:SGD"])
        done = subprocess.run([Setting.memreplay, "advise", "--json", "--python", Setting.python, "--card", "rtx-4090",
                               "--try", "collect:SGD", "--", str(script), "cycle"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        advice = json.loads(done.stdout)["advice"]
        row, = (each for each in advice["rows"] if each["remedies"] == ["collect:SGD"])
        self.assertIn("gc.collect()", row["patch"])
        self.assertEqual(int(row["peak_allocated_bytes"]), int(run.process["cards"][0]["peak_allocated"]))
        self.assertLess(2 * int(row["peak_allocated_bytes"]), int(advice["as_is"]["peak_allocated_bytes"]))

    def test_lru_cache_and_generator(self):
        """A cache of a method is found through its class, and a suspended generator has variables, too."""
        self.grows("method", "lru_cache of `Encoder.features` in holders.py:126")
        self.grows("generator", "list `seen[]` in pieces() (holders.py:120)")

    def test_what_is_kept_of_an_epoch(self):
        for kind, step, path in (
                ("states", "step of SGD", "list `kept[][]` in epochs() (holders.py:157)"),
                ("models", "step of SGD", "parameters under list `kept[][]` in epochs() (holders.py:157)"),
                ("outputs", "evaluation of Linear", "list `kept[]` in epochs() (holders.py:157)")):
            growth = self.found(kind)["growth"]
            self.assertEqual((growth["step"], growth["holders"][0]["path"]), (step, path))
        # Notes of new modules are objects, which Python counts until it collects: its collections come elsewhere.
        kept, = self.record("holders.py", "hooked").process["holding"]["kept"]
        self.assertEqual(kept["path"], "a cycle of references that Python has not collected yet: "
                                       "Hooked._forward_hooks -> OrderedDict -> function -> tuple")
        self.nothing("scores")

    def test_evaluation(self):
        kept, = self.found("evaluation")["kept"]
        self.assertEqual(kept["path"], "the autograd graph of `trainer.score` in train() (holders.py:71)")

    def test_exception(self):
        held = self.found("exception", status=1)["held"]
        self.assertEqual(held[0]["path"],
                         "exception `kept` in retry() (holders.py:115), whose frames hold attempt()'s `held[]`")
        held = self.found("words", status=1)["held"]
        self.assertEqual(held[0]["path"], "list `held[]` in attempt() (holders.py:59)")

    def test_growth_that_runs_out(self):
        explanation = self.record("holders.py", "joined").answer["explanation"]
        self.assertEqual(explanation["verdict"], "leak")
        self.assertRegex(explanation["sentence"], r"^each evaluation of Linear leaves 128 MiB behind, held by "
                         r"`whole` in joined\(\) \(holders.py:85\): .* after \d+ of them; drop it, or move")
        self.assertEqual([action["kind"] for action in explanation["actions"]], ["leak"])

    def test_request(self):
        for kind, expected, instead in (
                ("spread", "`one` (1, 16384, 64) and `other` (16384, 1, 64) broadcast to (16384, 16384, 64), at "
                           "holders.py:90", "go through it in pieces, or write it as a matrix product"),
                ("widened", "a float32 copy of `half` (6442450944,) of 2 bytes an element, at holders.py:95",
                 "make it in pieces"),
                ("scored", "a value for each pair of rows of `one` (8, 16, 8192, 64), (8, 16, 8192, 8192), at "
                           "holders.py:100", "use scaled_dot_product_attention(), which keeps none"),
                ("dense", "the sparse `sparse` (80000, 80000) made dense, at holders.py:106",
                 "let it need no gradient, which is dense")):
            found = self.found(kind, status=1)
            self.assertEqual((found["request"], found["instead"]), ("by its size " + expected, instead))
        # In the last one the engine of autograd runs, without a frame of Python.
        device, = self.asked("oom", self.snapshot)["devices"]
        self.assertEqual(device["categories"]["peak_phase"], "backward")
        self.assertIn(" was live in the backward pass", device["diagnosis"]["why"])
        self.assertEqual(device["diagnosis"]["do"], f"Instead of that request: {instead}.")
        self.assertEqual(self.found("exception", status=1)["request"], "")

    def test_training_in_eval_mode(self):
        self.assertEqual(self.found("eval_mode")["inactive"], [
            "Sequential is trained in eval mode, where dropout and most checkpointing do nothing: call train() on it"])
        self.assertEqual(self.found("saved")["inactive"], [])

    def test_what_warms_up_or_varies(self):
        self.nothing("warm")
        self.nothing("sizes")


if __name__ == "__main__":
    sys.exit(main(HoldersTest))
