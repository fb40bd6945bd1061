// Runs the contract of allocators on PyTorch's allocator under its main settings.
#include <memory>

#include "gtest/gtest.h"
#include "sim/model/caching_allocator.h"
#include "sim/settings/torch_profile.h"
#include "tests/sim/support/allocator_contract.h"

namespace memreplay {
namespace {

std::unique_ptr<Allocator> MakeCaching(Device& device, const AllocatorConfig& config) {
  return std::make_unique<CachingAllocator>(DefaultTorchProfile(), config, device);
}

struct NativeTraits {
  static std::unique_ptr<Allocator> Make(Device& device) { return MakeCaching(device, {}); }
};
struct ExpandableTraits {
  static std::unique_ptr<Allocator> Make(Device& device) {
    AllocatorConfig config;
    config.expandable_segments = true;
    return MakeCaching(device, config);
  }
};
struct MaxSplitTraits {
  static std::unique_ptr<Allocator> Make(Device& device) {
    AllocatorConfig config;
    config.max_split_size = MiB(40);
    return MakeCaching(device, config);
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Native, AllocatorContractTest, NativeTraits);
INSTANTIATE_TYPED_TEST_SUITE_P(Expandable, AllocatorContractTest, ExpandableTraits);
INSTANTIATE_TYPED_TEST_SUITE_P(MaxSplit, AllocatorContractTest, MaxSplitTraits);

}  // namespace
}  // namespace memreplay
