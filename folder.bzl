"""The library of a folder."""

def folder_library(name, apart = [], exclude = [], deps = [], **kwargs):
    """The .cc and .h files of this folder as one library.

    Most of a compiler's time goes into headers, so the .cc files are one translation
    unit. Names in unnamed namespaces must therefore differ within a folder.

    Args:
      name: of the library
      apart: .cc files that are translation units of their own
      exclude: .cc files that are not part of it
      deps: as of cc_library
      **kwargs: likewise
    """
    sources = native.glob(["*.cc"], exclude = apart + exclude)
    folder = native.package_name()
    native.genrule(
        name = name + "_unit",
        outs = [name + "_unit.cc"],
        cmd = "printf '#include \"%s\"\\n' " +
              " ".join([folder + "/" + source for source in sources]) + " > $@",
    )
    native.cc_library(
        name = name,
        srcs = [name + "_unit.cc"] + apart,
        hdrs = native.glob(["*.h"]),
        textual_hdrs = sources,
        deps = deps,
        **kwargs
    )
