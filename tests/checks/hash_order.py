"""Fails where C++ goes through a hash table, whose order is another in each process: of Abseil's, of the standard
library's, and of the map fields of protobuf messages. A loop whose order is in no answer says "in any order" in a
comment on its line or the line before it.
"""
import pathlib
import re
import sys

FOLDERS = ("trace", "synth", "sim", "report", "browser", "cuda", "record", "experiment", "cli")
TABLE = re.compile(r"\b(?:flat_hash|node_hash|unordered)_(?:map|set)<")
MAP_FIELD = re.compile(r"^ *map<.*> (\w+) =", re.MULTILINE)
LOOP = re.compile(r"\bfor \([^;]*? : (?:\w+(?:\.|->))*(\w+)\)|\b(\w+)(?:\.|->)begin\(\)|\b(?:c_\w+|erase_if)\((\w+),")
MAP_LOOP = re.compile(r"\bfor \([^;]*\] : .*\b(\w+)\(\)\)(?!\))")


def tables(text):
    """Yields the names that are declared for hash tables, by themselves or by the name of a type, and where."""
    for found in TABLE.finditer(text):
        depth, end = 1, found.end()
        while depth and end < len(text):
            depth += {"<": 1, ">": -1}.get(text[end], 0)
            end += 1
        for name in re.finditer(r"\w+", re.match(r"[&\s]*([\w, ]*)", text[end:])[0]):
            yield name[0], end + name.start()
        alias = re.search(r"using (\w+) = [\w:]*$", text[:found.start()])
        if alias:
            yield from ((name[1], name.start(1)) for name in re.finditer(rf"\b{alias[1]}&? (\w+)\b", text))


def faults(path, fields):
    """Yields lines of text, one for each loop of a file."""
    text = path.read_text(encoding="utf-8")
    here = set(tables(text))
    headers = [pathlib.Path(name) for name in re.findall(r'#include "([^"]+\.h)"', text)]
    there = {name for header in headers if header.parent == path.parent and header.exists()
             for name, _ in tables(header.read_text(encoding="utf-8"))}

    def is_table(name, at):
        """Returns whether the name's last declaration before a place is that of a hash table, or its only one."""
        declared = re.finditer(rf"(?<!return)[\w>&*] ({name})\b(?=[;({{,)]| =| :)", text[:at])
        before = [found.start(1) for found in declared]
        return (name, before[-1]) in here if before else name in there | {name for name, _ in here}

    for loop in [*LOOP.finditer(text), *MAP_LOOP.finditer(text)]:
        name = next(filter(None, loop.groups()))
        line = text.count("\n", 0, loop.start())
        if (name in fields if loop.re is MAP_LOOP else is_table(name, loop.start())) and \
                "in any order" not in "".join(text.splitlines()[max(line - 1, 0):line + 1]).lower():
            yield f"{path}:{line + 1}: the order of {name} is another in each process; sort, or say: in any order"


def main():
    fields = {name for path in pathlib.Path("proto").glob("*.proto")
              for name in MAP_FIELD.findall(path.read_text(encoding="utf-8"))}
    shown = [fault for folder in FOLDERS for path in sorted(pathlib.Path(folder).rglob("*"))
             if path.suffix in (".cc", ".h") for fault in faults(path, fields)]
    print("\n".join([*shown, f"{len(shown)} loops through hash tables"]))
    return 1 if shown else 0


if __name__ == "__main__":
    sys.exit(main())
