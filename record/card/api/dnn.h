// What cuDNN's entry points share.
#pragma once

#include <cstddef>

namespace memreplay::card {

// Returns the workspace in bytes that the settings assume, since only cuDNN knows it, and notes
// that.
size_t AssumedCudnnWorkspace();

}  // namespace memreplay::card
