"""What memreplay in a page links, compiled by Debian's emscripten for browser/build.

Abseil, Protobuf, zlib and zstd are Debian's source packages of the versions that the program links, with Debian's
patches, in the cache (cache.py).
"""
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "python"))
import cache

POOL = "https://deb.debian.org/debian/pool/main/"
# Version, folder of the pool, and sha256 of each file as the package's .dsc lists them.
SOURCES = {
    "abseil": ("20220623.1-1+deb12u2", "a/abseil/", {
        "abseil_20220623.1.orig.tar.gz": "abfe2897f3a30edaa74bc34365afe3c2a3cd012091a97dc7e008f7016adcd5fe",
        "abseil_20220623.1-1+deb12u2.debian.tar.xz":
            "e08490fc7b6f3beca1925953b0c4fb92df2de5e2a01295e4641e2a3d4e528eeb"}),
    "protobuf": ("3.21.12-3+deb12u1", "p/protobuf/", {
        "protobuf_3.21.12.orig.tar.gz": "930c2c3b5ecc6c9c12615cf5ad93f1cd6e12d0aba862b572e076259970ac3a53",
        "protobuf_3.21.12-3+deb12u1.debian.tar.xz":
            "49cdad49801545cb797355af19fbd6b3627084c6549f629512faaa4e25dd5647"}),
    "zlib": ("1:1.2.13.dfsg-1", "z/zlib/", {
        "zlib_1.2.13.dfsg.orig.tar.bz2": "71feb7947e3c00ef125f83b79a4e529bde31171e5babe48b391f06758d1ab0a1",
        "zlib_1.2.13.dfsg-1.debian.tar.xz": "f66cf3d4f2d7defcd4d1fd1fb0a11ee39f1e01b42ec7d059c9dc5c1695133c44"}),
    "zstd": ("1.5.4+dfsg2-5", "libz/libzstd/", {
        "libzstd_1.5.4+dfsg2.orig.tar.xz": "8cf4bbb65e77ec348d052c8d6230eba66d435bddf64c8b5be2fcb16880c19953",
        "libzstd_1.5.4+dfsg2-5.debian.tar.xz": "82ce911445772861d0838bd4545f93bc50658bc7f3cefdb17a307dfb8ffca5d8"}),
}
_ABSEIL = (
    "base base/internal container/internal debugging debugging/internal hash/internal numeric "
    "profiling/internal status strings strings/internal strings/internal/str_format synchronization "
    "synchronization/internal time time/internal/cctz/src types").split()
# Tests, and what nothing here calls, whose compilation took a fifth of the time; the linker names what it misses.
_NO_ABSEIL = re.compile(
    r"test|benchmark|mock|/(print_hash_of|scoped_set_env|leak_check|failure_signal_handler|pow10_helper|"
    r"log_severity|unscaledcycleclock|"
    r"hashtablez_sampler\w*|address_is_readable|demangle|elf_mem_image|examine_stack|stack_consumption|"
    r"vdso_support|periodic_sampler|"
    r"cord_analysis|cord_buffer|cordz_sample_token|ostringstream|substitute|barrier|blocking_counter|"
    r"graphcycles|notification|civil_time\w*|"
    r"format|time_zone_format|bad_(any_cast|optional_access|variant_access))\.cc")
_NO_PROTOBUF = re.compile(
    r"unittest|/(importer|parser|delimited_message_util|message_differencer|field_comparator|gzip_stream|"
    r"arenaz_sampler|io_win32|printer|"
    r"(api|duration|empty|field_mask|struct|timestamp)\.pb|generated_enum_util|generated_message_(bases|"
    r"tctable_full|tctable_lite)|"
    r"inlined_string_field|service|field_mask_util|error_listener|time_util)\.cc")
# The others are compiled many at a time, because reading headers takes most of their time; the names in these clash.
_ALONE = re.compile(
    r"\.(c|pb\.cc)$|/(extension_set_heavy|generated_message_reflection|protostream_objectsource|"
    r"charconv_parse|time_zone_fixed)\.cc$")
_TOGETHER = 32
_ZLIB = "adler32 crc32 deflate inflate inffast inftrees trees zutil compress uncompr".split()

PLACE = f"-ffile-prefix-map={cache.home()}=."  # __FILE__ says the same on every machine
# No code asks what type an object has; the names of types were 16 kB of the page.
CXX = f"-std=c++20 -fno-exceptions -fno-rtti -DNDEBUG -w {PLACE}"


class Unavailable(Exception):
    """Something cannot be had here; the text says what and why."""


def call(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, **options)


