"""A short notation for programs, for cases written by hand.

One string of ';'-separated steps. M and K are binary units; ids are names.

  total 60M | endless | conf <text> | explicit | fraction 0.5     header (before the first step)
  a x 20M [s1]      allocate x on stream 1 (default 0)  f x            free x
  u x s2            record_stream                       done s2        stream 2's work is complete
  c [p0,1]          empty_cache [of one pool]           set <text>     settings at run time
  frac 0.5          memory fraction                     fail 2         the next 2 driver allocations fail
  cp p0,1 [oom] [nosplit]   create a pool               cx p0,1        take its use-on-OOM flag back
  bp p0,1 / ep p0,1 / rp p0,1                           begin, end, release
  peak / accumulated                                    reset statistics
  X 10M             memory taken by others              Xf 10M         memory released by others
  repeat 20 a x% 2M | f y     the steps between bars, 20 times; % is the number of the round, from 0
"""

import json
import re

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def size(text):
    total = 0
    for sign, number, unit in re.findall(r"([+-]?)(\d+(?:\.\d+)?)([KMGT]?)", text):
        total += (-1 if sign == "-" else 1) * int((float if "." in number else int)(number) * UNITS[unit])
    return total


def pool(text):
    return [int(part) for part in text.lstrip("p").split(",")]


def steps(text):
    for step in (part.strip() for part in text.replace("\n", ";").split(";")):
        if step.startswith("repeat "):
            _, rounds, body = step.split(" ", 2)
            for number in range(int(rounds)):
                yield from (part.strip().replace("%", str(number)) for part in body.split("|"))
        elif step and not step.startswith("#"):
            yield step


def program(text):
    header = {"k": "h", "format": "memsched-flat", "version": 1}
    records = []
    ids = {}
    for step in steps(text):
        name, _, rest = step.partition(" ")
        words = rest.split()
        if name == "total":
            header["total"] = size(rest)
        elif name == "conf":
            header["conf"] = rest
        elif name == "endless":
            header["endless"] = 1
        elif name == "explicit":
            header["completion"] = "explicit"
        elif name == "fraction":
            header["fraction"] = float(rest)
        elif name == "a":
            record = {"k": "a", "id": ids.setdefault(words[0], len(ids) + 1), "b": size(words[1])}
            if len(words) > 2:
                record["s"] = int(words[2][1:])
            records.append(record)
        elif name == "f":
            records += [{"k": "f", "id": ids.setdefault(word, len(ids) + 1)} for word in words]
        elif name == "u":
            records.append({"k": "u", "id": ids.setdefault(words[0], len(ids) + 1), "s": int(words[1][1:])})
        elif name == "done":
            records.append({"k": "done", "s": int(words[0][1:])})
        elif name == "c":
            records.append({"k": "c"} | ({"p": pool(words[0])} if words else {}))
        elif name == "set":
            records.append({"k": "conf", "v": rest})
        elif name == "frac":
            records.append({"k": "frac", "v": float(rest)})
        elif name == "fail":
            records.append({"k": "fail", "n": int(rest)})
        elif name in ("cp", "cx", "bp", "ep", "rp"):
            flags = {flag: 1 for flag in words[1:]}
            records.append({"k": name, "p": pool(words[0])} | flags)
        elif name in ("peak", "accumulated"):
            records.append({"k": "x", "n": "reset_" + name})
        elif name in ("X", "Xf"):
            records.append({"k": name, "b": size(rest), "n": "other"})
        else:
            raise ValueError(f"unknown step {step!r}")
    return "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in [header] + records)
