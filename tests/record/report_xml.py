"""Runs unittest cases and writes the XML that Bazel counts them by."""
import os
import time
import unittest
import xml.etree.ElementTree
from xml.sax.saxutils import quoteattr


class _Result(unittest.TextTestResult):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.rows, self.began = {}, {}

    def startTest(self, test):
        super().startTest(test)
        self.began[test.id()] = time.monotonic()
        self.rows[test.id()] = ""

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.rows[test.id()] = "<failure/>"

    def addError(self, test, err):
        super().addError(test, err)
        self.rows[test.id()] = "<error/>"

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.rows[test.id()] = "<failure/>"

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.rows[test.id()] = "<skipped/>"

    def stopTest(self, test):
        super().stopTest(test)
        self.stream.writeln(f"  {time.monotonic() - self.began[test.id()]:.1f} s")


def _of_this_shard(names):
    """Returns the names without "test_" of the cases that are this shard's, where Bazel runs several at once."""
    if status := os.environ.get("TEST_SHARD_STATUS_FILE"):
        open(status, "w", encoding="utf-8").close()
    index, shards = (int(os.environ.get(f"TEST_{key}", default))
                     for key, default in (("SHARD_INDEX", 0), ("TOTAL_SHARDS", 1)))
    return [name.removeprefix("test_") for name in names[index::shards]]


def _write(rows):
    if path := os.environ.get("XML_OUTPUT_FILE"):
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'<testsuites><testsuite name="record">{rows}</testsuite></testsuites>')


def run(case, names, also=()):
    """Runs all cases of the class, or those named. Returns the exit status. `also`: elements of another run's cases."""
    loader = unittest.TestLoader()
    names = names or _of_this_shard(loader.getTestCaseNames(case))
    suite = loader.loadTestsFromNames([f"test_{name}" for name in names], case)
    result = unittest.TextTestRunner(verbosity=2, resultclass=_Result).run(suite)
    rows = "".join(f"<testcase name={quoteattr(name)}>{row}</testcase>" for name, row in result.rows.items())
    _write(rows + "".join(xml.etree.ElementTree.tostring(element, encoding="unicode") for element in also))
    return 0 if result.wasSuccessful() else 1


def skip(reason):
    """Skips the whole test, with one line that says why. Returns the exit status."""
    print(f"skipped: {reason}")
    _write('<testcase name="all"><skipped/></testcase>')
    return 0
