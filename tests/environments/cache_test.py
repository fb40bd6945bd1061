"""Tests what several processes make in the cache at once: one makes it, all use it, and it is whole."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
TOOLS = TESTS.parent / "third_party" / "python"
sys.path += [str(TOOLS), str(TESTS)]
import cache  # noqa: E402
import environment  # noqa: E402
from waiting import wait_until  # noqa: E402

# Makes a folder of three files, slowly; writes down that it began, and prints what it finds in the end.
MAKER = """
import os, sys, time
sys.path.append(sys.argv[1])
import cache
def make(folder):
    with open(cache.home() / "began", "a") as file:
        print(os.getpid(), file=file, flush=True)
    for number in range(3):
        time.sleep(float(sys.argv[2]))
        (folder / str(number)).write_text("part\\n" * 1000)
    if "fail" in sys.argv:
        raise RuntimeError("refused")
whole = cache.made("place/thing", make)
print(sorted(path.name + str(path.stat().st_size) for path in whole.iterdir()))
"""
WHOLE = "['05000', '15000', '25000']\n"


class CacheTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        self.variables = {**os.environ, "MEMREPLAY_CACHE": folder.name}

    def start(self, *command):
        return subprocess.Popen([sys.executable, *command], env=self.variables, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def maker(self, *words):
        return self.start("-c", MAKER, str(TOOLS), *words)

    def began(self):
        return (self.home / "began").read_text().split() if (self.home / "began").exists() else []

    def at_the_lock(self):
        """Returns how many processes hold the thing's lock or wait for it."""
        inode = (self.home / "locks" / "place+thing").stat().st_ino
        return pathlib.Path("/proc/locks").read_text().count(f":{inode} ")

    def test_several_at_once(self):
        makers = [self.maker("0.2") for _ in range(8)]
        self.assertEqual([maker.communicate() for maker in makers], [(WHOLE, "")] * 8)
        self.assertEqual(len(self.began()), 1)
        self.assertEqual(sorted(path.name for path in (self.home / "place").iterdir()), ["thing"])

    def test_a_maker_that_is_killed(self):
        """Another maker that waits makes all of it; nothing of the first is left."""
        first = self.maker("30")
        wait_until(self.began)
        others = [self.maker("0.1") for _ in range(3)]
        wait_until(lambda: self.at_the_lock() == 4)
        self.assertEqual(len(self.began()), 1)
        first.send_signal(signal.SIGKILL)
        first.communicate()
        self.assertEqual([other.communicate() for other in others], [(WHOLE, "")] * 3)
        self.assertEqual(len(self.began()), 2)

    def test_a_maker_that_fails(self):
        """A maker that fails leaves nothing, and the next begins anew."""
        failed = self.maker("0", "fail").communicate()
        self.assertIn("RuntimeError: refused", failed[1])
        self.assertEqual(list((self.home / "place").iterdir()), [])
        self.assertEqual(self.maker("0").communicate(), (WHOLE, ""))

    def test_remove(self):
        """Read-only folders, as Bazel leaves them, are removed, and so are links, which are not followed."""
        outside, tree = self.home / "outside", self.home / "tree"
        (tree / "below").mkdir(parents=True)
        outside.mkdir()
        (tree / "below" / "file").write_text("")
        (tree / "link").symlink_to(outside)
        (tree / "below").chmod(0o555)
        cache.remove(tree)
        self.assertEqual((tree.exists(), outside.exists()), (False, True))

    def test_environments_at_once(self):
        """The environment is a real one, from the package index, with nothing made before: not even uv."""
        makers = [self.start(str(TOOLS / "environment.py"), "package") for _ in range(4)]
        answers = [(maker.communicate()[0], maker.returncode) for maker in makers]
        if answers[0][1] == 77:
            self.skipTest(answers[0][0])
        (python, status), = set(answers)
        self.assertEqual(status, 0, python)
        done = subprocess.run([python.strip(), "-c", "import hatchling; print(hatchling.__file__)"], text=True,
                              capture_output=True, check=True)
        self.assertIn(str(self.home / "python-package-"), done.stdout)
        # It must work wherever it lies.
        self.assertTrue((pathlib.Path(python.strip()).with_name("auditwheel")).read_text().startswith("#!/bin/sh"))

    def test_releases(self):
        releases = environment.torch_releases()
        self.assertEqual(releases[0], "2.1.2")
        self.assertLess(releases.index("2.9.1"), releases.index("2.10.0"))

    def test_what_the_index_refuses(self):
        """The message names the package, and says that the test is skipped."""
        self.variables |= {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0", "PIP_FIND_LINKS": ""}
        answer, _ = self.start(str(TOOLS / "environment.py"), "package").communicate()
        self.assertRegex(answer, r"^skipped: uv==\S+ cannot be had: .*uv")


if __name__ == "__main__":
    unittest.main(verbosity=2)
