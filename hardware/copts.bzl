"""Compiler options for what record/card loads into a process, which requires only libc."""

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
