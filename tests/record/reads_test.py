"""Checks what is known of the names that a script gives a module's output: which of them nothing reads
(record/process/memreplay_record/remedies/reads.py). The scripts are run, with a module and tensors that stand for real
ones."""
import os
import pathlib
import sys
import tempfile
import textwrap
import types
import unittest

import report_xml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "record" / "process"))
from memreplay_record.remedies import reads


class Tensor:
    is_cuda = True

    def __init__(self, size=2 << 20):
        self.size = size

    def numel(self):
        return self.size

    def element_size(self):
        return 1

    def __getitem__(self, index):
        return self

    __iadd__ = __getitem__


class Output(dict):
    """As Transformers have it: fields are attributes, and have positions."""

    def __getattr__(self, name):
        return self[name]

    def __getitem__(self, key):
        return dict.__getitem__(self, list(self)[key] if isinstance(key, int) else key)


class Model:
    """Notes of each of its calls what is not read and whether its last logits alone are; by line of the script."""

    def __init__(self, output):
        self.output, self.found = output, {}

    def __call__(self, *args):
        frame, output = sys._getframe(1), self.output()
        found = reads.output_of(self, frame)
        if found is not None:
            parts = found.unread(types.SimpleNamespace(Tensor=Tensor), output)
            lines = [found.drop(parts, output)] if parts else []
            self.found[frame.f_lineno] = (parts, found.reads_last_logits, lines)
        return output


# Scripts, of which the line with the mark calls the model, and the positions that nothing reads.
PAIRS = {
    "a loop of nanoGPT": ([0], """
        for k in range(3):
            logits, loss = model(1)  # here
            print(loss)
        """),
    "in a function": ([0], """
        def evaluate():
            for k in range(3):
                logits, loss = model(1)  # here
                print(loss)
        evaluate()
        """),
    "read afterwards": ([], """
        logits, loss = model(1)  # here
        print(logits, loss)
        """),
    "read before, and not again": ([0], """
        logits = 1
        print(logits)
        logits, loss = model(1)  # here
        print(loss)
        """),
    "read in the next round": ([], """
        logits = 0
        for k in range(3):
            print(logits)
            logits, loss = model(1)  # here
        print(loss)
        """),
    "read by the condition of a loop": ([], """
        logits = None
        while logits is None:
            logits, loss = model(1)  # here
        print(loss)
        """),
    "assigned anew before it is read": ([0], """
        for k in range(3):
            logits, loss = model(1)  # here
            if k == 2:
                logits = model(2)[0]
                print(logits, loss)
        """),
    "assigned anew in one case alone": ([], """
        for k in range(3):
            logits, loss = model(1)  # here
            if k == 2:
                logits = 3
            print(logits, loss)
        """),
    "read in the other branch": ([0], """
        if model:
            logits, loss = model(1)  # here
            print(loss)
        else:
            print(logits)
        """),
    "read by what catches an error": ([], """
        try:
            logits, loss = model(1)  # here
            print(loss)
        except ValueError:
            print(logits)
        """),
    "read after the loop": ([], """
        for k in range(3):
            logits, loss = model(1)  # here
        print(logits, loss)
        """),
    "deleted already": ([], """
        logits, loss = model(1)  # here
        del logits
        print(loss)
        """),
    "added to": ([], """
        logits, loss = model(1)  # here
        loss += 1
        logits += loss
        """),
    "read by a function": ([], """
        def show():
            print(logits)
        logits, loss = model(1)  # here
        show()
        print(loss)
        """),
    "another of that name in a function": ([0], """
        def forward(x):
            logits = x
            return logits
        logits, loss = model(1)  # here
        print(forward(loss))
        """),
    "an argument of that name, later": ([0], """
        logits, loss = model(1)  # here
        def forward(logits):
            return logits
        print(forward(loss))
        """),
    "given to the model itself": ([0], """
        logits = 1
        logits, loss = model(logits)  # here
        print(loss)
        """),
    "given to the model in the next round": ([], """
        logits = 1
        for _ in range(3):
            logits, loss = model(logits)  # here
        print(loss)
        """),
    "a closure": ([], """
        def evaluate():
            logits, loss = model(1)  # here
            return lambda: (logits, loss)
        evaluate()
        """),
    "an argument that a closure has": ([], """
        def evaluate(logits=None):
            logits, loss = model(1)  # here
            def show():
                print(logits, loss)
            return show
        evaluate()
        """),
    "with another call among the arguments": ([0], """
        logits, loss = model(abs(-1))  # here
        print(loss)
        """),
    "read by a default argument": ([], """
        logits, loss = model(1)  # here
        def show(x=logits):
            print(x, loss)
        """),
    "a global of a function": ([], """
        def evaluate():
            global logits
            logits, loss = model(1)  # here
            print(loss)
        evaluate()
        print(logits)
        """),
    "locals()": ([], """
        def evaluate():
            logits, loss = model(1)  # here
            print("{loss}".format(**locals()))
        evaluate()
        """),
    "globals() before, as nanoGPT's configuration": ([0], """
        config = {k: globals()[k] for k in ["model"]}
        exec("rate = 3")
        logits, loss = model(1)  # here
        print(loss)
        """),
    "globals() in a function": ([], """
        def show():
            print(globals()["logits"])
        logits, loss = model(1)  # here
        show()
        print(loss)
        """),
    "a name for what is not needed": ([0], """
        for _ in range(3):
            _, loss = model(1)  # here
            print(loss)
        """),
    "something else than names": ([], """
        kept = {}
        kept["logits"], loss = model(1)  # here
        print(loss)
        """),
    "through another function": ([], """
        def through(output):
            print(output[0])
            return output
        logits, loss = through(model(1))  # here
        print(loss)
        """),
    "an attribute": ([0], """
        class Trainer:
            def __init__(self):
                self.model = model
            def step(self):
                logits, loss = self.model(1)  # here
                print(loss)
        Trainer().step()
        """),
    "a comprehension": ([], """
        logits, loss = model(1)  # here
        print([logits for _ in range(3)], loss)
        """),
}
MAPPINGS = {
    "an attribute": (["logits", "cache"], """
        out = model(1)  # here
        print(out.loss)
        """),
    "by keys and positions": (["cache"], """
        out = model(1)  # here
        print(out["loss"], out[1])
        """),
    "all of it": ([], """
        out = model(1)  # here
        print(out.loss, out)
        """),
    "a method": ([], """
        out = model(1)  # here
        print(out.loss, out.items())
        """),
    "assigned to": ([], """
        out = model(1)  # here
        out.loss = out.loss
        """),
}
# The same, and whether no logits but the last are read.
LAST = {
    "at once": (True, "x = model(1).logits[:, -1]  # here"),
    "through names": (True, """
        out = model(1)  # here
        logits = out.logits
        x, cache = logits[:, -1, :], out["cache"]
        """),
    "of the first sample": (True, 'x = model(1)["logits"][0, -1:]  # here'),
    "all": (False, "x = model(1).logits  # here\nprint(x)"),
    "the first": (False, "x = model(1).logits[:, 0]  # here"),
    "of each token": (False, "x = model(1).logits[..., -1]  # here"),
    "all of them elsewhere": (False, """
        out = model(1)  # here
        x = out.logits[:, -1]
        print(out.logits)
        """),
    "of the output as a whole": (False, """
        out = model(1)  # here
        x = out.logits[:, -1]
        print(out)
        """),
}


