"""Reads cards.tsv and checks it.

    card_rows.py OUT.cc   makes its rows the constants of card_rows.h
"""
import csv
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
UNITS = {"B": 1, "MiB": 1 << 20, "GiB": 1 << 30}
# What the column's text is taken to be, in the order of CardRow.
COLUMNS = {
    "name": lambda text: quoted(text, r"[a-z0-9][a-z0-9.-]*"),
    "title": lambda text: quoted(text),
    "group": lambda text: quoted(text),
    "capability": lambda text: str(int("".join(re.fullmatch(r"(\d+)\.(\d)", text).groups()))),
    "linux": lambda text: memory(text),
    "windows": lambda text: memory(text),
    "memory is": lambda text: {"reported": "false", "nominal": "true"}[text],
    **{name: lambda text: "0" if text == "-" else str(int(text))
       for name in ("multiprocessors", "l2 KiB", "clock MHz", "memory clock MHz", "bus bits", "tflops", "lanes")},
    "source": lambda text: quoted(text),
}


def rows(name):
    """Returns the rows of a table here as dictionaries; lines that begin with '#' are comments."""
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader([line for line in lines if not line.startswith("#")], delimiter="\t",
                               quoting=csv.QUOTE_NONE))


def quoted(text, form=r'[^"\\]+'):
    return f'"{re.fullmatch(form, text).group()}"'


def memory(text):
    if text == "-":
        return "0"
    number, unit = text.split()
    return str(int(number) * UNITS[unit])


def constant(row):
    """Returns a row in C++. Error: ValueError, which names the GPU and the column."""
    if set(row) != set(COLUMNS):  # also of a row with a field too many or too few
        raise ValueError(f"cards.tsv: {row['name']}: expected the columns {', '.join(COLUMNS)}")
    fields = []
    for column, read in COLUMNS.items():
        try:
            fields.append(read(row[column]))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"cards.tsv: {row['name']}: column '{column}': found {row[column]!r}") from error
    return f"    {{{', '.join(fields)}}},"


def write(path):
    cards = rows("cards.tsv")
    names = [card["name"] for card in cards]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"cards.tsv: more than one row of {', '.join(sorted(twice))}")
    unknown = [card["name"] for card in cards
               if card["linux"] == card["windows"] == "-" or card["multiprocessors"] == "-"]
    if unknown:
        raise ValueError(f"cards.tsv: without memory or multiprocessors: {', '.join(unknown)}")
    text = ['#include "hardware/card_rows.h"', "", "namespace memreplay {", "", "const CardRow kCardRows[] = {",
            *map(constant, cards), "};", f"const size_t kCardRowCount = {len(cards)};", "",
            "}  // namespace memreplay", ""]
    pathlib.Path(path).write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1])
