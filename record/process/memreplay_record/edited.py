"""Runs the script's files with edits, which a user would make by applying a patch; the files stay as they are.

Import and `python FILE` read the edited text: everything else about a file, such as its path and its folder, is true.
"""
import importlib.abc
import importlib.machinery
import linecache
import os
import sys
from importlib.util import decode_source

met = []  # paths of the edited files that were read


def begin(edits):
    """Makes edits (proto/record.proto) take effect in this process, before the script begins."""
    by_file = {}
    for edit in edits:
        by_file.setdefault(edit.file, []).append(edit)
    texts = {}
    for path, own in by_file.items():
        with open(path, "rb") as file:
            texts[os.path.realpath(path)] = spliced(file.read(), [(each.begin, each.end, each.text) for each in own])
    _change_imports(texts)
    sys.path_hooks.insert(0, lambda path: _Main(path, _text_of(texts, path)))


def spliced(data, edits):
    """Returns bytes with the text of each edit (begin, end, text) in their place; edits are in order, and apart."""
    parts, at = [], 0
    for begin, end, text in edits:
        parts += [data[at:begin], text.encode("utf-8")]
        at = end
    return b"".join([*parts, data[at:]])


def _text_of(texts, path):
    text = texts.get(os.path.realpath(path)) if isinstance(path, str) else None
    if text is None:
        raise ImportError("not edited")
    return text


def _read(path, text):
    """Notes that a file is read, and lets tracebacks and inspect show its lines."""
    if path not in met:
        met.append(path)
    lines = decode_source(text).splitlines(True)
    linecache.cache[path] = (len(text), None, lines, path)


def _change_imports(texts):
    loader = importlib.machinery.SourceFileLoader
    get_code, get_data = loader.get_code, loader.get_data

    def get_edited_code(this, name):
        path = this.get_filename(name)
        text = texts.get(os.path.realpath(path))
        if text is None:
            return get_code(this, name)
        _read(path, text)
        return this.source_to_code(text, path)

    def get_edited_data(this, path):  # of get_source()
        text = texts.get(os.path.realpath(path))
        return get_data(this, path) if text is None else text

    loader.get_code, loader.get_data = get_edited_code, get_edited_data


class _Main(importlib.abc.Loader):
    """Finds the module __main__ in a file, as Python does in an archive.

    What the file itself can see is then made what `python FILE` gives it.
    """

    def __init__(self, path, text):
        self.path, self.text = path, text

    def find_spec(self, name, target=None):
        return importlib.machinery.ModuleSpec(name, self, origin=self.path) if name == "__main__" else None

    def is_package(self, name):
        return False

    def get_code(self, name):
        import runpy
        run_code = runpy._run_code

        def run(code, run_globals, *args, **kwargs):
            runpy._run_code = run_code
            run_globals.update(__name__=args[1] if len(args) > 1 else kwargs["mod_name"], __file__=self.path,
                               __cached__=None, __doc__=None, __loader__=None, __package__=None, __spec__=None)
            exec(code, run_globals)
            return run_globals

        runpy._run_code = run
        if sys.path and sys.path[0] == self.path:
            sys.path[0] = os.path.dirname(os.path.realpath(self.path))
        _read(self.path, self.text)
        return compile(self.text, self.path, "exec", dont_inherit=True)
