"""memreplay.explain() gives the binary's own answer about a text, bytes or an exception."""

import contextlib
import doctest
import io
import os
import subprocess
import unittest
from unittest import mock

import memreplay
from memreplay import _explain

FULL = ("CUDA out of memory. Tried to allocate 150.00 MiB. GPU 3 has a total capacity of 23.64 GiB of which 60.00 MiB "
        "is free. Including non-PyTorch memory, this process has 23.56 GiB memory in use. Of the allocated memory "
        "22.80 GiB is allocated by PyTorch, and 200.00 MiB is reserved by PyTorch but unallocated.")
PIECES = ("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 31.36 GiB of which 30.00 MiB "
          "is free. Including non-PyTorch memory, this process has 31.32 GiB memory in use. Of the allocated memory "
          "20.00 GiB is allocated by PyTorch, and 10.70 GiB is reserved by PyTorch but unallocated.")


def load_tests(loader, tests, pattern):
    tests.addTests(doctest.DocTestSuite(_explain))
    return tests


class Explain(unittest.TestCase):
    def test_the_text_is_the_program_s(self):
        found = memreplay.explain(FULL)
        self.assertEqual((found.verdict, found.gpu, found.rank), ("full", 3, None))
        self.assertIn("reduce", [action.kind for action in found.actions])
        self.assertEqual(found.settings_give_bytes, 200 << 20)
        self.assertGreater(found.evidence[0].rounding_bytes, 0)
        shown = subprocess.run([memreplay.program(), "explain", "-"], input=FULL.encode(), stdout=subprocess.PIPE,
                               check=False).stdout
        self.assertEqual(str(found), shown.decode().rstrip("\n"))
        self.assertEqual(memreplay.explain(FULL.encode()).verdict, "full")

    def test_an_exception_has_its_line_and_its_settings(self):
        try:
            raise RuntimeError(PIECES)
        except RuntimeError as error:
            with mock.patch.dict(os.environ, {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}):
                found = memreplay.explain(error)
        self.assertEqual(found.verdict, "fragmentation")
        self.assertEqual(found.conf, "expandable_segments:True")
        self.assertNotIn("setting", [action.kind for action in found.actions])
        self.assertIn("raise RuntimeError(PIECES)", found.frame.code)

    def test_what_is_not_about_memory_is_an_error(self):
        for other in ("", "KeyError: 'lr'", KeyError("lr")):
            with self.assertRaises(memreplay.Error):
                memreplay.explain(other)

    def test_tell_prints_only_what_is_about_memory_and_never_fails(self):
        for error, words in ((RuntimeError(FULL), "FULL: "), (KeyError("lr"), ""),
                             (RuntimeError("memory of old times"), "")):
            with contextlib.redirect_stderr(io.StringIO()) as out:
                _explain.tell(error)
            self.assertEqual(words, out.getvalue()[len("memreplay: "):][:len(words)])
            self.assertEqual(bool(words), bool(out.getvalue()))
        with mock.patch.object(_explain, "run", side_effect=OSError):
            _explain.tell(RuntimeError(FULL))


if __name__ == "__main__":
    unittest.main()
