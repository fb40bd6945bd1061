// What cuDNN's entry points share.
#pragma once

#include <cstddef>

namespace memreplay::card {

// Bytes of workspace that only cuDNN knows: what the settings say, and it is noted.
std::size_t AssumedCudnnWorkspace();

}  // namespace memreplay::card
