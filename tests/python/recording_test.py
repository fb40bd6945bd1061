"""Tests how memreplay.recording() calls PyTorch, with a stand-in of each generation of its interface.

tests/python/torch_test.py has the same with PyTorch itself.
"""

import contextlib
import gc
import io
import os
import pathlib
import pickle
import stat
import sys
import tempfile
import threading
import types
import unittest
import warnings
from unittest import mock

import memreplay
from memreplay import _on_oom, _recording

SNAPSHOT = pathlib.Path(__file__).resolve().parents[1] / "data/snapshots/torch-2.15/oom.pickle"


class Torch:
    """Stands in for torch: what was called, in order."""

    def __init__(self, generation, has_gpu=True):
        self.calls = []
        self.observers = []
        self.snapshot = {"segments": [], "device_traces": [[]]}
        if generation == "2.0":
            def record(enabled, record_context=True, trace_alloc_max_entries=1, trace_alloc_record_context=False,
                       device=None, record_context_cpp=False):
                self.calls.append({name: found for name, found in locals().items() if name != "self"})
        elif generation == "2.1":
            def record(enabled="all", *args, **kwargs):
                self.calls.append({"enabled": enabled, **kwargs})
        else:
            def record(enabled="all", context="all", stacks="all", max_entries=2**63 - 1, device=None,
                       clear_history=False, compile_context=False, global_record_annotations=False):
                self.calls.append({name: found for name, found in locals().items() if name != "self"})
        memory = types.SimpleNamespace(_record_memory_history=record, _snapshot=lambda: self.snapshot)
        if generation == "2.1":
            def implementation(enabled="all", context="all", stacks="all", max_entries=2**63 - 1, device=None):
                raise AssertionError("not to be called")
            memory._record_memory_history_impl = implementation
        cuda = types.SimpleNamespace(is_available=lambda: has_gpu, init=lambda: None, memory=memory)
        torch_c = types.SimpleNamespace(_cuda_attach_out_of_memory_observer=self.observers.append)
        self.modules = {"torch": types.SimpleNamespace(cuda=cuda, _C=torch_c, __version__=f"{generation}.0+cu128"),
                        "torch.cuda": cuda}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("RANK", "WORLD_SIZE", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"):
            os.environ.pop(name, None)

    @contextlib.contextmanager
    def torch(self, generation="2.15", **more):
        torch = Torch(generation, **more)
        with mock.patch.dict(sys.modules, torch.modules):
            yield torch

    def files(self):
        return sorted(path.name for path in self.folder.iterdir())


class Arguments(Case):
    def record(self, generation, **more):
        with self.torch(generation) as torch, memreplay.recording(self.folder / "out.pickle", **more):
            pass
        self.assertEqual(self.files(), ["out.pickle"])
        return torch.calls

    def test_2_0(self):
        begin, end = self.record("2.0", max_entries=1000)
        self.assertEqual({name: begin[name] for name in ("enabled", "record_context", "trace_alloc_max_entries",
                                                         "trace_alloc_record_context", "record_context_cpp")},
                         {"enabled": True, "record_context": True, "trace_alloc_max_entries": 1000,
                          "trace_alloc_record_context": True, "record_context_cpp": False})
        self.assertFalse(end["enabled"])

    def test_2_1_takes_no_more_than_it_has(self):
        begin, end = self.record("2.1")
        self.assertEqual(begin, {"enabled": "all", "context": "all", "stacks": "python"})
        self.assertEqual(end, {"enabled": None})

    def test_newest(self):
        begin, end = self.record("2.15", max_entries=5, stacks="all")
        self.assertEqual(begin, {"enabled": "all", "context": "all", "stacks": "all", "max_entries": 5, "device": None,
                                 "clear_history": True, "compile_context": False, "global_record_annotations": True})
        self.assertIsNone(end["enabled"])


class Files(Case):
    def test_an_error_leaves_the_file_and_goes_on(self):
        with self.torch(), self.assertRaisesRegex(KeyError, "mine"), \
                memreplay.recording(self.folder / "a" / "out.pickle"):
            raise KeyError("mine")
        self.assertEqual(sorted(path.name for path in (self.folder / "a").iterdir()), ["out.pickle"])

    def test_the_file_says_which_torch_it_is_of(self):
        with self.torch("2.6"), memreplay.recording(self.folder / "out.pickle"):
            pass
        written = pickle.loads((self.folder / "out.pickle").read_bytes())
        self.assertEqual(written, {"segments": [], "device_traces": [[]], "torch_version": "2.6.0+cu128"})

    def test_the_file_says_what_ended_the_block(self):
        def fails():
            raise ValueError("too large\nfor this")

        def asserts():
            assert not self.folder

        line = fails.__code__.co_firstlineno + 1
        path = self.folder / "out.pickle"
        for end, said in ((fails, f"ValueError: too large (recording_test.py:{line} in fails)"),
                          (asserts, "AssertionError: assert not self.folder "
                                    f"(recording_test.py:{line + 3} in asserts)"),
                          (lambda: sys.exit(3), "exit status 3"), (lambda: sys.exit("no"), "exit status 1"),
                          (lambda: sys.exit(0), None), (sys.exit, None), (int, None)):
            with self.torch(), contextlib.suppress(Exception, SystemExit), memreplay.recording(path):
                end()
            self.assertEqual(pickle.loads(path.read_bytes()).get("memreplay_ended"), said)
        with self.torch() as torch, contextlib.suppress(ValueError), memreplay.recording(path):
            torch.snapshot["device_traces"] = [[{"action": "oom"}]]  # that says it already
            fails()
        self.assertNotIn("memreplay_ended", pickle.loads(path.read_bytes()))

    def test_a_recording_of_a_block_that_failed_is_a_lower_bound(self):
        path = self.folder / "out.pickle"
        for fails in (False, True):
            with self.torch() as torch, contextlib.suppress(KeyError), memreplay.recording(path):
                torch.snapshot["device_traces"] = [[
                    {"action": action, "addr": 1 << 40, "size": 20 << 20, "stream": 0, "frames": []}
                    for action in ("segment_alloc", "alloc", "free_requested", "free_completed")]]
                if fails:
                    raise KeyError("mine")
            found = memreplay.load(path).replay(capacity="20GiB")
            self.assertEqual(found.is_good, not fails)
            if fails:
                self.assertRegex(found.only_device.unseen.ended,
                                 r"^KeyError: 'mine' \(recording_test\.py:\d+ in test_a_")

    def test_out_of_memory_has_a_file_of_its_own_while_the_block_runs(self):
        with self.torch() as torch:
            with memreplay.recording(self.folder / "out.pickle"):
                torch.observers[0](0, 100, 1000, 10)
                self.assertEqual(self.files(), ["out.oom.pickle"])
            (self.folder / "out.oom.pickle").unlink()
            torch.observers[0](0, 100, 1000, 10)  # after the block
            self.assertEqual(self.files(), ["out.pickle"])
            with memreplay.recording(self.folder / "out.pickle", on_oom=False):
                self.assertEqual(len(torch.observers), 1)

    def record(self, path):
        with self.torch(), memreplay.recording(path):
            pass

    def test_links_pipes_and_permissions(self):
        (self.folder / "link").symlink_to("new")
        for _ in range(2):
            self.record(self.folder / "link")
            self.assertTrue((self.folder / "link").is_symlink())
            self.assertEqual(self.files(), ["link", "new"])
            (self.folder / "new").chmod(0o640)
        self.assertEqual(stat.S_IMODE((self.folder / "new").stat().st_mode), 0o640)
        self.assertIn("segments", pickle.loads((self.folder / "new").read_bytes()))
        os.mkfifo(self.folder / "pipe")
        received = []
        reader = threading.Thread(target=lambda: received.append((self.folder / "pipe").read_bytes()))
        reader.start()
        self.record(self.folder / "pipe")
        reader.join()
        self.assertIn("segments", pickle.loads(received[0]))
        self.assertTrue(stat.S_ISFIFO((self.folder / "pipe").stat().st_mode))
        self.record("/dev/null")

    def test_the_longest_names(self):
        for name in ("a" * 248 + ".pickle", "b" * 255, "\N{LATIN SMALL LETTER U WITH DIAERESIS}" * 127):
            with self.torch() as torch, memreplay.recording(self.folder / name):
                torch.observers[0](0, 100, 1000, 10)
            self.assertEqual(len(self.files()), 2)
            self.assertIn(name, self.files())
            for path in self.folder.iterdir():
                path.unlink()

    def test_what_cannot_be_written_is_said_before_the_block(self):
        script = self.folder / "script.py"
        script.write_text("kept")
        (self.folder / "link").symlink_to("script.py")
        loaded = types.SimpleNamespace(__file__=str(script))
        with mock.patch.dict(sys.modules, {"script": loaded}):
            for path, kind in ((self.folder, IsADirectoryError), (script, FileExistsError),
                               (self.folder / "link", FileExistsError), (script / "x", NotADirectoryError)):
                for begin in (memreplay.on_oom, lambda path: memreplay.recording(path).__enter__()):
                    with self.subTest(path), self.torch() as torch, self.assertRaises(kind):
                        begin(path)
                    self.assertEqual(torch.calls, [])
        self.assertEqual(script.read_text(), "kept")

    def test_a_snapshot_of_somebody_else(self):
        """A name that is not given replaces only a snapshot of memreplay."""
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        theirs = pickle.dumps({"segments": [], "device_traces": []})
        for name, begin in (("snapshot.pickle", lambda: memreplay.recording().__enter__()),
                            ("oom.pickle", memreplay.on_oom)):
            pathlib.Path(name).write_bytes(theirs)
            with self.torch(), self.assertRaisesRegex(FileExistsError, "was not written by memreplay"):
                begin()
            self.assertEqual(pathlib.Path(name).read_bytes(), theirs)
        self.record("snapshot.pickle")
        self.assertNotEqual(pathlib.Path("snapshot.pickle").read_bytes(), theirs)
        with self.torch(), memreplay.recording():  # its own
            pass
        self.assertEqual(self.files(), ["oom.pickle", "snapshot.pickle"])
        with self.torch(), memreplay.recording():  # which the block replaces
            pathlib.Path("snapshot.pickle").write_bytes(theirs)
        self.assertEqual(pathlib.Path("snapshot.pickle").read_bytes(), theirs)
        self.assertIn("torch_version", pickle.loads(pathlib.Path("snapshot.2.pickle").read_bytes()))

    def test_no_garbage_is_collected_between_snapshot_and_notes(self):
        """What a collection frees there would be counted in the notes and missing in the snapshot."""
        collects = []

        def noting(call):
            def noted(*arguments):
                collects.append(gc.isenabled())
                return call(*arguments)
            return noted

        notes = mock.Mock(taken=noting(dict))
        with self.torch() as torch:
            memory = torch.modules["torch.cuda"].memory
            memory._snapshot = noting(memory._snapshot)
            _recording._dump(self.folder / "out.pickle", notes)
        self.assertEqual(collects, [False, False])
        self.assertTrue(gc.isenabled())

    def test_ranks(self):
        with self.torch(), mock.patch.dict(os.environ, {"RANK": "3", "WORLD_SIZE": "8"}):
            with memreplay.recording(self.folder / "out.pickle"):
                pass
        self.assertEqual(self.files(), ["out.rank3.pickle"])
        with self.torch(), mock.patch.dict(os.environ, {"RANK": "0", "WORLD_SIZE": "1"}):
            self.assertIsNone(_recording._rank())
        with self.torch(), mock.patch.dict(os.environ, {"SLURM_PROCID": "7", "SLURM_STEP_NUM_TASKS": "16"}):
            self.assertEqual(_recording._rank(), 7)
        group = types.SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True, get_rank=lambda: 5,
                                      get_world_size=lambda: 6)
        with mock.patch.dict(sys.modules, {"torch.distributed": group}):
            self.assertEqual(_recording._rank(), 5)

    def test_a_snapshot_that_cannot_be_written_is_a_warning(self):
        class Full:
            def __reduce__(self):
                raise OSError("disk full")

        with self.torch() as torch, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.snapshot["segments"].append(Full())
            with memreplay.recording(self.folder / "out.pickle"):
                pass
        self.assertEqual(self.files(), [])
        self.assertIn("out.pickle was not written: disk full", str(caught[0].message))
        self.assertEqual(len(torch.calls), 2)  # and recording has ended

    def test_no_gpu(self):
        with self.torch(has_gpu=False), \
                self.assertRaisesRegex(RuntimeError, "memreplay.recording: PyTorch finds no GPU"):
            with memreplay.recording(self.folder / "out.pickle"):
                self.fail("not to be run")


