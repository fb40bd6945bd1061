"""Compares what two engines did with a program, and finds the shortest program on which they differ.

An engine is PyTorch's library of one release, or memreplay. Both take program files and give Outcome objects.
"""

import json
import os
import pathlib
import subprocess
import tempfile

import harness


class Library:
    def __init__(self, version, jobs=1):
        self.name = f"torch {version}"
        self.runner = harness.build(version)
        self.jobs = jobs

    def run(self, programs, folder):
        outputs = [pathlib.Path(folder) / (path.stem + ".library") for path in programs]
        harness.run_library(self.runner, programs, outputs, self.jobs)
        outcomes = []
        for path in outputs:
            outcomes.append(harness.Outcome(path.read_text()))
            path.unlink()
        return outcomes


def numbers(value):
    """Makes numbers of the strings that integers which a double cannot hold are in the JSON of reports."""
    if isinstance(value, dict):
        return {key: numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [numbers(item) for item in value]
    if isinstance(value, str) and value.removeprefix("-").isdigit():
        return int(value)
    return value


def json_values(text):
    """Yields the JSON objects that follow each other in a text; one that stands alone may be spread over lines."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at >= 0:
        value, end = decoder.raw_decode(text, at)
        yield value
        at = text.find("{", end)


class Memreplay:
    """Runs `memreplay replay A.jsonl B.jsonl ... --torch=V --events-out-dir DIR --json`, which prints one report per
    line and writes the events of A.jsonl to DIR/A.jsonl.events.jsonl, one object per line with the keys of a trace
    entry (action, addr or device_free, size, stream). The report has devices[0].statistics (PyTorch's flat names),
    devices[0].segments and, for settings and calls that PyTorch rejects, devices[0].failures: [{"request": N, ...}]."""

    def __init__(self, path, version, jobs=1):
        self.name = "memreplay"
        self.path = str(path)
        self.version = harness.minor(version)
        self.jobs = jobs

    def run(self, programs, folder):
        found = {}
        left = list(programs)
        while left:  # a run that dies takes the programs after it along: they are run again without it
            chunks = [left[i::self.jobs] for i in range(self.jobs)]
            left = []
            for chunk, events, reports, process in [self.start(c, n, folder) for n, c in enumerate(chunks) if c]:
                errors = process.communicate()[1]
                reports.seek(0)
                answers = list(json_values(reports.read()))
                reports.close()
                for program, report in zip(chunk, answers):
                    outcome = found[program] = harness.Outcome("")
                    outcome.result = self.result(report, program)
                    recorded = events / (program.name + ".events.jsonl")
                    if recorded.exists():
                        outcome.lines = recorded.read_text().splitlines()
                        recorded.unlink()
                if len(answers) < len(chunk):
                    outcome = found[chunk[len(answers)]] = harness.Outcome("")
                    outcome.result = {"failed": f"memreplay ended with {process.returncode}: {errors[-500:]}"}
                    left += chunk[len(answers) + 1:]
        return [found[program] for program in programs]

    def start(self, chunk, number, folder):
        events = pathlib.Path(folder) / f"events{number}"
        events.mkdir(exist_ok=True)
        reports = open(pathlib.Path(folder) / f"reports{number}", "w+")
        command = [self.path, "replay", *map(str, chunk), f"--torch={self.version}", "--addresses=up",
                   f"--events-out-dir={events}", "--json"]
        return chunk, events, reports, subprocess.Popen(command, stdout=reports, stderr=subprocess.PIPE, text=True)

    @staticmethod
    def result(report, program):
        if not report.get("devices"):
            return {"failed": report.get("error", "memreplay reported no device")}
        device = numbers(report["devices"][0])
        lines = request_lines(program.read_text())
        # The runner lists OutOfMemoryErrors apart; trace entries and statistics tell of them.
        errors = [{"line": lines[failure["request"]]} for failure in device.get("failures", [])
                  if not failure["is_out_of_memory"]]
        return {"statistics": device["statistics"], "segments": device.get("segments", []),
                "rules": device.get("rules", {}), "errors": errors}


def request_lines(text):
    """Returns the lines of a program, from 1, that are requests: all except the header, and the release of bytes that
    were never taken."""
    found, outside = [], {}
    for number, line in enumerate(text.splitlines(), 1):
        record = json.loads(line)
        kind, name = record["k"], record.get("n")
        if kind == "X":
            outside[name] = outside.get(name, 0) + record["b"]
        elif kind == "Xf":
            returned = min(record.get("b", 1 << 63), outside.get(name, 0))
            if returned == 0:
                continue
            outside[name] -= returned
        if kind != "h":
            found.append(number)
    return found


def run_texts(engine, texts):
    """Runs programs given as text; returns their outcomes in order."""
    with tempfile.TemporaryDirectory(dir=scratch()) as folder:
        programs = []
        for index, text in enumerate(texts):
            programs.append(pathlib.Path(folder) / f"{index}.jsonl")
            programs[-1].write_text(text)
        return engine.run(programs, folder)


def scratch():
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


KEYS = ("action", "addr", "device_free", "size", "stream")


def event_key(line):
    event = json.loads(line)
    return tuple(event.get(key) for key in KEYS)


def difference(left, right, same_release=True):
    """Returns None when both did the same, else what differs first, in words."""
    for outcome in (left, right):
        if "failed" in outcome.result:
            return "an engine failed: " + str(outcome.result["failed"])
    if left.lines != right.lines:
        for index in range(max(len(left.lines), len(right.lines))):
            a = left.lines[index] if index < len(left.lines) else None
            b = right.lines[index] if index < len(right.lines) else None
            if a == b:
                continue
            if a is None or b is None or event_key(a) != event_key(b):
                return f"event {index}: {a or 'none'} against {b or 'none'}"
    if ("crashed" in left.result) != ("crashed" in right.result):
        return "one of them crashed"
    a, b = left.result.get("statistics", {}), right.result.get("statistics", {})
    for name in sorted(set(a) | set(b)):
        if a.get(name) != b.get(name) and (same_release or (name in a and name in b)):
            return f"statistic {name}: {a.get(name)} against {b.get(name)}"
    a, b = left.result.get("segments", []), right.result.get("segments", [])
    for index in range(max(len(a), len(b))):
        if index >= len(a) or index >= len(b):
            alone = (a + b)[-1] if index < len(a) or index < len(b) else None
            return f"segment {index} is only in one of them: {json.dumps(alone)}"
        for key in set(a[index]) | (set(b[index]) if same_release else set()):
            if key in a[index] and a[index][key] != b[index].get(key):
                if key == "blocks":
                    for x, y in zip(a[index][key], b[index].get(key, [])):
                        if x != {k: y.get(k) for k in x}:
                            return f"segment {index}, block {json.dumps(x)} against {json.dumps(y)}"
                    if len(a[index][key]) == len(b[index].get(key, [])):
                        continue
                return (f"segment {index}, {key}: {json.dumps(a[index][key])[:300]} "
                        f"against {json.dumps(b[index].get(key))[:300]}")
    if "errors" in left.result and "errors" in right.result:
        a, b = ([error["line"] for error in outcome.result["errors"]] for outcome in (left, right))
        if a != b:
            return f"lines with an error: {a} against {b}"
    return None


def pool_mistakes(records):
    """Returns how many pool calls are refused because of the calls before them. Shrinking adds none: it would only find
    the next best difference, which is in how the refusal is handled."""
    active, count, mistakes = set(), {}, 0
    for line in records:
        if '"k":"bp"' not in line and '"k":"ep"' not in line and '"k":"rp"' not in line and '"k":"cp"' not in line:
            continue
        record = json.loads(line)
        pool = tuple(record["p"])
        if record["k"] == "bp":
            mistakes += pool in active
            active.add(pool)
            count[pool] = count.get(pool, 0) + 1
        elif record["k"] == "cp":
            count[pool] = count.get(pool, 0) + 1
        elif record["k"] == "ep":
            mistakes += pool not in active
            active.discard(pool)
        else:
            mistakes += count.get(pool, 0) <= 0 or (count[pool] == 1 and pool in active)
            count[pool] = count.get(pool, 0) - 1
    return mistakes


def shrink(left, right, text, same_release=True, budget=60):
    """Returns the shortest program, in lines, that delta debugging finds, on which both engines still differ."""

    def failing(candidates):
        allowed = [i for i, text in enumerate(candidates) if pool_mistakes(text.splitlines()[1:]) <= mistakes]
        candidates = [candidates[i] for i in allowed]
        a, b = run_texts(left, candidates), run_texts(right, candidates)
        for index in range(len(candidates)):
            if "crashed" not in a[index].result and difference(a[index], b[index], same_release) is not None:
                return allowed[index]
        return None

    lines = text.splitlines(keepends=True)
    header, records = lines[0], lines[1:]
    mistakes = pool_mistakes(records)
    # The first difference is an event: what comes long after it cannot matter. Try prefixes first.
    lengths = sorted({len(records) * i // 32 for i in range(1, 33)})
    found = failing([header + "".join(records[:n]) for n in lengths])
    if found is not None:
        records = records[:lengths[found]]
    parts = 2
    while len(records) >= 2 and budget > 0:
        budget -= 1
        parts = min(parts, len(records))
        bounds = [len(records) * i // parts for i in range(parts + 1)]
        candidates = [records[:bounds[i]] + records[bounds[i + 1]:] for i in range(parts)]
        found = failing([header + "".join(c) for c in candidates])
        if found is not None:
            records = candidates[found]
            parts = max(2, parts - 1)
        elif parts >= len(records):
            break
        else:
            parts = min(len(records), parts * 2)
    # The header's settings, one by one.
    base = json.loads(header)
    changed = True
    while changed:
        changed = False
        candidates = [{k: v for k, v in base.items() if k != key}
                      for key in ("conf", "fraction", "completion", "seed") if key in base]
        pairs = base.get("conf", "").split(",")
        if len(pairs) > 1 and "[" not in base["conf"]:
            candidates += [base | {"conf": ",".join(pairs[:i] + pairs[i + 1:])} for i in range(len(pairs))]
        texts = [json.dumps(c, separators=(",", ":")) + "\n" + "".join(records) for c in candidates]
        found = failing(texts) if texts else None
        if found is not None:
            base, changed = candidates[found], True
    return json.dumps(base, separators=(",", ":")) + "\n" + "".join(records)
