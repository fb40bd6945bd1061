// The functions that NVIDIA's public headers declare.
#pragma once

#include <string_view>

namespace memreplay {

// The content of third_party/cuda/public_names.txt, a name per line: what a program may call
// although torch does not. public_names.py lists them from the headers of CUDA 13.0; an older CUDA
// lacks some.
extern const std::string_view kPublicNames;

}  // namespace memreplay
