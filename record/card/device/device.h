// The state of this process' simulated GPUs, on which all entry points of NVIDIA's libraries act.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "record/card/model/known_bytes.h"
#include "record/card/model/memory.h"
#include "record/card/model/options.h"
#include "record/card/model/outside.h"
#include "record/card/model/pinned.h"
#include "record/card/model/settings.h"
#include "record/card/model/streams.h"
#include "record/card/stubs/stub.h"

namespace memreplay::card {

// The bytes behind the cards' addresses: one reservation of address space. No part of it takes
// memory until it is opened and written.

// The address space of all cards of a process.
class Backing {
 public:
  // Reserves the address space of `cards` cards. If the system denies it, addresses have no bytes
  // and real() is false. A simulated device is a single card that never has bytes and has the
  // addresses of kSimulatedRegions.
  Backing(int cards, bool simulated);

  bool real() const { return real_; }
  Memory::Regions regions(int card) const;
  // Returns the card that has this address, or -1 if none does.
  int CardOf(uint64_t address) const {
    if (simulated_) {
      const Memory::Regions& r = kSimulatedRegions;
      return (address >= r.allocations && address < r.allocations_end) ||
                     (address >= r.reservations && address < r.reservations_end)
                 ? 0
                 : -1;
    }
    return address - kBase < span_ * static_cast<uint64_t>(cards_)
               ? static_cast<int>((address - kBase) / span_)
               : -1;
  }
  // Makes a range readable and writable.
  void Open(uint64_t address, uint64_t size) const;
  // Closes a range: its bytes are lost and its pages released.
  void Close(uint64_t address, uint64_t size) const;
  // Fills an open range with zeros and releases its whole pages.
  void Clear(uint64_t address, uint64_t size) const;

 private:
  static constexpr uint64_t kBase = 0x100000000000;
  static constexpr uint64_t kAll = 0x400000000000;  // 64 TiB for all cards

  bool simulated_;
  int cards_;
  uint64_t span_;
  bool real_;
};

// Memory of the host that CUDA allocated or registered; its address is the key.
struct HostRange {
  uint64_t size = 0;       // bytes, as requested of the driver
  bool is_pinned = false;  // else managed
  bool is_torchs = false;  // pinned by PyTorch's allocator
};

// Returns the handle of a page of memory. It contains the card, because cuMemRelease is passed
// nothing else.
inline uint64_t HandleOf(uint64_t page, int card) {
  return page * kMaxCards + static_cast<uint64_t>(card);
}

// All simulated GPUs of a process.
struct Device {
  explicit Device(const Settings& from_environment);

  // Guards everything below except atomics and constants.
  std::mutex mutex;
  const Settings settings;
  const Backing backing;
  std::vector<Memory> cards;
  KnownBytes known;
  KnownBytes marked;  // by memreplay_card_mark()
  Streams streams;
  std::map<uint64_t, HostRange> host;   // what CUDA knows of the host's memory
  std::map<uint64_t, uint64_t> mapped;  // pages in a reservation: address -> size

  Pinned pinned;
  uint64_t refused_pins = 0;  // requests of pinned memory that exceeded the limit

  Outside outside;  // of all cards

  struct Pool {
    int card;
    std::unique_ptr<MemoryPool> pool;  // null once destroyed
  };
  // Stream-ordered pools: first the default pool of each card, then those that were created.
  std::vector<Pool> pools;
  std::vector<size_t> current_pools;  // by card
  // Frees what a pool handed out and returns its bytes; 0 if none did. The lock is held.
  uint64_t FreePooled(uint64_t address);

  // Allocations and frees of PyTorch's allocator, by card. Python reads them from memory.
  std::array<std::atomic<uint64_t>, kMaxCards> allocator_calls{};

  std::atomic<int> visible{-1};  // -1: not requested yet

