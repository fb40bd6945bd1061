"""Makes golden results: small programs with what PyTorch's libraries did, for unit tests where there is no wheel."""

import json

import compare
import harness
import shorthand

FOLDER = harness.HERE.parent / "data" / "conformance"
WIDTH = 120


def cases():
    """Yields (name, first release, program text) of every block of golden.txt."""
    found = []
    for line in (harness.HERE / "golden.txt").read_text().splitlines():
        if line.startswith("=="):
            name, _, title = line[2:].partition(":")
            found.append([name.strip(), title.strip(), "2.1", []])
        elif line.startswith("since "):
            found[-1][2] = line.split()[1]
        elif line.strip() and not line.startswith("#"):
            found[-1][3].append(line)
    for name, title, since, steps in found:
        header, rest = shorthand.program("\n".join(steps)).split("\n", 1)
        header = json.dumps({"k": "h", "name": name, "title": title} | json.loads(header), separators=(",", ":"))
        yield name, since, header + "\n" + rest


def answer(outcome):
    statistics = outcome.result.get("statistics", {})
    return {
        "events": [json.loads(line) for line in outcome.lines],
        "statistics": {name: value for name, value in statistics.items() if value != 0},
        "segments": outcome.result.get("segments", []),
        "ooms": outcome.result.get("ooms", []),
        "errors": [{"line": e["line"]} for e in outcome.result.get("errors", [])],
    }


def in_lines(value):
    """JSON in lines of WIDTH columns, so that a diff can be read; what fits into one line is not broken."""
    text = json.dumps(value, separators=(",", ":"))
    if len(text) < WIDTH or not isinstance(value, (dict, list)):
        return text
    items = map(in_lines, value)
    if isinstance(value, dict):
        items = (f"{json.dumps(key)}:{in_lines(item)}" for key, item in value.items())
    lines = [""]
    for item in items:
        if lines[-1] and len(lines[-1]) + len(item) >= WIDTH:
            lines.append("")
        lines[-1] += item + ","
    return "\n".join([text[0], *lines])[:-1] + "\n" + text[-1]


def write(versions):
    engines = {version: compare.Library(version) for version in versions}
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in [*FOLDER.glob("*.jsonl"), *FOLDER.glob("*.expected")]:
        path.unlink()
    names = {}
    for name, since, text in cases():
        (FOLDER / f"{name}.jsonl").write_text(text)
        groups = {}
        for version, engine in engines.items():
            if harness.version_key(version) < harness.version_key(since):
                continue
            outcome = compare.run_texts(engine, [text])[0]
            if "crashed" in outcome.result or "failed" in outcome.result:
                raise RuntimeError(f"{name} with torch {version}: {outcome.result}")
            names.setdefault(harness.minor(version), sorted(outcome.result["statistics"]))
            groups.setdefault(json.dumps(answer(outcome)), []).append(harness.minor(version))
        answers = [{"torch": group} | json.loads(body) for body, group in groups.items()]
        (FOLDER / f"{name}.expected").write_text(in_lines(answers) + "\n")
    groups = {}
    for version, listed in names.items():
        # Per-pool names depend on the program.
        listed = [n for n in listed if not n.startswith("reserved_bytes_by_private_pools")]
        groups.setdefault(json.dumps(listed), []).append(version)
    with open(FOLDER / "statistic_names.json", "w") as out:
        json.dump([{"torch": group, "names": json.loads(listed)} for listed, group in groups.items()], out, indent=0)
        out.write("\n")
    size = sum(path.stat().st_size for path in FOLDER.iterdir())
    print(f"{len(list(FOLDER.glob('*.expected')))} cases of {len(versions)} releases, {size // 1024} KiB in {FOLDER}")
    return 0
