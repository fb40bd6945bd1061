#include "record/card/hooks/tensor_objects.h"

#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace memreplay::card {
namespace {

// Sizes of c10::TensorImpl and what derives from it, from torch 2.1 on.
constexpr size_t kSmallest = 169;
constexpr size_t kLargest = 216;
constexpr int kCount = 32768;  // 7 MB; later ones come from malloc

struct Object {
  Object* next;
};

std::atomic_flag busy = ATOMIC_FLAG_INIT;
Object* first = nullptr;  // the first unused object; under `busy`
std::atomic<uint64_t> begin{0};
std::atomic<uint64_t> end{0};

// Holds the lock, or gives up after a while: after a fork, the holder may be gone.
class Hold {
 public:
  Hold() {
    for (int i = 0; i < 1000 && !holds_; ++i) {
      holds_ = !busy.test_and_set(std::memory_order_acquire);
    }
  }
  ~Hold() {
    if (holds_) busy.clear(std::memory_order_release);
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  explicit operator bool() const { return holds_; }

 private:
  bool holds_ = false;
};

uint64_t Address(const void* memory) { return reinterpret_cast<uint64_t>(memory); }

constexpr uint64_t kBoundary = uint64_t{64} << 20;
constexpr size_t kLargestHole = size_t{64} << 10;  // below what malloc maps by itself
constexpr uint64_t kMaxTaken = uint64_t{512} << 20;

uint64_t HeapEnd() { return reinterpret_cast<uint64_t>(sbrk(0)); }

// A chunk of glibc's malloc: a word with its size, then what is handed out.
class Chunk {
 public:
  explicit Chunk(size_t size)
      : memory_(std::malloc(size)), begin_(reinterpret_cast<uint64_t>(memory_)) {}
  uint64_t begin() const { return begin_; }
  // Returns where the next chunk would begin if it came from the end of the heap.
  uint64_t next() const { return begin_ + malloc_usable_size(memory_) + sizeof(size_t); }

 private:
  void* memory_;
  uint64_t begin_;
};

// Takes chunks of `size` bytes until one comes from the free end of the heap; false if none does.
bool TakeHoles(size_t size, uint64_t free_end, uint64_t* taken) {
  while (*taken < kMaxTaken) {
    const Chunk chunk(size);
    *taken += size;
    if (chunk.begin() >= free_end) return chunk.begin() < HeapEnd();
  }
  return false;
}

}  // namespace

void SetTensorObjectsAside() {
  const Hold hold;
  if (!hold || first != nullptr) return;
  Object** last = &first;
  for (int i = 0; i < kCount; ++i) {
    auto* object = static_cast<Object*>(std::malloc(kLargest));
    if (object == nullptr) return;
    const bool follows = Address(object) == end.load() + sizeof(size_t);
    if (!follows) {  // the ones before lay in holes
      last = &first;
      begin.store(Address(object));
    }
    object->next = nullptr;
    *last = object;
    last = &object->next;
    end.store(Address(object) + malloc_usable_size(object));
  }
}

void* TakeTensorObject(size_t size) {
  if (size < kSmallest || size > kLargest || end.load(std::memory_order_relaxed) == 0)
    return nullptr;
  const Hold hold;
  if (!hold || first == nullptr) return nullptr;
  Object* object = first;
  first = object->next;
  return object;
}

bool GiveTensorObjectBack(void* memory) {
  if (Address(memory) < begin.load(std::memory_order_relaxed) ||
      Address(memory) >= end.load(std::memory_order_relaxed)) {
    return false;
  }
  // Even if someone freed this memory and malloc handed it out again, it is a chunk of malloc, and
  // one with room for an object will do.
  if (malloc_usable_size(memory) != kLargest) return false;
  const Hold hold;
  if (!hold) return false;
  auto* object = static_cast<Object*>(memory);
  object->next = first;
  first = object;
  return true;
}

void BeginHeapAnew() {
  uint64_t taken = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // mallinfo2 is younger than glibc 2.28
  const struct mallinfo info = mallinfo();
#pragma GCC diagnostic pop
  const uint64_t free_end = HeapEnd() - static_cast<unsigned>(info.keepcost);
  // Large ones come first: the rest of a hole serves the next size.
  for (size_t size = kLargestHole; size > 1032; size /= 2) {
    if (!TakeHoles(size, free_end, &taken)) return;
  }
  for (size_t size = 1032; size >= 24; size -= 16) {
    if (!TakeHoles(size, free_end, &taken)) return;
  }
  // Takes the rest up to the boundary in pieces; the last two fit exactly.
  uint64_t next = Chunk(24).next();
  const uint64_t end = (next / kBoundary + 1) * kBoundary;
  while (next < end) {
    const uint64_t left = end - next;
    const uint64_t size = left > 2 * kLargestHole ? kLargestHole
                          : left > kLargestHole   ? kLargestHole / 2
                                                  : left;
    if (size < 32) return;
    const Chunk chunk(size - sizeof(size_t));
    if (chunk.begin() != next) return;
    next = chunk.next();
  }
}

}  // namespace memreplay::card
