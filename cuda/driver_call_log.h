// Counts the driver calls of a replay by kind and size, and times each.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/value/units.h"

namespace memreplay {

// The calls made during a replay, as enumerator and CUDA's name.
#define MEMREPLAY_DRIVER_CALLS(X)            \
  X(kMemAlloc, cuMemAlloc)                   \
  X(kMemFree, cuMemFree)                     \
  X(kAddressReserve, cuMemAddressReserve)    \
  X(kAddressFree, cuMemAddressFree)          \
  X(kCreate, cuMemCreate)                    \
  X(kMap, cuMemMap)                          \
  X(kSetAccess, cuMemSetAccess)              \
  X(kUnmap, cuMemUnmap)                      \
  X(kRelease, cuMemRelease)                  \
  X(kGetInfo, cuMemGetInfo)                  \
  X(kStreamCreate, cuStreamCreate)           \
  X(kContextSynchronize, cuCtxSynchronize)   \
  X(kStreamSynchronize, cuStreamSynchronize) \
  X(kStreamWaitEvent, cuStreamWaitEvent)     \
  X(kEventCreate, cuEventCreate)             \
  X(kEventRecord, cuEventRecord)             \
  X(kEventSynchronize, cuEventSynchronize)   \
  X(kMemAllocAsync, cuMemAllocAsync)         \
  X(kMemFreeAsync, cuMemFreeAsync)           \
  X(kPoolTrim, cuMemPoolTrimTo)              \
  X(kPoolAttribute, cuMemPoolGetAttribute)   \
  X(kLaunchKernel, cuLaunchKernel)

enum class DriverCall : uint8_t {
#define MEMREPLAY_DECLARE(kind, name) kind,
  MEMREPLAY_DRIVER_CALLS(MEMREPLAY_DECLARE)
#undef MEMREPLAY_DECLARE
};

// Returns CUDA's name of a call, such as "cuMemAlloc".
std::string_view DriverCallName(DriverCall call);

// The number of calls and how long they took.
struct DriverCallTimes {
  uint64_t calls = 0;
  uint64_t refused = 0;  // calls that returned an error, including out of memory
  int64_t total_ns = 0;
  int64_t min_ns = 0;
  int64_t max_ns = 0;
  std::vector<int64_t> sample;  // nanoseconds of the first kSample calls
  static constexpr size_t kSample = 512;

  // Returns the median of the sample, the lower of two, and 0 without calls. O(sample).
  int64_t median_ns() const;
};

// Counts and times driver calls.
class DriverCallLog {
 public:
  // Calls by kind and size; the size is 0 for calls that have none.
  using Rows = std::map<std::pair<DriverCall, Bytes>, DriverCallTimes>;

  void Add(DriverCall call, Bytes bytes, int64_t nanoseconds, bool succeeded);
  const Rows& rows() const { return rows_; }
  // Returns the sum of all sizes of one call, without a sample.
  DriverCallTimes Total(DriverCall call) const;
  void Clear() { rows_.clear(); }

 private:
  Rows rows_;
};

}  // namespace memreplay
