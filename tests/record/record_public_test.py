"""Compares public scripts with the recordings that their authors made on real GPUs, event by event.

The repositories are other people's and are not here: each is cloned into the folder public/OWNER+NAME of the
cache (third_party/python/cache.py), or the case is skipped. The card, and how the
script was called where the repository does not say, were found by trying.
"""
import os
import re
import subprocess
import sys

import events
from recorded import Case, Recorded, Setting, environment, main, needs_libraries

WEDSON = ("Wedsonlin/assignment2-systems", "87b0864")
SILMONT = ("silmont2000/assignment2-systems", "75d09aa")


def repository(name):
    """Returns the path of a clone. Raises CalledProcessError where it cannot be had."""
    def clone(folder):
        subprocess.run(["git", "clone", "--quiet", f"https://github.com/{name}", str(folder)], capture_output=True,
                       text=True, check=True, env={**os.environ, "GIT_TERMINAL_PROMPT": "0"})
    return environment.cache.made("public/" + name.replace("/", "+"), clone)


def for_older_python(source):
    """Python before 3.12 has no " within f"...{}...": the same with '."""
    return re.sub(r'(f"[^"\n]*\{[^"{}\n]*\[)"(\w+)"(\][^"\n]*")', r"\1'\2'\3", source)


class PublicTest(Case):
    def files(self, of, *paths):
        """Writes some paths of a commit to the test's folder."""
        name, commit = of
        try:
            found = repository(name)
        except subprocess.CalledProcessError as error:
            self.skipTest(f"github.com/{name} cannot be cloned: {error.stderr.strip()[-200:]}")
        packed = subprocess.run(["git", "-C", str(found), "archive", commit, "--", *paths],
                                capture_output=True, check=False)
        if packed.returncode != 0:
            self.skipTest(f"github.com/{name}: {packed.stderr.decode(errors='replace').strip()}")
        subprocess.run(["tar", "-x", "-C", self.folder], input=packed.stdout, check=True)

    def of_release(self, release):
        if Setting.torch != release:
            self.skipTest(f"recorded with torch {release}, this is {Setting.torch}")

    def alike(self, made, recorded):
        """Compares each event, and the memory reserved at the end."""
        ours, theirs = (events.load(os.path.join(self.folder, path)) for path in (made, recorded))
        a, b = events.events_of(ours), events.events_of(theirs)
        self.assertIsNone(events.difference(a, b))
        reserved = [sum(segment["total_size"] for segment in snapshot["segments"])
                    for snapshot in (ours, theirs)]
        print(f"{recorded}: {len(a[0])} events alike, {reserved[0]} and {reserved[1]} bytes reserved")
        return reserved

    @needs_libraries
    def test_wedson(self):
        """Runs a transformer of 24 layers, forward only and a whole step, at four lengths."""
        self.of_release("2.11.0")
        recordings = [f"results/medium_{length}_{kind}_memory_snapshot.pickle"
                      for length in (128, 256, 512, 1024) for kind in ("inference", "training")]
        self.files(WEDSON, "cs336_systems", "cs336-basics", *recordings)
        script = os.path.join(self.folder, "cs336_systems", "nsys_profile.py")
        if sys.version_info < (3, 12):
            with open(script, encoding="utf-8") as file:
                source = for_older_python(file.read())
            with open(script, "w", encoding="utf-8") as file:
                file.write(source)
        for folder in ("scripts", "made/results", "made/scripts"):
            os.makedirs(os.path.join(self.folder, folder), exist_ok=True)
        for recording in recordings:
            with self.subTest(recording):
                _, length, kind, *_ = os.path.basename(recording).split("_")
                pattern = "forward-only" if kind == "inference" else "full-training-step"
                autocast = length == "512" or (length, kind) == ("1024", "training")
                run = Recorded(self.folder, [
                    script, "--vocab_size", "10000", "--context_length", length, "--d_model", "1024",
                    "--d_ff", "4096", "--num_layers", "24", "--num_heads", "16", "--model_name",
                    "medium", "--memory-profiler", "pytorch", "--pattern", pattern, "--autocast",
                    str(autocast).lower()], ["--addresses", "up", "--capacity", "48GiB"],
                    cwd=os.path.join(self.folder, "made", "scripts"),
                    environment={"PYTHONPATH": os.path.join(self.folder, "cs336-basics")})
                self.assertEqual(run.status, 0, run.said)
                ours, theirs = self.alike(f"made/{recording}", recording)
                # docs/record_evidence.md has the addresses by which the others differ.
                if (length, kind) != ("256", "training"):
                    self.assertEqual(ours, theirs)
                else:
                    self.assertEqual(theirs - ours, 40 << 20)

    @needs_libraries
    def test_silmont(self):
        """Runs attention by hand, forward and backward, from the first allocation on."""
        self.of_release("2.6.0")
        self.files(SILMONT, "mem_snapshot.pickle")
        self.files((SILMONT[0], "507ffd0~1"), "cs336_systems/trace_peak_memory.py")
        made = os.path.join(self.folder, "made")
        os.makedirs(made)
        run = Recorded(self.folder, [os.path.join(self.folder, "cs336_systems", "trace_peak_memory.py")],
                       cwd=made)
        self.assertEqual(run.status, 0, run.said)
        ours, theirs = self.alike("made/mem_snapshot.pickle", "mem_snapshot.pickle")
        self.assertEqual(ours, theirs)


if __name__ == "__main__":
    sys.exit(main(PublicTest))
