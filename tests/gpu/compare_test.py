"""Tests compare.py without a GPU: snapshots that PyTorch wrote on the fake CUDA runtime, replayed on the fake driver.

  compare_test.py MEMREPLAY LIBFAKE_CUDA SNAPSHOTS
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import compare  # noqa: E402
import workloads  # noqa: E402

MEMREPLAY, LIBRARY, SNAPSHOTS = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
# Its settings change while it runs, and snapshots show those of the end only.
NOT_REPLAYABLE = "settings"


class ReplayOnTheFakeDriver(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "driver").mkdir()
        (self.folder / "driver/libcuda.so.1").symlink_to(LIBRARY)
        self.recordings = self.folder / "recordings"
        self.recordings.mkdir()
        # This is what record.py would have written next to each: how its process was set up.
        for name, (_, conf, total, _, _) in workloads.shared.SCENARIOS.items():
            if name == NOT_REPLAYABLE or not (SNAPSHOTS / f"{name}.pickle").exists():
                continue
            for suffix in (".pickle", ".stats.json"):
                shutil.copy(SNAPSHOTS / (name + suffix), self.recordings)
            info = {"conf": conf, "capacity": total, "fraction": 0.5 if name == "fraction" else None,
                    "partial": name in ("ring", "warm")}
            (self.recordings / f"{name}.info.json").write_text(json.dumps(info))

    def compare(self, *flags, **environment):
        out = self.folder / "out"
        done = subprocess.run(
            [sys.executable, HERE / "compare.py", "--memreplay", MEMREPLAY, "--out", out, "--replay-only",
             self.recordings, *flags], text=True, capture_output=True,
            env=os.environ | {"LD_LIBRARY_PATH": str(self.folder / "driver")} | environment)
        rows = json.loads((out / "results.json").read_text())
        return done, {row["workload"].strip(): row for row in rows}, out

    def test_every_snapshot_replays_as_pytorch_recorded_it(self):
        done, rows, out = self.compare()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertGreater(len(rows), 24)
        for name in ("training", "streams", "expandable_oom", "oom", "fraction", "pools", "warm", "ring"):
            row = rows[name]
            self.assertEqual(compare.verdict(row), "confirmed", name)
            witness = row["recorded"] if row["torch"] is None else row["torch"]
            self.assertEqual(witness, row["replayed"], name)
            self.assertEqual(row["equal"], row["compared"], name)
        self.assertEqual(rows["oom"]["ooms"], [1, 1])
        self.assertGreater(rows["training, direct"]["compared"], 0)
        self.assertEqual(sorted(path.name for path in out.iterdir()), ["results.json", "results.tar.gz", "table.txt"])
        text = (out / "table.txt").read_text()
        self.assertIn("what the driver's calls cost", text)
        self.assertIn("cuMemCreate", text)
        with tarfile.open(out / "results.tar.gz") as tar:
            names = tar.getnames()
        self.assertIn("results/training.json", names)
        self.assertIn("results/costs.json", names)

    def test_a_driver_that_refuses_is_not_confirmed(self):
        out_of_memory = "2"
        done, rows, _ = self.compare("--only", "training", MEMREPLAY_FAKE_GPU_FAIL=f"cuMemAlloc:2:{out_of_memory}")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertEqual(compare.verdict(rows["training"]), "NOT CONFIRMED")
        self.assertIn("1 that do not agree" if len(rows) == 1 else "that do not agree: training", done.stdout)

    def test_a_card_that_is_too_small_is_a_row_with_its_reason(self):
        done, rows, _ = self.compare("--only", "training", MEMREPLAY_FAKE_GPU_BYTES=str(32 << 20))
        self.assertEqual(done.returncode, 1)
        self.assertIn("too large for GPU 0", compare.verdict(rows["training"]))

    def test_nothing_is_begun_once_the_time_is_up(self):
        _, rows, _ = self.compare("--only", "training", "oom", "--budget", "-1")
        self.assertEqual({compare.verdict(row) for row in rows.values()}, {"not begun: the time was up"})


class Parts(unittest.TestCase):
    def test_a_peak_that_differs_from_what_pytorch_counted_is_not_confirmed(self):
        row = {"workload": "a", "torch": 20 << 20, "recorded": 20 << 20, "predicted": 22 << 20, "replayed": 22 << 20,
               "equal": 5, "compared": 5, "faults": [], "used_replayed": 22 << 20, "overhead": 0, "message": ""}
        self.assertEqual(compare.verdict(row), "CONFIRMED, BUT NOT AS RECORDED")
        self.assertIn("2,097,152 B", compare.table([row]))
        self.assertEqual(compare.verdict(row | {"replayed": 20 << 20}), "confirmed")
        self.assertEqual(compare.verdict(row | {"faults": ["decisions part"]}), "NOT CONFIRMED")

    def test_archives_keep_to_their_limit(self):
        with tempfile.TemporaryDirectory() as folder:
            files = pathlib.Path(folder) / "files"
            files.mkdir()
            (files / "small").write_bytes(os.urandom(1000))
            (files / "large").write_bytes(os.urandom(300_000))
            archive = pathlib.Path(folder) / "a.tar.gz"
            self.assertEqual(compare.pack(files, archive, 100_000), ["large"])
            self.assertLess(archive.stat().st_size, 100_000)
            self.assertEqual(compare.pack(files, archive, 1_000_000), [])

    def test_flags_say_how_the_recording_was_set_up(self):
        self.assertEqual(compare.flags_for({"torch": "2.11.0", "conf": "a:1", "fraction": 0.25}),
                         ["--torch", "2.11", "--conf", "a:1", "--fraction", "0.25"])
        self.assertEqual(compare.flags_for({"torch": "2.11.0", "conf": "", "fraction": None}), ["--torch", "2.11"])

    def test_workloads_are_complete(self):
        confs = " ".join(workload.conf for workload in workloads.WORKLOADS.values())
        for key in ("expandable_segments", "garbage_collection_threshold", "roundup_power2_divisions",
                    "max_split_size_mb"):
            self.assertIn(key, confs)
        self.assertTrue(all(callable(workload.run) for workload in workloads.WORKLOADS.values()))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
