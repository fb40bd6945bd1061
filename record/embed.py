"""Writes files as C++ constants: embed.py OUT.cc FILE...

A file below process/ is unpacked under its name there; any other, a library, under its own name.
"""
import hashlib
import sys

_ESCAPES = [f"\\{byte:03o}" for byte in range(256)]


def literal(data):
    """C++ strings, in pieces that no compiler finds too long."""
    pieces = [data[i:i + 4000] for i in range(0, len(data), 4000)] or [b""]
    return "\n    ".join('"' + "".join(_ESCAPES[byte] for byte in piece) + '"' for piece in pieces)


def main():
    out, *paths = sys.argv[1:]
    digest = hashlib.sha256()
    rows = []
    for path in sorted(paths):
        with open(path, "rb") as file:
            data = file.read()
        name = path.split("/process/")[-1] if "/process/" in path else path.split("/")[-1]
        digest.update(f"{name} {len(data)} ".encode() + data)
        rows.append(f'    {{"{name}", std::string_view(\n    {literal(data)}, {len(data)})}},')
    with open(out, "w", encoding="ascii") as file:
        file.write("\n".join([
            '#include "record/files.h"', "", "namespace memreplay {", "namespace {", "",
            "const RecordFile kFiles[] = {", *rows, "};", "", "}  // namespace", "",
            "const RecordFile* const kRecordFiles = kFiles;",
            f"const size_t kRecordFileCount = {len(rows)};",
            f'const std::string_view kRecordFilesDigest = "{digest.hexdigest()[:16]}";', "",
            "}  // namespace memreplay", ""]))


main()
