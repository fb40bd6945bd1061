"""Writes files as C++ constants, for headers that say what each is.

    embed.py HEADER OUT.cc NAME=FILE...   std::string_view kNAME; of a script or style also kNAMEHash, the source
                                          expression by which a page's content security policy allows exactly it
    embed.py HEADER OUT.cc FILE...        a table of record/files.h: a file below process/ under its name there, any
                                          other, a library, under its own name
"""

import base64
import hashlib
import sys

_ESCAPES = [f"\\{byte:03o}" for byte in range(256)]
_TAGS = {"js": "script", "css": "style"}


def literal(data):
    """A std::string_view, its text in pieces that no compiler finds too long."""
    pieces = [data[i:i + 4000] for i in range(0, len(data), 4000)] or [b""]
    text = "\n    ".join('"' + "".join(_ESCAPES[byte] for byte in piece) + '"' for piece in pieces)
    return f"std::string_view(\n    {text}, {len(data)})"


def content(path):
    with open(path, "rb") as file:
        return file.read()


def constants(parts):
    for part in parts:
        name, path = part.split("=", 1)
        data = content(path)
        yield f"const std::string_view k{name} = {literal(data)};"
        tag = _TAGS.get(path.rsplit("/", 1)[-1].rsplit(".", 1)[-1])
        if tag is None:
            continue
        # What would end the element early, or change what the browser hashes.
        for wrong in ("</" + tag, "<!--", "<script", "\r", "\0"):
            if wrong.encode() in data:
                sys.exit(f"{path}: contains {wrong!r}, which a page cannot hold inside <script>")
        digest = base64.b64encode(hashlib.sha256(data).digest()).decode("ascii")
        yield f"const std::string_view k{name}Hash = \"'sha256-{digest}'\";"


def table(paths):
    digest = hashlib.sha256()
    yield "static const RecordFile kFiles[] = {"
    for path in sorted(paths):
        data = content(path)
        name = path.split("/process/")[-1] if "/process/" in path else path.split("/")[-1]
        digest.update(f"{name} {len(data)} ".encode() + data)
        yield f'    {{"{name}", {literal(data)}}},'
    yield "};"
    yield "const RecordFile* const kRecordFiles = kFiles;"
    yield f"const size_t kRecordFileCount = {len(paths)};"
    yield f'const std::string_view kRecordFilesDigest = "{digest.hexdigest()[:16]}";'


def main():
    header, out, *files = sys.argv[1:]
    lines = constants(files) if "=" in files[0] else table(files)
    with open(out, "w", encoding="ascii", newline="\n") as file:
        file.write("\n".join([f'#include "{header}"', "", "namespace memreplay {", "", *lines, "",
                              "}  // namespace memreplay", ""]))


if __name__ == "__main__":
    main()
