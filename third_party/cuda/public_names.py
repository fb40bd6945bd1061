#!/usr/bin/python3
"""Lists the functions that the headers of a CUDA toolkit declare, for public_names.txt.

    public_names.py INCLUDE > public_names.txt

They are the names that libraries export (cuMemAlloc_v2), as the preprocessor makes them.
"""
import pathlib
import re
import subprocess
import sys

HEADERS = ("cuda.h", "cudaProfiler.h", "cuda_runtime_api.h", "cuda_profiler_api.h", "cublas.h", "cublas_v2.h",
           "cublasXt.h", "cublasLt.h", "cudnn.h", "cudnn_backend.h", "cufft.h", "cufftXt.h", "cupti.h", "curand.h",
           "cusolverDn.h", "cusolverMg.h", "cusolverRf.h", "cusolverSp.h", "cusparse.h", "nccl.h", "nvJitLink.h",
           "nvrtc.h")
DECLARED = re.compile(r"\b((?:cu|p?nccl|nvrtc|_*nvJitLink)\w+)\s*\((?!\s*\*)[^;@]*;")


def declared(include, header):
    text = subprocess.run(["gcc", "-E", "-P", "-x", "c++", "-D__CUDA_API_VERSION_INTERNAL", "-I", include,
                           pathlib.Path(include, header)],
                          capture_output=True, text=True, check=True).stdout
    text = text.replace('extern "C" {', "")
    count = 1
    while count:  # @ stands for the body of a definition
        text, count = re.subn(r"\{[^{}]*\}", "@", text)
    return DECLARED.findall(text)


def main(include):
    print("\n".join(sorted({name for header in HEADERS for name in declared(include, header)})))


if __name__ == "__main__":
    main(sys.argv[1])
