"""./memreplay builds again when one of its sources changed, and only then; and apt's locks are waited for.

The first in a tree of a few files with a bazel that only says what it was asked, the second with Debian's own apt-get
in folders of its own.
"""

import fcntl
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))
from waiting import wait_until  # noqa: E402

BAZEL = """#!/bin/bash
echo "$1" >>"$LOG"
mkdir -p bazel-bin/cli
if [[ $1 == query ]]; then
  printf '%s\\n' //:embed.py //:BUILD.bazel //cli:main.cc //synth/deep:BUILD.bazel //synth/deep:files/a.txt
else
  printf '#!/bin/bash\\necho "$@"' >bazel-bin/cli/memreplay
  chmod +x bazel-bin/cli/memreplay
fi
"""


class Rebuild(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.tree = self.folder / "tree"
        for name in ("BUILD.bazel", "WORKSPACE", ".bazelrc", "README.md", "embed.py", "cli/main.cc", "docs/a.md",
                     "synth/deep/BUILD.bazel", "synth/deep/files/a.txt", "third_party/zlib/BUILD.bazel",
                     "python/report_types.py"):
            path = self.tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        shutil.copy(ROOT / "memreplay", self.tree)
        (self.tree / "third_party/setup.sh").write_text("BUILD_PACKAGES=()\ninstall_missing() { :; }\n")
        (self.folder / "bin").mkdir()
        bazel = self.folder / "bin/bazel"
        bazel.write_text(BAZEL)
        bazel.chmod(0o755)
        self.assertEqual(self.run_it(), 1)

    def run_it(self):
        """Returns how often it was built."""
        log = self.folder / "log"
        log.write_text("")
        done = subprocess.run([self.tree / "memreplay", "a", "b"], capture_output=True, text=True, check=False,
                              env={**os.environ, "LOG": str(log), "PATH": f"{self.folder}/bin:{os.environ['PATH']}"})
        self.assertEqual((done.returncode, done.stdout), (0, "a b\n"), done.stderr)
        return log.read_text().split().count("build")

    def now(self):
        """Returns the file system's time, which moves in steps."""
        (self.folder / "now").write_text("")
        return (self.folder / "now").stat().st_mtime_ns

    def test_what_changes_it(self):
        self.assertEqual(self.run_it(), 0)
        for name in ("embed.py", "BUILD.bazel", "cli/main.cc", "synth/deep/files/a.txt", "synth/deep/BUILD.bazel",
                     "third_party/zlib/BUILD.bazel", "third_party/setup.sh", "python/report_types.py", "WORKSPACE",
                     "cli/new.cc", "synth/deep/files/new/b.txt", "third_party/new/BUILD.bazel"):
            with self.subTest(name):
                built = (self.tree / ".bazel/memreplay").stat().st_mtime_ns
                wait_until(lambda built=built: self.now() > built)
                path = self.tree / name
                path.parent.mkdir(exist_ok=True)
                path.open("a").close()
                os.utime(path)
                self.assertEqual(self.run_it(), 1)
                self.assertEqual(self.run_it(), 0)
        (self.tree / "cli/new.cc").unlink()
        self.assertEqual(self.run_it(), 1)
        for name in ("README.md", "docs/a.md", "docs/new.md", "new.md", "python/__pycache__/a.pyc"):
            (self.tree / name).parent.mkdir(exist_ok=True)
            (self.tree / name).write_text("new")
            self.assertEqual(self.run_it(), 0, name)
        shutil.rmtree(self.tree / "synth/deep/files")
        self.assertEqual(self.run_it(), 1)

    def test_the_real_list(self):
        """What cli/ includes, and so on, lies in the folders that the last build wrote down."""
        inputs = (ROOT / ".bazel/sources").read_text().splitlines()
        self.assertIn("bazel", inputs)
        seen, left = set(), [str(path.relative_to(ROOT)) for path in ROOT.glob("cli/**/*.cc")]
        while left:
            name = left.pop()
            if name in seen or not (ROOT / name).exists():
                continue  # generated, or known
            seen.add(name)
            self.assertIn(os.path.dirname(name), inputs, name)
            text = (ROOT / name).read_text()
            included = [line.split('"')[1] for line in text.splitlines() if line.startswith('#include "')]
            left += included + [header[:-1] + "cc" for header in included]
        self.assertIn("hardware/cards.cc", seen)


@unittest.skipIf(os.geteuid() != 0 or not shutil.which("apt-get"), "it takes root, and apt-get")
class AptLock(unittest.TestCase):
    def test_it_is_waited_for(self):
        for name in ("lists/lock", "dpkg/lock-frontend"):
            folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
            for part in ("lists/partial", "dpkg", "cache/archives/partial"):
                (folder / part).mkdir(parents=True)
            (folder / "dpkg/status").touch()
            (folder / "apt.conf").write_text(
                f'Dir::State::Lists "{folder}/lists"; Dir::State::status "{folder}/dpkg/status";\n'
                f'Dir::Cache "{folder}/cache"; Dir::Etc::sourcelist "/dev/null"; Dir::Etc::sourceparts "/dev/null";\n')
            with self.subTest(name), open(folder / name, "w", encoding="utf-8") as lock:
                fcntl.lockf(lock, fcntl.LOCK_EX)
                release = threading.Timer(2, fcntl.lockf, (lock, fcntl.LOCK_UN))
                release.start()
                began = time.monotonic()
                done = subprocess.run(["bash", "-c", ". third_party/setup.sh; install_missing no-such-package"],
                                      cwd=ROOT, env={**os.environ, "APT_CONFIG": str(folder / "apt.conf")},
                                      capture_output=True, text=True, check=False)
                release.join()
                self.assertGreater(time.monotonic() - began, 2)
                self.assertEqual(done.returncode, 100)
                self.assertRegex(done.stderr, rf"\nmemreplay: waiting for python3? of process {os.getpid()} to release "
                                              r"apt's lock \(at most 10 minutes\)\n")
                self.assertIn("Unable to locate package no-such-package", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
