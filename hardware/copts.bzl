"""Options for what record/card loads into a process, which requires only libc."""

CARD_COPTS = [
    "-fPIC",
    "-O2",
    "-fvisibility=hidden",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-threadsafe-statics",
    "-fno-stack-protector",
    "-U_FORTIFY_SOURCE",
    "-D_GLIBCXX_EXTERN_TEMPLATE=0",
]

# Of a library in a folder that has its exports.map.
CARD_LINKOPTS = [
    "-Wl,--version-script=$(location exports.map)",
    "-Wl,--as-needed",
    "-Wl,--gc-sections",
    "-Wl,-z,defs",
]
