"""d3 as Debian's package node-d3 has it, as the repository @d3: the script and its licence.

Everything under /usr/share/nodejs/d3/dist is one script, d3.min.js; pages that contain it
must contain its licence too, which Debian keeps with the package's other papers.
"""

_BUILD = """
exports_files(["d3.min.js", "copyright"], visibility = ["//visibility:public"])
"""

def _debian_d3(context):
    context.symlink("/usr/share/nodejs/d3/dist/d3.min.js", "d3.min.js")
    context.symlink("/usr/share/doc/node-d3/copyright", "copyright")
    context.file("BUILD.bazel", _BUILD)

debian_d3 = repository_rule(
    implementation = _debian_d3,
    local = True,
)
