// Verifies that the memory of each block is really there and belongs to that block alone: the GPU
// fills a block when it is allocated and checks it when it is freed.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/statusor.h"
#include "cuda/cuda_context.h"
#include "sim/model/observer.h"
#include "trace/value/event.h"
#include "trace/value/units.h"

namespace memreplay {

// A block whose contents are not what it was filled with.
struct BadBlock {
  AllocationId id = kNoAllocation;
  Address address;
  Bytes size;
  uint64_t event = 0;  // index of the event at which it was found, from 0
  Bytes offset;        // of the first bad byte or word in the block
  uint64_t expected = 0;
  uint64_t found = 0;
  // The block whose word was found there, if any.
  std::optional<AllocationId> written_by;

  std::string Text() const;  // one sentence
};

// Fills and checks the blocks of a run. It watches kAlloc and kFree; the run's Device or Allocator
// must be on the same context, and every allocator emits kFree before it releases memory. The whole
// block is filled, including what rounding added. Each fill and check is waited for: a page that is
// not there makes the GPU fault, and the error in the context's status() then names the block. It
// uses no GPU memory except that of the kernels.
class BlockVerifier final : public Observer {
 public:
  // Loads the kernels. Error: the driver is older than the toolkit that built them and cannot load
  // them.
  static absl::StatusOr<std::unique_ptr<BlockVerifier>> Create(CudaContext& context);
  ~BlockVerifier() override;

  void OnStartEvent(const Event& event) override { OnEvent(event); }
  void OnEvent(const Event& event) override;
  void OnEnd() override { CheckLive(); }
  // Checks the blocks that are live at the end.
  void CheckLive();

  uint64_t blocks_filled() const { return blocks_filled_; }
  uint64_t blocks_checked() const { return blocks_checked_; }
  Bytes bytes_checked() const { return bytes_checked_; }
  uint64_t bad_blocks() const { return bad_blocks_; }
  // Returns the first bad blocks, at most kMaxKept.
  const std::vector<BadBlock>& bad() const { return bad_; }
  static constexpr size_t kMaxKept = 100;

 private:
  struct Block {
    Address address;
    Bytes size;
    uint64_t seed = 0;
    uint32_t stream = 0;
  };

  explicit BlockVerifier(CudaContext& context) : context_(context) {}
  absl::Status Load();
  // Launches a kernel and waits for it; the message of an error includes `why`.
  bool Launch(CUfunction kernel, std::string_view why, const Block& block);
  void Fill(AllocationId id, const Block& block);
  void Check(AllocationId id, const Block& block);

  CudaContext& context_;
  CUmodule module_ = nullptr;
  CUfunction fill_ = nullptr;
  CUfunction check_ = nullptr;
  volatile uint64_t* first_bad_ = nullptr;  // host memory that the GPU writes
  CUdeviceptr first_bad_on_gpu_ = 0;
  absl::btree_map<AllocationId, Block> live_;
  uint64_t next_event_ = 0;
  AllocationId highest_id_ = 0;
  uint64_t blocks_filled_ = 0;
  uint64_t blocks_checked_ = 0;
  Bytes bytes_checked_;
  uint64_t bad_blocks_ = 0;
  std::vector<BadBlock> bad_;
};

}  // namespace memreplay
