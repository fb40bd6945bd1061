#include "cuda/held_pages.h"

#include <algorithm>

namespace memreplay {

CUmemAllocationProp PageProperties(const CudaContext& context) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = context.card().ordinal;
  return properties;
}

HeldPages::~HeldPages() { ReleaseAll(); }

bool HeldPages::Take(Bytes size) {
  const CUmemAllocationProp properties = PageProperties(context_);
  CUmemGenericAllocationHandle handle = 0;
  const CUresult result = context_.Call(DriverCall::kCreate, size, context_.api().cuMemCreate,
                                        &handle, size.value(), &properties, 0);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return false;
  if (!context_.Succeeded(result, DriverCall::kCreate, OfBytes(size))) return false;
  pieces_.push_back({handle, size});
  size_ += size;
  return true;
}

bool HeldPages::Give() {
  const Piece piece = pieces_.back();
  const CUresult result =
      context_.Call(DriverCall::kRelease, piece.size, context_.api().cuMemRelease, piece.handle);
  if (!context_.Succeeded(result, DriverCall::kRelease, OfBytes(piece.size))) return false;
  pieces_.pop_back();
  size_ -= piece.size;
  return true;
}

void HeldPages::SetSize(Bytes size) {
  const Bytes page = context_.card().granularity;
  const Bytes wanted = RoundUp(size, page);
  while (size_ > wanted) {
    if (!Give()) return;
  }
  // Takes the largest piece available, then smaller ones.
  for (Bytes piece = wanted - size_; size_ < wanted && piece >= page && context_.status().ok();) {
    if (!Take(std::min(piece, wanted - size_))) piece = RoundDown(Bytes(piece.value() / 2), page);
  }
}

void HeldPages::LeaveFree(Bytes free) {
  const Bytes page = context_.card().granularity;
  // Repeats, since a creation may cost the driver more or less than its size.
  for (int round = 0; round < 8 && context_.status().ok(); ++round) {
    const Bytes now = context_.FreeMemory();
    if (now < free + page) return;
    SetSize(size_ + RoundDown(now - free, page));
  }
}

void HeldPages::ReleaseAll() {
  while (!pieces_.empty() && Give()) {
  }
}

}  // namespace memreplay
