"""The library of a folder, and the test of one."""

def _unit(name, sources):
    """One source that includes those, relative to this folder."""
    folder = native.package_name()
    native.genrule(
        name = name + "_unit",
        testonly = folder.startswith("tests/"),
        outs = [name + "_unit.cc"],
        cmd = "printf '#include \"%s\"\\n' " +
              " ".join([folder + "/" + source for source in sources]) + " > $@",
    )
    return name + "_unit.cc"

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
    native.cc_library(
        name = name,
        srcs = [_unit(name, sources)] + apart,
        hdrs = native.glob(["*.h"]),
        textual_hdrs = sources,
        deps = deps,
        **kwargs
    )

def folder_test(name, apart = [], deps = [], **kwargs):
    """The *_test.cc files of this folder as one test.

    Args:
      name: of the test
      apart: as of folder_library
      deps: as of cc_test
      **kwargs: likewise
    """
    sources = native.glob(["*_test.cc"], exclude = apart)
    native.cc_library(
        name = name + "_sources",
        testonly = True,
        textual_hdrs = sources,
    )
    native.cc_test(
        name = name,
        srcs = [_unit(name, sources)] + apart,
        deps = deps + [name + "_sources"],
        **kwargs
    )
