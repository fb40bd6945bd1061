// Memory of the GPU that nobody uses: pages without addresses, held so that
// others do not get them.
#ifndef MEMREPLAY_CUDA_HELD_PAGES_H_
#define MEMREPLAY_CUDA_HELD_PAGES_H_

#include <cuda.h>

#include <vector>

#include "cuda/cuda_context.h"
#include "trace/value/units.h"

namespace memreplay {

// Memory of a GPU that is held without use.
class HeldPages {
 public:
  // `context` must outlive it.
  explicit HeldPages(CudaContext& context) : context_(context) {}
  ~HeldPages();
  HeldPages(const HeldPages&) = delete;
  HeldPages& operator=(const HeldPages&) = delete;

  // Takes or releases memory until `size`, rounded up to whole pages, is held, or as
  // much of it as the card has. O(log size) calls where memory is not scattered.
  void SetSize(Bytes size);
  // Takes until at most `free` is free on the card (less than a page below it).
  void LeaveFree(Bytes free);
  // Pages that the driver fails to take back stay held.
  void ReleaseAll();

  Bytes size() const { return size_; }

 private:
  struct Piece {
    CUmemGenericAllocationHandle handle;
    Bytes size;
  };
  // False: not that much in one piece.
  bool Take(Bytes size);
  bool Give();  // the piece taken last

  CudaContext& context_;
  std::vector<Piece> pieces_;
  Bytes size_;
};

// The page properties that every creation of this program has.
CUmemAllocationProp PageProperties(const CudaContext& context);

}  // namespace memreplay

#endif  // MEMREPLAY_CUDA_HELD_PAGES_H_
