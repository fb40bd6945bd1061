"""The CUDA toolkit of this machine, if it has one, as the repository @cuda_toolkit.

Looked for in $CUDA_HOME, else in /usr/local/cuda. Two things of it are used, both
only to build: cuda.h (the driver's types; nothing is linked, the program opens
libcuda.so.1 when it runs, and libcudart is not used at all), and nvcc with bin2c
for the kernel of `memreplay gpu --verify`.

defs.bzl of the repository says
    HAS_CUDA_TOOLKIT    whether cuda.h, nvcc and bin2c are all there
    CUDA_ONLY           target_compatible_with of what needs them: without a
                        toolkit `bazel build //...` passes such targets over
    CUDA_BIN            the folder of nvcc
"""

_DEFS = """
HAS_CUDA_TOOLKIT = {found}
CUDA_ONLY = {constraint}
CUDA_BIN = "{bin}"
"""

_HEADERS = """
cc_library(
    name = "headers",
    hdrs = {headers},
    includes = ["include"],
    visibility = ["//visibility:public"],
)
"""

def _cuda_toolkit(context):
    home = context.os.environ.get("CUDA_HOME") or "/usr/local/cuda"
    needed = [home + "/include/cuda.h", home + "/bin/nvcc", home + "/bin/bin2c"]
    found = all([context.path(file).exists for file in needed])
    if found:
        context.symlink(home + "/include/cuda.h", "include/cuda.h")
    context.file("BUILD.bazel", _HEADERS.format(headers = ["include/cuda.h"] if found else []))
    context.file("defs.bzl", _DEFS.format(
        found = found,
        constraint = [] if found else ["@platforms//:incompatible"],
        bin = home + "/bin",
    ))

cuda_toolkit = repository_rule(
    implementation = _cuda_toolkit,
    configure = True,
    environ = ["CUDA_HOME"],
    local = True,
)
