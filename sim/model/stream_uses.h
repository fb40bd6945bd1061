// Which other streams use a block (record_stream), and in which order PyTorch
// goes through such sets.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "trace/value/units.h"

namespace memreplay {

// A key is its hash and, for keys that hash alike, a tag that distinguishes them.
struct HashedKey {
  uint64_t hash = 0;
  uint64_t tag = 0;
  friend bool operator==(const HashedKey&, const HashedKey&) = default;
};

// The open-addressing hash table in which PyTorch keeps streams and pools: power-of-two slots,
// Fibonacci hashing, robin-hood insertion, backward-shift erasure. Its order decides in which
// sequence frees that wait for several streams complete, so it is reproduced slot by slot. Source:
// docs/fidelity.md, [hash-order]. Iterate with `for (size_t slot = Next(0); slot < slot_count();
// slot = Next(slot + 1))`.
template <typename Value>
class FlatHashOrder {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  size_t slot_count() const { return slots_.size(); }

  // Returns the first used slot at or after `slot`, or slot_count() if there is none.
  size_t Next(size_t slot) const {
    while (slot < slots_.size() && slots_[slot].distance < 0) ++slot;
    return slot;
  }
  Value& value_at(size_t slot) { return *slots_[slot].value; }
  const Value& value_at(size_t slot) const { return *slots_[slot].value; }

  // Returns slot_count() if the key is absent.
  size_t FindSlot(HashedKey key) const {
    if (capacity_ == 0) return slots_.size();
    size_t slot = Home(key);
    for (int distance = 0; slot < slots_.size() && slots_[slot].distance >= distance;
         ++slot, ++distance) {
      if (slots_[slot].key == key) return slot;
    }
    return slots_.size();
  }
  Value* Find(HashedKey key) {
    const size_t slot = FindSlot(key);
    return slot == slots_.size() ? nullptr : &*slots_[slot].value;
  }
  bool Contains(HashedKey key) const { return FindSlot(key) != slots_.size(); }

  // Returns the value of `key`, which is `value` if the key was absent.
  Value& TryEmplace(HashedKey key, Value value = Value()) {
    if (Value* found = Find(key)) return *found;
    HashedKey carried = key;
    while (!Place(carried, value)) Grow();
    ++size_;
    return *Find(key);
  }

  // Returns whether the key was present. Later slots may move down by one, so visit the same slot
  // again when erasing while iterating.
  bool Erase(HashedKey key) {
    const size_t slot = FindSlot(key);
    if (slot == slots_.size()) return false;
    EraseSlot(slot);
    return true;
  }
  void EraseSlot(size_t slot) {
    slots_[slot] = Slot();
    --size_;
    for (size_t next = slot + 1; next < slots_.size() && slots_[next].distance > 0; ++next) {
      slots_[next - 1] = std::move(slots_[next]);
      --slots_[next - 1].distance;
      slots_[next] = Slot();
    }
  }
  // Erases all keys but keeps the number of slots, as the original does.
  void Clear() {
    for (Slot& slot : slots_) slot = Slot();
    size_ = 0;
  }

 private:
  // Keys with different hashes need far fewer slots than this.
  static constexpr size_t kMaxSlotsPerKey = 64;

  struct Slot {
    int distance = -1;  // from the home slot; -1 = unused
    HashedKey key;
    std::optional<Value> value;
  };

  size_t Home(HashedKey key) const {
    return (11400714819323198485ull * key.hash) >> (64 - std::countr_zero(capacity_));
  }

