"""Pages that the program makes, for tests that need the pages only."""

def page(name, file, flags = ""):
    """NAME.html, the page of a file, and NAME.json, what it is made from.

    A test of pages depends on these and not on the program, so it runs again only when a page
    has changed.

    Args:
      name: of both
      file: a label
      flags: of memreplay report
    """
    program = "//cli:memreplay"
    native.genrule(
        name = name,
        testonly = True,
        # Not in tools: those are built once more, for the host.
        srcs = [file, program],
        outs = [name + ".html", name + ".json"],
        # Exit status 1: the file says that memory ran out.
        cmd = ("$(location {program}) report $(location {file}) {flags} --json " +
               "-o $(location {name}.html) > $(location {name}.json) || [ $$? = 1 ]").format(
            program = program,
            file = file,
            flags = flags,
            name = name,
        ),
    )