def leaking():
    """Returns a snapshot of six steps, of which each keeps 12 MiB and frees twice 10, until 40 MiB are refused."""
    kept, freed, first = 12 << 20, 10 << 20, 0x7F0000000000
    line = [{"filename": "train.py", "line": 12, "name": "step"}]
    trace, segments = [], []

    def add(action, addr, size):
        trace.append({"action": action, "addr": addr, "size": size, "stream": 0, "frames": line})

    for step in range(6):
        address = first - (step + 1) * kept
        add("segment_alloc", address, kept)
        add("alloc", address, kept)
        for temporary in (first, first + freed):
            if step == 0:
                add("segment_alloc", temporary, freed)
            add("alloc", temporary, freed)
        for temporary in (first, first + freed):
            add("free_requested", temporary, freed)
            add("free_completed", temporary, freed)
        block = {"address": address, "size": kept, "requested_size": kept, "state": "active_allocated", "frames": line}
        segments.append({"device": 0, "address": address, "total_size": kept, "allocated_size": kept,
                         "active_size": kept, "requested_size": kept, "stream": 0, "segment_type": "large",
                         "segment_pool_id": (0, 0), "is_expandable": False, "blocks": [block]})
    for temporary in (first, first + freed):
        add("segment_free", temporary, freed)
    trace.append({"action": "oom", "device_free": 20 << 20, "size": 40 << 20, "stream": 0, "frames": line})
    return {"segments": sorted(segments, key=lambda segment: segment["address"]), "device_traces": [trace]}


