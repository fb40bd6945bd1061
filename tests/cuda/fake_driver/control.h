// What a test can set and query on the fake driver. The driver exports these functions in plain C,
// and fake_driver.h finds them by name.
#pragma once

#include <cstdint>

extern "C" {

// Makes a fresh GPU of `total` bytes; everything made before is forgotten.
void fake_driver_reset(uint64_t total);
// Sets how many GPUs there are (1 after a reset; they share one memory).
void fake_driver_set_gpus(int count);
// Lets the `nth` call from now (1: the next) of this entry point ("cuMemMap") answer with `code`
// and do nothing. Replaces an earlier setting for the entry point; 0 means none.
void fake_driver_fail(const char* entry_point, uint64_t nth, int code);
// Returns the number of calls of this entry point since the reset.
uint64_t fake_driver_calls(const char* entry_point);
// Lets `watch` know of each call from now on, until a reset.
void fake_driver_watch(void (*watch)(const char* entry_point));
// Takes memory as another process would (releases it if negative).
void fake_driver_external(int64_t delta);
// Makes a broken driver: the next cuMemMap that finds a page mapped before maps that one instead of
// its own.
void fake_driver_alias_next_map();

struct FakeDriverHeld {
  uint64_t segments;  // cuMemAlloc
  uint64_t pages;     // created and not released, or released and still mapped
  uint64_t mappings;
  uint64_t ranges;  // reserved
  uint64_t pool_allocations;
  uint64_t pool_bytes;  // reserved by the pool
  uint64_t streams;
  uint64_t events;
  uint64_t modules;
  uint64_t host_allocations;
  uint64_t contexts;  // retained
  uint64_t free_bytes;
};
// Counts what has not been released.
void fake_driver_held(FakeDriverHeld* held);

}  // extern "C"
