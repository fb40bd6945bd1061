"""Edits of the script's own files: a proposal's change as a patch, which leaves the rest of a file as it is.

An edit replaces the bytes [begin, end) of a file by a text (Edit, proto/record.proto). Several changes may edit one
file: their edits are made together, those of the same place in the order of the changes, and each must be right without
the others. That is why a change inserts keywords and indentation and does not write a statement anew.
"""
import ast
import functools
import os
import re

from memreplay_record import edited, frames

# What returns the module that it is a method of.
_OF_ITSELF = {"to", "cuda", "train", "eval", "float", "half", "bfloat16", "double", "requires_grad_", "apply"}


class Unwritten(Exception):
    """A change that cannot be written into the script; its text says why."""


def unwritten(reason):
    """Returns the `edits` of a Proposal that cannot be written."""
    def raises():
        raise Unwritten(reason)
    return raises


def place(path, line):
    return f"{os.path.basename(path)}:{line}"


def of_keyword(call, name, value, of=""):
    """Returns the edits that give a Call (survey.py), of a function `of`, a keyword argument."""
    source = source_of(call.path)
    return source.set_keyword(source.call(call, of), name, value)


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


def checked(edits):
    """Returns edits in their order. Raises Unwritten if what they make of a file is no Python."""
    by_file = {}
    for edit in sorted(edits, key=lambda each: (each["file"], each["begin"], each["end"])):
        by_file.setdefault(edit["file"], []).append(edit)
    for path, own in by_file.items():
        source = source_of(path)
        defined = {name for edit in own for name in re.findall(r"^(?:class|def) (\w+)", edit["text"], re.M)}
        for name in sorted(defined & source.names):  # the script's own would take its place
            for edit in own:
                edit["text"] = re.sub(rf"\b{name}\b", source.free_name(name), edit["text"])
        if any(after["begin"] < before["end"] for before, after in zip(own, own[1:])):
            raise Unwritten(f"two edits of one place in {source.name}")
        try:
            ast.parse(edited.spliced(source.data, [(each["begin"], each["end"], each["text"]) for each in own]))
        except SyntaxError as error:
            raise Unwritten(f"{source.name} would be no Python: {error.msg}") from error
    return [edit for own in by_file.values() for edit in own]


