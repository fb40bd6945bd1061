"""Programs under `memreplay record --card`: record_test.py MEMREPLAY TORCH_VERSION [NAME...]

Each case holds what the snapshot says (events, peaks), that the replay agrees with all of it, and
what the command answers. --update writes the figures into figures.json.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

import events
import report_xml
import torch_environment

HERE = pathlib.Path(__file__).resolve().parent
FIGURES = HERE / "figures.json"
MEMREPLAY = TORCH = PYTHON = None
UPDATE = False


class Recorded:
    """One run of the command: its exit status, its answer and the snapshot's path."""

    def __init__(self, folder, words, flags=(), card="rtx-4090", name="snapshot"):
        self.snapshot = os.path.join(folder, f"{name}.pickle")
        command = [MEMREPLAY, "record", "--json", "--python", PYTHON, "-o", self.snapshot,
                   *(["--card", card] if card else []), *flags, "--", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=600,
                              check=False)
        self.status, self.output = done.returncode, done.stderr
        self.answer = json.loads(done.stdout) if done.stdout else None

    @property
    def process(self):
        return self.answer["processes"][0]


def program(name, *arguments):
    return [str(HERE / "programs" / name), *arguments]


class RecordTest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def record(self, *words, flags=(), **more):
        return Recorded(self.folder, program(*words), flags, **more)

    def holds(self, run, figures_of):
        """The run was answered, replayed exactly, and has the figures that are written down."""
        self.assertIsNotNone(run.answer, run.output)
        figures = []
        for process in run.answer["processes"]:
            for replay in process["replays"]:
                if int(replay["events"]) == 0:
                    continue
                self.assertTrue(replay["agrees"], replay["sentence"])
                figures.append({
                    "events": int(replay["events"]), "peak_reserved": int(replay["peak_reserved"]),
                    "peak_allocated": int(replay["peak_allocated"])})
        self.assertTrue(figures, run.output)
        known = json.loads(FIGURES.read_text(encoding="utf-8"))
        if UPDATE:
            known.setdefault(figures_of, {})[TORCH] = figures
            FIGURES.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        self.assertEqual(figures, known.get(figures_of, {}).get(TORCH), run.output)

    def runs(self, *words, flags=(), figures_of=None):
        """A program that ends well, with figures, in which the values' mode changes no event."""
        run = self.record(*words, flags=flags)
        self.assertEqual(run.status, 0, run.output)
        self.holds(run, figures_of or " ".join(words))
        return run

    def same_without_values(self, run, *words, flags=()):
        plain = self.record(*words, flags=[*flags, "--no-values"], name="plain")
        difference = events.difference(events.events_of(events.load(run.snapshot)),
                                       events.events_of(events.load(plain.snapshot)))
        self.assertIsNone(difference)

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
        one, other = (self.record("gpt.py", "steps=1", name=name) for name in ("one", "other"))
        traces = [events.events_of(events.load(run.snapshot))[0] for run in (one, other)]
        self.assertEqual(traces[0], traces[1])

    def test_transformer(self):
        run = self.runs("transformer.py")
        self.same_without_values(run, "transformer.py")

    def test_values_are_true(self):
        run = self.runs("truths.py")
        self.assertIn("all true", run.output)

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

    def test_several_cards(self):
        self.runs("several_cards.py", flags=["--cards", "4"])

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
            [MEMREPLAY, "record", "--json", "--python", PYTHON, "--card", "rtx-4090", "-o", snapshot,
             *program("sleeps.py")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True)
        self.assertEqual(child.stderr.readline(), "ready\n")
        child.send_signal(signal.SIGINT)
        answer, output = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 1, output)
        self.assertEqual(json.loads(answer)["processes"][0]["error"], "KeyboardInterrupt")
        self.assertTrue(os.path.exists(snapshot))

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
                (program("no_cuda.py"), [], "no-such-card", "no-such-card"),
                (["no-such-program"], [], "rtx-4090", "cannot start no-such-program")):
            with self.subTest(why):
                run = Recorded(self.folder, words, flags, card=card)
                self.assertEqual(run.status, 2)
                self.assertIn(why, run.output)


def main():
    global MEMREPLAY, TORCH, PYTHON, UPDATE
    arguments = [word for word in sys.argv[1:] if word != "--update"]
    UPDATE = "--update" in sys.argv
    MEMREPLAY, TORCH = os.path.abspath(arguments[0]), arguments[1]
    try:
        PYTHON = torch_environment.python(TORCH)
    except torch_environment.Unavailable as reason:
        print(f"skipped: {reason}")
        return 0
    return report_xml.run(RecordTest, arguments[2:])


if __name__ == "__main__":
    sys.exit(main())
