"""Compares memreplay.load() and its answers with the binary's own JSON."""

import contextlib
import doctest
import html
import importlib.util
import io
import json
import os
import pathlib
import pickle
import select
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import memreplay
from memreplay import _advise, _answer, _load, _words, report_types
from memreplay._message import Message

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))
from waiting import wait_until  # noqa: E402

SERVING = str(ROOT / "tests/data/serving.jsonl")
SNAPSHOTS = ROOT / "tests/data/snapshots/torch-2.15"
TRAINING = str(SNAPSHOTS / "training.pickle")


def has(module):
    return importlib.util.find_spec(module) is not None


def load_tests(loader, tests, pattern):
    tests.addTests(doctest.DocTestSuite(_load))
    return tests


class Sources(unittest.TestCase):
    def setUp(self):
        self.data = pathlib.Path(TRAINING).read_bytes()
        self.peak = memreplay.load(TRAINING).replay().only_device.peak_reserved_bytes
        self.assertGreater(self.peak, 0)

    def peak_of(self, source):
        return memreplay.load(source).replay().only_device.peak_reserved_bytes

    def test_a_path_bytes_a_file_and_a_snapshot_are_the_same(self):
        self.assertEqual(self.peak_of(pathlib.Path(TRAINING)), self.peak)
        self.assertEqual(self.peak_of(self.data), self.peak)
        self.assertEqual(self.peak_of(io.BytesIO(self.data)), self.peak)
        self.assertEqual(self.peak_of(pickle.loads(self.data)), self.peak)
        with open(TRAINING, "rb") as file:
            recording = memreplay.load(file)
        self.assertEqual(recording.name, TRAINING)
        self.assertEqual(recording.replay().file, TRAINING)
        self.assertIs(memreplay.load(recording), recording)

    def test_a_name_is_a_file_whatever_it_looks_like(self):
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            try:
                os.chdir(folder)
                for name in ("--help", "-", "script", "nanogpt", "two\nlines"):
                    pathlib.Path(name).write_bytes(self.data)
                    answer = memreplay.load(name).replay()
                    self.assertEqual((answer.file, answer.only_device.peak_reserved_bytes), (name, self.peak))
                    self.assertEqual(memreplay.load(TRAINING).diff(name).command, "diff")
                    self.assertEqual(memreplay.load(name).sweep(conf="").command, "sweep")
                    self.assertIn("<html", memreplay.load(name).page()[:200])
                    with self.assertRaisesRegex(memreplay.Error, f"{name[:3]}.*: has no data for device 7"):
                        memreplay.load(name).replay(device=7)
                pathlib.Path("run.py").write_text("open('proof', 'w')", encoding="utf-8")
                with self.assertRaisesRegex(memreplay.Error, "expected a recording, found a script: run.py"):
                    memreplay.load("run.py").advise(card="rtx-4090")
                self.assertFalse(os.path.exists("proof"))
                with self.assertRaisesRegex(memreplay.Error, "replay: memreplay cannot be started: "):
                    memreplay.load("script").replay(conf="a\0b")
            finally:
                os.chdir(before)

    @unittest.skipUnless(sys.platform == "linux", "other systems do not say that a parent has ended")
    def test_the_binary_ends_with_its_caller(self):
        with tempfile.TemporaryDirectory() as folder:
            pipe = os.path.join(folder, "pipe")
            os.mkfifo(pipe)
            caller = subprocess.Popen(
                [sys.executable, "-c", "import memreplay, sys; memreplay.load(sys.argv[1]).inspect()", pipe])
            self.addCleanup(caller.wait)
            self.addCleanup(caller.kill)

            def opened():
                with contextlib.suppress(OSError):  # the binary does not read yet
                    return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)

            writer = wait_until(opened)
            self.addCleanup(os.close, writer)  # the binary waits for what is written
            caller.kill()
            caller.wait()
            broken = select.poll()
            broken.register(writer, 0)
            self.assertTrue(broken.poll(30_000))  # nobody reads any more

    def test_a_temporary_file_goes_away_with_its_recording(self):
        recording = memreplay.load(self.data)
        path = recording.path
        self.assertTrue(path.exists())
        del recording
        self.assertFalse(path.exists())

    @unittest.skipUnless(has("fsspec"), "fsspec is not installed")
    def test_a_url(self):
        import fsspec
        with fsspec.open("memory://bucket/rank0.pickle", "wb") as file:
            file.write(self.data)
        answer = memreplay.load("memory://bucket/rank0.pickle").replay()
        self.assertEqual(answer.only_device.peak_reserved_bytes, self.peak)
        self.assertEqual(answer.file, "memory://bucket/rank0.pickle")


