"""Tests `memreplay record` of scripts that treat their process badly, and in places that nobody made for it.

The exit status is the script's own, the recording is there or one line says why it is not, and nothing else is left
behind. Scripts that fork keep the parent's recording.
"""
import json
import os
import pathlib
import re
import shlex
import signal
import stat
import subprocess
import sys
import textwrap
import time
import unittest.mock

from recorded import HERE, Case, Recorded, Setting, main

sys.path.append(str(HERE.parent))
from waiting import wait_until

USES = "import torch\nkept = torch.empty(1 << 20, device='cuda')\n"  # 4 MiB


class RecordAbuseTest(Case):
    def write(self, body, name="script.py", uses=USES):
        path = pathlib.Path(self.folder, name)
        path.write_text(uses + textwrap.dedent(body), encoding="utf-8")
        return str(path)

    def run_script(self, body, name="script.py", uses=USES, **more):
        return Recorded(self.folder, [self.write(body, name, uses)], **more)

    def left(self):
        return sorted(set(os.listdir(self.folder)) - {"cache", "script.py"})

    def recorded(self, body, status, left=(), **more):
        """Expects that the script ends with this status, and that all that it allocated before is recorded."""
        run = self.run_script(body, **more)
        self.assertEqual(run.status, status, run.said)
        self.assertEqual(len(run.answer["processes"]), 1, run.answer)
        self.assertTrue(run.process["replays"][0]["agrees"])
        self.assertEqual(run.process["replays"][0]["peak_allocated"], 4 << 20)
        self.assertEqual(self.left(), sorted(["snapshot.pickle", *left]))
        return run

    def lost(self, body, status, why, left=(), **more):
        """Expects that nothing is recorded, and that the one problem that is named says why."""
        run = self.run_script(body, **more)
        self.assertEqual(run.status, status, run.said)
        self.assertEqual(run.answer["processes"], [])
        self.assertEqual(len(run.answer["faults"]), 1, run.answer["faults"])
        self.assertRegex(run.answer["faults"][0], why)
        self.assertEqual(self.left(), sorted(left))

    def test_exits_in_its_own_way(self):
        for body, status in (
                ("raise SystemExit(3)", 3),
                ("raise SystemExit('a text')", 1),
                ("import os\nos._exit(4)", 4),
                ("import atexit, os\natexit.register(os._exit, 7)", 7),
                ("import os\nos.closerange(0, 4096)\nraise SystemExit(5)", 5),
                ("import sys\nsys.excepthook = lambda *error: None\n1 / 0", 1),
                ("def endless():\n    endless()\nendless()", 1)):
            with self.subTest(body):
                self.recorded(body, status)

    def test_killed(self):
        for name in ("SIGKILL", "SIGSEGV", "SIGABRT"):
            number = getattr(signal, name).value
            with self.subTest(name):
                self.lost(f"import signal\nsignal.raise_signal({number})", 128 + number,
                          rf"^the script was ended by signal {number} \(.*\) after \d+ kernels, "
                          r".* cannot write its recording$")

    def test_kills_itself_by_python(self):
        run = self.recorded("import os\nos.kill(os.getpid(), 9)", 137)
        self.assertEqual(run.answer["faults"], ["the script exited with status 137"])

    def test_killed_before_it_used_the_gpu(self):
        self.lost("import os\nos.kill(os.getpid(), 9)", 137,
                  "^the script exited with status 137 before it allocated GPU memory$", uses="")

    def test_classes_that_break_everything(self):
        """What a script prints and its status are the same with and without memreplay, whatever its classes raise."""
        words = [Setting.python, str(HERE / "programs" / "hostile.py"), "cuda"]
        plain = subprocess.run(words, capture_output=True, text=True, cwd=self.folder,
                               env={**os.environ, **self.gpu()}, check=False)
        self.assertEqual(plain.returncode, 1, plain.stderr)
        self.assertIn("unhashable optimizer", plain.stdout)  # it came to its end
        for flags in ((), ("--survey", "--steps", "100000", "--fast-init")):
            with self.subTest(flags):
                run = subprocess.run(
                    [Setting.memreplay, "record", "--card", "rtx-4090", *flags, "--out",
                     os.path.join(self.folder, "snapshot.pickle"), "--python", *words], capture_output=True, text=True,
                    cwd=self.folder, check=False)
                self.assertEqual(run.returncode, plain.returncode, run.stderr)
                found, expected = ([line for line in each.stdout.splitlines()
                                    if not flags or not line.startswith("called")]  # a survey looks at more
                                   for each in (run, plain))
                self.assertEqual(found[:len(expected)], expected)
                self.assertIn("not noted: the modules, parameters and buffers of a model (TypeError: ", run.stdout)

    def test_forks(self):
        self.recorded("""
            import os
            child = os.fork()
            if child == 0:
                try:
                    torch.empty(1, device="cuda")
                except RuntimeError as error:  # as PyTorch has it on a real GPU
                    os._exit(6 if "forked subprocess" in str(error) else 1)
            raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))""", 6)

    def test_daemon(self):
        """The command ends with the script, not with what the script left running."""
        began = time.monotonic()
        self.recorded("""
            import os, time
            if os.fork() == 0:
                os.setsid()
                os.closerange(0, 3)
                time.sleep(600)""", 0)
        self.assertLess(time.monotonic() - began, 300)
        for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = process.read_bytes().split(b"\0")
            except OSError:
                continue
            if f"{self.folder}/script.py".encode() in words:
                os.kill(int(process.parent.name), signal.SIGKILL)

    def test_folders_are_gone(self):
        """The working directory is gone; then the folder that the recording is kept in until it is whole is gone."""
        self.recorded("import os\nos.mkdir('gone')\nos.chdir('gone')\nos.rmdir(os.getcwd())", 0)
        os.unlink(os.path.join(self.folder, "snapshot.pickle"))
        remove = "import pathlib, shutil\n[shutil.rmtree(each) for each in pathlib.Path('.').glob('snapshot.*')]"
        why = "^the recording is lost: .*snapshot.pickle.*, where it was kept, is gone: No such file or directory$"
        self.lost(remove, 1, why)
        # It is gone before the GPU is used, of which the script notices nothing.
        self.lost(f"{remove}\nimport torch\ntorch.empty(1, device='cuda')\nraise SystemExit(7)", 7, why, uses="")

    def test_no_space(self):
        self.lost("""
            import resource
            kept = [torch.empty(1, device="cuda") for _ in range(1000)]
            resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384))""", 1,
                  "^the recording of process [0-9]+ could not be written: OSError: .*File too large$")

    def test_becomes_another_program(self):
        self.lost("import os\nos.execv('/bin/false', ['false'])", 1,
                  r"^process [0-9]+ used the GPU and ended .* is killed or becomes another program \(exec\)$")
        again = ("import os, sys\nif len(sys.argv) == 1:\n"
                 "    os.execv(sys.executable, [sys.executable, __file__, 'again'])\n")
        run = self.run_script("raise SystemExit(0)", uses=USES + again)
        self.assertEqual((run.status, len(run.answer["processes"])), (1, 1), run.said)
        self.assertRegex(run.answer["faults"][0], r"^the recording of process [0-9]+ could not be written: it became "
                                                  r"another program \(exec\), which is recorded$")
        os.unlink(os.path.join(self.folder, "snapshot.pickle"))
        self.recorded("", 0, uses=again + USES)  # nothing is lost before the GPU is used

    def test_no_descriptors_are_left(self):
        self.recorded("""
            import os, resource, subprocess, sys
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 1024))
            kept_open = []
            try:
                while True:
                    kept_open.append(os.open("/dev/null", os.O_RDONLY))
            except OSError:
                pass
            try:
                subprocess.run([sys.executable, "-c", ""])
            except OSError:
                raise SystemExit(3)""", 3)

    def test_reasons_are_one_line(self):
        self.lost("""
            import pickle
            def fail(*arguments):
                raise ValueError("\\x1b[31mred\\nmore")
            pickle.dump = fail""", 1,
                  r"^the recording of process [0-9]+ could not be written: ValueError: \?\[31mred\?more$")

    def test_empty_environment(self):
        self.recorded("""
            import os, sys
            os.environ.clear()
            os.environ["HOME"] = "/nonexistent"
            sys.path[:] = []""", 0)

    def test_names(self):
        for name in ("a b.py", "line\nbreak.py", "\x1b[31mred.py", "-dash.py", "umlaut\u00e4.py"):
            with self.subTest(name):
                path = self.write("", name)
                if name[0] == "-":
                    path = "./" + name
                done = subprocess.run(
                    [Setting.memreplay, "record", "--python", Setting.python, "--card", "rtx-4090", "-o",
                     f"of {name}.pickle", path],
                    cwd=self.folder, capture_output=True, text=True, timeout=300, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("\x1b", done.stdout)
                self.assertTrue(os.path.exists(os.path.join(self.folder, f"of {name}.pickle")))

    def start(self, body, **more):
        child = subprocess.Popen(
            [Setting.memreplay, "record", "--json", "--python", Setting.python, "--card", "rtx-4090", "-o",
             os.path.join(self.folder, "snapshot.pickle"), self.write(body)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **more)
        self.assertEqual(child.stderr.readline(), "ready\n")
        return child

    def test_sigterm(self):
        child = self.start("import sys, time\nprint('ready', file=sys.stderr, flush=True)\ntime.sleep(600)")
        child.send_signal(signal.SIGTERM)
        answer, output = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 143, output)
        answer = json.loads(answer)
        self.assertEqual((len(answer["processes"]), answer["stopped_by"]), (1, "SIGTERM"))
        self.assertEqual(answer["faults"], [])
        self.assertEqual(self.left(), ["snapshot.pickle"])

    def test_sigterm_that_is_swallowed(self):
        """As an import does that goes on after any exception, or a loop."""
        for body, repeats in (("once()", False), ("while True:\n    once()", True)):
            with self.subTest(repeats=repeats):
                child = self.start(f"""
import sys, time
def once():
    try:
        print("ready", file=sys.stderr, flush=True)
        time.sleep(600)
    except BaseException:
        pass
{body}
time.sleep(600)""")
                child.send_signal(signal.SIGTERM)
                answer, output = child.communicate(timeout=60)
                self.assertEqual(child.returncode, 143, output)
                self.assertEqual(len(json.loads(answer)["processes"]), 1)
                os.unlink(os.path.join(self.folder, "snapshot.pickle"))

    def test_a_child_that_ends_while_its_parent_waits(self):
        """Its name and its end are said while the script waits, and in the summary of one that is stopped then."""
        worker = self.write("""
            import os, sys, time
            time.sleep(1)
            os.kill(os.getpid(), 9) if sys.argv[1] == "killed" else os._exit(3)""", "compile_worker.py", uses="")
        for end, asks, said in (("killed", False, r"was ended by signal 9 \(Killed\)"),
                                ("exits", False, "ended with status 3"), ("killed", True, "ended")):
            with self.subTest(end=end, asks=asks):
                child = self.start(f"""
                    import subprocess, sys, time
                    worker = subprocess.Popen([sys.executable, {worker!r}, {end!r}])
                    print("ready", file=sys.stderr, flush=True)
                    {"worker.wait()" if asks else ""}
                    time.sleep(600)""", env={**os.environ, "MEMREPLAY_RECORD_QUIET": "3"})
                expected = (rf"nothing has happened for \d+ s: process \d+ \(python\S* \S+/compile_worker.py {end}\) "
                            rf"{said}, and its parent \d+ waits")
                self.assertRegex(child.stderr.readline(), f"^memreplay: {expected}\n$")
                child.send_signal(signal.SIGTERM)
                answer, output = child.communicate(timeout=60)
                self.assertEqual(child.returncode, 143, output)
                self.assertRegex("; ".join(json.loads(answer)["faults"]), f"^{expected}$")

    def test_silence_is_said(self):
        """A script in which nothing happens is no fault by itself, and what it computes is no silence."""
        run = self.recorded("import time\ntime.sleep(5)", 0, environment={"MEMREPLAY_RECORD_QUIET": "2"})
        self.assertIn("s: no kernel was launched, and the script's 1 process waits\n", run.output)
        self.assertEqual(run.answer["faults"], [])
        os.unlink(os.path.join(self.folder, "snapshot.pickle"))
        run = self.recorded("import time\nend = time.time() + 5\nwhile time.time() < end:\n    pass", 0,
                            environment={"MEMREPLAY_RECORD_QUIET": "2"})
        self.assertNotIn("nothing has happened", run.output)

    def test_sigterm_of_a_whole_job(self):
        """timeout(1) signals the command twice and each of its processes; one of them needs longer than the others."""
        worker = self.write("""
            import pickle, sys, time
            dump = pickle.dump
            pickle.dump = lambda *arguments: (time.sleep(3), dump(*arguments))
            print("ready", file=sys.stderr, flush=True)
            time.sleep(600)""", "worker.py")
        child = self.start(f"""
            import subprocess, sys, time
            subprocess.Popen([sys.executable, {worker!r}])
            time.sleep(600)""")
        os.killpg(child.pid, signal.SIGTERM)
        wait_until(lambda: not self.has_signal("ShdPnd", child.pid, signal.SIGTERM))
        child.send_signal(signal.SIGTERM)
        answer, output = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 143, output)
        answer = json.loads(answer)
        self.assertEqual((len(answer["processes"]), answer["faults"]), (2, []))

    def test_sighup(self):
        """The terminal is gone: the recording is written, unless nobody cares (nohup)."""
        body = "import sys, time\nprint('ready', file=sys.stderr, flush=True)\ntime.sleep(600)"
        child = self.start(body)
        child.send_signal(signal.SIGHUP)
        answer, output = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 129, output)
        answer = json.loads(answer)
        self.assertEqual((len(answer["processes"]), answer["stopped_by"], answer["faults"]), (1, "SIGHUP", []))
        os.unlink(os.path.join(self.folder, "snapshot.pickle"))
        child = self.start(body, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        for process in self.running():
            self.assertTrue(self.has_signal("SigIgn", process, signal.SIGHUP))
        os.killpg(child.pid, signal.SIGHUP)
        child.send_signal(signal.SIGTERM)
        answer, output = child.communicate(timeout=60)
        answer = json.loads(answer)
        self.assertEqual((child.returncode, answer["stopped_by"], answer["faults"]), (143, "SIGTERM", []), output)
        self.assertEqual(self.left(), ["snapshot.pickle"])

    def has_signal(self, kind, process, number):
        """Returns whether a signal is in one of the kernel's sets for a process."""
        status = pathlib.Path(f"/proc/{process}/status").read_text()
        return int(re.search(rf"^{kind}:\s*(\w+)", status, re.MULTILINE)[1], 16) >> (number - 1) & 1

    def running(self):
        """Returns the processes whose command line names this test's folder."""
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if self.folder.encode() in process.read_bytes():
                    found.append(int(process.parent.name))
            except OSError:
                continue  # it has ended
        return found

    def ends(self):
        """Expects that nothing runs any more, after a moment."""
        wait_until(lambda: not self.running())

    def test_command_is_killed(self):
        child = self.start("import sys, time\nprint('ready', file=sys.stderr, flush=True)\ntime.sleep(600)")
        self.assertEqual(len(self.running()), 2)
        child.kill()
        child.communicate(timeout=60)
        self.ends()

    def test_searches_are_stopped(self):
        """None of the scripts that a search runs at once outlives it, and it leaves no folder unless it is killed."""
        script = self.write("""
            import sys, time
            print("ready", flush=True)
            open(f"{sys.argv[-1].strip('-')}.started", "w").close()
            time.sleep(600)""")
        ignores = self.write("""
            import signal, sys, time
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            open(f"{sys.argv[-1].strip('-')}.started", "w").close()
            time.sleep(600)""", "ignores.py")
        temporary = os.path.join(self.folder, "cache", "temporary")
        os.makedirs(temporary)
        flags = ["--card", "rtx-4090", "--python", Setting.python]
        environment = {**os.environ, "TMPDIR": temporary, "XDG_CACHE_HOME": os.path.join(self.folder, "cache")}
        fit = ["fit", "script", "--n=?", *flags, "--jobs", "2", "--"]
        for words, number, again in (
                ([*fit, script], signal.SIGINT, None), ([*fit, script], signal.SIGHUP, None),
                ([*fit, script], signal.SIGKILL, None),
                ([*fit, ignores], signal.SIGTERM, signal.SIGTERM),
                (["sweep", "script", "--n=1,2", *flags, "--jobs", "2", "--", script], signal.SIGTERM, None),
                (["advise", *flags, "--", script], signal.SIGTERM, None),
                (["advise", *flags, "--", script], signal.SIGKILL, None)):
            with self.subTest(words=words[:2], number=number):
                before = os.listdir(temporary)
                child = subprocess.Popen([Setting.memreplay, *words], cwd=self.folder, env=environment,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                         start_new_session=True)
                wait_until(lambda: list(pathlib.Path(self.folder).glob("*.started")))
                child.send_signal(number)
                if again:
                    time.sleep(2)  # only a signal that comes a second later is another one
                    self.assertIsNone(child.poll())
                    child.send_signal(again)
                _, output = child.communicate(timeout=60)
                if number == signal.SIGKILL:
                    self.assertEqual(child.returncode, -number)
                else:
                    self.assertEqual(child.returncode, 128 + number, output)
                    self.assertTrue(output.endswith("no run had ended when it was interrupted\n"), output)
                    self.assertEqual(os.listdir(temporary), before)
                self.ends()
                for path in pathlib.Path(self.folder).glob("*.started"):
                    path.unlink()

    def test_interrupted_searches_say_what_they_know(self):
        """Some runs have ended by then, and at least one does not end by itself."""
        script = self.write("""
            import os, sys, time
            import torch
            n = int(sys.argv[-1].split("=")[1]) if "=" in sys.argv[-1] else 1
            held = [torch.empty(1 << 20, device="cuda") for _ in range(n)]
            model = torch.nn.Linear(8, 8, device="cuda")
            torch.optim.AdamW(model.parameters()).step()
            if n > 8 or "foreach" in os.environ["MEMREPLAY_RECORD"]:
                open("endless.started", "w").close()
                time.sleep(600)""")
        environment = {**os.environ, "XDG_CACHE_HOME": os.path.join(self.folder, "cache")}
        flags = ["--json", "--card", "rtx-4090", "--python", Setting.python, "--jobs", "2"]
        kept = pathlib.Path(self.folder) / "cache/memreplay/runs"  # of the runs that ended
        for words, number, ended in ((["fit", "script", "--n=?"], signal.SIGINT, 2),
                                     (["fit", "script", "--n=?"], signal.SIGTERM, 2),
                                     (["sweep", "script", "--n=2,3,9"], signal.SIGTERM, 4),
                                     (["advise", "--try", "foreach:AdamW"], signal.SIGINT, 5)):
            with self.subTest(words=words[:2], number=number):
                child = subprocess.Popen([Setting.memreplay, *words, *flags, script], cwd=self.folder, env=environment,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                         start_new_session=True)
                started = pathlib.Path(self.folder) / "endless.started"
                wait_until(started.exists, 240)
                wait_until(lambda ended=ended: len(list(kept.glob("?" * 16))) == ended, 240)
                child.send_signal(number)
                output, error = child.communicate(timeout=60)
                self.assertEqual(child.returncode, 128 + number, error)
                answer = json.loads(output)
                if words[0] == "advise":
                    self.assertNotIn("foreach:AdamW", str(answer["advice"]["rows"]))
                    self.assertIn("interrupted before these were tried: foreach:AdamW", answer["advice"]["notes"][-1])
                    self.assertGreater(int(answer["advice"]["as_is"]["peak_reserved_bytes"]), 0)
                else:
                    found = answer["cases"][0]
                    self.assertEqual((answer["stopped_by"], found["unfinished"]), (number.name, True))
                    self.assertEqual([row["value"] for row in found["rows"]], [1, 8] if words[0] == "fit" else [2, 3])
                    self.assertEqual(found["largest"], 8 if words[0] == "fit" else 0)
                started.unlink()

    def test_killed_while_it_writes(self):
        body = """
            import os, pickle
            pickle.dump = lambda *arguments: os.kill(os.getpid(), 9)"""
        self.lost(body, 137, "cannot write its recording$")
        self.lost("""
            import signal, subprocess, sys
            if len(sys.argv) == 1:
                subprocess.call([sys.executable, __file__, "worker"])
            else:
                import torch
                torch.empty(1, device="cuda")
                signal.raise_signal(9)""", 1, "^process [0-9]+ used the GPU and ended without writing", uses="")

    def test_killed_by_another_process(self):
        """It writes its recording first, with SIGTERM before, as from vLLM's server, or without, as from SGLang's."""
        for before in ("worker.terminate()", "pass"):
            with self.subTest(before):
                run = self.run_script(f"""
                    import subprocess, sys, time
                    if len(sys.argv) > 1:
                        print(flush=True)
                        time.sleep(600)
                    worker = subprocess.Popen([sys.executable, __file__, "worker"], stdout=subprocess.PIPE)
                    worker.stdout.readline()
                    {before}
                    worker.kill()
                    worker.wait()""")
                self.assertEqual(run.status, 0, run.said)
                self.assertEqual((len(run.answer["processes"]), run.answer["faults"]), (2, []))
                for process in run.answer["processes"]:
                    self.assertTrue(process["replays"][0]["agrees"])

    def test_ignores_sigterm(self):
        """A second SIGTERM kills it."""
        child = self.start("""
            import signal, sys, time
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            print("ready", file=sys.stderr, flush=True)
            time.sleep(600)""")
        child.send_signal(signal.SIGTERM)
        time.sleep(2)  # only a signal that comes a second later is another one
        self.assertIsNone(child.poll())
        child.send_signal(signal.SIGTERM)
        answer, output = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 137, output)
        self.assertIn("signal 9", json.loads(answer)["faults"][0])
        self.assertEqual(self.left(), [])

    def test_libraries_stay_in_the_script(self):
        """What the script starts without Python has none of ours in it."""
        self.recorded("""
            import subprocess
            maps = subprocess.run(["/bin/cat", "/proc/self/maps"], capture_output=True, text=True, check=True).stdout
            raise SystemExit(8 if "memreplay" in maps else 0)""", 0)

    def test_two_at_once_on_a_cold_cache(self):
        path = self.write("")
        cold = {**os.environ, "XDG_CACHE_HOME": os.path.join(self.folder, "cold")}
        both = [subprocess.Popen(
            [Setting.memreplay, "record", "--python", Setting.python, "--card", "rtx-4090", "-o", f"{i}.pickle", path],
            cwd=self.folder, env=cold, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for i in range(2)]
        for child in both:
            output, _ = child.communicate(timeout=300)
            self.assertEqual(child.returncode, 0, output)

    def cached(self):
        """Returns an environment with a warm cache, and the folder of what it holds."""
        cache = os.path.join(self.folder, "cache")
        self.recorded("", 0, environment={"XDG_CACHE_HOME": cache})
        os.unlink(os.path.join(self.folder, "snapshot.pickle"))
        folder, = pathlib.Path(cache).glob("memreplay/record-*")
        return {"XDG_CACHE_HOME": cache}, folder

    def test_damaged_cache(self):
        """A power cut leaves files of the right size without their bytes."""
        environment, folder = self.cached()
        for path in (folder / "python/memreplay_record/history.py", next(folder.glob("*.so"))):
            path.chmod(0o644)
            path.write_bytes(bytes(path.stat().st_size))
        self.recorded("", 0, environment=environment)

    def test_cache_that_is_a_link(self):
        elsewhere = os.path.join(self.folder, "elsewhere")
        os.mkdir(elsewhere)
        os.symlink(elsewhere, os.path.join(self.folder, "link"))
        self.recorded("", 0, left=["elsewhere", "link"],
                      environment={"XDG_CACHE_HOME": os.path.join(self.folder, "link")})

    def unusable(self, why, environment):
        run = Recorded(self.folder, [self.write("")], environment=environment)
        self.assertEqual(run.status, 2, run.said)
        self.assertRegex(run.output, why)
        self.assertEqual(len(run.output.strip().split("\n")), 1, run.output)
        self.assertEqual(self.left(), [])

    def test_cache_that_cannot_be_written(self):
        pathlib.Path(self.folder, "cache").write_text("a file", encoding="utf-8")
        self.unusable("cannot write: Not a directory; XDG_CACHE_HOME names another folder",
                      {"XDG_CACHE_HOME": os.path.join(self.folder, "cache")})

    def read_only(self, cache):
        """Returns a program that runs the command where nobody can write below this folder, root neither."""
        if os.geteuid() != 0:
            for folder, _, _ in os.walk(cache):
                os.chmod(folder, 0o555)
            return Setting.memreplay
        if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("root may not mount here")
        wrapper = pathlib.Path(self.folder, "cache", "wrapper")
        wrapper.write_text(textwrap.dedent(f"""\
            #!/bin/sh
            exec unshare -m sh -c 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"' \
              {shlex.quote(cache)} {shlex.quote(os.path.abspath(Setting.memreplay))} "$@"
            """), encoding="utf-8")
        wrapper.chmod(0o755)
        return str(wrapper)

    def test_read_only_cache_next_to_a_folder_named_torch(self):
        """A folder without __init__.py is a package for Python only if nothing of this name is installed."""
        empty = os.path.join(self.folder, "cache", "empty")
        os.makedirs(empty)
        os.mkdir(os.path.join(self.folder, "torch"))
        with unittest.mock.patch.object(Setting, "memreplay", self.read_only(empty)):
            run = Recorded(self.folder, [self.write("")], environment={"XDG_CACHE_HOME": empty})
        self.assertEqual(run.status, 2, run.said)
        self.assertRegex(run.output, "^[^\n]*: cannot write: [^\n]*; XDG_CACHE_HOME names another folder[^\n]*\n$")
        self.assertEqual(self.left(), ["torch"])
        warm = os.path.join(self.folder, "cache", "warm")
        self.recorded("", 0, left=["torch"], environment={"XDG_CACHE_HOME": warm})
        os.unlink(os.path.join(self.folder, "snapshot.pickle"))
        with unittest.mock.patch.object(Setting, "memreplay", self.read_only(warm)):
            self.recorded("", 0, left=["torch"], environment={"XDG_CACHE_HOME": warm})

    def test_nothing_but_a_folder_named_torch(self):
        os.mkdir(os.path.join(self.folder, "torch"))
        self.lost("import sys\nsys.path[1:] = []\nimport torch\nraise SystemExit(6 if list(torch.__path__) else 7)", 6,
                  "^the script exited with status 6 before it allocated GPU memory$", left=["torch"], uses="")

    def test_cache_of_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root gives a folder to another user")
        environment, folder = self.cached()
        os.chown(folder / "python", 65534, 65534)
        self.unusable("python: expected a folder of user 0, found one of user 65534; set XDG_CACHE_HOME", environment)
        os.chown(folder / "python", 0, 0)
        (folder / "python").chmod(0o777)  # who can write there could have been anybody; from now on it is closed
        self.recorded("", 0, environment=environment)
        self.assertEqual(stat.S_IMODE((folder / "python").stat().st_mode), 0o755)

    def test_no_home(self):
        bare = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
        done = subprocess.run(
            [Setting.memreplay, "record", "--python", Setting.python, "--card", "rtx-4090", self.write("")],
            cwd=self.folder, env=bare, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_no_torch_and_torch_without_cuda(self):
        self.lost("import sys\nsys.path[:] = []\nimport torch", 1,
                  "^the script exited with status 1 before it allocated GPU memory$", uses="")
        package = pathlib.Path(self.folder, "cache", "packages", "torch")
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("from torch.version import __version__\n", encoding="utf-8")
        (package / "version.py").write_text("__version__ = '2.6.0+cpu'\ncuda = None\n", encoding="utf-8")
        self.unusable("torch is a PyTorch without CUDA; install a CUDA build of torch",
                      {"PYTHONPATH": str(package.parent)})

    def fake_torch(self, version):
        """Returns the folder of a package that says it is this release of PyTorch, with CUDA."""
        package = pathlib.Path(self.folder, "cache", "packages", "torch")
        (package / "lib").mkdir(parents=True)
        (package / "lib/libtorch_cuda.so").write_bytes(b"")
        (package / "__init__.py").write_text(f"__version__ = {version!r}\n", encoding="utf-8")
        (package / "version.py").write_text("cuda = '11.7'\n", encoding="utf-8")
        return str(package.parent)

    def test_torch_that_is_too_old(self):
        self.unusable("PyTorch 1.13.1\\+cu117 is too old; record needs 2.1 or later",
                      {"PYTHONPATH": self.fake_torch("1.13.1+cu117")})

    def test_torch_that_is_newer_than_all_that_are_known(self):
        self.recorded("torch.__version__ = '2.99.0'", 0)

    def test_python_that_is_too_old(self):
        """One that a script starts is left alone; if the script itself runs on it, one line says so."""
        home = pathlib.Path(self.folder, "cache", "old")
        subprocess.run([Setting.python, "-m", "venv", "--without-pip", str(home)], check=True)
        packages, = home.glob("lib/python*/site-packages")
        (packages / "pretends.pth").write_text("import sys; sys.version_info = (3, 7, 16, 'final', 0)\n",
                                               encoding="utf-8")
        old = str(home / "bin/python")
        self.recorded(f"""
            import subprocess
            done = subprocess.run([{old!r}, "-c", "import sys; sys.exit(sys.version_info[1])"], capture_output=True)
            raise SystemExit(done.returncode if done.stderr == b"" else 1)""", 7)
        os.unlink(os.path.join(self.folder, "snapshot.pickle"))
        with unittest.mock.patch.object(Setting, "python", old):
            self.lost("raise SystemExit(5)", 5,
                      "^the recording of process [0-9]+ could not be written: Python 3.7 is too old; "
                      "record needs 3.8 or later$", uses="import torch\n",
                      environment={"PYTHONPATH": self.fake_torch("1.13.1")})

    def test_another_version_of_memreplay(self):
        self.recorded("""
            import json, os, subprocess, sys
            asked = json.loads(os.environ["MEMREPLAY_RECORD"])
            for change, answer in (({"version": 99}, b"found version 99: this folder is the older"),
                                   ({"version": 0}, b"found version 0: that memreplay is the older"),
                                   ({"more": 1}, b" with more: this folder is the older"),
                                   ({"files": {"more": ""}}, b" with more: this folder is the older")):
                environment = {**os.environ, "MEMREPLAY_RECORD": json.dumps({**asked, **change})}
                done = subprocess.run([sys.executable, "-c", ""], env=environment, capture_output=True)
                assert done.returncode == 2 and answer in done.stderr, done""", 0)

    def test_words_that_are_no_text(self):
        """What a script is called with, or says when it fails, need not be UTF-8."""
        script = self.write("import sys\nraise ValueError(sys.argv[1])")
        done = subprocess.run(
            [Setting.memreplay, "record", "--json", "--python", Setting.python, "--card", "rtx-4090", "-o",
             os.path.join(self.folder, "snapshot.pickle"), script, b"\xff\x1b[31m"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(self.left(), ["snapshot.pickle"], done.stderr)
        self.assertIn("ValueError", json.loads(done.stdout)["processes"][0]["error"])


if __name__ == "__main__":
    sys.exit(main(RecordAbuseTest))
