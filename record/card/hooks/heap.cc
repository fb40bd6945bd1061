#include "record/card/hooks/heap.h"

#include <malloc.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace memreplay::card {
namespace {

constexpr uint64_t kBoundary = uint64_t{64} << 20;
constexpr size_t kLargest = size_t{64} << 10;  // below what malloc maps by itself
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

void BeginHeapAnew() {
  uint64_t taken = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // mallinfo2 is younger than glibc 2.28
  const struct mallinfo info = mallinfo();
#pragma GCC diagnostic pop
  const uint64_t free_end = HeapEnd() - static_cast<unsigned>(info.keepcost);
  // Large ones come first: the rest of a hole serves the next size.
  for (size_t size = kLargest; size > 1032; size /= 2) {
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
    const uint64_t size = left > 2 * kLargest ? kLargest : left > kLargest ? kLargest / 2 : left;
    if (size < 32) return;
    const Chunk chunk(size - sizeof(size_t));
    if (chunk.begin() != next) return;
    next = chunk.next();
  }
}

}  // namespace memreplay::card
