"""Runs examples/notebook.ipynb in a real kernel: its outputs are there, and the last is the page."""

import importlib.util
import pathlib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@unittest.skipUnless(all(map(importlib.util.find_spec, ["nbclient", "ipykernel", "pandas"])),
                     "nbclient is not installed")
class Notebook(unittest.TestCase):
    def test_it_runs_and_shows_the_page(self):
        import nbclient
        import nbformat
        notebook = nbformat.read(ROOT / "examples/notebook.ipynb", as_version=4)
        nbclient.NotebookClient(notebook, timeout=300,
                                resources={"metadata": {"path": str(ROOT / "examples")}}).execute()
        outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
        self.assertRegex(outputs[0][0].text, r"^\d+\.\d\d GiB reserved for 3\.20 GiB requested")
        self.assertIn("expandable_segments:True", outputs[1][0].text)
        self.assertIn("<table", outputs[1][1].data["text/html"])
        page = outputs[2][0].data["text/html"]
        self.assertTrue(page.startswith("<iframe srcdoc="), page[:80])
        self.assertIn("expandable_segments:True", page)
        self.assertIn("&lt;script", page)
        self.assertGreater(len(page), 300_000)


if __name__ == "__main__":
    unittest.main()
