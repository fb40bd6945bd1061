"""What a script reads of the output of a module that it calls, as far as its source says so for certain.

This is asked of a statement: `logits, loss = model(x, y)` or `out = model(x)`. Where names may be read in a way that
the source does not show (closures, `global`, locals(), exec()), the answer is that it is unknown.
"""
import ast
import functools
import linecache
import symtable
import sys

from memreplay_record import frames, notes

SMALLEST = 1 << 20  # bytes that are worth a change
_BODIES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_REPEATING = (ast.For, ast.AsyncFor, ast.While, ast.Try, getattr(ast, "TryStar", ast.Try))
_BY_NAME = {"locals", "globals", "vars", "dir", "eval", "exec"}  # these may read any name
_BY_GLOBAL_NAME = {"globals", "eval", "exec"}
_COMPREHENSIONS = ("listcomp", "setcomp", "dictcomp")  # tables of symtable that run where they stand


def caller(module):
    """Returns the frame that calls a module, which is running; None if there is none."""
    frame, is_inside = sys._getframe(1), True
    while frame is not None:
        code = frame.f_code
        if code.co_name in ("_call_impl", "_wrapped_call_impl") and frames.locals_of(frame).get("self") is module:
            is_inside = False
        elif not is_inside:
            return frame
        frame = frame.f_back
    return None


def output_of(module, frame):
    """Returns the Output of `module`, which `frame` calls, or None if its statement is none that is understood."""
    source = _source(frame.f_code.co_filename) if frames.is_own(frame.f_code.co_filename) else None
    if source is None:
        return None
    found = [(statement, call) for statement in source.statements(frame.f_lineno) for call in _calls(statement)
             if _value(call.func, frame) is module]
    return source.output(frame.f_code, *found[0]) if len(found) == 1 else None


class Output:
    """What one statement does with the output of a call."""

    def __init__(self, source, code, statement, call):
        self._source, self._code, self._statement, self._call = source, code, statement, call

    def unread(self, torch, output):
        """Returns the positions or keys of `output` that the script never reads.

        There are none if less than 1 MiB of GPU memory is in them together.
        """
        parts = self._parts_of(output)
        tensors = {id(tensor): tensor for part in parts for tensor in notes.tensors(output[part], torch.Tensor)}
        size = sum(t.numel() * t.element_size() for t in tensors.values() if t.is_cuda)
        return parts if size >= SMALLEST else []

    def _parts_of(self, output):
        if isinstance(output, dict):
            read = self._keys_read(list(output))
            return [key for key, value in output.items() if key not in read and value is not None] \
                if read is not None else []
        if type(output) in (tuple, list):
            names = self._names
            return [] if len(names) != len(output) else \
                [position for position, name in enumerate(names) if name and output[position] is not None]
        return []

    @functools.cached_property
    def _target(self):
        """What the whole output is assigned to, or None."""
        statement = self._statement
        is_plain = isinstance(statement, ast.Assign) and len(statement.targets) == 1 and statement.value is self._call
        return statement.targets[0] if is_plain else None

    @functools.cached_property
    def _names(self):
        """The names that a tuple is unpacked to; "" for one that is read and for anything else that is assigned to."""
        if not isinstance(self._target, (ast.Tuple, ast.List)) or \
                any(isinstance(each, ast.Starred) for each in self._target.elts):
            return []
        names = [each.id if isinstance(each, ast.Name) else "" for each in self._target.elts]
        return [name if name and self._reads(name) == [] else "" for name in names]

    def _reads(self, name):
        return self._source.reads(self._code, self._statement, name)

    @functools.cached_property
    def _of_mapping(self):
        """What is read of a mapping that is assigned to a name: [(key or position, node)], or None if unknown.

        Where all of it may be read, the key is None.
        """
        reads = self._reads(self._target.id) if isinstance(self._target, ast.Name) else None
        nodes = [self._source.parents[node] for node in reads or ()]
        return [(_key_of(node), node) for node in nodes] if reads is not None else None

    def _keys_read(self, keys):
        if self._of_mapping is None or not all(isinstance(key, str) for key in keys):
            return None
        read = {keys[key] if isinstance(key, int) and key < len(keys) else key for key, _ in self._of_mapping}
        return read if read <= set(keys) else None  # else it is a method of the mapping, or all of it

    def drop(self, parts, output):
        """Returns the line after the statement that drops `parts`."""
        if isinstance(output, dict):
            gone = " = ".join(f"{self._target.id}[{key!r}]" for key in parts)
            return f"{gone} = None  # nothing reads {'it' if len(parts) == 1 else 'them'}"
        names = list(dict.fromkeys(self._names[part] for part in parts))
        return f"del {', '.join(names)}  # nothing reads {'it' if len(names) == 1 else 'them'}"

    @functools.cached_property
    def reads_last_logits(self):
        """Whether of `logits` in the output only the last position of the second dimension is read."""
        parent = self._source.parents[self._call]
        if _key_of(parent) is not None:
            return _key_of(parent) == "logits" and self._is_last(parent)
        if self._target is None or self._of_mapping is None:
            return False
        logits = [node for key, node in self._of_mapping if key == "logits"]
        return len(logits) > 0 and all(isinstance(key, str) for key, _ in self._of_mapping) and \
            all(self._is_last(node) for node in logits)

    def _is_last(self, logits):
        """Returns whether an expression is logits[:, -1], or bound to a name of which no more is read."""
        parent = self._source.parents[logits]
        if isinstance(parent, ast.Subscript):
            return _picks_last(parent)
        target = parent.targets[0] if isinstance(parent, ast.Assign) and len(parent.targets) == 1 else None
        reads = self._source.reads(self._code, parent, target.id) if isinstance(target, ast.Name) else None
        parents = [self._source.parents[node] for node in reads or ()]
        return bool(reads) and all(isinstance(each, ast.Subscript) and each.value is node and _picks_last(each)
                                   for node, each in zip(reads, parents))


