"""C++ from a .proto file with the system's protoc."""

def cc_proto(name, src, imports = {}, deps = [], visibility = None):
    """A cc_library `name` holding the generated code of `src` (a file of this package).

    `imports`: each file of this package that `src` imports, with its own cc_proto.
    """
    stem = src[:-len(".proto")]
    native.genrule(
        name = name + "_gen",
        srcs = [src] + imports.keys(),
        outs = [stem + ".pb.h", stem + ".pb.cc"],
        # The file is named from the workspace root, so that includes read
        # "proto/report.pb.h" everywhere.
        cmd = "protoc -I. --cpp_out=$(GENDIR) $(location %s)" % src,
    )
    native.cc_library(
        name = name,
        srcs = [stem + ".pb.cc"],
        hdrs = [stem + ".pb.h"],
        copts = ["-w"],
        visibility = visibility,
        deps = deps + imports.values() + ["//third_party/protobuf"],
    )
