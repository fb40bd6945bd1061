// Events on real streams that complete when the caller says so.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "cuda/cuda_context.h"
#include "sim/model/device.h"

namespace memreplay {

// The recorded events of all streams. An event is complete as soon as it is recorded or, with
// `explicit_completion`, when the caller says so by Synchronize() or Done(). Before reporting that
// an event is complete, the object waits until the GPU has reached it. Each event is one
// cuEventRecord; the driver's event objects are reused.
class StreamProgress {
 public:
  StreamProgress(CudaContext& context, bool explicit_completion)
      : context_(context), explicit_completion_(explicit_completion) {}
  ~StreamProgress();
  StreamProgress(const StreamProgress&) = delete;
  StreamProgress& operator=(const StreamProgress&) = delete;

  StreamEvent Record(uint32_t stream);
  bool IsComplete(const StreamEvent& event);
  void Synchronize(const StreamEvent& event);
  void Done(uint32_t stream);

 private:
  struct Pending {
    uint64_t ticket;
    CUevent event;
  };
  struct Stream {
    uint64_t recorded = 0;        // tickets returned
    uint64_t completed = 0;       // tickets up to here are complete for the caller
    uint64_t waited = 0;          // tickets up to here are complete on the GPU
    std::deque<Pending> pending;  // by ticket
  };
  Stream& At(uint32_t stream);
  // Waits until the GPU has reached a ticket. A stream's work completes in order, so all earlier
  // events are complete too.
  void WaitFor(Stream& stream, uint64_t ticket);

  CudaContext& context_;
  const bool explicit_completion_;
  std::vector<Stream> streams_;
  std::vector<CUevent> spare_;
};

}  // namespace memreplay
