"""Tests memreplay.record(), simulate() and estimate() with PyTorch of the environment torch-2.6.0."""

import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "third_party/python"), str(ROOT / "tests/python")]
import environment  # noqa: E402
from torch_test import card  # noqa: E402

HEAD = "import functools, os, sys, threading\nimport torch\nimport memreplay\n"
# A script that others import, too. What it does equals what simulate() and estimate() do.
TRAIN = """
import sys, torch

def make():
    return torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(4)])

def train(steps=2):
    model = make().cuda()
    made = torch.optim.AdamW(model.parameters())
    inputs = torch.zeros((256, 1024), device="cuda")
    def step():
        made.zero_grad()
        model(inputs).sum().backward()
        made.step()
    for _ in range(steps):
        step()

def one():
    train(1)

def fail():
    torch.zeros(5, device="cuda")
    raise ValueError("batch 3 is bad")

state = []

def keep():
    state.append(torch.zeros(1 << 20, device="cuda"))

if __name__ == "__main__":
    train(int(sys.argv[1]) if sys.argv[1:] else 2)
"""


class SimulateTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            cls.python = environment.python("torch-2.6.0")
        except environment.Unavailable as why:
            raise unittest.SkipTest(str(why)) from None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "train.py").write_text(TRAIN)

    def run_there(self, text, head=HEAD + "import train\n"):
        """Runs a script in the environment, which must succeed. Returns what it prints."""
        (self.folder / "caller.py").write_text(head + textwrap.dedent(text))
        variables = card()  # PyTorch of this environment needs the libraries of a GPU, which stays unused
        done = subprocess.run([self.python, str(ROOT / "tests/python/on_card.py"), "caller.py"], cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                              env={**os.environ, **variables,
                                   "PYTHONPATH": f"{ROOT / 'python'}:{variables['PYTHONPATH']}"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_all_ways_need_the_same(self):
        self.run_there("""
            def peaks(run):
                card = run.processes[0].cards[0]
                return card.peak_reserved, card.peak_allocated, run.total_bytes, sum(run.breakdown.values())

            run = memreplay.record("train.py", "2", card="rtx-4090")
            x, shape = torch.zeros(256, 1024), ((256, 1024), "float32")
            adamw = torch.optim.AdamW
            assert peaks(run) == peaks(memreplay.simulate(train.train, card="rtx-4090"))
            for sent in (train.make, train.make(), torch.nn.Sequential(*train.make()).to("meta")):
                for given in (x, (x,), shape, {"input": shape}):
                    if given is x or sent is train.make:
                        made = memreplay.estimate(sent, given, optimizer=adamw, card="rtx-4090")
                        assert peaks(run) == peaks(made), (peaks(run), peaks(made))
            assert peaks(run)[2] > peaks(run)[0] > peaks(run)[1] > 0
            assert {"parameters", "gradients", "optimizer state"} <= set(run.breakdown), run.breakdown
            assert not torch.cuda.is_initialized()
            """)

    def test_the_main_file_and_steps(self):
        self.run_there("""
            state = []

            def keep():
                state.append(torch.zeros(1 << 20, device="cuda"))

            def peak(run):
                return run.processes[0].cards[0].peak_allocated

            if __name__ == "__main__":
                assert peak(memreplay.simulate(keep, card="rtx-4090")) == 4 << 20
                assert peak(memreplay.simulate(keep, card="rtx-4090", steps=3)) == 12 << 20
                assert peak(memreplay.simulate(train.keep, card="rtx-4090", steps=3)) == 12 << 20
                for steps in (0, -1):
                    try:
                        memreplay.simulate(keep, card="rtx-4090", steps=steps)
                        raise SystemExit("no error")
                    except ValueError:
                        pass
            """)

    def test_a_closure_needs_cloudpickle(self):
        self.run_there("""
            import importlib.util
            sizes = [1 << 20]

            def outer():
                size = 1 << 20
                return lambda: torch.zeros(size, device="cuda")

            try:
                run = memreplay.simulate(outer(), card="rtx-4090")
                assert importlib.util.find_spec("cloudpickle")
                assert run.processes[0].cards[0].peak_allocated == 4 << 20
            except memreplay.Error as error:
                assert not importlib.util.find_spec("cloudpickle")
                assert "outer.<locals>.<lambda>" in str(error) and "pip install cloudpickle" in str(error), error
            """)

    def test_what_cannot_be_sent_is_named(self):
        self.run_there("""
            class Model(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.guard = threading.Lock()

            def error_of(call):
                try:
                    call()
                except memreplay.Error as error:
                    return str(error)
                raise SystemExit("no error")

            text = error_of(lambda: memreplay.estimate(Model(), (1,), card="rtx-4090"))
            assert "Model: attribute 'guard'" in text and "cannot be sent" in text, text
            text = error_of(lambda: memreplay.simulate(functools.partial(train.train, threading.Lock()),
                                                       card="rtx-4090"))
            assert "lock" in text, text

            model = train.make()
            model.register_buffer("mean", torch.zeros(3, device="cuda"))
            text = error_of(lambda: memreplay.estimate(model, (1,), card="rtx-4090"))
            assert "'mean'" in text and "lies on this machine's GPU" in text and "meta" in text, text
            """)

    def test_fits(self):
        self.run_there("""
            run = memreplay.estimate(train.make, ((256, 1024), "float32"), optimizer=torch.optim.AdamW, card="rtx-4090",
                                     out="kept.pickle")
            assert run.fits("rtx-3060") is True and run.fits("50MiB") is False and not run.out_of_memory
            reserved = run.processes[0].cards[0].peak_reserved
            assert run.fits(reserved) and run.fits("rtx-4090") and os.path.exists("kept.pickle")
            assert str(run.recording.path) == "kept.pickle"
            names = run.fits_on()
            assert "gtx-1050-ti" in names[:5] and names[-1] == "b300" and len(names) > 50, names
            text = str(run)
            assert text.startswith("make on NVIDIA GeForce RTX 4090 (simulated): it fits, "), text
            assert run.processes[0].replays[0].diagnosis.what in text and f"({reserved:,} bytes)" in text, text

            run = memreplay.simulate(train.one, card="rtx-4090")  # the state of its step comes on top
            assert run.fits("rtx-3060") is True and run.fits("50MiB") is False
            try:
                run.fits(run.processes[0].cards[0].peak_reserved)
                raise SystemExit("no error")
            except memreplay.Error as error:
                assert "second step" in str(error), error

            run = memreplay.record("train.py", "5", card="rtx-4090", steps=1)  # stopped there
            try:
                run.fits("h100-sxm")
                raise SystemExit("no error")
            except memreplay.Error as error:
                assert "ended by --steps" in str(error), error
            assert run.fits("50MiB") is False
            """)

    def test_out_of_memory_is_a_result(self):
        self.run_there("""
            small = "custom:260MiB,cc=8.9,sms=2"
            run = memreplay.simulate(train.train, card=small)
            assert run.out_of_memory and run.fits("50MiB") is False and run.fits("60MiB") is False
            assert "out of memory" in str(run) and "out of memory" in repr(run), str(run)
            try:
                run.fits("h100-sxm")
                raise SystemExit("no error")
            except memreplay.Error as error:
                assert "ran out of memory" in str(error), error
            """)

    def test_an_error_of_the_code(self):
        self.run_there("""
            for call in (lambda: memreplay.simulate(train.fail, card="rtx-4090"),
                         lambda: memreplay.record("missing.py", card="rtx-4090"),
                         lambda: memreplay.simulate(train.make, card="no-such-card"),
                         lambda: memreplay.simulate(train.make, card="rtx-4090")):
                try:
                    call()
                    raise SystemExit("no error")
                except memreplay.Error as error:
                    print(error)
            """)
        found = self.run_there("""
            try:
                memreplay.simulate(train.fail, card="rtx-4090")
            except memreplay.Error as error:
                print(error)
            """)
        self.assertIn("fail: ValueError: batch 3 is bad", found)
        self.assertRegex(found, r"Traceback[^$]*train.py\", line \d+, in fail")

    def test_inference_and_the_loss(self):
        self.run_there("""
            def peak(**more):
                run = memreplay.estimate(train.make, ((256, 1024), "float32"), card="rtx-4090", **more)
                return run.processes[0].cards[0].peak_allocated

            assert peak() < peak(optimizer=torch.optim.SGD) < peak(optimizer=torch.optim.AdamW)
            assert peak(optimizer=torch.optim.SGD, loss=torch.mean)
            """)

    def test_the_snapshot_goes_with_the_result(self):
        self.run_there("""
            run = memreplay.simulate(train.keep, card="rtx-4090")
            recording = run.recording
            del run
            path = recording.path
            assert path.exists() and recording.inspect().is_good
            del recording
            assert not path.exists() and not path.parent.exists()
            """)


if __name__ == "__main__":
    unittest.main()