def source(name):
    """The folder with one package's source and Debian's patches in it. Raises Unavailable."""
    version, pool, files = SOURCES[name]

    def make(folder):
        for file, digest in files.items():
            try:
                with urllib.request.urlopen(POOL + pool + file, timeout=60) as answer:
                    data = answer.read()
            except (urllib.error.URLError, OSError) as error:
                raise Unavailable(f"{POOL}{pool}{file} cannot be had: {error}") from None
            if hashlib.sha256(data).hexdigest() != digest:
                raise Unavailable(f"{POOL}{pool}{file} is not the file whose sha256 is {digest}")
            (folder / file).write_bytes(data)
            call("tar", "-xf", folder / file, "-C", folder, *(["--strip-components=1"] if ".orig." in file else []))
            (folder / file).unlink()
        series = folder / "debian/patches/series"
        for patch in series.read_text(encoding="utf-8").splitlines() if series.exists() else []:
            if patch.split("#")[0].strip():
                call("patch", "-d", folder, "-p1", "-s", "-i", folder / "debian/patches" / patch.split()[0])
        if name == "abseil":  # as Debian's build configures it: string_view is Abseil's own
            options = pathlib.Path("/usr/include/absl/base/options.h").read_bytes()
            (folder / "absl/base/options.h").write_bytes(options)
    return cache.made(f"browser-{name}-{version.replace(':', '_')}", make)


def third_party_units(folders):
    """Pairs of a source and its flags."""
    absl, protobuf, zlib, zstd = (folders[name] for name in SOURCES)
    for folder in _ABSEIL:
        for path in sorted((absl / "absl" / folder).glob("*.cc")):
            if not _NO_ABSEIL.search(str(path)[len(str(absl)):]):
                yield path, f"-O1 {CXX} -I{absl}"
    listed = (protobuf / "src/Makefile.am").read_text(encoding="utf-8")
    listed = listed[listed.index("\nlibprotobuf_lite_la_SOURCES"):listed.index("\nnodist_libprotobuf_la")]
    for name in sorted(set(re.findall(r"google/[\w/.]*\.cc", listed))):
        if not _NO_PROTOBUF.search(name):
            yield protobuf / "src" / name, f"-O1 {CXX} -I{protobuf}/src -DHAVE_PTHREAD=1"
    for name in _ZLIB:
        yield zlib / f"{name}.c", f"-O2 -w {PLACE} -I{zlib}"
    for path in sorted([*(zstd / "lib/common").glob("*.c"), *(zstd / "lib/decompress").glob("*.c")]):
        yield path, f"-O2 -w {PLACE} -DZSTD_DISABLE_ASM=1 -I{zstd}/lib"


def write(path, text):
    """Writes a file, unless it has this content: who depends on its time is spared."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def ninja(folder, units, root):
    """Compiles `units`, pairs of a source and its flags, into `folder`; returns the objects, in order."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"builddir = {folder}"]
    for rule, tool in (("cc", "em++"), ("c", "emcc")):
        lines += [f"rule {rule}", f"  command = {tool} -MMD -MF $out.d $flags -c $in -o $out", "  depfile = $out.d",
                  "  deps = gcc"]
    objects = []
    for path, flags in units:
        objects.append(folder / (str(path).lstrip("/").replace("/", "+") + ".o"))
        lines += [f"build {objects[-1]}: {'c' if str(path).endswith('.c') else 'cc'} {path}", f"  flags = {flags}"]
    write(folder / "build.ninja", "\n".join(lines) + "\n")
    call("ninja", "-f", folder / "build.ninja", "--quiet", cwd=root, stdout=sys.stderr)
    return objects


def together(folder, units):
    """The units with most of their sources included into a few files, which are written into `folder`."""
    by_flags = {}
    for path, flags in units:
        if _ALONE.search(str(path)):
            yield path, flags
        else:
            by_flags.setdefault(flags, []).append(path)
    # Some of Protobuf's sources leave its macros defined.
    after = "#ifdef PROTOBUF_NAMESPACE\n#include <google/protobuf/port_undef.inc>\n#endif\n"
    for number, (flags, paths) in enumerate(by_flags.items()):
        for at in range(0, len(paths), _TOGETHER):
            file = folder / f"together-{number}-{at}.cc"
            text = "".join(f'#include "{path}"\n{after}' for path in paths[at:at + _TOGETHER])
            file.write_text(text, encoding="utf-8")
            yield file, flags


def third_party():
    """The folders of the sources by name, and one archive with all that is linked. Raises Unavailable."""
    version = compiler()
    folders = {name: source(name) for name in SOURCES}
    units = list(third_party_units(folders))
    text = json.dumps([units, _ALONE.pattern, _TOGETHER, version], default=str)

    def make(folder):
        objects = ninja(folder, list(together(folder, units)), folder)
        call("emar", "rcs", folder / "libthird.a", *objects)
        for path in objects:
            path.unlink()
    return folders, cache.made(f"browser-third-{hashlib.sha256(text.encode()).hexdigest()[:12]}", make) / "libthird.a"


def compiler():
    try:
        for tool in ("ninja", "patch"):
            call(tool, "--version", capture_output=True)
        return call("em++", "--version", capture_output=True, text=True).stdout.splitlines()[0]
    except FileNotFoundError as error:
        raise Unavailable(f"{error.filename} is not installed (Debian: emscripten, ninja-build, patch)") from None