class OutOfMemoryError(RuntimeError):
    """Has the name of PyTorch's."""


class OnOom(Case):
    def setUp(self):
        super().setUp()
        for module, name, found in ((_on_oom, "_path", None), (_on_oom, "_failures", 0), (_on_oom, "_attached", False),
                                    (_recording, "_watch", None)):
            patch = mock.patch.object(module, name, found)
            patch.start()
            self.addCleanup(patch.stop)

    def run_out(self, torch, times=1):
        """Returns what is printed when memory runs out."""
        with contextlib.redirect_stderr(io.StringIO()) as said:
            for _ in range(times):
                torch.observers[0](0, 100, 1000, 10)
        return said.getvalue()

    def test_nothing_is_written_until_memory_runs_out(self):
        with self.torch() as torch:
            memreplay.on_oom(self.folder / "out.pickle", max_entries=5)
            memreplay.on_oom(self.folder / "other.pickle")  # another name, the same recording
            self.assertEqual((len(torch.observers), len(torch.calls), self.files()), (1, 1, []))
            torch.snapshot = pickle.loads(SNAPSHOT.read_bytes())
            said = self.run_out(torch)
            self.assertEqual(self.files(), ["other.html", "other.pickle"])
            self.assertIn("60.0 MiB", said)
            self.assertIn(f"page {self.folder / 'other.html'}", said)
            self.assertIn("<!doctype html>", (self.folder / "other.html").read_text(encoding="utf-8"))

    def test_the_changes_that_would_have_served_it_are_said_and_shown(self):
        with self.torch() as torch:
            memreplay.on_oom(self.folder / "out.pickle")
            torch.snapshot = leaking()
            said = self.run_out(torch)
        change = "freeing at the end of each step what train.py:12 step leaves behind"
        self.assertIn(f"  would have served it: {change} (cost: nothing); to write:\n    # something keeps", said)
        page = (self.folder / "out.html").read_text(encoding="utf-8")
        self.assertIn("Would have served it, by editing the recording", page)
        self.assertIn(f"{change}</summary>", page)
        advice = memreplay.load(self.folder / "out.pickle").advise()
        self.assertTrue(advice.is_good)
        self.assertEqual(advice.advice.rows[0].change, change)

    def test_a_recording_within(self):
        """What runs out is written and explained once, and what runs out after the block too."""
        for inside in (False, True):  # where on_oom() is called
            with self.torch() as torch, contextlib.redirect_stderr(io.StringIO()) as said:
                torch.snapshot = pickle.loads(SNAPSHOT.read_bytes())
                if not inside:
                    memreplay.on_oom(self.folder / "oom.pickle", max_entries=5)
                with self.assertRaises(OutOfMemoryError), memreplay.recording(self.folder / "out.pickle"):
                    if inside:
                        memreplay.on_oom(self.folder / "oom.pickle", max_entries=5)
                    for observe in torch.observers:
                        observe(0, 100, 1000, 10)
                    raise OutOfMemoryError("CUDA out of memory")
                self.assertEqual(said.getvalue().count("memreplay: "), 1)
                self.assertEqual(self.files(), ["oom.html", "oom.pickle", "out.pickle"])
                self.assertEqual([call["enabled"] for call in torch.calls][-2:], [None, "all"])  # it goes on
                self.assertEqual(torch.calls[-1]["max_entries"], 5)
                memreplay.on_oom(None)
                self.assertIsNone(torch.calls[-1]["enabled"])
                for path in self.folder.iterdir():
                    path.unlink()
            _on_oom._attached = False

    def test_a_page_of_somebody_else(self):
        (self.folder / "out.html").write_text("theirs")
        with self.torch() as torch:
            memreplay.on_oom(self.folder / "out.pickle")
            torch.snapshot = pickle.loads(SNAPSHOT.read_bytes())
            said = self.run_out(torch)
            self.assertIn("60.0 MiB", said)
            self.assertRegex(said, "no page: .*was not written by memreplay")
            self.assertEqual((self.folder / "out.html").read_text(), "theirs")
            (self.folder / "out.html").unlink()
            for _ in range(2):  # the second time, it is one of memreplay's
                self.assertIn(f"page {self.folder / 'out.html'}", self.run_out(torch))

    def test_a_program_that_goes_on_is_not_held_up_for_ever(self):
        with self.torch() as torch:
            memreplay.on_oom(self.folder / "out.pickle")
            torch.snapshot = pickle.loads(SNAPSHOT.read_bytes())
            self.assertEqual(self.run_out(torch, times=5).count("memreplay: "), 3)
            memreplay.on_oom(None)
            (self.folder / "out.pickle").unlink()
            self.assertEqual(self.run_out(torch), "")
            self.assertEqual(self.files(), ["out.html"])
            self.assertIsNone(torch.calls[-1]["enabled"])

    def test_what_cannot_be_written_or_explained_is_said(self):
        with self.torch() as torch:
            memreplay.on_oom(self.folder / "out.pickle")
            torch.snapshot = {"segments": 1, "device_traces": []}
            self.assertRegex(self.run_out(torch), "out.pickle was written, but could not be explained: ")
            with mock.patch.object(_on_oom, "_dump", side_effect=OSError("disk full")), self.assertWarnsRegex(
                    UserWarning, "memreplay.on_oom: .*out.pickle was not written: disk full"):
                self.run_out(torch)

    def test_no_gpu(self):
        with self.torch(has_gpu=False), self.assertRaisesRegex(RuntimeError, "memreplay.on_oom: PyTorch finds no GPU"):
            memreplay.on_oom(self.folder / "out.pickle")


if __name__ == "__main__":
    unittest.main()
