"""Replaces hand-written attention (softmax of scores, times values) by PyTorch's scaled_dot_product_attention(), which
keeps no scores.

The function is rewritten: y = dropout(softmax(mask(q @ k.transpose(-2, -1) * scale))) @ v, in one expression or in
several statements of one block.
"""
import ast
import functools
import inspect
import linecache
import textwrap
import types

from memreplay_record.remedies import edits
from memreplay_record.remedies.change import Proposal

NAME = "sdpa"  # sdpa:CLASS
_SDPA = "scaled_dot_product_attention"


def propose(seen):
    for model in seen.models.values():
        for cls in model.own_classes:
            found = find(cls)
            if found is not None and any((found.path, line) in seen.lines for line in found.lines):
                yield Proposal(
                    f"{NAME}:{cls.__name__}", f"{_SDPA}() in {cls.__name__}",
                    edits=functools.partial(_edits, found),
                    cost="nothing; it is faster", cost_rank=0.2, place=edits.place(found.path, found.lines[0]),
                    preserves_text="the same up to rounding"
                    + (", as the mask is the causal one" if found.is_causal else "")
                    + ("; dropout draws other numbers" if "dropout_p" in found.text else ""))


def _edits(found):
    source = edits.source_of(found.path)
    by_line = {(each.lineno, each.end_lineno): each for each in ast.walk(source.tree) if isinstance(each, ast.Assign)}
    *used, last = [by_line[place] for place in found.statements]
    return [*source.add_import("import torch", last), *(edit for each in used for edit in source.drop(each)),
            *source.replace(last, found.text)]


def apply(change, argument):
    meet = change.meeting()

    def rewrite(cls):
        found = find(cls)
        if found is not None and found.function is not None:
            cls.forward = found.function
            meet()

    change.module_class(argument, rewrite)


class Attention:
    """The attention of a function, and the function without it."""

    def __init__(self, path, statements, text, is_causal, function):
        self.path, self.statements = path, statements  # the first and the last line of each that it takes
        self.lines = sorted(line for first, last in statements for line in range(first, last + 1))
        self.text, self.is_causal, self.function = text, is_causal, function


def find(cls):
    """Returns the Attention of forward(), or None if it has none or has something that cannot be expressed."""
    forward = inspect.unwrap(cls.forward)
    try:
        lines, first = inspect.getsourcelines(forward)
        tree = ast.parse(textwrap.dedent("".join(lines)))
        is_causal = any(word in _class_around(forward.__code__) for word in ("tril", "triu"))
    except (OSError, TypeError, SyntaxError):
        return None
    ast.increment_lineno(tree, first - 1)
    for body in [node.body for node in ast.walk(tree) if hasattr(node, "body")] + \
            [node.orelse for node in ast.walk(tree) if getattr(node, "orelse", None)]:
        for end, statement in enumerate(body if isinstance(body, list) else ()):
            match = _Match(body[:end])
            if isinstance(statement, ast.Assign) and match.values(statement.value) and \
                    (is_causal or not match.is_masked):
                after = ast.copy_location(ast.Assign(statement.targets, match.call()), statement)
                body[:end + 1] = [each for each in body[:end] if each not in match.used] + [after]
                gone = {each.targets[0].id for each in match.used}
                if any(isinstance(node, ast.Name) and node.id in gone and isinstance(node.ctx, ast.Load)
                       for node in ast.walk(tree)):
                    return None  # the scores are used elsewhere
                taken = [(each.lineno, each.end_lineno) for each in [*match.used, statement]]
                return Attention(forward.__code__.co_filename, taken, ast.unparse(after), match.is_masked,
                                 _function(tree, forward))
    return None


def _class_around(code):
    """Returns the source of the class that a function is in.

    inspect.getsource() has none of the script's own when Python ends.
    """
    lines = linecache.getlines(code.co_filename)
    around = [node for node in ast.walk(ast.parse("".join(lines)))
              if isinstance(node, ast.ClassDef) and node.lineno <= code.co_firstlineno <= node.end_lineno]
    return "".join(lines[around[-1].lineno - 1:around[-1].end_lineno]) if around else ""


def _function(tree, forward):
    """Returns the function of a module's only statement, with what `forward` sees, or None if that is not possible."""
    code = next((each for each in compile(ast.fix_missing_locations(tree), forward.__code__.co_filename,
                                          "exec").co_consts if isinstance(each, types.CodeType)), None)
    if code is None or code.co_freevars != forward.__code__.co_freevars:
        return None
    made = types.FunctionType(code, forward.__globals__, forward.__name__, forward.__defaults__, forward.__closure__)
    made.__kwdefaults__ = forward.__kwdefaults__
    return made


