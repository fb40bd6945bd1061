"""Edits of the script's own files: a proposal's change as a patch, which leaves the rest of a file as it is.

An edit replaces the bytes [begin, end) of a file by a text (Edit, proto/record.proto). Several changes may edit one
file: their edits are made together, those of the same place in the order of the changes, and each must be right without
the others. That is why a change inserts keywords and indentation and does not write a statement anew.
"""
import ast
import functools
import os
import re

from memreplay_record import frames


class Unwritten(Exception):
    """A change that cannot be written into the script; its text says why."""


@functools.lru_cache(maxsize=None)
def source_of(path):
    """Returns the Source of a file. Raises Unwritten if it is none of the script's, or no Python in UTF-8."""
    if not path or not frames.is_own(path):
        raise Unwritten(f"{os.path.basename(path)} is not a file of the script" if path else
                        "no line of the script is known for it")
    try:
        with open(path, "rb") as file:
            return Source(os.path.abspath(path), file.read())
    except (OSError, SyntaxError, ValueError) as error:
        raise Unwritten(f"{os.path.basename(path)} cannot be read: {error}") from error


class Source:
    """A file of the script as a tree whose nodes can be edited."""

    def __init__(self, path, data):
        data.decode("utf-8")  # in which positions of nodes are bytes
        self.path, self.data = path, data
        self.tree = ast.parse(data)
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}
        self._starts = [0, *(each.end() for each in re.finditer(b"\r\n|\r|\n", data))]
        self.newline = "\r\n" if b"\r\n" in data else "\n"

    def at(self, line, column):
        return self._starts[line - 1] + column + (3 if line == 1 and self.data.startswith(b"\xef\xbb\xbf") else 0)

    def span(self, node):
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def text(self, node):
        begin, end = self.span(node)
        return self.data[begin:end].decode("utf-8")

    def edit(self, begin, end, text):
        return {"file": self.path, "begin": begin, "end": end, "text": text.replace("\n", self.newline)}

    # Finding.

    def statement_of(self, node):
        """Returns the statement that a node is in."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def block_of(self, statement):
        """Returns the list of statements that a statement stands in."""
        for _, block in ast.iter_fields(self.parents[statement]):
            if isinstance(block, list) and statement in block:
                return block
        raise Unwritten("its statement stands in no block")

    def calls(self, line, accepts):
        """Returns the calls around or on a line that accepts(call) is true for, innermost first."""
        found = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call) and
                 node.lineno <= line <= node.end_lineno and accepts(node)]
        return sorted(found, key=lambda node: node.end_lineno - node.lineno)

    def call(self, line, accepts, what):
        """Returns the one call on a line that accepts(call) is true for. Raises Unwritten if there is not one."""
        found = self.calls(line, accepts)
        if len(found) != 1:
            raise Unwritten(f"{os.path.basename(self.path)}:{line} has {len(found) or 'no'} "
                            f"call{'s' if len(found) > 1 else ''} of {what}")
        return found[0]

    def names(self):
        """Returns all identifiers of the file."""
        return {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}

    # Editing. All return lists of edits.

    def replace(self, node, text):
        return [self.edit(*self.span(node), text)]

    def set_keyword(self, call, name, value):
        """Gives a call the keyword argument name=value, in place of the one that it has."""
        for keyword in call.keywords:
            if keyword.arg == name:
                return self.replace(keyword.value, value)
        if any(keyword.arg is None for keyword in call.keywords):
            raise Unwritten(f"{os.path.basename(self.path)}:{call.lineno} is given its arguments by **")
        given = [*call.args, *call.keywords]
        if not given:
            end = self.span(call)[1] - 1
            return [self.edit(end, end, f"{name}={value}")]
        end = max(self.span(each)[1] for each in given)
        if len(given) == 1 and not call.keywords and isinstance(given[0], ast.GeneratorExp):
            raise Unwritten(f"{os.path.basename(self.path)}:{call.lineno} has a generator as its only argument")
        return [self.edit(*self._behind(call, end), f", {name}={value}")]

    def _behind(self, call, end):
        """Returns where the next argument of a call belongs: behind the parentheses that close its last one."""
        last = self.span(call)[1] - 1  # of the ")" of the call
        between = re.sub(rb"#[^\r\n]*", lambda found: b" " * len(found.group()), self.data[end:last])
        closed = between.rfind(b")") + 1
        return end + closed, end + closed

    def drop_keyword(self, call, name):
        """Takes a keyword argument from a call, with the comma in front of it or behind it."""
        given = sorted([*call.args, *call.keywords], key=lambda each: (each.lineno, each.col_offset)
                       if hasattr(each, "lineno") else (each.value.lineno, each.value.col_offset))
        for position, keyword in enumerate(given):
            if isinstance(keyword, ast.keyword) and keyword.arg == name:
                begin, end = self.span(keyword)
                if position > 0:
                    begin = self.span(given[position - 1])[1]
                elif len(given) > 1:
                    end = self.span(given[1])[0]
                return [self.edit(begin, end, "")]
        return []

    def before(self, statement, lines):
        """Puts lines before a statement, as far in as it is."""
        return self._insert(self._begin_of(statement), statement, lines)

    def after(self, statement, lines):
        """Puts lines after a statement, as far in as it is."""
        line = statement.end_lineno
        if self._others_on(statement):
            raise Unwritten(f"{os.path.basename(self.path)}:{line} has several statements")
        at = self._starts[line] if line < len(self._starts) else len(self.data)
        if at == len(self.data) and not self.data.endswith((b"\n", b"\r")):
            return [self.edit(at, at, "\n" + self._indented(statement, lines).rstrip("\n"))]
        return [self.edit(at, at, self._indented(statement, lines))]

    def wrap(self, first, last, header):
        """Puts the statements `first` to `last` of a block under a header: "with torch.no_grad():"."""
        begin = self._begin_of(first)
        if self._others_on(last):
            raise Unwritten(f"{os.path.basename(self.path)}:{last.lineno} has several statements")
        inside = self._inside_of_strings(first, last)
        found = [self.edit(begin, begin, self._indented(first, [header]))]
        for line in range(first.lineno, last.end_lineno + 1):
            at = self._starts[line - 1]
            if line not in inside and self.data[at:at + 1] not in (b"\n", b"\r", b""):
                found.append(self.edit(at, at, "    "))
        return found

    def add_import(self, line):
        """Puts an import after the last one at the top of the file, unless the file has it there already."""
        wanted = ast.dump(ast.parse(line).body[0])
        last, at = None, 0
        for statement in self.tree.body:
            if ast.dump(statement) == wanted:
                return []
            is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                last = statement
            elif not (is_text and last is None):
                break
            elif last is None:
                at = statement.end_lineno
        if last is not None:
            return self.after(last, [line])
        begin = self._starts[at] if at < len(self._starts) else len(self.data)
        return [self.edit(begin, begin, line + "\n")]

    def add_definition(self, lines):
        """Puts a function or class before the first statement of the file that is no import, with lines between."""
        for statement in self.tree.body:
            is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if not is_text and not isinstance(statement, (ast.Import, ast.ImportFrom)):
                return self.before(statement, [*lines, "", ""])
        raise Unwritten(f"{os.path.basename(self.path)} has no statements")

    def _begin_of(self, statement):
        """Returns where the line begins on which a statement, with its decorators, begins."""
        line = min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))])
        begin = self._starts[line - 1]
        if self.data[begin:self.at(line, statement.col_offset)].strip(b" \t\xef\xbb\xbf"):
            raise Unwritten(f"{os.path.basename(self.path)}:{line} has several statements")
        return begin + (3 if self.data[begin:].startswith(b"\xef\xbb\xbf") else 0)

    def _others_on(self, statement):
        """Returns whether another statement stands on the last line of one."""
        line = statement.end_lineno
        end = self._starts[line] if line < len(self._starts) else len(self.data)
        rest = self.data[self.at(line, statement.end_col_offset):end].strip()
        return bool(rest) and not rest.startswith(b"#")

    def _indented(self, statement, lines):
        begin = self._starts[statement.lineno - 1]
        indent = re.match(rb"[ \t]*", self.data[begin:]).group().decode("ascii")
        return "".join(f"{indent if line else ''}{line}\n" for line in lines)

    def _insert(self, at, statement, lines):
        return [self.edit(at, at, self._indented(statement, lines))]

    def _inside_of_strings(self, first, last):
        """Returns the lines on which a string goes on that began before them: they have no indentation."""
        found = set()
        for node in ast.walk(ast.Module(self.block_of(first), [])):
            if isinstance(node, (ast.Constant, ast.JoinedStr)) and first.lineno <= node.lineno <= last.end_lineno and \
                    (isinstance(node, ast.JoinedStr) or isinstance(node.value, (str, bytes))):
                found.update(range(node.lineno + 1, node.end_lineno + 1))
        return found
