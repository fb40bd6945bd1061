#include "tests/sim/support/allocator_harness.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace memreplay {
namespace {

std::string Size(uint64_t size) {
  if (size != 0 && size % kMB == 0) return absl::StrCat(size / kMB, "M");
  return absl::StrCat(size);
}

}  // namespace

AllocatorHarness::AllocatorHarness(const HarnessOptions& options) {
  SimulatedDevice::Options device;
  if (options.capacity != 0) device.capacity = Bytes(options.capacity);
  device.explicit_completion = options.explicit_completion;
  device_ = std::make_unique<SimulatedDevice>(device);
  CachingAllocatorOptions allocator;
  allocator.streams.clear();
  for (uint64_t stream : options.streams) allocator.streams.emplace_back(stream);
  allocator.pools = options.pools;
  allocator_ = std::make_unique<CachingAllocator>(**FindTorchProfile(options.torch), options.config,
                                                  *device_, allocator);
}

AllocationId AllocatorHarness::Alloc(uint64_t size, uint32_t stream) {
  const AllocationId id = next_id_++;
  Do(EventKind::kAlloc, id, stream, 0, size).IgnoreError();
  return id;
}

void AllocatorHarness::Free(AllocationId id) { Do(EventKind::kFree, id).IgnoreError(); }

absl::Status AllocatorHarness::Do(EventKind kind, AllocationId id, uint32_t stream, uint16_t pool,
                                  uint64_t size) {
  Event request;
  request.kind = kind;
  request.id = id;
  request.stream = stream;
  request.pool = pool;
  request.size = Bytes(size);
  absl::Status status = allocator_->Apply(request, *this);
  if (next_id_ < 200) allocator_->CheckInvariants();  // O(blocks) each
  return status;
}

std::string AllocatorHarness::Name(Address address) const {
  const Address base = SimulatedDevice::kSegmentBase;
  if (address >= base) return absl::StrCat("A+", Size((address - base).value()));
  size_t last = reservations_.size() - 1;
  while (last > 0 && reservations_[last] > address) --last;
  return absl::StrCat("V", last, "+", Size((address - reservations_[last]).value()));
}

void AllocatorHarness::NoteReservation(Address mapped) {
  // The first range mapped of a reservation is its beginning.
  const Bytes total = device_->TotalMemory();
  if (reservations_.empty() || mapped - reservations_.back() >= total + Bytes(total.value() / 8)) {
    reservations_.push_back(mapped);
  }
}

void AllocatorHarness::OnEvent(const Event& event) {
  if (event.kind == EventKind::kSegmentMap) NoteReservation(event.address);
  switch (event.kind) {
    case EventKind::kAlloc:
    case EventKind::kFree:
    case EventKind::kFreeCompleted:
    case EventKind::kSegmentAlloc:
    case EventKind::kSegmentFree:
    case EventKind::kSegmentMap:
    case EventKind::kSegmentUnmap:
      lines_.push_back(absl::StrCat(std::string(EventKindName(event.kind)), " ",
                                    Name(event.address), " ", Size(event.size.value())));
      break;
    case EventKind::kOom:
      lines_.push_back(
          absl::StrCat("oom ", Size(event.address.value()), " ", Size(event.size.value())));
      break;
    default: break;
  }
}

std::string AllocatorHarness::Take() {
  std::string text = absl::StrJoin(lines_, "; ");
  lines_.clear();
  return text;
}

std::string AllocatorHarness::Blocks() const {
  std::vector<std::string> segments;
  for (const SegmentInfo& segment : allocator_->Segments()) {
    std::vector<std::string> blocks;
    for (const BlockInfo& block : segment.blocks) {
      const char* state = block.state == BlockState::kAllocated     ? "active"
                          : block.state == BlockState::kPendingFree ? "pending"
                                                                    : "inactive";
      blocks.push_back(absl::StrCat(Name(block.address), " ", Size(block.size.value()), " ", state,
                                    " ", Size(block.requested_size.value())));
    }
    segments.push_back(absl::StrJoin(blocks, "; "));
  }
  return absl::StrJoin(segments, " | ");
}

}  // namespace memreplay