class _Match:
    """Matches softmax(q @ k.T) @ v against an expression, through the names that `before` assigns."""

    def __init__(self, before):
        self._before, self.used = before, []
        self._dropout = self._scale = self._query = self._key = self._value = None
        self.is_masked = False

    def values(self, node):
        """Returns whether `node` is weights @ values, followed by nothing."""
        product = _product(node)
        if product is None:
            return False
        self._value = product[1]
        return self._weights(self._resolve(product[0]))

    def call(self):
        """Returns the call that takes its place."""
        keywords = {"is_causal": "True"} if self.is_masked else {}
        keywords.update({"dropout_p": self._dropout} if self._dropout else {})
        keywords["scale"] = self._scale or "1.0"
        words = [*(ast.unparse(each) for each in (self._query, self._key, self._value)),
                 *(f"{name}={text}" for name, text in keywords.items())]
        return ast.parse(f"torch.nn.functional.{_SDPA}({', '.join(words)})", mode="eval").body

    def _resolve(self, node):
        """Returns what a name was last assigned in this block, or the name itself."""
        if not isinstance(node, ast.Name):
            return node
        taken = self._before.index(self.used[-1]) if self.used else len(self._before)
        for each in reversed(self._before[:taken]):
            if isinstance(each, ast.Assign) and len(each.targets) == 1 and isinstance(each.targets[0], ast.Name) and \
                    each.targets[0].id == node.id:
                self.used.append(each)
                return each.value
        return node

    def _weights(self, node):
        name, arguments = _called(node)
        if "dropout" in name.lower() and arguments:
            if name == "F.dropout" or name.endswith("functional.dropout"):
                named = {each.arg: each.value for each in node.keywords}
                p = node.args[1] if len(node.args) > 1 else named.get("p")
                training = node.args[2] if len(node.args) > 2 else named.get("training")
                if p is None or training is None:
                    return False
                self._dropout = f"{ast.unparse(p)} if {ast.unparse(training)} else 0.0"
            else:  # a module
                self._dropout = f"{name}.p if {name}.training else 0.0"
            node = self._resolve(arguments[0])
            name, arguments = _called(node)
        if name.rpartition(".")[2] != "softmax" or not arguments:
            return False
        of_tensor = name not in ("F.softmax", "torch.softmax") and not name.endswith("functional.softmax")
        scores = node.func.value if of_tensor else arguments[0]
        dims = [*node.args[0 if of_tensor else 1:], *(each.value for each in node.keywords if each.arg == "dim")]
        if len(dims) != 1 or ast.unparse(dims[0]) != "-1" or any(each.arg == "dtype" for each in node.keywords):
            return False
        return self._scores(self._resolve(scores))

    def _scores(self, node):
        name, arguments = _called(node)
        if name.rpartition(".")[2] == "masked_fill" and len(arguments) == 2:
            if not _hides(arguments[1]):
                return False
            self.is_masked = True
            node = self._resolve(node.func.value)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
            sign = "" if isinstance(node.op, ast.Mult) else "1.0 / "
            self._scale = f"{sign}({ast.unparse(node.right)})" if sign else ast.unparse(node.right)
            node = self._resolve(node.left)
        product = _product(node)
        if product is None:
            return False
        name, arguments = _called(product[1])
        if name.rpartition(".")[2] != "transpose" or sorted(ast.unparse(each) for each in arguments) != ["-1", "-2"]:
            return False
        self._query, self._key = product[0], product[1].func.value
        return True


def _hides(node):
    """Returns whether softmax makes zeros of scores with this value."""
    text = ast.unparse(node)
    try:
        return ast.literal_eval(node) <= -1e4
    except (ValueError, TypeError):
        return "-" in text and "inf" in text or text.endswith(".min")


def _called(node):
    """Returns ("F.softmax", arguments) of a call; ("", []) of anything else."""
    return (ast.unparse(node.func), node.args) if isinstance(node, ast.Call) else ("", [])


def _product(node):
    """Returns the two sides of a @ b or torch.matmul(a, b), or None."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return node.left, node.right
    name, arguments = _called(node)
    return tuple(arguments) if name == "torch.matmul" and len(arguments) == 2 else None
