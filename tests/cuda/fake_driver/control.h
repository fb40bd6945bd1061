// What a test can tell, and ask, the fake driver. Exported by it; plain C, found
// by name (fake_driver.h does that).
#ifndef MEMREPLAY_TESTS_CUDA_FAKE_DRIVER_CONTROL_H_
#define MEMREPLAY_TESTS_CUDA_FAKE_DRIVER_CONTROL_H_

#include <cstdint>

extern "C" {

// A fresh GPU of `total` bytes; whatever was made before is forgotten.
void fake_driver_reset(std::uint64_t total);
// How many GPUs there are (1 after a reset; they share one memory).
void fake_driver_set_gpus(int count);
// The `nth` call from now (1: the next) of this entry point ("cuMemMap") answers
// with `code` and does nothing. Replaces what was said of it before; 0: none.
void fake_driver_fail(const char* entry_point, std::uint64_t nth, int code);
// Calls of this entry point since the reset.
std::uint64_t fake_driver_calls(const char* entry_point);
// Memory taken (or given back, negative) by another process.
void fake_driver_external(std::int64_t delta);
// The next cuMemMap that finds a page mapped before it maps that one, instead of
// its own: a broken driver.
void fake_driver_alias_next_map();

struct FakeDriverHeld {
  std::uint64_t segments;  // cuMemAlloc
  std::uint64_t pages;     // created and not released, or released and still mapped
  std::uint64_t mappings;
  std::uint64_t ranges;  // reserved
  std::uint64_t pool_allocations;
  std::uint64_t pool_bytes;  // reserved by the pool
  std::uint64_t streams;
  std::uint64_t events;
  std::uint64_t modules;
  std::uint64_t host_allocations;
  std::uint64_t contexts;  // retained
  std::uint64_t free_bytes;
};
// What has not been given back.
void fake_driver_held(FakeDriverHeld* held);

}  // extern "C"

#endif  // MEMREPLAY_TESTS_CUDA_FAKE_DRIVER_CONTROL_H_
