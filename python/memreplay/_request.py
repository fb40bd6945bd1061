"""Says what a request was that the GPU refused, by the shapes of the tensors in the statements that run.

It is inferred from the size, and says so. Nothing of the script runs for it.

`memreplay record` uses this file as it does _notes.py.
"""

from __future__ import annotations

import ast
import itertools
import linecache
import math
import os
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ._lost import fields_of

_SMALLEST = 32 << 20  # bytes of a request of which a reading is no accident
_ROUNDING = (2 << 20) + 512  # bytes by which a request may be larger than its tensor
_MAX_FRAMES = 12
_MAX_TENSORS = 12  # of a statement

_Tensors = Dict[str, Any]


def reading(torch: Any, size: int, frames: List[Tuple[Any, Dict[str, Any]]]) -> Tuple[str, str]:
    """Returns what a request of `size` bytes is and what to do instead; ""s if that is unknown. `frames` are those that
    run with their variables, innermost first.
    """
    if size < _SMALLEST:
        return "", ""
    trees: Dict[str, ast.Module] = {}
    for frame, variables in frames[:_MAX_FRAMES]:
        path = frame.f_code.co_filename
        if path not in trees:
            trees[path] = tree_of(path)
        tensors = _tensors(torch, statement_at(trees[path], frame.f_lineno), variables, frame.f_globals)
        for text in _readings(torch, size, tensors):
            return f"by its size {text[0]}, at {os.path.basename(path)}:{frame.f_lineno}", text[1]
    return "", ""


def tree_of(path: str) -> ast.Module:
    """Returns the tree of a file; one without statements if it cannot be read."""
    try:
        return ast.parse("".join(linecache.getlines(path)))
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def statement_at(tree: ast.Module, line: int) -> Optional[ast.stmt]:
    """Returns the simple statement around a line, or None."""
    around = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and not hasattr(node, "body") and
              node.lineno <= line <= (node.end_lineno or line)]
    return around[-1] if around else None


def _tensors(torch: Any, statement: Optional[ast.stmt], variables: Dict[str, Any], more: Dict[str, Any]) -> _Tensors:
    """Returns the tensors that a statement names, by what it calls them."""
    found: _Tensors = {}
    for node in ast.walk(statement) if statement is not None else ():
        value = _value(node, variables, more)
        parts = value if type(value) in (list, tuple) else [value]
        for number, each in enumerate(parts):
            if issubclass(type(each), torch.Tensor) and len(found) < _MAX_TENSORS:
                found[ast.unparse(node) + (f"[{number}]" if parts is value else "")] = each
    return found


def _value(node: ast.AST, variables: Dict[str, Any], more: Dict[str, Any]) -> Any:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return dict.get(variables, node.id, dict.get(more, node.id))
    if isinstance(node, ast.Attribute):
        owner = _value(node.value, variables, more)
        try:
            fields = fields_of(owner)
        except AttributeError:
            return None
        for held in (fields, fields.get("_parameters"), fields.get("_buffers")):
            if type(held) is dict and node.attr in held:
                return held[node.attr]
    return None


def _readings(torch: Any, size: int, tensors: _Tensors) -> Iterator[Tuple[str, str]]:
    """Yields what has `size` bytes and what to do instead, the most specific first."""
    of = torch.Tensor
    shapes = {name: tuple(of.size(each)) for name, each in tensors.items()}
    widths = {name: of.element_size(each) for name, each in tensors.items()}

    def fits(shape: Tuple[int, ...], width: int) -> bool:
        return 0 <= size - math.prod(shape) * width < _ROUNDING

    def called(name: str) -> str:
        return f"`{name}` {shapes[name]}"

    for name, each in tensors.items():
        if of.layout.__get__(each) != torch.strided and fits(shapes[name], widths[name]):
            yield f"the sparse {called(name)} made dense", "let it need no gradient, which is dense"
    for one, other in itertools.combinations_with_replacement(tensors, 2):
        width = max(widths[one], widths[other])
        both = called(one) + (f" and {called(other)}" if other != one else "")
        spread = _broadcast(shapes[one], shapes[other])
        if spread is not None and spread not in (shapes[one], shapes[other]) and fits(spread, width):
            yield f"{both} broadcast to {spread}", "go through it in pieces, or write it as a matrix product"
        for pairs in {_pairs(shapes[one], shapes[other]), _pairs(shapes[other], shapes[one])}:
            if pairs is None or not fits(pairs, width):
                continue
            yield f"a value for each pair of rows of {both}, {pairs}", \
                "use scaled_dot_product_attention(), which keeps none" if len(pairs) == 4 else "go through it in pieces"
    for name in tensors:
        if widths[name] < 4 and fits(shapes[name], 4):
            yield f"a float32 copy of {called(name)} of {widths[name]} bytes an element", "make it in pieces"
    for name in tensors:
        if fits(shapes[name], widths[name]):
            yield f"one more tensor of the shape and type of {called(name)}", ""
    large = {name: math.prod(shapes[name]) * widths[name] for name in tensors}
    large = {name: each for name, each in large.items() if each >= _ROUNDING}
    if len(large) > 1 and 0 <= size - sum(large.values()) < _ROUNDING:
        yield f"{' and '.join(map(called, large))} together, as torch.cat() makes it", ""


def _broadcast(one: Tuple[int, ...], other: Tuple[int, ...]) -> Optional[Tuple[int, ...]]:
    pairs = list(itertools.zip_longest(reversed(one), reversed(other), fillvalue=1))
    if any(a != b and 1 not in (a, b) for a, b in pairs):
        return None
    return tuple(max(a, b) if min(a, b) > 0 else 0 for a, b in reversed(pairs))


def _pairs(one: Tuple[int, ...], other: Tuple[int, ...]) -> Optional[Tuple[int, ...]]:
    """Returns the shape of one @ other, or of one @ other's transpose."""
    if min(len(one), len(other)) < 2 or _broadcast(one[:-2], other[:-2]) is None:
        return None
    columns = other[-1] if one[-1] == other[-2] else other[-2] if one[-1] == other[-1] else None
    return None if columns is None else (*(_broadcast(one[:-2], other[:-2]) or ()), one[-2], columns)
