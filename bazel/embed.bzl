"""Texts of a folder as C++ constants."""

def text_constants(name, header, texts, suffix):
    """The source of constants that a header declares: help/fit_script.txt is kFitScriptHelp, if `suffix` is "Help".

    Args:
      name: of the source, without .cc
      header: that declares them as std::string_view
      texts: files
      suffix: of the constants' names
    """
    constants = []
    for text in texts:
        stem = text.split("/")[-1].split(".")[0]
        constants.append("%s%s=$(location %s)" % ("".join([word.capitalize() for word in stem.split("_")]), suffix, text))
    native.genrule(
        name = name + "_cc",
        srcs = texts,
        outs = [name + ".cc"],
        cmd = "python3 $(location //bazel:embed.py) %s $@ %s" % (header, " ".join(constants)),
        tools = ["//bazel:embed.py"],
    )