class Answers(unittest.TestCase):
    def test_words_are_those_of_the_program(self):
        for line in (ROOT / "tests/data/words.tsv").read_text(encoding="utf-8").splitlines():
            kind, of, words = line.split("\t")
            self.assertEqual(_words.category_noun(of) if kind == "category" else _words.size_text(int(of)), words)

    def test_every_field_of_the_json_has_an_attribute(self):
        seen = set()

        def walk(message):
            for name, found in message.to_dict().items():
                self.assertTrue(hasattr(type(message), name), f"{type(message).__name__}.{name}")
                seen.add(f"{type(message).__name__}.{name}")
                read = getattr(message, name)
                for inner in read if isinstance(read, list) else [read]:
                    if isinstance(inner, Message):
                        walk(inner)
                if isinstance(read, (int, float, str)):
                    self.assertEqual(read, type(read)(found))

        recording = memreplay.load(TRAINING)
        for answer in (recording.inspect(deep=True), recording.replay(), recording.sweep(), recording.fit(),
                       recording.oom(), recording.advise(card="1MiB"),
                       recording.report(conf=["expandable_segments:True"]), recording.diff(SERVING)):
            self.assertIsInstance(answer, memreplay.Answer)
            walk(answer)
        self.assertGreater(len(seen), 200)

    def test_integers_of_both_schema_versions(self):
        for size in ("123", 123):
            self.assertEqual(report_types.DeviceReport({"peak_reserved_bytes": size}).peak_reserved_bytes, 123)
        empty = report_types.DeviceReport({})
        self.assertEqual((empty.peak_reserved_bytes, empty.conf, empty.oom, empty.segments), (0, "", None, []))

    def test_flags_reach_the_program(self):
        recording = memreplay.load(SERVING)
        self.assertTrue(recording.replay().is_good)
        self.assertFalse(recording.replay(capacity="3GiB").is_good)
        self.assertEqual(recording.replay(torch="2.6").only_device.torch_profile, "2.6")
        rows = recording.sweep(conf=["max_split_size_mb:64", "expandable_segments:True"]).only_device.sweep.rows
        self.assertEqual({row.conf for row in rows}, {"expandable_segments:True", "max_split_size_mb:64"})
        direct = subprocess.run([memreplay.program(), "fit", SERVING, "--json"], stdout=subprocess.PIPE, check=True)
        self.assertEqual(recording.fit().to_dict(), json.loads(direct.stdout))

    def test_settings_are_text_a_list_or_a_dict(self):
        recording = memreplay.load(SERVING)
        for conf in ("expandable_segments:True", ["expandable_segments:True"], {"expandable_segments": True},
                     [{"expandable_segments": True}]):
            self.assertEqual([row.conf for row in recording.sweep(conf=conf).only_device.sweep.rows],
                             ["expandable_segments:True"], conf)
            self.assertEqual([row.conf for row in recording.fit(conf=conf).only_device.fits.rows],
                             ["expandable_segments:True"], conf)
        text = recording.replay(conf="expandable_segments:True").only_device.peak_reserved_bytes
        self.assertEqual(recording.replay(conf={"expandable_segments": True}).only_device.peak_reserved_bytes, text)
        with self.assertRaisesRegex(TypeError, "conf: expected text such as"):
            recording.sweep(conf=[3])

    def test_str_is_the_diagnosis_and_the_table_that_matters(self):
        recording = memreplay.load(TRAINING)
        for answer in (recording.inspect(), recording.replay(), recording.oom(), recording.report(), recording.sweep(),
                       recording.fit()):
            text = str(answer)
            self.assertIn(answer.diagnosis, text)
            said = answer.only_device.diagnosis
            self.assertEqual(answer.diagnosis, " ".join(filter(None, [said.what, said.why, said.do])))
            self.assertGreater(len(answer.diagnosis), 20)
            self.assertLess(len(text.splitlines()), 20)
        self.assertRegex(str(recording.inspect()), r"\n  category +live\n")
        self.assertIn("expandable_segments:True", str(recording.sweep()))

    def test_advice(self):
        answer = memreplay.load(SERVING).advise(card="3530MiB")
        self.assertTrue(answer.is_good)
        self.assertEqual(answer.columns()["smallest_bytes"], [answer.advice.rows[0].smallest_bytes])
        self.assertLessEqual(answer.advice.rows[0].smallest_bytes, answer.advice.goal_bytes)
        self.assertIn(f"{answer.diagnosis}\n  change ", str(answer))
        self.assertIn("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", str(answer))
        self.assertIn("<th>cost</th>", answer._repr_html_())
        self.assertFalse(memreplay.load(SERVING).advise(card="2GiB").is_good)
        with self.assertRaisesRegex(memreplay.Error, "--card: 'rtx-4o90': no such GPU; .* rtx-4090,"):
            memreplay.load(SERVING).advise(card="rtx-4o90")

    def test_advice_of_a_script(self):
        """Checks the words that reach the binary, and its answer, which has no device."""
        row = {"remedies": ["chunked_loss"], "change": "the loss in chunks", "smallest_bytes": 1 << 30, "fits": True,
               "preserves": True, "cost": "some more kernels", "lines": ["a", "b"]}
        advice = {"diagnosis": {"what": "Peak 2.00 GiB.", "do": "Nothing."},
                  "rows": [row, {"change": "another", "error": "it failed"}]}
        printed = json.dumps({"command": "advise", "file": "train.py", "advice": advice}).encode()
        with mock.patch.object(_advise, "run", return_value=subprocess.CompletedProcess([], 0, printed)) as run:
            answer = memreplay.advise("train.py", "--lr=3", card="t4", jobs=1, try_=["chunked_loss"],
                                      argument={"batch_size": "?"})
        run.assert_called_once_with(["advise", "--card=t4", "--jobs=1", "--try=chunked_loss", "--batch_size=?",
                                     "--json", "--",
                                     "train.py", "--lr=3"])
        self.assertEqual(answer.diagnosis, "Peak 2.00 GiB. Nothing.")
        self.assertRegex(str(answer),
                         r"^advise train.py\nPeak 2.00 GiB. Nothing.\n +change +needs .*\n"
                         r" +the loss in chunks +1.00 GiB +yes")
        self.assertNotIn("another", str(answer))
        self.assertIn("<td>some more kernels</td>", answer._repr_html_())
        self.assertEqual(answer.columns()["lines"][0], "a\nb")

    def test_advice_of_recordings_with_values(self):
        with mock.patch.object(_advise, "run", return_value=subprocess.CompletedProcess([], 1, b"{}")) as run:
            memreplay.advise({TRAINING: 16, SERVING: 24}, argument={"batch_size": 64}, card="t4")
        run.assert_called_once_with(["advise", "--card=t4", "--batch_size=64", "--json",
                                     f"{TRAINING}=16", f"{SERVING}=24"])
        with self.assertRaisesRegex(memreplay.Error, "do not correspond"):
            memreplay.advise({TRAINING: 16, SERVING: 24}, argument={"batch_size": 64}, card="t4")
        for words in ((), ("train.py", {TRAINING: 16})):
            with self.assertRaisesRegex(TypeError, "expected a script with its arguments or recordings"):
                memreplay.advise(*words, card="t4")

    def test_what_memory_is_for_is_a_table(self):
        report = memreplay.load(TRAINING).replay()
        table = report.columns("categories")
        peak = [size for phase, size in zip(table["phase"], table["live_bytes"]) if phase == "peak"]
        self.assertEqual(sum(peak), report.only_device.categories.peak_bytes)
        self.assertEqual(sum(peak), report.only_device.peak_requested_bytes)
        self.assertLessEqual({"category", "line", "live_bytes"}, set(report.columns("lines")))

    def test_a_checkout_that_was_not_built(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder, "memreplay")
            copy.mkdir()
            for path in pathlib.Path(memreplay.__file__).parent.glob("*.py"):  # from a wheel, too
                if path.name != "report_types.py":
                    (copy / path.name).write_bytes(path.read_bytes())
            for words in (["-c", "import memreplay"], ["-m", "memreplay", "--version"]):
                done = subprocess.run([sys.executable, *words], env={**os.environ, "PYTHONPATH": folder}, cwd=folder,
                                      stderr=subprocess.PIPE, check=False, text=True)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, r"memreplay/report_types.py is not there: .* run ./memreplay --version")

    def test_an_answer_can_be_saved(self):
        with tempfile.TemporaryDirectory() as folder:
            sweep = memreplay.load(TRAINING).sweep()
            sweep.save(pathlib.Path(folder, "p.html"))
            self.assertTrue(pathlib.Path(folder, "p.html").read_text(encoding="utf-8").startswith("<!doctype html"))
            sweep.save(f"{folder}/a.json")
            self.assertEqual(json.loads(pathlib.Path(folder, "a.json").read_text(encoding="utf-8")), sweep.to_dict())
            with self.assertRaisesRegex(ValueError, "ends in .html or .json"):
                sweep.save(f"{folder}/a.txt")
            recording = pathlib.Path(folder, "r.json")
            recording.write_bytes(pathlib.Path(SERVING).read_bytes())
            with self.assertRaisesRegex(FileExistsError, "is also an input"):
                memreplay.load(recording).inspect().save(recording)
            self.assertEqual(recording.read_bytes(), pathlib.Path(SERVING).read_bytes())
            pathlib.Path(folder, "link.json").symlink_to("linked.json")
            sweep.save(f"{folder}/link.json")
            self.assertTrue(pathlib.Path(folder, "link.json").is_symlink())
            sweep.save(pathlib.Path(folder, "a" * 250 + ".json"))

    def test_errors_are_the_programs_one_line(self):
        with self.assertRaisesRegex(memreplay.Error, r"^[^:]*serving\.jsonl: --conf: .*max_split_size_mb"):
            memreplay.load(SERVING).replay(conf="max_split_size_mb:1")
        with self.assertRaisesRegex(memreplay.Error, "unknown format"):
            memreplay.load(b"not a recording").replay()
        for ask in ("replay", "sweep", "fit", "oom", "report"):
            with self.assertRaisesRegex(TypeError, rf"{ask}\(\) got an unexpected keyword argument 'non_sense'"):
                getattr(memreplay.load(SERVING), ask)(non_sense=1)
        with self.assertRaisesRegex(memreplay.Error, "has 0 devices|has 2 devices"):
            memreplay.Answer({"devices": [{}, {}]}).only_device
        with self.assertRaisesRegex(memreplay.Error, "no settings were tried"):
            memreplay.load(SERVING).replay().best
        with self.assertRaisesRegex(memreplay.Error, "no table 'nonsense'; there are devices"):
            memreplay.load(SERVING).replay().columns("nonsense")

    def test_a_directory_is_a_list_and_a_missing_file_an_error_at_once(self):
        recordings = memreplay.load(SNAPSHOTS)
        self.assertEqual([recording.path.name for recording in recordings],
                         sorted(path.name for path in SNAPSHOTS.iterdir() if path.is_file()))
        self.assertGreater(len(recordings), 1)
        with self.assertRaisesRegex(FileNotFoundError, "nowhere.pickle"):
            memreplay.load("nowhere.pickle")

    def test_sources_that_are_none(self):
        with self.assertRaisesRegex(memreplay.Error, "^<dict>: byte .*, so it is not a memory snapshot$"):
            memreplay.load({"other": 1}).replay()
        with open(SERVING, encoding="utf-8") as text:
            for source in (3, None, text, ["a.pickle"]):
                with self.assertRaisesRegex(TypeError,
                                            "^memreplay.load: expected a path, bytes, a file opened with 'rb'"):
                    memreplay.load(source)

    def test_tables(self):
        recording = memreplay.load(TRAINING)
        report = recording.report()
        timeline = report.columns()
        self.assertEqual(max(timeline["reserved_bytes"]), report.only_device.peak_reserved_bytes)
        for table in _answer._TABLES:
            for answer in (report, recording.sweep(), recording.replay(), recording.oom(capacity="40MiB")):
                columns = answer.columns(table)
                self.assertLessEqual(len({len(column) for column in columns.values()}), 1, table)
        blocks = report.columns("blocks")
        peak = [row for row in zip(blocks["moment"], blocks["size_bytes"]) if row[0] == "peak"]
        self.assertEqual(sum(size for _, size in peak), report.only_device.peak_reserved_bytes)
        end = recording.replay().columns("blocks")
        of_page = [n for n, moment in enumerate(blocks["moment"]) if moment == "end"]
        self.assertEqual([blocks["address"][n] for n in of_page], end["address"])
        self.assertEqual([blocks["requested_bytes"][n] for n in of_page], end["requested_bytes"])
        of_blocks = {(stack != "", category != "") for stack, category, state in
                     zip(end["stack"], end["category"], end["state"]) if state != "inactive"}
        self.assertEqual(of_blocks, {(True, True)})
        stacks = report.columns("stacks")
        self.assertIn("train", " ".join(stacks["frames"]))
        self.assertEqual(list(stacks)[:5], ["device", "stack", "category", "phase", "module"])
        self.assertNotIn("", stacks["category"] + stacks["phase"])
        sharded = memreplay.load(ROOT / "examples" / "fsdp.txtpb").report().columns("stacks")
        made = dict(zip(sharded["category"][::-1], sharded["phase"][::-1]))  # in which phase most of each was made
        self.assertEqual((made["activation"], made["parameter"]), ("forward", "load"))
        short = recording.oom(capacity="40MiB").columns("stacks")
        self.assertLessEqual(set(short["category"]),
                             set(recording.oom(capacity="40MiB").columns("categories")["category"]))
        self.assertNotIn("", short["category"])

    @unittest.skipUnless(has("pandas") and has("pyarrow"), "pandas and pyarrow are not installed")
    def test_arrow_and_pandas(self):
        sweep = memreplay.load(SERVING).sweep()
        frame = sweep.to_pandas()
        self.assertEqual(frame.peak_reserved_bytes.min(), sweep.best.peak_reserved_bytes)
        self.assertEqual(sweep.to_arrow().num_rows, len(frame))
        self.assertEqual(str(sweep.to_arrow().schema.field("peak_reserved_bytes").type), "int64")

    def test_packages_that_are_not_there(self):
        answer = memreplay.load(SERVING).replay()
        with mock.patch.dict(sys.modules, {"pandas": None, "pyarrow": None, "fsspec": None}):
            for ask, package in ((answer.to_pandas, "pandas"), (answer.to_arrow, "pyarrow"),
                                 (lambda: memreplay.load("s3://a/b"), "fsspec")):
                with self.assertRaisesRegex(ImportError, f"requires the package {package} .*; pip install {package}$"):
                    ask()

    def test_notebooks_show_the_page_or_a_table(self):
        recording = memreplay.load(TRAINING)
        for shown in (recording, recording.replay(), recording.report()):
            text = shown._repr_html_()
            self.assertTrue(text.startswith('<iframe srcdoc="&lt;!doctype html'), text[:60])
            self.assertIn('sandbox="allow-scripts"', text)
        table = recording.sweep()._repr_html_()
        self.assertIn("<th>peak reserved</th>", table)
        self.assertIn(html.escape(recording.sweep().diagnosis), table)
        self.assertNotIn("<iframe", table)

    def test_nothing_big_is_imported(self):
        code = "import sys, memreplay; print(sorted({'torch','pandas','pyarrow','fsspec','ray'} & set(sys.modules)))"
        done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
        self.assertEqual(done.stdout.strip(), b"[]")