class Source:
    """A file of the script as a tree whose nodes can be edited."""

    def __init__(self, path, data):
        data.decode("utf-8")  # in which positions of nodes are bytes
        self.path, self.data, self.name = path, data, os.path.basename(path)
        self.tree = ast.parse(data)
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}
        self._starts = [0, *(each.end() for each in re.finditer(b"\r\n|\r|\n", data)), len(data)]
        self.newline = "\r\n" if b"\r\n" in data else "\n"
        self._first = 3 if data.startswith(b"\xef\xbb\xbf") else 0  # byte behind the mark of UTF-8

    def at(self, line, column):
        return self._starts[line - 1] + column + (self._first if line == 1 else 0)

    def span(self, node):
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def text(self, node):
        begin, end = self.span(node)
        return self.data[begin:end].decode("utf-8")

    def edit(self, begin, end, text):
        return {"file": self.path, "begin": begin, "end": end, "text": text.replace("\n", self.newline)}

    def refuse(self, node, why):
        raise Unwritten(f"{self.name}:{node.lineno} {why}")

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

    def scope_of(self, node):
        """Returns the function, class or module that a node is in."""
        while not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)):
            node = self.parents[node]
        return node

    def loads(self, names, node):
        """Yields the nodes in a scope that read one of the names, in functions inside it as well."""
        for each in ast.iter_child_nodes(node):
            is_scope = isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef))
            own = {found.arg if isinstance(found, ast.arg) else found.id for found in ast.walk(each)
                   if isinstance(found, ast.arg) or isinstance(getattr(found, "ctx", None), ast.Store) and
                   isinstance(found, ast.Name)} if is_scope else set()
            if isinstance(each, ast.Name) and each.id in names and isinstance(each.ctx, ast.Load):
                yield each
            yield from self.loads(set(names) - own, each)

    def is_bound_before(self, name):
        """Returns whether a statement in front of the one with a name, in its block, assigns to the name."""
        statement = self.statement_of(name)
        block = self.block_of(statement)
        before = [each for each in block[:block.index(statement)] if isinstance(each, ast.Assign)]
        return any(isinstance(node, ast.Name) and node.id == name.id and isinstance(node.ctx, ast.Store)
                   for each in before for node in ast.walk(each))

    def simple(self, node):
        """Returns the statement that a node is in. Raises Unwritten if other statements are inside it."""
        statement = self.statement_of(node)
        if hasattr(statement, "body"):
            self.refuse(node, "calls it in the head of a block")
        return statement

    def call(self, call, name=""):
        """Returns the node of a Call (survey.py), whose function has the `name` unless that is "".

        Raises Unwritten if no such call stands in the line, or several do.
        """
        ends = call.ends
        found = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call) and
                 ((node.end_lineno, node.end_col_offset) == ends if ends else
                  node.lineno <= call.line <= node.end_lineno) and
                 (not name or ast.unparse(node.func).rpartition(".")[2] == name)]
        if len(found) != 1:
            raise Unwritten(f"{self.name}:{call.line} has {'several calls' if found else 'no call'} of "
                            f"{name or 'a function'}")
        return found[0]

    def free_name(self, *names):
        """Returns the first of the names that the file does not use, or the last one with a number."""
        return next(name for name in (*names, *(f"{names[-1]}_{i}" for i in range(2, 100))) if name not in self.names)

    @functools.cached_property
    def names(self):
        """The names that the file uses or binds anywhere."""
        kinds = {ast.Name: "id", ast.arg: "arg", ast.alias: "asname", ast.FunctionDef: "name", ast.ClassDef: "name"}
        return {getattr(node, kinds[type(node)]) or node.name.partition(".")[0]
                for node in ast.walk(self.tree) if type(node) in kinds}

    # Editing. All return lists of edits.

    def replace(self, node, text):
        return [self.edit(*self.span(node), text)]

    def set_keyword(self, call, name, value):
        """Gives a call the keyword argument name=value, in place of the one that it has."""
        for keyword in call.keywords:
            if keyword.arg == name:
                return [] if self.text(keyword.value) == value else self.replace(keyword.value, value)
        for keyword in call.keywords:
            if keyword.arg is None:  # it may have the same key
                begin, end = self.span(keyword.value)
                return [self.edit(begin, begin, "{**"), self.edit(end, end, f', "{name}": {value}}}')]
        return self.add_argument(call, f"{name}={value}")

    def add_argument(self, call, text):
        given = [*call.args, *call.keywords]
        if not given:
            end = self.span(call)[1] - 1
            return [self.edit(end, end, text)]  # MergeEdits() puts commas between several
        if len(given) == 1 and isinstance(given[0], ast.GeneratorExp):
            self.refuse(call, "has a generator as its only argument")
        end = max(self.span(each)[1] for each in given)
        last = self.span(call)[1] - 1  # of the ")" of the call
        between = re.sub(rb"#[^\r\n]*", lambda found: b" " * len(found.group()), self.data[end:last])
        end += between.rfind(b")") + 1  # behind the parentheses that close the last argument
        return [self.edit(end, end, f", {text}")]

    def drop_keywords(self, call, drops):
        """Takes the keyword arguments that drops(name) is true of from a call, with the commas in front of them."""
        given = sorted([*call.args, *call.keywords], key=self.span)
        found = []
        for position, keyword in enumerate(given):
            if isinstance(keyword, ast.keyword) and drops(keyword.arg):
                if keyword.arg is None:
                    self.refuse(call, "is given its arguments by **")
                if position == 0:
                    self.refuse(call, "has no argument in front of those that go")
                # Behind the parentheses that close the argument before it.
                between = self.data[self.span(given[position - 1])[1]:self.span(keyword)[0]]
                begin = self.span(keyword)[0] - len(between) + between.rfind(b",")
                found.append(self.edit(begin, self.span(keyword)[1], ""))
        return found

    def drop(self, statement):
        """Takes a statement away, with its lines."""
        if not self._is_first(statement) or self._others_on(statement):
            self.refuse(statement, "has several statements")
        return [self.edit(self._starts[statement.lineno - 1], self._starts[statement.end_lineno], "")]

    def before(self, statement, lines):
        """Puts lines before a statement, as far in as it is."""
        outer = self._whole_line(statement)
        return self._insert(self._begin_line(outer), self._indented(outer, lines))

    def after(self, statement, lines):
        """Puts lines after a statement, as far in as it is; one line behind a statement that shares its own."""
        if len(lines) == 1 and (not self._is_first(statement) or self._others_on(statement)):
            end = self.span(statement)[1]
            return [self.edit(end, end, f"; {lines[0]}")]
        outer = self._whole_line(statement)
        return self._insert(statement.end_lineno + 1, self._indented(outer, lines))

    def wrap(self, first, last, header):
        """Puts the statements `first` to `last` of a block under a header: "with torch.no_grad():"."""
        if first is last:
            first = self._whole_line(first)
            last = last if last in self.block_of(first) else first
        block = self.block_of(last)
        if not self._is_first(first):
            self.refuse(first, "has several statements")
        begin, indent = self._starts[first.lineno - 1], self._indent_of(first)
        if self._begin_line(first) == 1:
            begin = self._first
        found = [self.edit(begin, begin, f"{indent}{header}\n")]
        inside = self._inside_of_strings(first, last)
        for line in range(first.lineno, last.end_lineno + 1):
            at = self._starts[line - 1] + (self._first if line == 1 else 0)
            at += len(re.match(rb"[ \t]*", self.data[at:]).group())  # behind what others put in front of the line
            if line not in inside and self.data[at:at + 1] not in (b"\n", b"\r", b""):
                found.append(self.edit(at, at, "    "))
        behind = block[block.index(last) + 1:]
        if behind and behind[0].lineno == last.end_lineno:  # "; ..." goes to a line of its own
            found.append(self.edit(self.span(last)[1], self.span(behind[0])[0], f"\n{indent}"))
        return found

    def add_import(self, line, before):
        """Puts an import after the last one in front of a node, unless the file has it there already."""
        def imported(statement):
            return {(getattr(statement, "module", ""), alias.name, alias.asname) for alias in statement.names}

        wanted, number = ast.parse(line).body[0], self._imports_before(before)
        if any(type(each) is type(wanted) and imported(wanted) <= imported(each) for each in self.tree.body[:number]):
            return []
        return self._insert_behind(number, [line])

    def add_definition(self, lines, before):
        """Puts a function or class after the last import in front of a node."""
        number = self._imports_before(before)
        line = self.tree.body[number - 1].end_lineno + 1 if number else self._begin_line(self.tree.body[0])
        rest = self.data[self._starts[line - 1]:].partition(b"\n")[0] if line <= len(self._starts) else b""
        return self._insert_behind(number, ["", "", *lines, *([""] * 2 if rest.strip() else [])])

    def above(self, node, imports, definition=()):
        """Puts imports, and behind them a function or class, in front of the statement at the top that has a node."""
        return [*(edit for line in imports for edit in self.add_import(line, node)),
                *(self.add_definition(definition, node) if definition else ())]

    def _imports_before(self, node):
        """Returns how many of the file's statements there are up to the last import in front of the one with a node."""
        while self.parents[node] is not self.tree:
            node = self.parents[node]
        number = 0
        for position, statement in enumerate(self.tree.body[:self.tree.body.index(node)]):
            is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if isinstance(statement, (ast.Import, ast.ImportFrom)) or is_text and position == 0:
                number = position + 1
        return number

    def _insert_behind(self, number, lines):
        if number == 0:
            return self._insert(self._begin_line(self.tree.body[0]), lines)
        return self._insert(self.tree.body[number - 1].end_lineno + 1, lines)

    def _insert(self, line, lines):
        """Puts lines in front of a line: behind those that were put there, and in front of a header of wrap()."""
        if line == 1:
            return [self.edit(self._first, self._first, "".join(f"{each}\n" for each in lines))]
        end = self._starts[line - 1] if line <= len(self._starts) else len(self.data)
        end -= len(re.search(rb"(\r\n|\r|\n)?\Z", self.data[self._starts[line - 2]:end]).group())
        return [self.edit(end, end, "".join(f"\n{each}" for each in lines))]

    @staticmethod
    def _begin_line(statement):
        return min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))])

    def _is_first(self, statement):
        """Returns whether a statement begins its line."""
        before = self.data[self.at(statement.lineno, 0):self.span(statement)[0]]
        return not before.strip() or before.strip() == b"@"

    def _others_on(self, statement):
        """Returns whether another statement stands on the last line of one."""
        rest = self.data[self.span(statement)[1]:self._starts[statement.end_lineno]].strip()
        return bool(rest) and not rest.startswith(b"#")

    def _whole_line(self, statement):
        """Returns the first statement of the line that a statement stands in: a `with` that has it, or one with ";"."""
        while not self._is_first(statement):
            block, outer = self.block_of(statement), self.parents[statement]
            if statement is not block[0]:
                statement = block[0]
            elif isinstance(outer, (ast.With, ast.AsyncWith)):
                statement = outer
            else:
                self.refuse(statement, "has several statements")
        return statement

    def _indent_of(self, statement):
        return re.match(rb"[ \t]*", self.data[self.at(statement.lineno, 0):]).group().decode("ascii")

    def _indented(self, statement, lines):
        indent = self._indent_of(statement)
        return [f"{indent}{line}" if line else "" for line in lines]

    def _inside_of_strings(self, first, last):
        """Returns the lines on which a string goes on that began before them: they have no indentation."""
        found = set()
        for node in ast.walk(ast.Module(self.block_of(first), [])):
            if isinstance(node, (ast.Constant, ast.JoinedStr)) and first.lineno <= node.lineno <= last.end_lineno and \
                    (isinstance(node, ast.JoinedStr) or isinstance(node.value, (str, bytes))):
                found.update(range(node.lineno + 1, node.end_lineno + 1))
        return found


