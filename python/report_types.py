"""Writes the messages of a schema as typed classes, which use memreplay/_message.py next to them.

Usage: report_types.py OUTPUT [SCHEMA NAME...]; by default all of proto/report.proto and proto/record.proto:
memreplay/report_types.py. It runs when the binary or the wheel is built, so that the schema is written once.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
SCALARS = {
    "string": ("str", "text"),
    "bool": ("bool", "boolean"),
    "double": ("float", "real"),
    "int32": ("int", "integer"),
    "int64": ("int", "integer"),
    "uint64": ("int", "integer"),
    "bytes": ("str", "path"),
}
TOKEN = re.compile(r"//[^\n]*|\"[^\"]*\"|map<\w+, *\w+>|[\w.]+|[{}=;\[\],]|\n")


class Message:
    def __init__(self, name, parent, comment):
        self.name, self.parent, self.comment = name, parent, comment
        self.fields, self.nested, self.enums, self.values = [], {}, {}, {}

    @property
    def path(self):
        return f"{self.parent.path}.{self.name}" if self.parent and self.parent.name else self.name

    def is_enum(self, name):
        """Returns whether `name` is one of the enums that can be seen from here."""
        return name in self.enums or bool(self.parent) and self.parent.is_enum(name)

    def find(self, name):
        """Returns the message called `name` as seen from here, as protobuf looks it up."""
        first, *rest = name.split(".")
        scope = self
        while scope and first not in scope.nested:
            scope = scope.parent
        found = scope and scope.nested[first]
        for part in rest:
            found = found and found.nested.get(part)
        return found


def parse(name, root):
    """Adds the messages of a .proto file and of its imports to `root`; supports the syntax that these files use."""
    text = (ROOT / name).read_text(encoding="utf-8")
    for imported in re.findall(r'^import "(proto/.*)";', text, re.MULTILINE):
        parse(imported, root)
    scope, words, comment, trailing, opened = root, [], [], None, []
    for token in TOKEN.findall(text):
        if token == "\n":
            trailing = None
        elif token.startswith("//"):
            if trailing:
                trailing[2].append(token[2:].strip())
            else:
                comment.append(token[2:].strip())
        elif token == "{" and words[0] == "oneof":  # its fields are those of the message around it
            opened.append(scope)
            words, comment = [], []
        elif token == "{" and words[0] == "enum":
            opened.append(scope)
            scope.enums[words[1]] = inner = Message(words[1], scope, comment)  # values are names, no fields
            scope, words, comment = inner, [], []
        elif token == "{":
            opened.append(scope)
            inner = Message(words[1], scope, comment)
            scope.nested[inner.name] = inner
            scope, words, comment = inner, [], []
        elif token == "}":
            scope, words, comment = opened.pop(), [], []
        elif token == ";":
            if len(words) >= 4 and words[-2] == "=":
                kind = " ".join(words[:-3])
                trailing = (words[-3], kind, comment)
                scope.fields.append(trailing)
            elif len(words) == 3:
                scope.values[words[0]] = words[2]
            words, comment = [], []
        else:
            words.append(token)


def annotation(message, kind):
    """Returns the type of a field, and the descriptor that reads it. Enums are their names."""
    *repeated, name = kind.split()
    if message.is_enum(name):
        kind = " ".join([*repeated, "string"])
    if kind.startswith("optional "):
        kind = kind.split()[1]
        if kind in SCALARS:
            python, reader = SCALARS[kind]
            return f"Optional[{python}]", f"_message.maybe(_message.{reader})"
    if kind in SCALARS:
        python, reader = SCALARS[kind]
        return python, f"_message.{reader}()"
    if kind.startswith("map<"):
        python, reader = SCALARS[kind[4:-1].split(",")[1].strip()]
        return f"Dict[str, {python}]", f"_message.mapping(_message.{reader})"
    if kind.startswith("repeated "):
        inner = kind.split()[1]
        if inner in SCALARS:
            python, reader = SCALARS[inner]
            return f"List[{python}]", f"_message.repeated(_message.{reader})"
        path = message.find(inner).path
        return f"List[{path}]", f"_message.messages(lambda: {path})"
    if kind == "google.protobuf.Value":
        return "Any", "_message.value()"
    path = message.find(kind).path
    return f"Optional[{path}]", f"_message.optional(lambda: {path})"


def write(message, schema, indent, lines):
    pad = " " * indent
    lines += ["", f"{pad}class {message.name}(Message):"]
    text = " ".join(message.comment) or f"{message.name} of {schema}."
    lines.append(f'{pad}    """{text}"""')
    for nested in message.nested.values():
        write(nested, schema, indent + 4, lines)
    lines.append("")
    if "Version" in message.enums:
        lines.append(f"{pad}    VERSION = {message.enums['Version'].values['current']}")
    for name, kind, comment in message.fields:
        if name == "unknown":  # a method of Message; to_dict() has the field
            continue
        python, reader = annotation(message, kind)
        lines += [f"{pad}    #: {line}" for line in comment]
        lines.append(f"{pad}    {name}: {python} = {reader}")


def main(output, *arguments):
    schemas, names = arguments[:1] or ("proto/report.proto", "proto/record.proto"), arguments[1:]
    root = Message("", None, [])
    for each in schemas:
        parse(each, root)
    schema = " and ".join(schemas)
    lines = [f'"""What memreplay says, field by field: {schema} as Python. Generated."""', "",
             "from __future__ import annotations", "", "from typing import Any, Dict, List, Optional", "",
             "from . import _message", "from ._message import Message", ""]
    for message in root.nested.values():
        if not names or message.name in names:
            write(message, schema, 0, lines)
    path, text = pathlib.Path(output), "\n".join(lines) + "\n"
    if not path.exists() or path.read_text(encoding="utf-8") != text:  # a newer file would require another build
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
