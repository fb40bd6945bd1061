// What cuDNN's entry points share.
#pragma once

#include <cstddef>

namespace memreplay::card {

// Returns the workspace in bytes, which only cuDNN knows, as the settings state it, and notes the
// assumption.
std::size_t AssumedCudnnWorkspace();

}  // namespace memreplay::card
