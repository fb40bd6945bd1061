"""Tests the whole command `memreplay record`, replay and summary included, and `fit script` and `sweep script`."""
import contextlib
import json
import os
import pathlib
import pickle
import pty
import shutil
import signal
import stat
import subprocess
import sys
import threading

import events
from recorded import Case, Recorded, Setting, main, needs_libraries, older_than, program


class RecordCommandTest(Case):
    def answer(self, flags, *words, status=0):
        """Returns what it prints for people about a script that ends with `status`."""
        done = subprocess.run(
            [Setting.memreplay, "record", "--python", Setting.python, "--card", "rtx-4090", *flags, *program(*words)],
            cwd=self.folder, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout

    def test_summary(self):
        """The summary is for people and comes after the script's own output."""
        answer = self.answer(["-o", "out.pickle"], "takes.py", "--pieces=2")
        self.assertIn("the replay agrees with the recording", answer)
        self.assertIn("128 MiB", answer)
        self.assertIn("out.pickle", answer)

    def test_budget_of_a_server(self):
        run = self.record("budget.py")
        self.assertEqual(run.status, 0, run.said)
        budget = {key: int(value) for key, value in run.process["replays"][0]["server"].items()}
        self.assertEqual({key: budget[key] >> 20 for key in ("weights", "profile", "cache", "graphs")},
                         {"weights": 96, "profile": 40, "cache": 128, "graphs": 20})
        card = run.process["cards"][0]
        self.assertEqual(budget["weights"] + budget["cache"] + budget["graphs"] + budget["other"],
                         int(card["peak_reserved"]))
        self.assertEqual(budget["left"], int(card["spare"]))
        self.assertEqual(run.process["cache"], {"blocks": 128, "tokens": 1024})
        text = self.answer([], "budget.py")
        self.assertIn("  KV cache           128 MiB (134,217,728 bytes) of keys and values in 2 tensors: 128 blocks "
                      "for 1,024 tokens\n", text)
        self.assertNotIn("server", self.record("takes.py", "--pieces=1").process["replays"][0])

    def test_what_a_server_frees(self):
        """Weights and cache have their names although the model was compiled and both are freed before the end."""
        for words in ([], ["copy"], ["cycle"]):
            with self.subTest(words=words):
                text = self.answer([], "served.py", *words)
                self.assertIn("64.0 MiB KV cache", text)
                self.assertIn("20.0 MiB parameters", text)  # and buffers
                self.assertNotIn("unknown", text)
                self.assertIn("KV cache           64.0 MiB", text)

    def test_several_processes_on_one_card(self):
        """Each process is recorded alone; the summary says what they take together."""
        answer = self.answer(["--capacity", "600MiB", "--reserve", "500MiB"], "shares.py")
        self.assertIn("device 0 has 2 processes, each recorded as if it were alone", answer)
        self.assertIn("MORE THAN THE GPU HAS", answer)

    @needs_libraries
    def test_texts_do_not_end_early(self):
        """Tokens of large logits are none of those that end a text, wherever a vocabulary has them. If one does end
        a text, the summary says so at once."""
        run = self.record("generates.py")
        self.assertEqual(run.status, 0, run.said)
        lengths = [int(line.split()[-2]) for line in run.output.splitlines() if "ForCausalLM" in line or "GPT2" in line]
        self.assertEqual(lengths, [6] * 32, run.output)
        self.assertEqual(run.process["values"]["generations"], [])
        first = next(line.split()[-1] for line in run.output.splitlines() if line.startswith("GPT2LMHeadModel 1 {} 6"))
        answer = self.answer(["-o", "early.pickle"], "generates.py", first)
        self.assertIn("GPT2LMHeadModel 1 {} 1 ", answer)
        self.assertRegex(answer, r"spare\.\nGeneration ended early: \S*generates.py:26 got 1 of 6 tokens.*"
                                 r"eos_token_id=None generates all of them\.\n")

    @needs_libraries
    def test_models_that_find_objects(self):
        """They are recorded to their end, and do not take each of thousands of boxes for one of a class of its own."""
        if Setting.torch != "2.6.0":
            self.skipTest(f"the environment of torch {Setting.torch} has no torchvision")
        for name in ("fasterrcnn", "maskrcnn", "keypointrcnn", "retinanet"):
            with self.subTest(name):
                run = self.record("detection.py", name, name=name)
                self.assertEqual(run.status, 0, run.said)
                self.assertIn(f"{name} [", run.output)
                replay, = run.process["replays"]
                self.assertTrue(replay["agrees"], replay["sentence"])
                kinds = [row["answer"] for row in run.process["values"]["asked"] if row["what"] == "unique"]
                self.assertEqual([kind.split(" ")[0] for kind in kinds], [] if name == "retinanet" else ["5"], kinds)

    def test_outside_on_a_gpu(self):
        """What libraries allocate past PyTorch is counted on a GPU, and their calls reach the driver."""
        run = self.record("outside.py", self.extension("libkernels.so"), card=None, flags=["--outside"],
                          environment=self.gpu(RESERVE=400 << 20))
        self.assertEqual(run.status, 0, run.said)
        self.assertEqual(int(run.output.split()[0]) >> 20, 400 + 20 + 200)  # they did allocate
        self.assertNotIn("card", run.process)
        functions = [row for row in run.process["outside"] if row["function"]]
        self.assertEqual([(row["library"], row["function"], int(row["calls"]), int(row["peak"]) >> 20,
                           int(row["first_at"])) for row in functions],
                         [("libkernels.so", "cudaMalloc", 1, 100, 1), ("libkernels.so", "cudaMallocAsync", 2, 30, 1),
                          ("libkernels.so", "cuMemAllocFromPoolAsync", 1, 20, 2),  # looked up, as is the next
                          ("libkernels.so", "cuMemCreate", 1, 10, 2), ("libkernels.so", "cuMemAlloc", 1, 40, 2)])
        both = self.record("extension.py", flags=["--outside"])
        self.assertEqual((both.status, both.answer), (2, None))
        self.assertIn("--outside is for a real GPU", both.output)

    def asks(self, words, expected, way):
        """Asks of a recording that is only a part of its run."""
        asked = subprocess.run([Setting.memreplay, *words], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(asked.returncode, 1, (way, words, asked.stderr))
        self.assertIn(expected, asked.stdout.replace("&#39;", "'"), (way, words))
        self.assertIn("may need more", asked.stdout, (way, words))
        self.assertNotIn("it fits", asked.stdout, (way, words))

    def test_out_of_memory(self):
        run = self.record("takes.py", "--pieces=2", flags=["--capacity", "104MiB", "--reserve", "24MiB"])
        self.assertEqual((run.status, run.process["error"]), (1, "OutOfMemoryError"), run.said)
        self.assertTrue(run.process["replays"][0]["agrees"])
        self.assertEqual(int(run.process["replays"][0]["ooms"]), 1)
        where = run.answer["explanation"]["frame"]
        self.assertEqual(where, run.process["error_frames"][-1])
        self.assertEqual((f"{where['file']}:{where['line']}", "torch.empty(" in where["code"]),
                         (run.process["error_place"], True))
        answer = self.answer(["--capacity", "104MiB", "--reserve", "24MiB"], "takes.py", "--pieces=2", status=1)
        self.assertRegex(answer, r"\n  in your code +\S*takes\.py:\d+ in <\w+>: \S")
        self.assertIn("\n  1. Use less memory", answer)
        self.assertNotIn("_record_memory_history", answer)  # it is recorded already

    def test_a_saved_log(self):
        """explain reads a log of record as record itself does."""
        done = subprocess.run(
            [Setting.memreplay, "record", "--python", Setting.python, "--card", "rtx-4090", "--capacity", "104MiB",
             "--reserve", "24MiB", *program("takes.py", "--pieces=2")],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
        asked = subprocess.run([Setting.memreplay, "explain", "-"], input=done.stdout, capture_output=True, text=True,
                               timeout=60, check=False)
        self.assertRegex(asked.stdout, r"\n  in your code +\S*takes\.py:\d+ in <(listcomp|module)>: ")
        for wrong in ("in no line of the text", "refused requests", "memreplay record", "_record_memory_history"):
            self.assertNotIn(wrong, asked.stdout)

    def test_tracebacks(self):
        """Those that Python prints have no frames of the recording, and the script is none the wiser."""
        for way in ("plain", "own"):
            run = self.record("tracebacks.py", way)
            self.assertEqual((run.status, run.process["error_function"]), (1, "<module>"), run.said)
            self.assertEqual("memreplay_record" in run.output, way == "own", run.output)
            self.assertIn("the script's own hook" if way == "own" else "\nKeyError: 'after'", run.output)
            self.assertGreaterEqual(run.output.count(" in fails\n"), 2 if way == "plain" else 1, run.output)
        run = self.record("tracebacks.py", "alone")
        self.assertEqual(run.process["error_function"], "fails")
        self.assertRegex(run.answer["faults"][0], r"^RuntimeError: .*\(tracebacks\.py:10 in fails\)$")

    def test_what_failed_does_not_fit(self):
        """A script that ends by an error about memory does not fit, raised or printed; another error says
        nothing of what would have followed."""
        refused = "ValueError: No available memory for the cache blocks"
        for way, text in (("raised", refused), ("printed", refused), ("child", refused),
                          ("other", "stopped by an error, KeyError; up to there"), ("status", "ended with status 1")):
            answer = self.answer([], "refuses.py", way, status=1)
            self.assertIn(f"NOT ENOUGH MEMORY: {text}" if text is refused else text, answer, way)
            self.assertNotIn("it fits", answer, way)
            self.assertNotIn("to spare", answer, way)
            run = self.record("refuses.py", way, name=way)
            self.assertEqual((run.status, refused in run.answer["refusal"], run.answer["is_lower_bound"]),
                             (1, text is refused, True), way)
            ended = {"other": "KeyError: 'other' (refuses.py:", "status": "exit status 1"}.get(way, refused)
            for asked in (["advise", run.snapshot, "--card", "rtx-4090"],
                          ["replay", run.snapshot, "--capacity", "20GiB"],
                          ["report", run.snapshot, "--capacity", "20GiB", "-o", "-"]):
                self.asks(asked, f"its script ended by {ended}", way)
        for way in ("caught", "whole"):
            answer = self.answer(["--capacity", "2GiB"], "refuses.py", way, status=1 if way == "caught" else 0)
            self.assertIn("OUT OF MEMORY 1 time, and the script continued." if way == "caught" else "it fits, ", answer)
            self.assertNotIn("To learn more, record", answer)
        done = subprocess.run([Setting.memreplay, "advise", "--card", "rtx-4090", "--no-cache", "--python",
                               Setting.python, "--", *program("refuses.py", "printed")],
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn(f"memory is too little: {refused}", done.stderr)

    def on_terminal(self, command):
        """Returns the status of a command on a terminal, and what was shown until all its processes had ended."""
        ours, its = pty.openpty()
        with subprocess.Popen(command, cwd=self.folder, stdout=its, stderr=its) as process:
            os.close(its)
            shown = b""
            with contextlib.suppress(OSError):  # the terminal is closed
                while piece := os.read(ours, 1 << 16):
                    shown += piece
        os.close(ours)
        return process.returncode, shown

    def test_what_a_script_prints_is_passed_on(self):
        """It is passed on in its order and to its place, and a script on a terminal has one."""
        command = [Setting.memreplay, "record", "--python", Setting.python, "--card", "rtx-4090",
                   *program("refuses.py", "prints")]
        apart = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(apart.stdout.partition("\n")[0], "out False")
        self.assertIn("err False\n", apart.stderr)
        together = subprocess.run(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  timeout=300, check=False)
        self.assertTrue(together.stdout.startswith("out False\nerr False\n"), together.stdout)
        status, shown = self.on_terminal(command)
        self.assertEqual(status, 0, shown)
        self.assertIn(b"out True\r\n", shown)
        self.assertIn(b"err True\r\n", shown)

    def test_what_outlives_the_script(self):
        """It may still write, to a terminal if the script had one, and is not ended."""
        late = ("import os, sys, time\n"
                "def runs(process):\n"
                "    try:\n"
                "        with open(f'/proc/{process}/stat') as file: return ') Z' not in file.read()\n"
                "    except OSError: return False\n"
                "while runs(sys.argv[1]): time.sleep(0.05)\n"
                "print('late', sys.stdout.isatty(), flush=True)\n"
                "print('late error', file=sys.stderr, flush=True)\n"
                "open('lived', 'w')")
        script = (f"import os, subprocess, sys, torch; torch.zeros(5, device='cuda'); "
                  f"subprocess.Popen([sys.executable, '-c', {late!r}, str(os.getppid())])")
        command = [Setting.memreplay, "record", "--card", "rtx-4090", "--", Setting.python, "-c", script]
        lived = pathlib.Path(self.folder, "lived")
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=300, check=False)
        self.assertTrue(lived.exists())
        self.assertIn("\nlate False\n", done.stdout)
        self.assertIn("late error\n", done.stderr)
        lived.unlink()
        status, shown = self.on_terminal(command)
        self.assertEqual(status, 0, shown)
        self.assertTrue(lived.exists())
        self.assertIn(b"late True\r\n", shown)

    def test_steps(self):
        """A script without an end is ended where an optimizer begins one step more; inner steps are not counted."""
        run = self.record("endless.py", flags=["--steps", "3"])
        self.assertEqual((run.status, run.process["stopped_after_steps"]), (0, 3), run.said)
        self.assertEqual(events.load(run.snapshot)["memreplay_ended"], "--steps")
        self.assertIn("round 2 is done", run.output)
        self.assertNotIn("round 3 is done", run.output)
        all_steps = self.record("endless.py", "3", name="all")
        self.assertEqual((all_steps.status, all_steps.process["stopped_after_steps"]), (0, 0), all_steps.output)
        begun = self.record("endless.py", "4", name="begun")
        three, four, ended = (events.events_of(events.load(each.snapshot))[0] for each in (all_steps, begun, run))
        self.assertLess(len(three), len(ended))
        self.assertLess(len(ended), len(four))
        self.assertEqual(four[:len(ended)], ended)
        self.assertEqual(self.record("endless.py", "3", flags=["--steps", "3"]).process["stopped_after_steps"], 0)
        self.assertRegex(self.answer(["--steps", "1"], "endless.py"), " stopped by --steps; up to there it reserved .*"
                                                                      " left, and the whole run may need more")

    def test_one_step(self):
        """The state that the only step makes is live in the next backward pass, and no figure has it."""
        body = ("import sys, torch\nmodel = torch.nn.Linear(1024, 512, bias=False, device='cuda')\n"
                "optimizer = torch.optim.Adam(model.parameters())\nfor _ in range(int(sys.argv[1])):\n"
                "    model(torch.ones(1, 1024, device='cuda')).sum().backward()\n    optimizer.step()\n")
        script = os.path.join(self.folder, "steps.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(body)
        late = {}
        for steps in ("1", "2"):
            status, answer = self.script("sweep", "--n=1,2", "--", script, steps)
            self.assertEqual(status, 0, answer)
            late[steps] = answer["cases"][0]["rows"][0]["late_state"]
        self.assertEqual(late, {"1": 4 << 20, "2": 0})  # two moments of 2 MiB

    def test_pools_that_are_gone(self):
        if older_than("2.5"):
            self.skipTest("torch.cuda.MemPool came with 2.5")
        run = self.runs("gone_pools.py")
        told = " ".join(run.process["replays"][0]["notes"])
        self.assertEqual("assumed to belong to private pools" in told, older_than("2.13"), told)

    def test_settings_that_changed_without_notes(self):
        """The replay follows all the same, and the answer says what it assumes; private pools are tried first."""
        run = self.record("settings.py", "once", flags=["--no-notes"])
        replay, = run.process["replays"]
        self.assertTrue(replay["agrees"], replay["sentence"])
        self.assertEqual(replay["peak_reserved"], run.process["cards"][0]["peak_reserved"])
        if not older_than("2.13"):  # events name their pools
            self.assertIn("assumed that the script changed the allocator's settings", "".join(replay["notes"]))

    def test_many_pools_that_are_gone(self):
        """Each released segment is a guess, and there are many events after those that decide it."""
        run = self.record("tried_pools.py", flags=["--no-values"])
        self.assertEqual(run.status, 0, run.said)
        (replay,) = run.process["replays"]
        self.assertTrue(replay["agrees"], replay["sentence"])
        self.assertEqual("assumed to belong to private pools" in " ".join(replay["notes"]), older_than("2.13"))

    def test_settings_that_are_rejected(self):
        """A script that goes on after PyTorch rejected its settings has no fault."""
        run = self.record("rejected_settings.py")
        self.assertEqual(run.status, 0, run.said)
        self.assertEqual(run.answer["faults"], [])
        replay, = run.process["replays"]
        self.assertTrue(replay["agrees"], replay["sentence"])
        self.assertIn("at event 2 to max_split_size_mb:3 (which PyTorch", "".join(replay["notes"]))

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

    def test_ctrl_c(self):
        snapshot = os.path.join(self.folder, "snapshot.pickle")
        child = subprocess.Popen(
            [Setting.memreplay, "record", "--json", "--python", Setting.python, "--card", "rtx-4090", "-o", snapshot,
             *program("sleeps.py")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True)
        self.assertEqual(child.stderr.readline(), "ready\n")
        child.send_signal(signal.SIGINT)
        answer, output = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 130, output)
        self.assertEqual(json.loads(answer)["processes"][0]["error"], "KeyboardInterrupt")
        self.assertTrue(os.path.exists(snapshot))

    def script(self, command, *words):
        """Runs `fit script` or `sweep script` on a card that has 80 MiB to give."""
        done = subprocess.run(
            [Setting.memreplay, command, "script", "--json", "--card", "rtx-4090", "--capacity", "104MiB",
             "--reserve", "24MiB", "--python", Setting.python, *words],
            capture_output=True, text=True, timeout=300, check=False,
            env={**os.environ, "XDG_CACHE_HOME": os.path.join(self.folder, "cache")})
        return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr

    def test_fit_script_and_sweep_script(self):
        status, answer = self.script("fit", "--pieces=?", "--", *program("takes.py"))
        self.assertEqual(status, 0, answer)
        found = answer["cases"][0]
        self.assertEqual(found["largest"], 1)
        rows = {row["value"]: row for row in found["rows"]}
        self.assertTrue(rows[1]["fits"])
        self.assertEqual(rows[1]["peak_reserved"], 64 << 20)
        self.assertEqual(rows[1]["spare"], 16 << 20)
        self.assertFalse(rows[2]["fits"])
        self.assertIn("takes.py:10", rows[2]["error_place"])
        self.assertEqual((answer["runs"], answer["from_cache"]), (len(rows), 0))
        # Again, and the values that are known already in the place of a "?": nothing is run.
        status, again = self.script("fit", "--pieces=?", "--", *program("takes.py", "--pieces=?"))
        self.assertEqual((again["runs"], again["cases"][0]["largest"]), (0, 1))
        status, answer = self.script("sweep", "--pieces=2,1", "--", *program("takes.py"))
        self.assertEqual((status, answer["runs"]), (0, 0))
        for step, why in (("13", "ValueError: an unlucky number (takes.py:8)"),
                          ("14", "AssertionError: assert pieces != 14 (takes.py:9)")):
            status, answer = self.script("fit", "--pieces=?", "--step", step, "--", *program("takes.py"))
            self.assertEqual(status, 2)
            self.assertIn(why, answer)

    def test_a_script_that_changed_runs_again(self):
        script = os.path.join(self.folder, "sizes.py")
        body = "import torch\ntorch.empty({} << 20, dtype=torch.uint8, device='cuda')\n"
        for text, size, runs in ((body.format(30), 30, 2), (body.format(40), 40, 2), (body.format(40), 40, 0)):
            with self.subTest(size=size, runs=runs):
                if runs:
                    with open(script, "w", encoding="utf-8") as file:
                        file.write(text)
                _, answer = self.script("sweep", "--n=1,2", "--", script)
                self.assertEqual((answer["runs"], answer["cases"][0]["rows"][0]["peak_allocated"] >> 20), (runs, size))
        # One that is written while it runs: which text was read is unknown.
        changing = body.format(40) + "open(__file__, 'a').write('#')\n"
        with open(script, "w", encoding="utf-8") as file:
            file.write(changing)
        for _ in range(2):
            self.assertEqual(self.script("sweep", "--n=1,2", "--", script)[1]["runs"], 2)

    def test_fit_script_with_a_share(self):
        """24 of 104 MiB are the least that this server starts with, and 80 of 104 the most."""
        status, answer = self.script("fit", "--memory-fraction=?", "--step", "0.04", "--", *program("share.py"))
        self.assertEqual(status, 0, answer)
        self.assertEqual(answer["cases"][0]["largest"], 0.76)
        rows = {row["value"]: row for row in answer["cases"][0]["rows"]}
        self.assertTrue(rows[0.04]["too_small"])
        self.assertIn("No available memory for the cache blocks", rows[0.04]["refusal"])
        self.assertEqual(rows[0.8]["ooms"], 1)
        status, answer = self.script("sweep", "--memory-fraction=0.2,0.5", "--", *program("share.py"))
        self.assertEqual([(row["value"], row["fits"]) for row in answer["cases"][0]["rows"]],
                         [(0.2, False), (0.5, True)])
        status, answer = self.script("fit", "--memory-fraction=?", "--step", "0.38", "--max", "0.76", "--until",
                                     "it serves", "--", *program("share.py", "--serve"))
        self.assertEqual((status, answer["cases"][0]["largest"]), (0, 0.76), answer)
        status, answer = self.script("fit", "--memory-fraction=?", "--max", "0.001", "--", "x.py")
        self.assertEqual(status, 2)
        self.assertIn("expected 0 < step <= max <= 1099511627 (by default, step is 0.01 and max 0.001)", answer)

    def test_what_goes_with_the_process_is_no_source(self):
        """Nothing would be answered from the cache otherwise: torch.distributed writes a module for itself."""
        run = Recorded(self.folder, ["-c", "import torch.distributed.nn.jit.instantiator, torch\n"
                                           "torch.zeros(1, device='cuda')"])
        self.assertEqual(run.status, 0, run.said)
        sources = [source["path"] for source in run.process["sources"]]
        self.assertTrue(sources)
        self.assertEqual([path for path in sources if not os.path.exists(path)], [])

    def write(self, *words, out=None, flags=(), status=0, **more):
        """Runs the command in the test's folder, where the script leaves the file `ran`. Returns what it printed."""
        folders = [entry.name for entry in os.scandir(self.folder) if entry.is_dir()]
        code = "open('ran', 'w'); import torch; torch.zeros(5, device='cuda'); print('said')"
        done = subprocess.run(
            [Setting.memreplay, "record", "--python", Setting.python, "--card", "rtx-4090",
             *(["-o", out] if out else []), *flags, "--", *(words or ["-c", code])],
            cwd=self.folder, capture_output=True, timeout=300, check=False, **more)
        self.assertEqual(done.returncode, status, done.stderr)
        if status == 0:  # nothing is left of where the recording was kept
            self.assertEqual([entry.name for entry in os.scandir(self.folder) if entry.is_dir()], folders)
        return done

    def refused(self, why, *words, **more):
        """Expects that the command says why it does not even start the script."""
        names = sorted(os.listdir(self.folder))
        self.assertIn(why, self.write(*words, status=2, **more).stderr.decode())
        self.assertEqual(sorted(os.listdir(self.folder)), names)

    def test_outputs(self):
        """Links are followed, pipes and devices written to, and permissions kept."""
        folder = pathlib.Path(self.folder)
        snapshot = folder / "target"
        snapshot.write_text("data")
        snapshot.chmod(0o600)
        (folder / "link").symlink_to("target")
        printed = self.write(out="link").stdout.decode()
        self.assertTrue(printed.startswith("said\n"), printed)
        self.assertIn("the replay agrees", printed)
        self.assertTrue((folder / "link").is_symlink())
        self.assertEqual(stat.S_IMODE(snapshot.stat().st_mode), 0o600)
        events.load(str(snapshot))
        (folder / "dangling").symlink_to("new")
        self.write(out="dangling")
        self.assertTrue((folder / "dangling").is_symlink())
        events.load(str(folder / "new"))

        os.mkfifo(folder / "pipe")
        received = []
        reader = threading.Thread(target=lambda: received.append((folder / "pipe").read_bytes()))
        reader.start()
        self.assertIn("the replay agrees", self.write(out="pipe").stdout.decode())
        reader.join()
        self.assertTrue(stat.S_ISFIFO((folder / "pipe").stat().st_mode))
        self.assertIn("device_traces", pickle.loads(received[0]))
        for name in ("-", "/dev/stdout"):
            done = self.write(out=name)
            self.assertIn("device_traces", pickle.loads(done.stdout))  # and nothing else
            self.assertEqual(done.stderr.decode(), "said\n")
        with contextlib.suppress(PermissionError):  # where nodes may not be made
            os.mknod(folder / "node", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            self.write(out="node")
            self.assertTrue(stat.S_ISCHR((folder / "node").stat().st_mode))
            self.write(*program("shares.py"), out="node")  # of all processes
            self.assertEqual([name for name in os.listdir(folder) if name.startswith("node")], ["node"])

    def test_the_longest_names(self):
        for name in ("a" * 255, "b" * 244 + ".pickle", "\N{LATIN SMALL LETTER U WITH DIAERESIS}" * 127):
            self.write(out=name)
            events.load(os.path.join(self.folder, name))
        self.write(*program("shares.py"), out="c" * 248 + ".pickle")  # two processes
        self.assertEqual(len([name for name in os.listdir(self.folder) if name.startswith("c")]), 2)

    def test_outputs_that_cannot_be(self):
        """What cannot be written is found out before the script runs."""
        folder = pathlib.Path(self.folder)
        (folder / "od").mkdir()
        (folder / "t.py").write_text("raise SystemExit(open('ran', 'w'))")
        os.link(folder / "t.py", folder / "hard")
        (folder / "soft").symlink_to("t.py")
        self.refused("od: cannot open for writing: is a directory", out="od")
        self.refused("no/x: cannot open for writing: No such file", out="no/x")
        for out in ("t.py", "./t.py", "hard", "soft"):
            self.refused("is also an input", "t.py", out=out)
        self.refused("is also an input", "-c", "0", "--config=t.py", out="hard")
        with open(folder / "printed", "ab") as printed:
            done = subprocess.run([Setting.memreplay, "record", "--python", Setting.python, "--card", "rtx-4090", "-o",
                                   "printed", "t.py"], cwd=folder, stdout=printed, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"printed: is also another output (standard output)", done.stderr)
        self.refused("--json and -o - cannot both have standard output", "t.py", out="-", flags=["--json"])

    def test_a_snapshot_of_somebody_else(self):
        """The name that is not given replaces only a snapshot of memreplay, which the script did not write."""
        snapshot, next_to_it = (pathlib.Path(self.folder, name) for name in ("snapshot.pickle", "snapshot.2.pickle"))
        theirs = pickle.dumps({"segments": [], "device_traces": []})
        snapshot.write_bytes(theirs)
        for _ in range(2):
            self.write()
            self.assertEqual(snapshot.read_bytes(), theirs)
            events.load(str(next_to_it))
        snapshot.unlink()
        next_to_it.unlink()
        for mark in (b"", b"torch_version"):  # as memreplay.recording() in the script leaves it
            self.write("-c", "import torch; torch.zeros(5, device='cuda');"
                             f"open('snapshot.pickle', 'wb').write({theirs + mark!r})")
            self.assertEqual(snapshot.read_bytes(), theirs + mark)
            events.load(str(next_to_it))
        self.assertEqual(sorted(name for name in os.listdir(self.folder) if name.endswith("pickle")),
                         ["snapshot.2.pickle", "snapshot.pickle"])
        self.write(out="snapshot.pickle")
        first = snapshot.stat().st_ino
        self.write()
        self.assertNotEqual(snapshot.stat().st_ino, first)

    def test_outputs_of_ranks(self):
        folder = pathlib.Path(self.folder)
        rank = "import torch; torch.zeros(5, device='cuda')"
        job = ("import os, subprocess, sys\nopen('ran', 'w')\nfor rank in '01':\n"
               f"    subprocess.run([sys.executable, '-c', {rank!r}], check=True,"
               " env={**os.environ, 'RANK': rank, 'WORLD_SIZE': '2'})\n")
        (folder / "out.rank0.pickle").symlink_to("real")
        self.write("-c", job, out="out.pickle")
        self.assertTrue((folder / "out.rank0.pickle").is_symlink())
        events.load(str(folder / "real"))
        events.load(str(folder / "out.rank1.pickle"))
        (folder / "out.rank1.pickle").unlink()
        (folder / "out.rank1.pickle").symlink_to("./real")
        self.refused("is also another output (out.rank0.pickle)", "-c", job, out="out.pickle")
        (folder / "out.rank1.pickle").unlink()
        (folder / "out.rank1.pickle").mkdir()
        self.refused("out.rank1.pickle: cannot open for writing: is a directory", "-c", job, out="out.pickle")
        # What is found out when the script has ended loses no recording.
        for code, out, why in ((f"import os; os.mkdir('new.rank1.pickle')\n{job}", "new.pickle", "is a directory"),
                               (job, "-", "standard output: is also another output")):
            said = self.write("-c", code, out=out, status=2).stderr.decode()
            self.assertIn(why, said)
            kept = pathlib.Path(said.rpartition("; the recording is kept in ")[2].strip())
            self.addCleanup(shutil.rmtree, kept)
            snapshots = list(kept.glob("*.pickle"))
            self.assertEqual(len(snapshots), 2, said)
            for snapshot in snapshots:
                events.load(str(snapshot))

    # Each is a flag of memreplay too, or of the script search.
    OWN = ["--memory-limit", "5", "--card", "none", "--help", "--version", "--jobs=x", "--json", "--set", "a=1", "-h"]

    def test_words_behind_the_script_are_its_own(self):
        for words, printed in ((program("words.py"), None), (["--", *program("words.py")], None),
                               (["WORD=7", *program("words.py")], "7"),
                               (["WORD=7", Setting.python, *program("words.py")], "7"),
                               (["-m", "words"], None), (["--memory-limit", "0", *program("words.py")], None)):
            with self.subTest(words=words):
                done = subprocess.run(
                    [Setting.memreplay, "record", "--python", Setting.python, "--card", "rtx-4090", *words, *self.OWN],
                    cwd=self.folder, capture_output=True, text=True, timeout=300, check=False,
                    env={**os.environ, "PYTHONPATH": os.path.dirname(program("words.py")[0])})
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(done.stdout.startswith(f"{self.OWN} {printed}\n"), done.stdout)

    def test_words_behind_the_script_of_a_search(self):
        for command, key in (("fit", "--pieces=?"), ("sweep", "--pieces=1,2")):
            status, answer = self.script(command, key, "WORD=7", *program("words.py", *self.OWN))
            self.assertEqual(status, 0, answer)
            self.assertEqual([(row["value"], row["fits"]) for row in answer["cases"][0]["rows"]][:2],
                             [(1, True), (2, False)])
            self.assertEqual(answer["program"][1:], self.OWN)
        # The value's place may be named there alone.
        status, answer = self.script("fit", *program("words.py", "--pieces=?", *self.OWN))
        self.assertEqual((status, answer["key"], answer["cases"][0]["largest"]), (0, "--pieces", 1))
        done = subprocess.run(
            [Setting.memreplay, "advise", "--json", "--python", Setting.python, "--card", "rtx-4090", "--try", "sgd",
             *program("words.py", *self.OWN)],
            cwd=self.folder, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["file"], " ".join(program("words.py", *self.OWN)))

    def test_unusable(self):
        for words, flags, card, why in (
                (["train.py"], [], None, "this machine has no GPU"),
                (["no-such-program"], [], "no-such-card", "--card no-such-card: no such GPU; --card list prints"),
                (["no-such-program"], [], "rtx", "--card rtx: several GPUs match"),
                (["no-such-program"], [], "rtx-4090", "cannot start no-such-program")):
            with self.subTest(why):
                run = Recorded(self.folder, words, flags, card=card)
                self.assertEqual(run.status, 2)
                self.assertIn(why, run.output)


if __name__ == "__main__":
    sys.exit(main(RecordCommandTest))
