// Which calls the driver was asked, for how many bytes, and how long each took.
#ifndef MEMREPLAY_CUDA_DRIVER_CALL_LOG_H_
#define MEMREPLAY_CUDA_DRIVER_CALL_LOG_H_

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/value/units.h"

namespace memreplay {

// The calls made during a replay; kMemAlloc is "cuMemAlloc" and so on.
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

// "cuMemAlloc" ...
std::string_view DriverCallName(DriverCall call);

// How many calls there were, and how long they took.
struct DriverCallTimes {
  uint64_t calls = 0;
  uint64_t refused = 0;  // of these: answered with an error, out of memory included
  int64_t total_ns = 0;
  int64_t min_ns = 0;
  int64_t max_ns = 0;
  std::vector<int64_t> sample;  // nanoseconds of the first kSample calls
  static constexpr size_t kSample = 512;

  // Of the sample, the lower of two; 0 without calls. O(sample).
  int64_t median_ns() const;
};

// Counts and times driver calls.
class DriverCallLog {
 public:
  // By call and size; size 0 for calls that have none.
  using Rows = std::map<std::pair<DriverCall, Bytes>, DriverCallTimes>;

  void Add(DriverCall call, Bytes bytes, int64_t nanoseconds, bool succeeded);
  const Rows& rows() const { return rows_; }
  // All sizes of one call together; without a sample.
  DriverCallTimes Total(DriverCall call) const;
  void Clear() { rows_.clear(); }

 private:
  Rows rows_;
};

}  // namespace memreplay

#endif  // MEMREPLAY_CUDA_DRIVER_CALL_LOG_H_
