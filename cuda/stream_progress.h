// Events on real streams whose completion is the program's to say.
#ifndef MEMREPLAY_CUDA_STREAM_PROGRESS_H_
#define MEMREPLAY_CUDA_STREAM_PROGRESS_H_

#include <cuda.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "cuda/cuda_context.h"
#include "sim/model/device.h"

namespace memreplay {

// An event is complete as soon as it is recorded, or (`explicit_completion`) once
// the program says so by Synchronize() or Done(); and a caller that learns that it is
// complete has waited for the GPU. Each is one cuEventRecord; the driver's event
// objects are used again.
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
    uint64_t recorded = 0;        // tickets handed out
    uint64_t completed = 0;       // tickets up to here are complete, says the program
    uint64_t waited = 0;          // and these the GPU was seen to have done
    std::deque<Pending> pending;  // by ticket
  };
  Stream& At(uint32_t stream);
  // Waits for the GPU; a stream's work completes in order, so that the events
  // before this one are done with too.
  void WaitFor(Stream& stream, uint64_t ticket);

  CudaContext& context_;
  const bool explicit_completion_;
  std::vector<Stream> streams_;
  std::vector<CUevent> spare_;
};

}  // namespace memreplay

#endif  // MEMREPLAY_CUDA_STREAM_PROGRESS_H_
