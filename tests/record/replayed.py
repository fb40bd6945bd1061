"""Replays what record_test.py kept: replayed.py MEMREPLAY TAR...

Each snapshot must be replayed exactly and have the figures that are written down; the cases of the
recording itself are counted with those.
"""
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import unittest
import xml.etree.ElementTree

import report_xml
from recorded import Setting, known_figures


class ReplayedTest(unittest.TestCase):
    pass


def figures(folder, name):
    """Returns how many events each device with events has, and its peaks. Fails if the replay is not exact."""
    done = subprocess.run([Setting.memreplay, "replay", "--json", os.path.join(folder, name)],
                          capture_output=True, text=True, check=False)
    if not done.stdout:
        raise AssertionError(done.stderr)
    answer = json.loads(done.stdout)
    if done.returncode != 0:
        raise AssertionError(f"{name}: {answer}")
    for device in answer["devices"]:
        if int(device["events"]) == 0:
            continue
        yield {"events": int(device["events"]), "peak_reserved": int(device["peak_reserved_bytes"]),
               "peak_allocated": int(device["peak_allocated_bytes"])}


def case(folder, run):
    def test(self):
        found = [row for name in run["snapshots"] for row in figures(folder, name)]
        self.assertTrue(found)
        self.assertEqual(found, known_figures(run["figures_of"], run["torch"], found))
    return test


def main():
    words = sys.argv[1:]
    Setting.memreplay = os.path.abspath(words[0])
    cases = []
    with tempfile.TemporaryDirectory() as folder:
        for number, path in enumerate(words[1:]):
            with tarfile.open(path) as tar:
                if not tar.getnames():
                    continue
                part = os.path.join(folder, str(number))
                tar.extractall(part)
            cases += xml.etree.ElementTree.parse(os.path.join(part, "test.xml")).iter("testcase")
            with open(os.path.join(part, "runs.json"), encoding="utf-8") as file:
                for run in json.load(file):
                    name = "".join(c if c.isalnum() else "_" for c in run["figures_of"])
                    setattr(ReplayedTest, f"test_{number}_{name}", case(part, run))
        if not cases:
            return report_xml.skip("nothing could be recorded here")
        return report_xml.run(ReplayedTest, [], also=cases)


if __name__ == "__main__":
    sys.exit(main())
