// The program's operator new. Large arrays get pages of 2 MiB, which the kernel provides and clears
// several times faster than as many bytes of small pages; a file's events, and what is found out
// about them, are a few such arrays.
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

constexpr uintptr_t kHuge = uintptr_t{2} << 20;

// Requests huge pages for those that lie within the array. This is a hint on which nothing depends.
void PreferHugePages(void* array, size_t size) {
  const auto begin = reinterpret_cast<uintptr_t>(array);
  const uintptr_t first = (begin + kHuge - 1) & ~(kHuge - 1);
  const uintptr_t last = (begin + size) & ~(kHuge - 1);
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

}  // namespace

void* operator new(size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  while (memory == nullptr) {
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
    memory = std::malloc(size);
  }
  if (size >= 2 * kHuge) PreferHugePages(memory, size);
  return memory;
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t /*size*/) noexcept { std::free(memory); }