class Program(unittest.TestCase):
    def test_python_m_is_the_program(self):
        for args in (["--version"], ["replay", SERVING], ["replay", "nowhere"], []):
            both = [subprocess.run([*start, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
                    for start in ([sys.executable, "-m", "memreplay"], [memreplay.program()])]
            self.assertEqual((both[0].returncode, both[0].stdout, both[0].stderr),
                             (both[1].returncode, both[1].stdout, both[1].stderr))

    def test_its_version_is_the_programs(self):
        printed = subprocess.run([memreplay.program(), "--version"], stdout=subprocess.PIPE, check=True).stdout.decode()
        self.assertEqual(printed, f"memreplay {memreplay.__version__}\n")
        self.assertFalse(hasattr(memreplay, "nonsense"))

    def test_a_program_that_dies_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            fake = pathlib.Path(folder, "fake")
            fake.write_text("#!/bin/sh\nkill -9 $$\n")
            fake.chmod(0o755)
            done = subprocess.run([sys.executable, "-c", "import memreplay; memreplay.load(b'x').replay()"],
                                  env={"MEMREPLAY_PROGRAM": str(fake), "PYTHONPATH": str(ROOT / "python")},
                                  stderr=subprocess.PIPE, check=False)
            self.assertIn(b"memreplay.Unanswered: replay: memreplay was ended by signal 9", done.stderr)


if __name__ == "__main__":
    unittest.main()
