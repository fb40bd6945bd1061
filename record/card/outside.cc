#include "record/card/outside.h"

#include <cstring>

#include "record/card/elf/loaded_symbol.h"

namespace memreplay::card {

void Outside::Allocated(const void* caller, std::uint64_t key, std::uint64_t bytes) {
  const char* path = LoadedPath(caller);
  const char* slash = std::strrchr(path, '/');
  const char* name = slash == nullptr ? path : slash + 1;
  constexpr char kAllocator[] = "libc10_cuda.";  // the library that has PyTorch's allocator
  if (std::strncmp(name, kAllocator, sizeof(kAllocator) - 1) != 0) Allocated(name, key, bytes);
}

void Outside::Allocated(const char* library_name, std::uint64_t key, std::uint64_t bytes) {
  std::size_t i = 0;
  while (i < libraries_.size() && libraries_[i].name != library_name) ++i;
  if (i == libraries_.size()) libraries_.push_back({library_name, 0, 0, 0});
  Library& library = libraries_[i];
  ++library.calls;
  library.now += bytes;
  if (library.now > library.peak) library.peak = library.now;
  live_[key] = {i, bytes};
}

void Outside::Freed(std::uint64_t key) {
  if (live_.empty()) return;
  const auto found = live_.find(key);
  if (found == live_.end()) return;
  libraries_[found->second.library].now -= found->second.bytes;
  live_.erase(found);
}

}  // namespace memreplay::card
