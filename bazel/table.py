"""Writes the rows of tables as a C++ header: one constexpr array for each table.

    table.py OUT.h HEADER NAME=FILE.tsv...   NAME is kForms, an array of a struct made of the columns; Form:kForms,
                                             an array of a struct that HEADER declares; or Tip:k*Tip, a constant for
                                             each row, with what the first column has for the asterisk

A table is a file of tab-separated values. Lines that begin with '#' are comments, and empty lines are left out. The
first other line names the columns:

    *words         a text; the columns with an asterisk identify a row
    side:Side      an enumerator without its k: After is Side::kAfter
    strength:int   a number

A cell "-" is an empty text. A text that begins or ends with a blank is set between double quotes. An enumerator that
does not exist is an error of the compiler in the table's line; every other fault is one here.
"""

import pathlib
import re
import sys


class Fault(Exception):
    """What is wrong with a table, and where."""


def constant(text, kind):
    """Returns a cell in C++. Error: ValueError, which says what was expected."""
    if kind == "int":
        if not re.fullmatch(r"-?\d+", text):
            raise ValueError("expected a number")
        return text
    if kind != "text":
        if not re.fullmatch(r"[A-Z]\w*", text):
            raise ValueError(f"expected a {kind}")
        return f"{kind}::k{text}"
    quoted = len(text) > 1 and text[0] == text[-1] == '"'
    if text == "" or (text != text.strip() and not quoted):
        raise ValueError("expected a text, in double quotes if it begins or ends with a blank, or -")
    text = text[1:-1] if quoted else "" if text == "-" else text
    if not text.isprintable():
        raise ValueError("expected printable characters")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def columns(line):
    """Returns the columns of a header line as (name, kind, whether they identify the row)."""
    found = []
    for cell in line.split("\t"):
        match = re.fullmatch(r"(\*?)([a-z]\w*)(?::(\w+))?", cell)
        if match is None:
            raise ValueError(f"expected the name of a column, found {cell!r}")
        found.append((match[2], match[3] or "text", match[1] == "*"))
    return found


def row(line, header, seen):
    """Returns the cells of a row in C++, and adds what identifies it to `seen`."""
    cells = line.split("\t")
    if len(cells) != len(header):
        raise ValueError(f"expected {len(header)} columns, found {len(cells)}")
    values = []
    for cell, (name, kind, _) in zip(cells, header):
        try:
            values.append(constant(cell, kind))
        except ValueError as error:
            raise ValueError(f"column {name}: {error}, found {cell!r}") from error
    key = tuple(value for value, column in zip(values, header) if column[2])
    if key and key in seen:
        raise ValueError(f"{', '.join(key)} has a row already")
    seen.add(key)
    return values


def table(name, path):
    """Returns the lines that define the rows of one table."""
    struct, _, constant_name = name.rpartition(":")
    header, rows, seen = None, [], set()
    for number, line in enumerate(pathlib.Path(path).read_text(encoding="utf-8").splitlines(), 1):
        if line == "" or line.startswith("#"):
            continue
        try:
            if header is None:
                header = columns(line)
                continue
            values = row(line, header, seen)
        except ValueError as error:
            raise Fault(f"{path}:{number}: {error}") from error
        rows.append(f'#line {number} "{path}"')
        if "*" in constant_name:
            name_of_row = constant_name.replace("*", values[0].strip('"'))
            rows.append(f"constexpr {struct} {name_of_row} = {{{', '.join(values[1:])}}};")
        else:
            rows.append(f"    {{{', '.join(values)}}},")
    if not rows:
        raise Fault(f"{path}: expected rows")
    if "*" in constant_name:
        return rows
    if struct == "":
        types = {"text": "std::string_view", "int": "int"}
        struct = "struct {" + " ".join(f"{types.get(kind, kind)} {name};" for name, kind, _ in header) + "}"
    return [f"constexpr {struct} {constant_name}[] = {{", *rows, "};"]


def main():
    out, header, *tables = sys.argv[1:]
    lines = ["#pragma once", "#include <string_view>", f'#include "{header}"', "namespace memreplay {"]
    try:
        for name, path in (each.split("=", 1) for each in tables):
            lines += table(name, path)
    except Fault as fault:
        sys.exit(str(fault))
    pathlib.Path(out).write_text("\n".join([*lines, "}  // namespace memreplay", ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