class Binding:
    """The statement that binds a new object to a name: `model = Model().cuda()`."""

    def __init__(self, source, statement, name):
        self.source, self.statement, self.name = source, statement, name

    def after(self, lines, imports=(), definition=()):
        """Returns the edits that put lines behind it, with {name} for its name."""
        source = self.source
        return [*source.above(self.statement, imports, definition), *source.after(self.statement, lines)]


def binding_of(calls, what):
    """Returns the Binding of what was made by the first of `calls`, which the next one called, and so on.

    Raises Unwritten if no such statement is known.
    """
    for call in calls:
        source = source_of(call.path)
        node = source.call(call)
        while True:
            outer = source.parents[node]
            method = source.parents[outer] if isinstance(outer, ast.Attribute) and outer.attr in _OF_ITSELF else None
            if not isinstance(method, ast.Call):
                break
            node = method
        if isinstance(outer, ast.IfExp):
            outer = source.parents[outer]
        if isinstance(outer, ast.Return):
            continue
        targets = outer.targets if isinstance(outer, ast.Assign) else [outer.target] \
            if isinstance(outer, ast.AnnAssign) else []
        for target in targets:
            if isinstance(target, (ast.Name, ast.Attribute)):
                return Binding(source, outer, source.text(target))
        source.refuse(node, f"makes {what} and binds it to no name")
    raise Unwritten(f"no statement of the script that makes {what} is known")
