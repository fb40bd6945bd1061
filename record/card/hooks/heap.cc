#include "record/card/hooks/heap.h"

#include <malloc.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace memreplay::card {
namespace {

constexpr std::uint64_t kBoundary = std::uint64_t{64} << 20;
constexpr std::size_t kLargest = std::size_t{64} << 10;  // below what malloc maps by itself
constexpr std::uint64_t kMaxTaken = std::uint64_t{512} << 20;

std::uint64_t HeapEnd() { return reinterpret_cast<std::uint64_t>(sbrk(0)); }

// A chunk of glibc's malloc: a word with its size, then what is handed out.
class Chunk {
 public:
  explicit Chunk(std::size_t size)
      : memory_(std::malloc(size)), begin_(reinterpret_cast<std::uint64_t>(memory_)) {}
  std::uint64_t begin() const { return begin_; }
  // Returns where the next chunk would begin if it came from the end of the heap.
  std::uint64_t next() const { return begin_ + malloc_usable_size(memory_) + sizeof(std::size_t); }

 private:
  void* memory_;
  std::uint64_t begin_;
};

// Takes chunks of `size` bytes until one comes from the free end of the heap; false if none does.
bool TakeHoles(std::size_t size, std::uint64_t free_end, std::uint64_t* taken) {
  while (*taken < kMaxTaken) {
    const Chunk chunk(size);
    *taken += size;
    if (chunk.begin() >= free_end) return chunk.begin() < HeapEnd();
  }
  return false;
}

}  // namespace

void BeginHeapAnew() {
  std::uint64_t taken = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // mallinfo2 is younger than glibc 2.28
  const struct mallinfo info = mallinfo();
#pragma GCC diagnostic pop
  const std::uint64_t free_end = HeapEnd() - static_cast<unsigned>(info.keepcost);
  // Large ones come first: the rest of a hole serves the next size.
  for (std::size_t size = kLargest; size > 1032; size /= 2) {
    if (!TakeHoles(size, free_end, &taken)) return;
  }
  for (std::size_t size = 1032; size >= 24; size -= 16) {
    if (!TakeHoles(size, free_end, &taken)) return;
  }
  // Takes the rest up to the boundary in pieces; the last two fit exactly.
  std::uint64_t next = Chunk(24).next();
  const std::uint64_t end = (next / kBoundary + 1) * kBoundary;
  while (next < end) {
    const std::uint64_t left = end - next;
    const std::uint64_t size = left > 2 * kLargest ? kLargest
                               : left > kLargest   ? kLargest / 2
                                                   : left;
    if (size < 32) return;
    const Chunk chunk(size - sizeof(std::size_t));
    if (chunk.begin() != next) return;
    next = chunk.next();
  }
}

}  // namespace memreplay::card
