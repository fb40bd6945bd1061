"""Tests memreplay fleet on this machine, on a real Ray cluster of two nodes, and when things go wrong."""

import contextlib
import copy
import doctest
import importlib.util
import io
import json
import logging
import os
import pathlib
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tracemalloc
import unittest
import urllib.parse
from unittest import mock

import memreplay
from memreplay import _fleet_tables, _fleet_task, _program, fleet as _fleet

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))
from waiting import wait_until  # noqa: E402

SNAPSHOTS = ROOT / "tests/data/snapshots"
TABLES = ("devices", "settings", "stacks", "jobs")


def has(*modules):
    return all(importlib.util.find_spec(module) for module in modules)


def mutated_json(choices, text):
    """Returns a JSON text with some of its values as no program writes them, or bytes that are none."""
    if choices.randrange(4) == 0:
        at = choices.randrange(len(text))
        return choices.choice([text[:at], text[:at] + bytes(choices.randrange(256) for _ in range(8)) + text[at:], b"",
                               b"[" * 100_000, b"9" * 10_000, bytes(1000)])
    whole = [json.loads(text)]
    for _ in range(choices.randint(1, 3)):
        places, waiting = [], [whole]
        while waiting:
            inner = waiting.pop()
            keys = list(inner) if isinstance(inner, dict) else range(len(inner))
            places += [(inner, key) for key in keys]
            waiting += [inner[key] for key in keys if isinstance(inner[key], (dict, list))]
        inner, key = choices.choice(places)
        other, its = choices.choice(places)
        what = choices.randrange(8)
        if what == 0 and len(places) > 1 and inner is not whole:
            del inner[key]
        elif what == 1 and isinstance(inner[key], list):
            inner[key] *= choices.choice([0, 2, 300])
        elif what == 2:
            inner[key] = copy.deepcopy(other[its])
        else:
            inner[key] = choices.choice([0, -1, 2**31, 2**48, 2**56, 2**63, 2**64, 10**400, 0.5, float("nan"), True,
                                         None, "", "\x1b[31m\n", "\udcff", "max_split_size_mb:20", [], {}, [[]]])
    return json.dumps(whole[0]).encode()


def load_tests(loader, tests, pattern):
    tests.addTests(doctest.DocTestSuite(_fleet))
    tests.addTests(doctest.DocTestSuite(_fleet_task))
    tests.addTests(doctest.DocTestSuite(_program))
    return tests