class ReadsTest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def found(self, name, text, output):
        """Returns what is known of the line with the mark."""
        text = textwrap.dedent(text)
        path = os.path.join(self.folder, f"{name.replace(' ', '_').replace('/', '_')}.py")
        pathlib.Path(path).write_text(text, encoding="utf-8")
        model = Model(output)
        exec(compile(text, path, "exec"), {"model": model, "print": lambda *values: None})
        line = next(number for number, line in enumerate(text.split("\n"), 1) if "# here" in line)
        return model.found.get(line, ([], False, []))

    def test_pairs(self):
        for name, (expected, text) in PAIRS.items():
            with self.subTest(name):
                self.assertEqual(self.found(name, text, lambda: (Tensor(), 1))[0], expected)

    def test_mappings(self):
        for name, (expected, text) in MAPPINGS.items():
            with self.subTest(name):
                self.assertEqual(self.found(name, text, self.mapping)[0], expected)

    def test_last_logits(self):
        for name, (expected, text) in LAST.items():
            with self.subTest(name):
                self.assertEqual(self.found(name, text, self.mapping)[1], expected)

    def test_lines(self):
        for text, output, expected in (
                ("_, loss = model(1)  # here\nprint(loss)", lambda: (Tensor(), 1), "del _  # nothing reads it"),
                ("out = model(1)  # here\nprint(out.loss)", self.mapping,
                 "out['logits'] = out['cache'] = None  # nothing reads them")):
            with self.subTest(expected):
                self.assertEqual(self.found(expected[:3], text, output)[2], [expected])

    def test_small_ones_stay(self):
        text = "logits, loss = model(1)  # here\nprint(loss)"
        self.assertEqual(self.found("small", text, lambda: (Tensor(1000), 1))[0], [])

    @staticmethod
    def mapping():
        return Output(loss=1, logits=Tensor(), cache=[Tensor()], none=None)


if __name__ == "__main__":
    report_xml.run(ReadsTest, sys.argv[1:])
