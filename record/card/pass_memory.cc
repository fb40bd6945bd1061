// The memory that the C++ library would provide, for libmemreplay_pass.so alone.
#include <cstdlib>
#include <new>

namespace std {
[[noreturn]] void __throw_bad_alloc();
}

namespace {

void* take(std::size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::__throw_bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return take(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
