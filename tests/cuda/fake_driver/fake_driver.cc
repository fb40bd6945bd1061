#include "tests/cuda/fake_driver/fake_driver.h"

#include <dlfcn.h>

#include <utility>

#include "trace/value/check.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

template <typename Function>
void Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  MEMREPLAY_CHECK(*function != nullptr, name);
}

}  // namespace

FakeDriver::FakeDriver(Bytes total) : total_(total) {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  MEMREPLAY_CHECK(library != nullptr, dlerror());
  Find(library, "fake_driver_reset", &reset_);
  Find(library, "fake_driver_set_gpus", &set_gpus_);
  Find(library, "fake_driver_fail", &fail_);
  Find(library, "fake_driver_calls", &calls_);
  Find(library, "fake_driver_external", &external_);
  Find(library, "fake_driver_alias_next_map", &alias_next_map_);
  Find(library, "fake_driver_held", &held_);
  reset_(total.value());
  absl::StatusOr<std::unique_ptr<CudaDriver>> driver = CudaDriver::Open(kLibrary);
  MEMREPLAY_CHECK(driver.ok(), ToStd(driver.status().message()));
  driver_ = *std::move(driver);
}

std::unique_ptr<CudaContext> FakeDriver::NewContext() const {
  absl::StatusOr<std::unique_ptr<CudaContext>> context = CudaContext::Create(*driver_, 0);
  MEMREPLAY_CHECK(context.ok(), ToStd(context.status().message()));
  return *std::move(context);
}

void FakeDriver::Fail(const std::string& entry_point, uint64_t nth, CUresult code) const {
  fail_(entry_point.c_str(), nth, static_cast<int>(code));
}

uint64_t FakeDriver::Calls(const std::string& entry_point) const {
  return calls_(entry_point.c_str());
}

void FakeDriver::TakeExternal(Bytes size) const { external_(size.signed_value()); }

FakeDriverHeld FakeDriver::Held() const {
  FakeDriverHeld held = {};
  held_(&held);
  return held;
}

std::string FakeDriver::Leaks() const {
  const FakeDriverHeld held = Held();
  std::string leaks;
  for (const auto& [count, what] :
       {std::pair(held.segments, "segments"), std::pair(held.pages, "pages"),
        std::pair(held.mappings, "mappings"), std::pair(held.ranges, "address ranges"),
        std::pair(held.pool_allocations, "allocations of the pool"),
        std::pair(held.pool_bytes, "bytes of the pool"), std::pair(held.streams, "streams"),
        std::pair(held.events, "events"), std::pair(held.modules, "modules"),
        std::pair(held.host_allocations, "host allocations"), std::pair(held.contexts, "contexts"),
        std::pair(total_.value() - held.free_bytes, "bytes")}) {
    if (count != 0) StrAppend(&leaks, leaks.empty() ? "" : ", ", count, " ", what);
  }
  return leaks;
}

}  // namespace memreplay
