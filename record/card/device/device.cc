#include "record/card/device/device.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "record/card/stubs/page.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace memreplay::card {
namespace {

// Returns the page that shows how far the script is; without a file, it is memory of our own.
Device::Progress* MakeProgress() {
  static Device::Progress nobodys;
  const char* path = std::getenv("MEMREPLAY_CARD_PROGRESS");
  if (path == nullptr || *path == 0) return &nobodys;
  const std::string own = std::string(path) + "." + std::to_string(getpid());
  const int file = open(own.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return &nobodys;
  void* page = MAP_FAILED;
  if (ftruncate(file, kPage) == 0) {
    page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  close(file);
  return page == MAP_FAILED ? &nobodys : static_cast<Device::Progress*>(page);
}

std::mutex making;
std::atomic<Device*> the_device{nullptr};
LibraryVersions the_versions;
thread_local int this_card = 0;

constexpr uint64_t kChunk = uint64_t{32} << 20;

void* At(uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

Device::Device(const Settings& from_environment)
    : settings(from_environment),
      backing(settings.cards == 0 ? 1 : settings.cards, settings.simulated),
      streams(settings.completion),
      progress(MakeProgress()) {
  const int count = !settings.card.has_value() ? 0 : settings.cards;
  for (int i = 0; i < count; ++i) {
    cards.emplace_back(settings.capacity, backing.regions(i), settings.addresses,
                       settings.simulated ? 0 : settings.below_first_kernel);
    cards.back().TakeExternal(static_cast<int64_t>(settings.reserve));
  }
  for (int i = 0; i < count; ++i) {
    current_pools.push_back(pools.size());
    pools.push_back({i, std::make_unique<MemoryPool>(&cards[static_cast<size_t>(i)])});
  }
}

Device& TheDevice() {
  if (Device* made = the_device.load(std::memory_order_acquire)) return *made;
  const std::lock_guard<std::mutex> lock(making);
  if (Device* made = the_device.load(std::memory_order_acquire)) return *made;
  Device* made = new Device(SettingsFromEnvironment());
  the_device.store(made, std::memory_order_release);
  return *made;
}

std::optional<std::vector<std::string>> VisibleDevices() {
  const char* entry = std::getenv("CUDA_VISIBLE_DEVICES");
  if (entry == nullptr) return std::nullopt;
  std::vector<std::string> names;
  while (*entry != 0 && *entry != '-') {
    const size_t length = std::strcspn(entry, ",");
    names.emplace_back(entry, length);
    entry += length;
    if (*entry == ',') ++entry;
  }
  return names;
}

int Device::VisibleCount() {
  int found = visible.load();
  if (found >= 0) return found;
  const auto names = VisibleDevices();
  found = names.has_value() ? std::min(count(), static_cast<int>(names->size())) : count();
  visible.store(found);
  return found;
}

uint64_t Device::FreePooled(uint64_t address) {
  for (Pool& pool : pools) {
    const uint64_t size = pool.pool == nullptr ? 0 : pool.pool->Free(address);
    if (size == 0) continue;
    known.Forget(address, size);
    backing.Close(address, size);
    outside.Unmapped(address);
    outside.Freed(address);
    return size;
  }
  return 0;
}

void Device::Made(const char* what, const void* caller, const void* object) {
  const std::lock_guard<std::mutex> lock(mutex);
  outside.Made(what, caller, CurrentCard(), Number(object));
}

void Device::Destroyed(const char* what, const void* object) {
  const std::lock_guard<std::mutex> lock(mutex);
  outside.Destroyed(what, Number(object));
}

void Device::FirstKernel() {
  const std::lock_guard<std::mutex> lock(mutex);
  for (Memory& card : cards) card.FirstKernel();
}

void ReplaceDevice(Device* made) { the_device.store(made, std::memory_order_release); }

LibraryVersions& Versions() { return the_versions; }
int& CurrentCard() { return this_card; }

Backing::Backing(int cards, bool simulated)
    : simulated_(simulated),
      cards_(cards),
      span_(kAll / static_cast<uint64_t>(cards) / kChunk * kChunk) {
  real_ = false;
  if (simulated_) return;
  const uint64_t size = span_ * static_cast<uint64_t>(cards_);
  void* map = mmap(At(kBase), size, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  real_ = map == At(kBase);
  if (!real_ && map != MAP_FAILED) munmap(map, size);  // before Linux 4.17 it may lie elsewhere
}

Memory::Regions Backing::regions(int card) const {
  if (simulated_) return kSimulatedRegions;
  const uint64_t base = kBase + span_ * static_cast<uint64_t>(card);
  // A quarter is for cudaMalloc, the rest for reservations, which are larger than what is in them.
  const uint64_t middle = base + span_ / 4 / kChunk * kChunk;
  return {base, middle, middle, base + span_};
}

void Backing::Open(uint64_t address, uint64_t size) const {
  if (real_) mprotect(At(address), size, PROT_READ | PROT_WRITE);
}

void Backing::Close(uint64_t address, uint64_t size) const {
  if (!real_) return;
  mmap(At(address), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
       0);
}

void Backing::Clear(uint64_t address, uint64_t size) const {
  if (!real_) return;
  const uint64_t end = address + size;
  const uint64_t from = std::min((address + kPage - 1) / kPage * kPage, end);
  const uint64_t to = std::max(end / kPage * kPage, from);
  std::memset(At(address), 0, from - address);
  if (from < to) madvise(At(from), to - from, MADV_DONTNEED);
  std::memset(At(to), 0, end - to);
}

}  // namespace memreplay::card
