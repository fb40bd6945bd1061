"""Pages that the program makes, for tests that need the pages only."""

def page(name, files, flags = ""):
    """NAME.html, the page of files, and NAME.json, what it is made from.

    A test of pages depends on these and not on the program, so it runs again only when a page
    has changed.

    Args:
      name: of both
      files: labels, one space between them; several are ranks of a job, none is a model
      flags: of memreplay report, and the model
    """
    files = files.split(" ") if files else []
    program = "//cli:memreplay"
    native.genrule(
        name = name,
        testonly = True,
        # Not in tools: those are built once more, for the host.
        srcs = files + [program],
        outs = [name + ".html", name + ".json"],
        # Exit status 1: the file says that memory ran out.
        cmd = ("$(location {program}) report {files} {flags} --json " +
               "-o $(location {name}.html) > $(location {name}.json) || [ $$? = 1 ]").format(
            program = program,
            files = " ".join(["$(location %s)" % each for each in files]),
            flags = flags,
            name = name,
        ),
    )
