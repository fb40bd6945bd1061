#!/usr/bin/python3
"""Prints the bill of materials of a release, SPDX 2.3 as JSON: what is linked into the wheel's binary and into the
page, in which version of which Debian package, under which licence.

    third_party/sbom.py VERSION WHEEL PAGE

The time is that of SOURCE_DATE_EPOCH, so that equal files give equal bytes. Fails if Bazel links something that is not
in LINKED, or no longer links something that is.
"""
import datetime
import hashlib
import json
import os
import pathlib
import subprocess
import sys

import emscripten

ROOT = pathlib.Path(__file__).resolve().parents[1]

# By Bazel package: Debian's package, what it is, its licence, and its name in emscripten.SOURCES (None: as installed).
LINKED = {
    "third_party/absl": ("libabsl-dev", "Abseil", "Apache-2.0", "abseil"),
    "third_party/protobuf": ("libprotobuf-dev", "Protocol Buffers", "BSD-3-Clause", "protobuf"),
    "third_party/zlib": ("zlib1g-dev", "zlib", "Zlib", "zlib"),
    "third_party/zstd": ("libzstd-dev", "Zstandard", "BSD-3-Clause", "zstd"),
    "@d3//": ("node-d3", "D3", "BSD-3-Clause", None),
}
OWN = {"third_party/cuda", "third_party/glibc"}  # made by this project
# What the compilers link by themselves.
WHEEL_RUNTIME = [("libstdc++-12-dev", "libstdc++ and libgcc", "GPL-3.0-or-later WITH GCC-exception-3.1")]
PAGE_RUNTIME = [("emscripten", "emscripten's runtime, musl, libc++", "MIT AND Apache-2.0 WITH LLVM-exception")]


def installed(package):
    """The version of a Debian package."""
    return subprocess.run(["dpkg-query", "-W", "-f=${Version}", package], check=True, capture_output=True,
                          text=True).stdout


def linked_by_bazel():
    done = subprocess.run(["bazel", "query", "--ui_event_filters=-info", "--noshow_progress", "--output=package",
                           "deps(//cli:memreplay)"], cwd=ROOT, check=True, capture_output=True, text=True)
    return {name for name in done.stdout.split() if name.startswith(("third_party/", "@d3//"))} - OWN


def entry(identifier, name, version, licence, **more):
    return {"SPDXID": f"SPDXRef-{identifier}", "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence,
            "copyrightText": "NOASSERTION", **more}


def debian(package, name, version, licence):
    escaped = version.replace("+", "%2B").replace(":", "%3A")
    identifier = "".join(char if char.isalnum() or char in ".-" else "-" for char in f"{package}-{version}")
    return entry(identifier, name, version, licence, externalRefs=[
        {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
         "referenceLocator": f"pkg:deb/debian/{package}@{escaped}"}])


def product(identifier, file, version):
    path = pathlib.Path(file)
    checksum = {"algorithm": "SHA256", "checksumValue": hashlib.sha256(path.read_bytes()).hexdigest()}
    return entry(identifier, "memreplay", version, "Apache-2.0", packageFileName=path.name, checksums=[checksum])


def main(version, wheel, page):
    found = linked_by_bazel()
    if found != set(LINKED):
        sys.exit(f"third_party/sbom.py: LINKED has {sorted(LINKED)}, and Bazel links {sorted(found)}")
    sources = {name: version for name, (version, _, _) in emscripten.SOURCES.items()}  # that the page links
    linked = sorted(LINKED.values())
    in_wheel = [debian(package, name, installed(package), licence) for package, name, licence, _ in linked]
    in_wheel += [debian(package, name, installed(package), licence) for package, name, licence in WHEEL_RUNTIME]
    in_page = [debian(package, name, sources[source] if source else installed(package), licence)
               for package, name, licence, source in linked]
    in_page += [debian(package, name, installed(package), licence) for package, name, licence in PAGE_RUNTIME]
    products = [(product("wheel", wheel, version), in_wheel), (product("page", page, version), in_page)]
    packages = {part["SPDXID"]: part for whole, parts in products for part in [whole, *parts]}
    relations = []
    for whole, parts in products:
        relations.append(("SPDXRef-DOCUMENT", "DESCRIBES", whole["SPDXID"]))
        relations += [(whole["SPDXID"], "STATIC_LINK", part["SPDXID"]) for part in parts]
    created = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    print(json.dumps({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"memreplay-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/memreplay-{version}-"
                             f"{products[0][0]['checksums'][0]['checksumValue'][:16]}",
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: third_party/sbom.py"]},
        "packages": list(packages.values()),
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
                          for a, kind, b in relations],
    }, indent=1))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