  // Returns false if the table must grow first. The caller must then still place `key` and `value`,
  // and an entry that was being moved is in the slot meant for them.
  bool Place(HashedKey& key, Value& value) {
    if (capacity_ == 0 || (size_ + 1) * 2 > capacity_) return false;
    size_t slot = Home(key);
    int distance = 0;
    while (slots_[slot].distance >= distance) ++slot, ++distance;
    if (distance >= max_lookups_) return false;
    if (slots_[slot].distance < 0) {
      slots_[slot] = Slot{distance, key, std::move(value)};
      return true;
    }
    // The resident is nearer to its home slot, so it gives way and is moved on.
    const size_t first = slot;
    Carry(slot, distance, key, value);
    for (++slot, ++distance;; ++slot, ++distance) {
      if (slots_[slot].distance < 0) {
        slots_[slot] = Slot{distance, key, std::move(value)};
        return true;
      }
      if (slots_[slot].distance < distance) {
        Carry(slot, distance, key, value);
      } else if (distance + 1 >= max_lookups_) {
        std::swap(slots_[first].key, key);
        std::swap(*slots_[first].value, value);
        return false;
      }
    }
  }
  void Carry(size_t slot, int& distance, HashedKey& key, Value& value) {
    std::swap(slots_[slot].distance, distance);
    std::swap(slots_[slot].key, key);
    std::swap(*slots_[slot].value, value);
  }

  void Grow() {
    std::vector<Slot> old = std::move(slots_);
    if (capacity_ > kMaxSlotsPerKey * (size_ + 1)) {
      max_lookups_ *= 2;  // n keys with the same hash would need 2^n slots
    } else {
      capacity_ = std::max<size_t>(4, capacity_ * 2);
      max_lookups_ = std::max({4, std::countr_zero(capacity_), max_lookups_});
    }
    slots_ = std::vector<Slot>(capacity_ + static_cast<size_t>(max_lookups_));
    const size_t kept = size_;
    size_ = 0;
    for (Slot& slot : old) {
      if (slot.distance < 0) continue;
      HashedKey key = slot.key;
      Value value = std::move(*slot.value);
      while (!Place(key, value)) Grow();
      ++size_;
    }
    size_ = kept;
  }

  std::vector<Slot> slots_;  // capacity_ + max_lookups_ of them: no wrap-around
  size_t capacity_ = 0;      // a power of two
  int max_lookups_ = 0;
  size_t size_ = 0;
};

// PyTorch's pool of each priority has this many streams.
inline constexpr uint64_t kStreamsPerPool = 32;

// The order in which the pending frees of several streams are processed. A snapshot shows only
// stream handles, but PyTorch orders by stream ids.
enum class StreamOrder : uint8_t {
  // For schedules that were written: 0 is the default stream, s >= 1 the (s-1)-th stream taken from
  // the pool of priority 0. Numbers beyond the pool continue in the same way.
  kPyTorchHash,
  // By stream index, for recordings: the builder numbered the streams in the order in which their
  // frees completed.
  kAscending,
};

// Returns the table key of a stream, given as its number in a schedule that was written (the
// handle) or, for kAscending, as any number unique to it.
HashedKey StreamKey(uint64_t stream, StreamOrder order);

// Returns the table key of a pool id: its first component, or the second if that is zero.
constexpr HashedKey PoolKey(const PoolId& id) {
  return id.first != 0 ? HashedKey{id.first, 1} : HashedKey{id.second, 0};
}

// The other streams that use one block.
class StreamUses {
 public:
  bool empty() const { return streams_.empty(); }
  // Adds a stream; `stream` is its index and `key` its StreamKey().
  void Add(uint32_t stream, HashedKey key) { streams_.TryEmplace(key, stream); }
  // Returns the stream indexes in iteration order; the set is empty afterwards.
  std::vector<uint32_t> Take(StreamOrder order);

  // Marks a stream recorded while a capture or pool context was active. The mark belongs to the
  // Block object, outlives the allocation, and is cleared only when a deferred free is processed.
  void MarkDuringCapture(HashedKey key) { during_capture_.push_back(key); }
  // Removes the marked streams from the set, and the marks. Returns whether any was removed.
  bool DropCaptured();

 private:
  FlatHashOrder<uint32_t> streams_;
  std::vector<HashedKey> during_capture_;
};

}  // namespace memreplay
