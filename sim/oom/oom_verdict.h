// The verdict on an out-of-memory event.
#pragma once

#include <cstdint>

namespace memreplay {

enum class OomVerdict : uint8_t {
  kExceedsDevice,  // the script needs more at once than the device has
  kTrueShortage,   // no packing of what is live leaves room for the request
  kFragmentation,  // there is room, but in pieces
  kLeak,           // there is none, because every step leaves something behind
  kPendingFree,    // the request succeeds when made again after a synchronisation
};

}  // namespace memreplay