  std::atomic<bool> any_capture{false};
  bool all_captured = false;  // every stream reports that it is captured (memreplay_card_capture)
  std::atomic<uint64_t> launches{0};
  std::atomic<uint64_t> captured_launches{0};   // since a capture ended
  std::map<uint64_t, uint64_t> graph_launches;  // by graph
  uint64_t executable_graphs = 0;
  std::atomic<uint64_t> clock{1};  // launches, copies and records: the time of Streams

  struct Progress {
    std::atomic<uint64_t> launches, peak_used;
  };
  // Read by other processes: a page of the file MEMREPLAY_CARD_PROGRESS.PID, or of no file.
  Progress* const progress;

  int count() const { return static_cast<int>(cards.size()); }
  // Returns whether pinned memory of the host comes out of the memory of the first card.
  bool shares_host_memory() const {
    return settings.card.has_value() && SharesHostMemory(*settings.card);
  }
  // Returns how many cards CUDA_VISIBLE_DEVICES makes visible: as many as it names at the first
  // call, whatever their numbers, so that a script that names its machine's third GPU can run.
  int VisibleCount();
  void Launch() {
    const uint64_t before = launches.fetch_add(1, std::memory_order_relaxed);
    if (before == 0) FirstKernel();
    progress->launches.store(before + 1, std::memory_order_relaxed);
    if (any_capture.load(std::memory_order_relaxed)) {
      captured_launches.fetch_add(1, std::memory_order_relaxed);
    }
    clock.fetch_add(1, std::memory_order_relaxed);
  }
  // Counts an object whose memory only NVIDIA's libraries know, on the current card.
  void Made(const char* what, const void* caller, const void* object);
  void Destroyed(const char* what, const void* object);
  // Called once, without the mutex.
  void FirstKernel();
  uint64_t now() const { return clock.load(std::memory_order_relaxed); }
  uint64_t Tick() { return clock.fetch_add(1, std::memory_order_relaxed) + 1; }
};

// Returns the entries of CUDA_VISIBLE_DEVICES up to one that is negative; nullopt if it is not set.
std::optional<std::vector<std::string>> VisibleDevices();

// Replaces this process' cards; what was allocated before is forgotten, not released.
void ReplaceDevice(Device* made);

// Returns the cards of this process, made on first use from the environment. They are never
// destroyed, because destructors of other libraries may still free memory.
Device& TheDevice();

// Holds their lock for as long as it lives: const auto [d, lock] = LockedDevice();
struct LockedDevice {
  Device& device = TheDevice();
  const std::lock_guard<std::mutex> lock{device.mutex};
};

// Defines an entry point (entry.h) that does one thing to the cards of this process, `d`, whose
// lock it holds, and succeeds.
#define DOES_LOCKED(name, arguments, ...) \
  DOES(name, arguments, const auto [d, lock] = ::memreplay::card::LockedDevice(); __VA_ARGS__)

// Returns the versions that the stub libraries were written for; zeros before the first is loaded.
LibraryVersions& Versions();
inline bool CudaFrom(int version) { return Versions().cuda >= version; }

// Returns this thread's current card.
int& CurrentCard();

// Converts a card to its context's driver handle and back; -1 if a handle is no context.
inline uint64_t ContextOf(int card) { return 0x1000 + static_cast<uint64_t>(card) * 16; }
inline int CardOfContext(uint64_t context) {
  return context < 0x1000 ? -1 : static_cast<int>((context - 0x1000) / 16);
}

// Returns whether no visible card has this number.
inline bool NoSuchCard(int card) { return card < 0 || card >= TheDevice().VisibleCount(); }

inline uint64_t Number(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }
template <typename T = void>
T* Pointer(uint64_t value) {
  return reinterpret_cast<T*>(value);
}
inline StreamKey StreamKeyOf(const void* stream) {
  // Handles 1 and 2 are the legacy and the per-thread default stream, except on a simulated device.
  const uint64_t handle = Number(stream);
  return {CurrentCard(), handle <= 2 && !TheDevice().settings.simulated ? 0 : handle};
}

}  // namespace memreplay::card
