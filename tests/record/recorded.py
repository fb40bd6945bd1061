"""Runs the command for the tests of `memreplay record`, and checks what must hold of each run.

main() is called by a test: TEST MEMREPLAY TORCH_VERSION [NAME...]. Each case checks what the snapshot
says (events, peaks), that the replay agrees with all of it, and what the command answers.
`./check --accept` writes the figures into figures.json.

TEST RECORDER TORCH_VERSION --keep TAR records without replaying (recorder.cc) and keeps the snapshots whose
figures are known, for replayed.py: what a line in the allocator's model changes is not the recording.
"""
import functools
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest
import unittest.mock

import events
import report_xml

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "third_party" / "python"))
import environment  # noqa: E402

FIGURES = HERE / "figures.json"


class Setting:
    """What the command line of the test says."""
    memreplay = torch = python = None
    keep = None  # where snapshots are kept, (tarfile, []), if they are to be replayed later


class Recorded:
    """One run of the command has its exit status, its answer and the snapshot's path."""

    def __init__(self, folder, words, flags=(), card="rtx-4090", name="snapshot", cwd=None,
                 environment=None, timeout=600):
        self.snapshot = os.path.join(folder, f"{name}.pickle")
        command = [Setting.memreplay, *([] if Setting.keep else ["record", "--json"]), "--python", Setting.python,
                   "--out", self.snapshot, *(["--card", card] if card else []), *flags, "--", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=cwd or folder, timeout=timeout,
                              check=False, env={**os.environ, **(environment or {})})
        self.status, self.output = done.returncode, done.stderr
        self.answer = json.loads(done.stdout) if done.stdout else None

    @property
    def process(self):
        return self.answer["processes"][0]

    @property
    def said(self):
        """What a test shows of a run that ended otherwise than it should: the end of the output, and the faults."""
        answer = self.answer or {}
        return "\n".join([self.output[-5000:], f"exit status {self.status}, of the script {answer.get('exit_status')}",
                          *answer.get("faults", ["no answer"])])


def older_than(release):
    """Returns whether the PyTorch of this test does not have yet what came with a release."""
    return [int(part) for part in Setting.torch.split(".")] < [int(part) for part in release.split(".")]


def program(name, *arguments):
    return [str(HERE / "programs" / name), *arguments]


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def record(self, *words, flags=(), **more):
        return Recorded(self.folder, program(*words), flags, **more)

    def extension(self, name):
        built = pathlib.Path(Setting.memreplay).parent.parent  # bin/cli, or bin/tests/record
        return str(next(built.glob(f"**/extension/{name}")))

    def gpu(self, **settings):
        """Returns an environment in which the simulated GPU's libraries are this machine's, so that it has a GPU."""
        cache = {"XDG_CACHE_HOME": os.path.join(self.folder, "cache")}
        made = self.record("takes.py", "--pieces=1", environment=cache, name="takes")
        self.assertEqual(made.status, 0, made.output)
        libraries, = pathlib.Path(cache["XDG_CACHE_HOME"]).glob("memreplay/record-*/torch-*")
        return {"LD_LIBRARY_PATH": str(libraries), "LD_PRELOAD": str(libraries / "libcuda.so.1"),
                "MEMREPLAY_CARD": "rtx-4090",
                **{f"MEMREPLAY_CARD_{name}": str(value) for name, value in settings.items()}}

    def holds(self, run, figures_of):
        """Checks that the run was answered, replayed exactly, and has the figures that are written down."""
        self.assertIsNotNone(run.answer, run.output)
        if Setting.keep:
            keep(run, figures_of)
            return
        figures = []
        for process in run.answer["processes"]:
            for replay in process["replays"]:
                if int(replay["events"]) == 0:
                    continue
                self.assertTrue(replay["agrees"], replay["sentence"])
                card = process["cards"][replay["device"]]
                for figure in ("peak_reserved", "peak_allocated"):  # PyTorch's own counters
                    self.assertEqual(int(replay[figure]), int(card[figure]), figure)
                figures.append({
                    "events": int(replay["events"]), "peak_reserved": int(replay["peak_reserved"]),
                    "peak_allocated": int(replay["peak_allocated"])})
        self.assertTrue(figures, run.output)
        self.assertEqual(figures, known_figures(figures_of, Setting.torch, figures), run.output)

    def runs(self, *words, flags=(), figures_of=None):
        """Runs a script that ends well and has figures."""
        run = self.record(*words, flags=flags)
        self.assertEqual(run.status, 0, run.said)
        self.holds(run, figures_of or " ".join(words))
        return run

    def same_left_alone(self, run, *words, flags=()):
        """Checks that neither the values' mode nor the notes change an event."""
        plain = self.record(*words, flags=[*flags, "--no-values", "--no-notes"], name="plain")
        difference = events.difference(events.events_of(events.load(run.snapshot)),
                                       events.events_of(events.load(plain.snapshot)))
        self.assertIsNone(difference)


def known_figures(name, torch, found):
    """Returns what is written down; with MEMREPLAY_ACCEPT, `found`, which is then written down."""
    known = json.loads(FIGURES.read_text(encoding="utf-8"))
    if "MEMREPLAY_ACCEPT" in os.environ:
        known.setdefault(name, {})[torch] = found
        FIGURES.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return known.get(name, {}).get(torch)


def keep(run, figures_of):
    """Keeps the snapshots of a run, for replayed.py."""
    tar, runs = Setting.keep
    names = []
    for process in run.answer["processes"]:
        names.append(f"{len(runs)}.{len(names)}.pickle")
        tar.add(process["snapshot"], names[-1])
    runs.append({"figures_of": figures_of, "torch": Setting.torch, "snapshots": names})


def needs_libraries(case):
    """Decorates a case to run in the environment that has libraries next to torch, or to be skipped without it."""
    @functools.wraps(case)
    def with_libraries(self):
        try:
            python = environment.python(f"torch-{Setting.torch}-libraries")
        except environment.Unavailable as reason:
            self.skipTest(str(reason))
        with unittest.mock.patch.object(Setting, "python", python):
            case(self)
    return with_libraries


def main(case):
    words = sys.argv[1:]
    to = words[words.index("--keep") + 1] if "--keep" in words else None
    if to:
        words = words[:words.index("--keep")] + words[words.index("--keep") + 2:]
    Setting.memreplay, Setting.torch = os.path.abspath(words[0]), words[1]
    try:
        Setting.python = environment.python(f"torch-{Setting.torch}")
    except environment.Unavailable as reason:
        if to:
            tarfile.open(to, "w").close()
        return report_xml.skip(reason)
    if to is None:
        return report_xml.run(case, words[2:])
    with tarfile.open(to, "w:gz", compresslevel=1) as tar, tempfile.TemporaryDirectory() as folder:
        Setting.keep = tar, []
        os.environ["XML_OUTPUT_FILE"] = os.path.join(folder, "test.xml")
        status = report_xml.run(case, words[2:])
        with open(os.path.join(folder, "runs.json"), "w", encoding="utf-8") as file:
            json.dump(Setting.keep[1], file)
        for name in ("test.xml", "runs.json"):
            tar.add(os.path.join(folder, name), name)
    return status
