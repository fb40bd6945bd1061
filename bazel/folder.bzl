"""Sources that are compiled together: those of a library, and those of a test."""

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

def unit_library(name, srcs, hdrs = [], apart = [], units = 1, **kwargs):
    """A library whose sources are one translation unit.

    Most of a compiler's time goes into headers. Names in unnamed namespaces must
    therefore differ within a folder.

    Args:
      name: of the library
      srcs: its .cc files
      hdrs: as of cc_library
      apart: .cc files that are translation units of their own
      units: how many, if one would take longer than two cores that share it
      **kwargs: as of cc_library
    """
    native.cc_library(
        name = name,
        srcs = [_unit(name + str(i or ""), srcs[i::units]) for i in range(units)] + apart,
        hdrs = hdrs,
        textual_hdrs = srcs,
        **kwargs
    )

def folder_library(name, apart = [], exclude = [], **kwargs):
    """The .cc and .h files of this folder as one library.

    Args:
      name: of the library
      apart: as of unit_library
      exclude: .cc files that are not part of it
      **kwargs: as of cc_library
    """
    unit_library(
        name = name,
        srcs = native.glob(["*.cc"], exclude = apart + exclude),
        hdrs = native.glob(["*.h"]),
        apart = apart,
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
