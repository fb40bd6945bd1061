"""Public recordings, which are no part of this project, as the repository @real_snapshots.

They lie in data/snapshots of the folder that MEMREPLAY_SHARED names. defs.bzl of the repository
says
    REAL_SNAPSHOTS    their names, such as "one.pickle": none where there is no such folder
"""

def _real_snapshots(context):
    shared = context.os.environ.get("MEMREPLAY_SHARED")
    folder = context.path((shared or "/nonexistent") + "/data/snapshots")
    names = []
    if folder.exists:
        for file in folder.readdir():
            if file.basename.endswith(".pickle"):
                context.symlink(file, file.basename)
                names.append(file.basename)
    names = sorted(names)
    context.file("BUILD.bazel", "exports_files(%r)" % names)
    context.file("defs.bzl", "REAL_SNAPSHOTS = %r" % names)

real_snapshots = repository_rule(
    implementation = _real_snapshots,
    environ = ["MEMREPLAY_SHARED"],
    local = True,
)
