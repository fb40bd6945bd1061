// What cuDNN's entry points share.
#ifndef MEMREPLAY_RECORD_CARD_API_DNN_H_
#define MEMREPLAY_RECORD_CARD_API_DNN_H_

#include <cstddef>

namespace memreplay::card {

// Returns the workspace in bytes that the settings assume, since only cuDNN knows it, and notes
// that.
size_t AssumedCudnnWorkspace();

}  // namespace memreplay::card

#endif  // MEMREPLAY_RECORD_CARD_API_DNN_H_