def without(output, parts):
    """Returns the output with None in place of `parts`. A mapping is changed in place, and must have no other owner."""
    if isinstance(output, dict):
        for key in parts:
            output[key] = None
        return output
    return type(output)(None if position in parts else value for position, value in enumerate(output))


def _key_of(node):
    """Returns "key" of x.key and x["key"], 1 of x[1], and None of anything else; x is what the node is about."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and isinstance(node.slice, ast.Constant) and \
            type(node.slice.value) in (int, str):
        return node.slice.value
    return None


def _picks_last(subscript):
    """Returns whether it is x[:, -1], x[0, -1] or x[:, -1:], with or without a full slice after that."""
    if not isinstance(subscript.ctx, ast.Load) or not isinstance(subscript.slice, ast.Tuple):
        return False
    texts = [ast.unparse(each) for each in subscript.slice.elts]
    return len(texts) in (2, 3) and (texts[0] == ":" or texts[0].isdigit()) and texts[1] in ("-1", "-1:") and \
        texts[2:] in ([], [":"])


def _calls(statement):
    return [node for node in ast.walk(statement) if isinstance(node, ast.Call)]


def _value(node, frame):
    """Returns the value of a name, or of an attribute that is set; None if unknown. It runs no code of the script."""
    if isinstance(node, ast.Name):
        code = frame.f_code
        if code.co_name != "<module>" and node.id in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
            return frames.locals_of(frame).get(node.id)
        return frame.f_globals.get(node.id)
    if isinstance(node, ast.Attribute):
        fields = getattr(_value(node.value, frame), "__dict__", {})
        return fields.get(node.attr, (fields.get("_modules") or {}).get(node.attr))
    return None


@functools.lru_cache(maxsize=None)
def _source(path):
    try:
        return _Source("".join(linecache.getlines(path)), path)
    except (SyntaxError, ValueError, RecursionError):
        return None


class _Source:
    """A file of the script."""

    def __init__(self, text, path):
        self._tree, self._table = ast.parse(text), symtable.symtable(text, path, "exec")
        self.parents = {child: node for node in ast.walk(self._tree) for child in ast.iter_child_nodes(node)}
        self._simple = [node for node in self.parents
                        if isinstance(node, ast.stmt) and not {"body", "cases"} & {*node._fields}]
        self._outputs = {}

    def statements(self, line):
        """Returns the simple statements on a line."""
        return [node for node in self._simple if node.lineno <= line <= node.end_lineno]

    def output(self, code, statement, call):
        return self._outputs.setdefault(call, Output(self, code, statement, call))

    def reads(self, code, statement, name):
        """Returns the nodes that may read what `statement`, run by `code`, assigns to `name`; None if they are unknown.

        `del name` counts as one, as nothing can be removed before it.
        """
        scope = self.parents[statement]
        while not isinstance(scope, (*_BODIES, ast.Module)):
            scope = self.parents[scope]
        if isinstance(scope, ast.Module):
            if code.co_name != "<module>" or any(_may_read(table, name) for table in self._table.get_children()):
                return None
        elif not isinstance(scope, _FUNCTIONS) or name not in code.co_varnames or name in code.co_cellvars:
            return None
        reads = [node for node in ast.walk(scope) if _is_read(node, name, self.parents.get(node)) and
                 not self._is_covered(node, statement, name)]
        return None if any(isinstance(node, ast.Call) for node in reads) else reads

    def _is_covered(self, node, statement, name):
        """Returns whether `node` cannot see what `statement` assigned.

        Either no path leads there, or each one assigns something else before. Functions and classes in the scope of the
        statement have names of their own, or reads() has looked at them.
        """
        inner = node
        while not isinstance(inner, ast.stmt):
            inner = self.parents[inner]
        while True:
            if isinstance(inner, _REPEATING) and self._is_in(statement, inner):
                return False
            outer = self.parents[inner]
            blocks = [block for _, block in ast.iter_fields(outer) if isinstance(block, list) and inner in block]
            for earlier in reversed(blocks[0][:blocks[0].index(inner)] if blocks else ()):
                if self._is_in(statement, earlier):
                    return False
                if isinstance(earlier, ast.Assign) and any(_binds(target, name) for target in earlier.targets):
                    return True
            if isinstance(outer, (*_BODIES, ast.Module)):
                return True
            inner = outer

    def _is_in(self, node, outer):
        while node is not outer and node in self.parents:
            node = self.parents[node]
        return node is outer


def _is_read(node, name, parent):
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _BY_NAME
    return isinstance(node, ast.Name) and node.id == name and \
        (not isinstance(node.ctx, ast.Store) or isinstance(parent, ast.AugAssign))


def _may_read(table, name):
    """Returns whether a function or class in the file may read or delete the global `name`."""
    names = set(table.get_identifiers())
    runs_in_place = table.get_name() in _COMPREHENSIONS and ".0" in names
    if not runs_in_place:
        for each in ({name} | _BY_GLOBAL_NAME) & names:
            symbol = table.lookup(each)
            if symbol.is_global() and (symbol.is_referenced() or symbol.is_assigned()):
                return True
    return any(_may_read(inner, name) for inner in table.get_children())


def _binds(target, name):
    return isinstance(target, ast.Name) and target.id == name or \
        isinstance(target, (ast.Tuple, ast.List)) and any(_binds(each, name) for each in target.elts)
