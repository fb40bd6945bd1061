"""Kernels as a C array."""

load("@cuda_toolkit//:defs.bzl", "CUDA_BIN")

def fatbin(name, src, symbol, architectures, ptx, hdrs = [], **kwargs):
    """NAME.cc, which defines `symbol`: the kernels of `src`, compiled and compressed.

    Machine code for each of `architectures` ("90" is compute capability 9.0) and
    PTX of the one named by `ptx`.
    """
    codes = " ".join([
        "-gencode arch=compute_{0},code=sm_{0}".format(version)
        for version in architectures
    ] + ["-gencode arch=compute_{0},code=compute_{0}".format(ptx)])
    native.genrule(
        name = name,
        srcs = [src] + hdrs,
        outs = [name + ".cc"],
        cmd = " && ".join([
            "{bin}/nvcc -std=c++17 -O3 -I. -Werror all-warnings {codes} -Xfatbin -compress-all " +
            "--fatbin -o $(@D)/{name}.fatbin $(location {src})",
            # A declaration first: a constant of C++ would else stay in its file.
            "echo 'extern \"C\" {{ extern const unsigned long long {symbol}[]; }}' > $@",
            "{bin}/bin2c --const --type longlong --name {symbol} $(@D)/{name}.fatbin >> $@",
        ]).format(bin = CUDA_BIN, codes = codes, name = name, src = src, symbol = symbol),
        **kwargs
    )
