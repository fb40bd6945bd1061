// Unused memory of the GPU: pages without addresses, held so that others do not get them.
#pragma once

#include <cuda.h>

#include <vector>

#include "cuda/cuda_context.h"
#include "trace/value/units.h"

namespace memreplay {

// GPU memory that is held without use.
class HeldPages {
 public:
  // `context` must outlive it.
  explicit HeldPages(CudaContext& context) : context_(context) {}
  ~HeldPages();
  HeldPages(const HeldPages&) = delete;
  HeldPages& operator=(const HeldPages&) = delete;

  // Takes or releases memory until `size`, rounded up to whole pages, is held, or as much as the
  // GPU has. O(log size) calls if free memory is not scattered.
  void SetSize(Bytes size);
  // Takes memory until at most `free` bytes (less than a page below it) are free on the GPU.
  void LeaveFree(Bytes free);
  // Releases all pages; those that the driver fails to release stay held.
  void ReleaseAll();

  Bytes size() const { return size_; }

 private:
  struct Piece {
    CUmemGenericAllocationHandle handle;
    Bytes size;
  };
  // Returns false if there is no piece of that size.
  bool Take(Bytes size);
  bool Give();  // releases the piece taken last

  CudaContext& context_;
  std::vector<Piece> pieces_;
  Bytes size_;
};

// Returns the page properties that memreplay uses for every creation.
CUmemAllocationProp PageProperties(const CudaContext& context);

}  // namespace memreplay
