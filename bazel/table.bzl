"""Tables of data as constexpr arrays."""

def table_header(name, header, tables):
    """A header NAME.h with the rows of tables (table.py says what they look like).

    Args:
      name: of the header, without .h
      header: that declares the enums of their columns
      tables: file -> name of its array, "kForms", or also its struct, "Form:kForms"
    """
    native.genrule(
        name = name + "_h",
        srcs = tables.keys(),
        outs = [name + ".h"],
        cmd = "python3 $(location //bazel:table.py) $@ %s %s" % (
            header,
            " ".join(["%s=$(location %s)" % (array, table) for table, array in tables.items()]),
        ),
        tools = ["//bazel:table.py"],
    )
