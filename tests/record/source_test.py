"""Checks edits of a script's own files as text (record/process/memreplay_record/remedies/edits.py)."""
import ast
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import report_xml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "record" / "process"))
from memreplay_record.remedies import edits
from memreplay_record.remedies.edits import Source, Unwritten


def edited(text, change):
    """Returns a text with the edits change(its Source, the call in it)."""
    source = Source("/script.py", text.encode("utf-8"))
    call = next(node for node in ast.walk(source.tree)
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "f")
    parts, at = [], 0
    for edit in sorted(change(source, call), key=lambda each: (each["begin"], each["end"])):
        parts += [source.data[at:edit["begin"]], edit["text"].encode("utf-8")]
        at = edit["end"]
    data = b"".join([*parts, source.data[at:]])
    ast.parse(data)
    return data.decode("utf-8")


class SourceTest(unittest.TestCase):
    def holds(self, change, *rows):
        for before, after in rows:
            with self.subTest(before):
                self.assertEqual(edited(before, change), after)

    def refuses(self, change, *texts):
        for text in texts:
            with self.subTest(text), self.assertRaises(Unwritten):
                edited(text, change)

    def test_keywords(self):
        def change(source, call):
            return source.set_keyword(call, "k", "1")

        self.holds(change, ("f()", "f(k=1)"), ("f(a)", "f(a, k=1)"), ("f(k=2, b=3)", "f(k=1, b=3)"),
                   ("f((a),\n  (b),  # last)\n)", "f((a),\n  (b), k=1,  # last)\n)"),
                   ("f(a, **more)", 'f(a, **{**more, "k": 1})'), ("f(é, b='ü')", "f(é, b='ü', k=1)"))
        self.refuses(change, "f(each for each in a)")

    def test_keywords_that_go(self):
        def change(source, call):
            return source.drop_keywords(call, lambda name: name != "b")

        self.holds(change, ("f(a, (1.5), k=2,\n  b=3)", "f(a, (1.5),\n  b=3)"), ("f(a, b=2, c=3)", "f(a, b=2)"))
        self.refuses(change, "f(c=1, b=2)", "f(a, **more)")

    def test_lines_behind(self):
        self.holds(lambda source, call: source.after(source.statement_of(call), ["del a"]),
                   ("a = f()", "a = f()\ndel a"), ("a = f()\r\nb()\r\n", "a = f()\r\ndel a\r\nb()\r\n"),
                   ("if x:\n    a = f(\n    )  # here\n", "if x:\n    a = f(\n    )  # here\n    del a\n"),
                   ("if x: a = f(); b()", "if x: a = f(); del a; b()"),
                   ("with x: a = f()\nb()", "with x: a = f(); del a\nb()"))

        def loop(source, call):
            return source.after(source.statement_of(call), ["for x in a:", "    g(x)"])

        self.holds(loop, ("with x: a = f()\nb()", "with x: a = f()\nfor x in a:\n    g(x)\nb()"),
                   ("a = f(); b()\n", "a = f(); b()\nfor x in a:\n    g(x)\n"))
        self.refuses(loop, "if x: a = f()")

    def test_blocks(self):
        def change(source, call):
            statement = source.statement_of(call)
            return source.wrap(statement, statement, "with x:")

        self.holds(change, ("a = f()", "with x:\n    a = f()"), ("\ufeffa = f()", "\ufeffwith x:\n    a = f()"),
                   ("with y: a = f()\n", "with x:\n    with y: a = f()\n"),
                   ('if y:\n  a = f("""b\nc""")\n', 'if y:\n  with x:\n      a = f("""b\nc""")\n'),
                   ("a = f(\n\n  1)\r\n", "with x:\r\n    a = f(\n\n      1)\r\n"),
                   ("if y:\n  f(); g(\n1); h()\n", "if y:\n  with x:\n      f()\n  g(\n1); h()\n"),
                   ("g(); f(); h()\n", "with x:\n    g(); f()\nh()\n"), ("f();\n", "with x:\n    f();\n"))
        self.refuses(change, "if y: a = f()")

    def test_imports(self):
        self.holds(lambda source, call: source.add_import("import a.b", call),
                   ("f()", "import a.b\nf()"), ('"""Text."""\nf()', '"""Text."""\nimport a.b\nf()'),
                   ("import c, a.b\nf()", "import c, a.b\nf()"),
                   ("import a.b as b\nf()", "import a.b as b\nimport a.b\nf()"),
                   ("x = 1\nimport c\nf()\nimport a.b", "x = 1\nimport c\nimport a.b\nf()\nimport a.b"))

    def test_definitions(self):
        self.holds(lambda source, call: source.add_definition(["def g():", "    pass"], call),
                   ("import c\nf()", "import c\n\n\ndef g():\n    pass\n\n\nf()"),
                   ("import c\n\n\nf()", "import c\n\n\ndef g():\n    pass\n\n\nf()"))

    def test_a_name_that_the_file_has(self):
        """What is defined for a change has another name then."""
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(edits.frames, "is_own", return_value=True):
            path = pathlib.Path(folder, "script.py")
            for text, name in (("def h():\n    pass\n\n\nf()\n", "g"), ("def g():\n    pass\n\n\nf()\n", "g_2"),
                               ("from h import g\nf()\n", "g_2"), ("class g: pass\ng_2 = 1\nf()\n", "g_3")):
                with self.subTest(text):
                    path.write_text(text, encoding="utf-8")
                    edits.source_of.cache_clear()
                    source = edits.source_of(str(path))
                    call = next(node for node in ast.walk(source.tree) if isinstance(node, ast.Call))
                    found = edits.checked([*source.add_definition(["def g():", "    pass"], call),
                                           *source.replace(call, "f(g, x.gg)")])
                    self.assertIn(f"def {name}():", "".join(each["text"] for each in found))
                    self.assertEqual(found[-1]["text"], f"f({name}, x.gg)")
        edits.source_of.cache_clear()


if __name__ == "__main__":
    sys.exit(report_xml.run(SourceTest, sys.argv[1:]))
