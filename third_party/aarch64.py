#!/usr/bin/python3
"""Bazel with Debian's compiler for aarch64 (GH200, GB10), on x86-64.

    third_party/aarch64.py build //cli:memreplay     as bazel; third_party/aarch64.py info bazel-bin prints where it is

What is linked comes from Debian's packages of arm64, in the versions that the program links on x86-64; they are in the
cache (third_party/python/cache.py) and not installed. Exit status 77, and a last line that begins with "skipped":
something cannot be had here.
"""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "third_party/python"))
import cache  # noqa: E402

PREFIX = "aarch64-linux-gnu-"
POOL = "https://deb.debian.org/debian/pool/main/"
PACKAGES = {
    "a/abseil/libabsl-dev_20220623.1-1+deb12u2": "5a1a973f878bba0dbbd4969151376d303c72be4f71ad6790a7d35d039a9e5f19",
    "p/protobuf/libprotobuf-dev_3.21.12-3+deb12u1": "92b1c87b95d99a06ba9e7ac2f29d791a6992d65ae41725438197f61d97404228",
    "libz/libzstd/libzstd-dev_1.5.4+dfsg2-5": "3e734e9e8ff0fca4c213bf6e3367541e63e6ea847d30e0a3dfe229c7c101acb1",
    "z/zlib/zlib1g-dev_1.2.13.dfsg-1": "afb60f0bae432f2f0edfe2d674e99c1a13a147c9aa2b52f2f23e3df19ece76f5",
    "g/googletest/libgtest-dev_1.12.1-0.2": "6f6c7defd14a75e73d6d1a7ea5cbe8dd0f6c52010228b0873464ce606bf2771e",
    "g/googletest/libgmock-dev_1.12.1-0.2": "5e55d1560a15ee782ff6f1430a4e567ea6d448120a74402eb4c3cd541a3a8f39",
}


class Unavailable(Exception):
    """Something cannot be had here; the text says what and why."""


def fill(folder):
    """Unpacks the packages, and names the compiler's programs in bin/ as Bazel looks for them."""
    for package, digest in PACKAGES.items():
        url = f"{POOL}{package}_arm64.deb"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                data = answer.read()
        except (urllib.error.URLError, OSError) as error:
            raise Unavailable(f"{url} cannot be had: {error}") from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise Unavailable(f"{url} is not the file whose sha256 is {digest}")
        (folder / "deb").write_bytes(data)
        subprocess.run(["dpkg-deb", "-x", folder / "deb", folder], check=True)
    (folder / "deb").unlink()
    (folder / "bin").mkdir()
    for tool in pathlib.Path("/usr/bin").glob(PREFIX + "*"):
        (folder / "bin" / tool.name[len(PREFIX):]).symlink_to(tool)


def bazel(command, *words):
    """The words of a call of Bazel, which has an output folder of its own: another compiler would throw away everybody
    else's results."""
    if shutil.which(PREFIX + "g++") is None:
        raise Unavailable("g++-aarch64-linux-gnu is not installed")
    key = hashlib.sha256(repr(PACKAGES).encode()).hexdigest()[:12]
    folder = cache.made(f"aarch64-{key}", fill)
    own = hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]
    include = folder / "usr/include"
    return ["bazel", f"--output_base={cache.home()}/aarch64-bazel-{own}", command,
            f"--repo_env=PATH={folder}/bin:/usr/bin:/bin", f"--repo_env=CC={folder}/bin/gcc",
            f"--repo_env=BAZEL_CXXOPTS=-isystem:{include}", f"--copt=-isystem{include}",
            f"--copt=-ffile-prefix-map={folder}=", f"--linkopt=-L{folder}/usr/lib/aarch64-linux-gnu",
            # Sums are those of x86-64, which has no instruction that multiplies and adds with one rounding.
            "--copt=-ffp-contract=off", "--symlink_prefix=/", *words]


def main(words):
    try:
        call = bazel(*words)
    except Unavailable as why:
        print(f"skipped: {why}")
        return 77
    os.chdir(ROOT)
    os.execvp(call[0], call)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