@unittest.skipUnless(has("fsspec", "pyarrow"), "fsspec and pyarrow are not installed")
class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.runs = self.folder / "runs"
        (self.runs / "a").mkdir(parents=True)
        (self.runs / "b").mkdir()
        for rank, name in enumerate(["training", "ring", "streams", "training"]):
            shutil.copy(SNAPSHOTS / f"torch-2.15/{name}.pickle", self.runs / f"a/out.rank{rank}.pickle")
        shutil.copy(SNAPSHOTS / "torch-2.6/expandable_oom.pickle", self.runs / "b/rank0.pickle")
        whole = (SNAPSHOTS / "torch-2.6/training.pickle").read_bytes()
        (self.runs / "b/rank1.pickle").write_bytes(whole[:len(whole) // 2])

    def fleet(self, *args, out="out", source=None):
        from memreplay.fleet import main
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            status = main([source or str(self.runs), "--out", str(self.folder / out), *args])
        return status, printed.getvalue()

    def rows(self, table, out="out"):
        import pyarrow.parquet
        return pyarrow.parquet.read_table(self.folder / out / f"{table}.parquet").to_pylist()

    def program(self, text):
        """Puts in place of the binary one that does `text` (a piece of shell, in which $FILE is the last word that is a
        file) before the real one answers."""
        path = self.folder / "program"
        path.write_text(f'#!/bin/bash\nFILE=$(printf "%s\\n" "$@" | grep pickle | tail -n 1)\n{text}\n'
                        f'exec "{memreplay.program()}" "$@"\n')
        path.chmod(0o755)
        return mock.patch.dict(os.environ, {"MEMREPLAY_PROGRAM": str(path)})


class Local(Case):
    def test_rows_are_the_answers_of_the_program(self):
        status, printed = self.fleet()
        self.assertEqual(status, 1)
        self.assertRegex(printed, r"^6 files in 2 jobs, 1 failed; \d+ questions answered")
        self.assertRegex(printed, r"\n  \S*/runs/b: [\d.]+ MiB on the worst device.*; OUT OF MEMORY \d+ times?, "
                                  r"\d+ with the best settings")
        devices = self.rows("devices")
        self.assertEqual([(row["rank"], row["device"]) for row in devices],
                         [(0, 0), (1, 0), (2, 0), (3, 0), (0, 0), (1, -1)])
        for row in devices[:-1]:
            sweep = memreplay.load(row["file"]).sweep()
            current = sweep.only_device.sweep.current
            self.assertEqual(row["peak_reserved_bytes"], current.peak_reserved_bytes)
            self.assertEqual(row["ooms"], current.ooms)
            self.assertEqual(row["best_conf"], sweep.best.conf)
            self.assertEqual(row["best_saves_bytes"], current.peak_reserved_bytes - sweep.best.peak_reserved_bytes)
            self.assertEqual(row["verdict"], memreplay.load(row["file"]).oom().only_device.oom.verdict)
            self.assertEqual(row["error"], "")
        self.assertRegex(devices[-1]["error"], "rank1.pickle: byte")
        self.assertGreater(len(self.rows("stacks")), 0)
        page = (self.folder / "out/fleet.html").read_text()
        self.assertIn("rank1.pickle: byte", page)
        self.assertIn("rank 3", page)

    def test_no_answer_has_the_order_of_a_hash_table(self):
        answers = []
        for seed in "0", "1", "2":
            shutil.rmtree(self.folder / "out", ignore_errors=True)
            done = subprocess.run([sys.executable, "-m", "memreplay", "fleet", self.runs, "--out", self.folder / "out"],
                                  stdout=subprocess.PIPE, check=False, text=True,
                                  env={**os.environ, "PYTHONHASHSEED": seed})
            self.assertEqual(done.returncode, 1)
            page = (self.folder / "out/fleet.html").read_text(encoding="utf-8")
            tables = [[{key: value for key, value in row.items() if not key.endswith("seconds")}
                       for row in self.rows(table)] for table in TABLES]
            answers.append((*(re.sub(r"\bin [\d.]+ s\b", "", text) for text in (done.stdout, page)), *tables))
        for other in answers[1:]:
            for ours, its in zip(answers[0], other):
                self.assertEqual(ours, its)

    def test_without_events_the_final_state_is_what_is_known(self):
        """Such a rank can be the worst."""
        shutil.copy(SNAPSHOTS / "torch-2.15/no_history.pickle", self.runs / "a/out.rank4.pickle")
        shutil.copy(SNAPSHOTS / "torch-2.15/no_history.pickle", self.runs / "c.pickle")
        self.assertEqual(self.fleet()[0], 1)
        inventory = memreplay.load(self.runs / "c.pickle").inspect().only_device.inventory
        rows = [row for row in self.rows("devices") if row["file"].endswith(("rank4.pickle", "c.pickle"))]
        self.assertEqual(len(rows), 2)
        for row in rows:
            self.assertEqual(row["events"], 0)
            self.assertEqual(row["peak_reserved_bytes"], inventory.final_reserved_bytes)
            self.assertEqual(row["peak_allocated_bytes"], inventory.final_allocated_bytes)
            self.assertEqual(row["best_saves_bytes"], 0)
        for row in self.rows("devices"):
            self.assertLessEqual(row["peak_allocated_bytes"] or 0, row["peak_reserved_bytes"] or 0)
        jobs = {row["job"]: row for row in self.rows("jobs")}
        alone = jobs[str(self.runs)]
        self.assertEqual([alone["worst_file"], alone["peak_reserved_bytes"], alone["best_peak_reserved_bytes"]],
                         [str(self.runs / "c.pickle"), inventory.final_reserved_bytes, inventory.final_reserved_bytes])
        job = jobs[str(self.runs / "a")]
        peaks = [row["peak_reserved_bytes"] for row in self.rows("devices") if row["job"] == job["job"]]
        self.assertEqual([len(peaks), job["peak_reserved_bytes"]], [5, max(peaks)])
        self.assertGreaterEqual(job["saves_on_all_devices_bytes"], 0)
        self.assertIn(f"at least {inventory.final_reserved_bytes / 2**20:.1f} MiB", self.page())

    def page(self):
        return (self.folder / "out/fleet.html").read_text()

    def test_the_page(self):
        """It has words, no empty columns, and a link to each rank's file, or to its page where there is one."""
        shutil.copy(self.runs / "a/out.rank0.pickle", self.runs / "a/50% #1?.rank5.pickle")
        subprocess.run([memreplay.program(), "report", str(self.runs / "a/out.rank0.pickle"), "-o",
                        str(self.runs / "a/out.rank0.html")], check=True, stdout=subprocess.DEVNULL)
        self.assertEqual(self.fleet()[0], 1)  # the page is no recording
        page = self.page()
        self.assertIn("out of memory: ", page)
        self.assertIsNone(re.search(r"true_shortage|pending_free|too_large|>none<|>score<", page))
        for table in re.findall(r"<table>.*?</table>", page):
            rows = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in re.findall(r"<tr.*?</tr>", table)]
            for column in list(zip(*rows))[2:]:
                self.assertTrue(any(column[1:]), column)
        links = [urllib.parse.unquote(link) for link in re.findall(r'<a href="([^"]*)"', page)]
        self.assertEqual([(self.folder / "out" / link).resolve().name for link in links],
                         ["50% #1?.rank5.pickle", "out.rank0.html", "out.rank1.pickle", "out.rank2.pickle",
                          "out.rank3.pickle", "rank0.pickle"])
        self.assertTrue(all((self.folder / "out" / link).exists() for link in links))

    def test_the_settings_of_a_job_are_the_least_of_the_greatest(self):
        self.fleet()
        job = self.rows("jobs")[0]
        by_conf = {}
        for row in self.rows("settings"):
            if row["job"] == job["job"]:
                by_conf.setdefault(row["conf"], {})[row["rank"]] = (row["ooms"], row["peak_reserved_bytes"])
        whole = {conf: ranks for conf, ranks in by_conf.items() if len(ranks) == 4}
        self.assertGreater(len(whole), 5)
        least = min(max(peak for _, peak in ranks.values()) for ranks in whole.values()
                    if not any(o for o, _ in ranks.values()))
        self.assertEqual(job["best_peak_reserved_bytes"], least)
        self.assertEqual(max(peak for _, peak in whole[job["best_conf"]].values()), least)
        for rank, (_, peak) in whole[job["best_conf"]].items():
            row = memreplay.load(self.runs / f"a/out.rank{rank}.pickle").sweep(conf=[job["best_conf"]]).best
            self.assertEqual(row.peak_reserved_bytes, peak)

    def test_again_does_only_what_is_missing(self):
        self.fleet()
        before = {table: (self.folder / f"out/{table}.parquet").read_bytes() for table in TABLES}
        (self.folder / "out/devices.parquet").unlink()
        self.assertIn("; 0 questions answered", self.fleet()[1])
        for table in TABLES:
            self.assertEqual((self.folder / f"out/{table}.parquet").read_bytes(), before[table])
        shutil.copy(SNAPSHOTS / "torch-2.6/training.pickle", self.runs / "b/rank1.pickle")
        status, printed = self.fleet()
        self.assertEqual(status, 0)
        # These are about the file that was mended, and what the two files of its job need from each other.
        self.assertRegex(printed, "; [123] questions answered")

    def test_a_worker_that_dies_is_tried_again(self):
        once = self.folder / "once"
        with self.program(f'[[ $FILE == *rank2* && ! -e {once} ]] && {{ touch {once}; kill -9 $$; }}'):
            self.fleet()
        self.assertTrue(once.exists())
        self.assertEqual([row["error"] for row in self.rows("devices")[:5]], [""] * 5)

    def test_one_that_always_dies_is_a_row_and_is_tried_by_the_next_run(self):
        with self.program('[[ $FILE == *rank2* ]] && kill -9 $$'):
            status, _ = self.fleet("--retries", "1")
        self.assertEqual(status, 1)
        self.assertEqual([row["error"] for row in self.rows("devices") if row["rank"] == 2],
                         ["sweep: memreplay was ended by signal 9"])
        self.fleet("--retries", "1")
        self.assertEqual([row["error"] for row in self.rows("devices") if row["rank"] == 2], [""])

    def test_a_file_that_takes_too_long_is_a_row(self):
        with self.program('[[ $FILE == *rank3* ]] && exec sleep 60'):
            self.fleet("--timeout", "3")
        self.assertEqual([row["error"] for row in self.rows("devices") if row["rank"] == 3],
                         ["sweep: took longer than 3 s"])

    def test_results_inside_the_source_are_no_recordings(self):
        for _ in range(2):
            self.assertIn("6 files in 2 jobs", self.fleet(out="runs")[1])
        with self.assertRaisesRegex(memreplay.Error, "it contains only the results"):
            self.fleet(source=str(self.runs / "*.parquet"), out="runs")

    def test_damaged_answers(self):
        """What another program, a power cut or nobody wrote into OUT/parts is asked again, or is an answer like others.

        MEMREPLAY_ATTACKS=1000 MEMREPLAY_SEED=7 makes more of them.
        """
        self.fleet(out="whole")
        shutil.copytree(self.folder / "whole", self.folder / "out")
        parts = {path: path.read_bytes() for path in (self.folder / "out/parts").iterdir()}
        kept = {path.name: json.loads(text) for path, text in parts.items()}
        named = _fleet.Parts(str(self.folder / "out"), _program.run(["--version"]).stdout.decode().strip())

        def engine(tasks):
            for task in tasks:
                yield task, kept.get(named.name(task), {"is_final": False, "error": "settings that are made up"})

        choices = random.Random(int(os.environ.get("MEMREPLAY_SEED", 15)))
        for attack in range(int(os.environ.get("MEMREPLAY_ATTACKS", 60))):
            path = choices.choice(sorted(parts))
            changed = mutated_json(choices, parts[path])
            with self.subTest(attack=attack, changed=changed[:2000]):
                path.write_bytes(changed)
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    try:
                        status = _fleet.main([str(self.runs), "--out", str(self.folder / "out")], engine)
                    except memreplay.Error as error:
                        self.assertRegex(str(error), "in parts cannot be compared; remove them: .*schema_version")
                        continue
                    finally:
                        left = path.read_bytes()
                        path.write_bytes(parts[path])
                self.assertEqual(status, 1)  # of the file that is cut off
                self.assertTrue(all(line.isprintable() for line in printed.getvalue().splitlines()), printed)
                if left == parts[path]:  # it was asked again
                    self.assert_same("out", "whole")
                for table in TABLES:
                    self.rows(table)

    def test_an_answer_that_is_cut_off_is_asked_again(self):
        self.fleet(out="whole")
        shutil.copytree(self.folder / "whole", self.folder / "out")
        for path in (self.folder / "out/parts").iterdir():
            path.write_bytes(path.read_bytes()[:100])
            self.assertRegex(self.fleet()[1], "; 1 questions answered")
            self.assert_same("out", "whole")

    def test_tables_of_another_fleet_are_no_recordings(self):
        self.fleet(source=str(self.runs / "a"), out="runs/c")
        for path in list((self.runs / "c").glob("*.parquet")):
            whole = path.read_bytes()
            path.with_suffix(".cut").write_bytes(whole[:len(whole) // 2])
        shutil.rmtree(self.runs / "c/parts")
        status, _ = self.fleet()
        self.assertEqual(status, 1)
        errors = {pathlib.Path(row["file"]).name: row["error"] for row in self.rows("devices")
                  if "/c/" in row["file"]}
        self.assertEqual(errors.keys(), {path.name for path in (self.runs / "c").iterdir()})
        for name, error in errors.items():
            self.assertRegex(error, f"/{name}: ")

    def test_names_that_are_no_text(self):
        """They are spelt in the tables, and nothing of them reaches a terminal raw."""
        folder = os.path.join(os.fsencode(self.runs), b"\xff\x1b[31m\n")
        os.mkdir(folder)
        for name in (b"rank0.pickle", b"rank1\xfe.pickle"):
            shutil.copy(os.fsencode(SNAPSHOTS / "torch-2.6/training.pickle"), os.path.join(folder, name))
        status, printed = self.fleet()
        self.assertEqual(status, 1)
        self.assertIn(r"/runs/\udcff?[31m?: ", printed)
        self.assertNotIn("\x1b", printed)
        self.assertEqual([row["file"].rpartition("/")[2] for row in self.rows("devices")
                          if "udcff" in row["job"] and not row["error"]], ["rank0.pickle", r"rank1\udcfe.pickle"])
        folder = os.path.join(os.fsencode(self.folder), b"no\xff")
        done = subprocess.run([sys.executable, "-m", "memreplay", "fleet", folder, "--out", self.folder / "out"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual((done.returncode, done.stderr),
                         (2, f"memreplay: fleet: {self.folder}/no?: no such file, or a directory without "
                             "files\n".encode()))

    def test_results_that_are_not_ours(self):
        out = self.folder / "out"
        out.mkdir()
        (out / "jobs.parquet").write_text("theirs")
        done = subprocess.run([sys.executable, "-m", "memreplay", "fleet", self.runs, "--out", out],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True)
        self.assertEqual((done.returncode, done.stderr),
                         (2, f"memreplay: fleet: {out}/jobs.parquet: was not written by memreplay and would be "
                             "overwritten; name another directory with -o\n"))
        self.assertEqual((out / "jobs.parquet").read_text(), "theirs")
        (out / "jobs.parquet").unlink()
        self.fleet()
        (out / "fleet.html").rename(self.folder / "page")
        (out / "fleet.html").symlink_to("../page")
        (self.folder / "page").write_text("")
        self.fleet()
        self.assertTrue((out / "fleet.html").is_symlink())
        self.assertIn("memreplay fleet", (self.folder / "page").read_text())
        (out / "jobs.parquet").unlink()
        (out / "jobs.parquet").mkdir()
        with self.assertRaisesRegex(memreplay.Error, "jobs.parquet: cannot open for writing: is not a file"):
            self.fleet()

    def test_a_full_disk_is_one_line(self):
        self.fleet(out="whole")
        for limit in (0, 4):  # KiB: at the first answer, at a table
            with self.subTest(limit):
                if limit:
                    shutil.copytree(self.folder / "whole/parts", self.folder / "out/parts", dirs_exist_ok=True)
                done = subprocess.run(["bash", "-c", f'ulimit -f {limit}; trap "" XFSZ; exec "$0" "$@"', sys.executable,
                                       "-m", "memreplay", "fleet", self.runs, "--out", self.folder / "out"],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr, r"^memreplay: fleet: \S*/out: \[Errno 27\] File too large[^\n]*\n$")
        self.fleet()
        self.assert_same("out", "whole")

    def start(self, out):
        driver = subprocess.Popen([sys.executable, "-m", "memreplay", "fleet", str(self.runs), "--out",
                                   str(self.folder / out)],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(driver.stderr.close)
        self.addCleanup(driver.wait)
        self.addCleanup(driver.kill)
        return driver

    def assert_same(self, out, other):
        for name in [f"{table}.parquet" for table in TABLES] + ["fleet.html"]:
            self.assertEqual((self.folder / out / name).read_bytes(), (self.folder / other / name).read_bytes(), name)

    def test_killed_at_ten_moments(self):
        """Nothing of a run that was killed is taken for an answer, and the next one ends with the same bytes."""
        began = time.monotonic()
        self.fleet(out="whole")
        whole = time.monotonic() - began
        killed, moments = 0, random.Random(7)
        for _ in range(10):
            driver = self.start("out")
            with contextlib.suppress(subprocess.TimeoutExpired):
                driver.wait(moments.uniform(0.1, 1) * whole)
                shutil.rmtree(self.folder / "out")  # it was whole: the next begins anew
                continue
            os.killpg(driver.pid, signal.SIGKILL)
            killed += 1
            for path in (self.folder / "out").glob("*.parquet"):  # what has its name is whole
                self.rows(path.stem)
        self.assertGreater(killed, 4)
        self.fleet()
        self.assert_same("out", "whole")

    def test_two_writers_of_one_output(self):
        self.fleet(out="whole")
        for driver in [self.start("out") for _ in range(2)]:
            _, problems = driver.communicate(timeout=120)
            self.assertEqual(driver.returncode, 1, problems)  # of the file that is cut off
        self.assert_same("out", "whole")
        self.assertEqual([path.name for path in (self.folder / "out").rglob(".*")], [])

    def test_two_thousand_files_in_bounded_memory(self):
        """Memory grows with the files by less than half of what is said about each; tables are written as they come."""
        from memreplay.fleet import main
        source = self.folder / "many"
        answer = memreplay._fleet_task.run_task(memreplay._fleet_task.Task(str(self.runs / "a/out.rank0.pickle"), ""))

        def engine(tasks):
            for task in tasks:
                yield task, json.loads(json.dumps(answer))

        peaks = []
        for count in (8, 496, 2000):  # the first also imports what is needed
            for i in range(count):
                folder = source / f"job{i // 8}"
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"rank{i % 8}.pickle").touch()
            tracemalloc.start()
            with mock.patch.object(_fleet_tables, "_ROWS_AT_ONCE", 1000), \
                    contextlib.redirect_stdout(io.StringIO()) as printed:
                self.assertEqual(main([str(source), "--out", str(self.folder / f"out{count}")], engine), 0)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            self.assertIn(f"{count} files in {count // 8} jobs, 0 failed", printed.getvalue())
        size = len(json.dumps(answer))

        self.assertLess((peaks[2] - peaks[1]) / 1504, size / 2, f"{peaks}, {size} bytes a file as text")

    def test_storage_that_cannot_be_reached_is_one_line(self):
        with self.assertRaisesRegex(memreplay.Error, "^fleet: nonsense://x: .*nonsense"):
            self.fleet(source="nonsense://x")
        (self.folder / "file").touch()
        with self.assertRaisesRegex(memreplay.Error, f"^fleet: {self.folder}/file: "):
            self.fleet(out="file")

    def test_sources(self):
        from memreplay.fleet import sources
        names = [url for url, _ in sources([f"{self.runs}/a/*rank[01]*", str(self.runs / "b/rank0.pickle")])]
        self.assertEqual([pathlib.Path(name).name for name in names],
                         ["out.rank0.pickle", "out.rank1.pickle", "rank0.pickle"])
        with self.assertRaisesRegex(memreplay.Error, "nowhere: no such file"):
            sources([str(self.runs / "nowhere")])

    def test_urls(self):
        import fsspec
        fs = fsspec.filesystem("memory")
        fs.put(str(self.runs / "a"), "/bucket/job", recursive=True)
        status, _ = self.fleet(source="memory://bucket/job/*.pickle", out="of_urls")
        self.assertEqual(status, 0)
        self.fleet(source=str(self.runs / "a"))
        self.assertEqual([row["peak_reserved_bytes"] for row in self.rows("devices", "of_urls")],
                         [row["peak_reserved_bytes"] for row in self.rows("devices")])
        self.assertTrue(self.rows("devices", "of_urls")[0]["file"].startswith("memory://"))

    @unittest.skipUnless(has("moto", "flask", "s3fs"), "moto, flask and s3fs are not installed")
    def test_s3(self):
        from moto.server import ThreadedMotoServer
        logging.getLogger("werkzeug").disabled = True
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        self.addCleanup(server.stop)
        host, port = server.get_host_and_port()
        with mock.patch.dict(os.environ, {"AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "x",
                                          "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "us-east-1"}):
            import fsspec
            bucket = fsspec.filesystem("s3", skip_instance_cache=True)
            bucket.mkdir("runs")
            bucket.mkdir("results")
            bucket.put(str(self.runs / "a"), "runs/a", recursive=True)
            bucket.put(str(self.runs / "b"), "runs/b", recursive=True)
            for times, status in (("first", 1), ("again", 1), ("mended", 0)):
                if times == "mended":
                    bucket.put(str(self.runs / "a/out.rank0.pickle"), "runs/b/rank1.pickle")
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    from memreplay.fleet import main
                    self.assertEqual(main(["s3://runs", "--out", "s3://results/memory"]), status)
                questions = int(re.search(r"(\d+) questions answered", printed.getvalue()).group(1))
                self.assertIn(questions, {"first": range(6, 13), "again": [0], "mended": range(1, 4)}[times], times)
            for table in TABLES:
                bucket.get(f"results/memory/{table}.parquet", str(self.folder / f"{table}.parquet"))
            shutil.copy(self.runs / "a/out.rank0.pickle", self.runs / "b/rank1.pickle")
            self.fleet()
            for table in TABLES:
                self.assertEqual(self.rows(table, "."), json.loads(
                    json.dumps(self.rows(table)).replace(str(self.runs), "s3://runs")), table)
            self.assertEqual(memreplay.load("s3://runs/a/out.rank3.pickle").replay().only_device.peak_reserved_bytes,
                             memreplay.load(self.runs / "a/out.rank3.pickle").replay().only_device.peak_reserved_bytes)

    def test_an_outlier(self):
        for rank in range(4, 7):
            shutil.copy(SNAPSHOTS / "torch-2.15/training.pickle", self.runs / f"a/out.rank{rank}.pickle")
        self.fleet(source=str(self.runs / "a"))
        job = self.rows("jobs")[0]
        together = json.loads(subprocess.run([memreplay.program(), "sweep", "--together", "--json",
                                              str(self.runs / "a")],
                                             stdout=subprocess.PIPE, check=True).stdout)["together"]
        odd = [device for device in together["devices"] if device["is_outlier"]]
        self.assertEqual([pathlib.Path(device["file"]).name for device in odd], ["out.rank2.pickle"])
        self.assertEqual(job["outliers"], f"rank 2 ({odd[0]['score']:+.1f})")
        self.assertEqual(job["best_conf"], together["rows"][0]["conf"])
        self.assertEqual(job["best_peak_reserved_bytes"], together["rows"][0]["peak_reserved_bytes"])


def free_port():
    """Returns a port that the system hands out to no others, nor Ray to its workers, while a cluster comes up."""
    for port in random.sample(range(21_000, 30_000), 50):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no free port")


@unittest.skipUnless(has("ray", "fsspec", "pyarrow"), "ray is not installed")
class Ray(Case):
    """Runs two nodes, of one core each, on this machine."""

    @classmethod
    def setUpClass(cls):
        # A token of its own, whatever the user's home has for other clusters; before ray is imported.
        own = mock.patch.dict(os.environ, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)})
        own.start()
        cls.addClassCleanup(own.stop)

    def start(self, *args):
        ray = pathlib.Path(sys.executable).parent / "ray"
        done = subprocess.run([str(ray), "start", "--num-cpus=1", "--object-store-memory=100000000",
                               "--disable-usage-stats", *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, timeout=180)
        self.assertEqual(done.returncode, 0, done.stdout)

    def stop(self):
        import ray
        ray.shutdown()
        self.kill("")

    def kill(self, node):
        """Ends the processes of a node, or of both: those with our mark in their environment, and their children."""
        mark = f"MEMREPLAY_TEST_CLUSTER={os.getpid()}-{node}".encode()
        parents, ours = {}, set()
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with contextlib.suppress(OSError):
                    parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                    if mark in (entry / "environ").read_bytes():
                        ours.add(int(entry.name))
        while True:
            more = {pid for pid, parent in parents.items() if parent in ours} - ours
            if not more:
                break
            ours |= more
        for pid in ours:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return ours

    def wait_for_nodes(self, count):
        """Their head notices a loss by and by."""
        import ray
        wait_until(lambda: sum(node["Alive"] for node in ray.nodes()) == count)

    def parts(self, out):
        folder = self.folder / out / "parts"
        return {path.name for path in folder.glob("[!.]*")} if folder.exists() else set()

    def start_fleet(self, out, until):
        """Starts the command in a process of its own; returns it and what it has printed when `until` answers are
        there."""
        had = len(self.parts(out))
        driver = subprocess.Popen([sys.executable, "-m", "memreplay", "fleet", str(self.runs), "--out",
                                   str(self.folder / out), *self.engine],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(driver.stdout.close)
        self.addCleanup(driver.wait)
        self.addCleanup(driver.kill)
        wait_until(lambda: len(self.parts(out)) >= had + until or driver.poll() is not None)
        self.assertIsNone(driver.poll(), "it ended before it could be disturbed")
        return driver

    def assert_as_local(self, out):
        for table in [f"{name}.parquet" for name in TABLES] + ["fleet.html"]:
            self.assertEqual((self.folder / out / table).read_bytes(), (self.folder / "local" / table).read_bytes(),
                             table)

    def errors(self, out):
        return {(pathlib.Path(row["file"]).parent.name, row["rank"]): row["error"] for row in self.rows("devices", out)
                if row["error"]}

    def test_no_cluster_is_one_line(self):
        with self.assertRaisesRegex(memreplay.Error, r"^fleet: no Ray cluster answers at 127.0.0.1:\d+: .*refused$"):
            self.fleet("--engine", "ray", "--ray-address", f"127.0.0.1:{free_port()}")

    def test_whatever_goes_wrong_the_bytes_are_those_of_local(self):
        self.fleet(out="local")
        once, stuck, slow = (self.folder / name for name in ("once", "stuck", "slow"))
        stuck.touch()
        port = free_port()
        self.engine = ["--engine", "ray", "--ray-address", f"127.0.0.1:{port}", "--timeout", "10"]
        self.addCleanup(self.stop)
        with self.program(f'[[ $FILE == *rank2* && ! -e {once} ]] && {{ touch {once}; kill -9 $PPID; }}\n'
                          f'[[ $FILE == *rank3* && -e {stuck} ]] && exec sleep 60\n[[ -e {slow} ]] && sleep 0.4'):
            for node, args in (("head", ["--head", "--include-dashboard=false", f"--port={port}",
                                         "--node-ip-address=127.0.0.1"]),
                               ("other", [f"--address=127.0.0.1:{port}"])):
                with mock.patch.dict(os.environ, {"RAY_TMPDIR": str(self.folder),
                                                  "MEMREPLAY_TEST_CLUSTER": f"{os.getpid()}-{node}"}):
                    self.start(*args)

            # A worker is killed in the middle, a file takes too long, one is truncated.
            status, printed = self.fleet(*self.engine, out="ray")
            import ray
            self.assertEqual(ray.cluster_resources()["CPU"], 2)
            self.wait_for_nodes(2)
            self.assertTrue(once.exists(), "no worker was killed")
            self.assertEqual(status, 1)
            self.assertIn("6 files in 2 jobs, 2 failed", printed)
            errors = self.errors("ray")
            self.assertEqual(errors.keys(), {("a", 3), ("b", 1)})
            self.assertEqual(errors["a", 3], "sweep: took longer than 10 s")
            self.assertRegex(errors["b", 1], "rank1.pickle: byte")

            # Again, only what took too long is done, and what the others of its job need from it.
            stuck.unlink()
            before = self.parts("ray")
            _, printed = self.fleet(*self.engine, out="ray")
            asked = int(re.search(r"(\d+) questions answered", printed).group(1))
            self.assertEqual(asked, len(self.parts("ray") - before))
            self.assertLess(asked, 6)
            self.assert_as_local("ray")

            # The command itself is killed, and then, called again, a node is lost.
            slow.touch()
            self.start_fleet("again", until=2).kill()
            there = self.parts("again")
            self.assertLess(len(there), len(self.parts("ray")))
            driver = self.start_fleet("again", until=1)
            self.assertTrue(self.kill("other"))
            printed = driver.communicate(timeout=200)[0]
            self.assertIn("6 files in 2 jobs, 1 failed", printed)
            self.assertIn(f"; {len(self.parts('again')) - len(there)} questions answered", printed)
            self.wait_for_nodes(1)
            self.assert_as_local("again")


if __name__ == "__main__":
    unittest.main()
