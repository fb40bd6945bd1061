// The memory that the C++ library would provide. With it and ends_of_errors.cc the core needs libc
// alone and loads wherever torch does. Libraries that are loaded after it, torch's among them, also
// take their memory from here (tensor_objects.h).
#include <cstdlib>
#include <new>

#include "record/card/hooks/tensor_objects.h"
#include "record/card/stubs/loaded_symbol.h"

namespace std {
[[noreturn]] void __throw_bad_alloc();
}

namespace {

// Calls the C++ library's own operator new, which can throw; this code cannot.
void* TakeOrThrow(size_t size) {
  using New = void*(size_t);
  auto* real = reinterpret_cast<New*>(memreplay::card::LoadedSymbol("libstdc++.so.6", "_Znwm"));
  if (real == nullptr) std::__throw_bad_alloc();
  return real(size);
}

void* Take(size_t size) {
  void* memory = memreplay::card::TakeTensorObject(size);
  if (memory == nullptr) memory = std::malloc(size == 0 ? 1 : size);
  return memory == nullptr ? TakeOrThrow(size) : memory;
}

void Give(void* memory) {
  if (!memreplay::card::GiveTensorObjectBack(memory)) std::free(memory);
}

}  // namespace

void* operator new(size_t size) { return Take(size); }
void* operator new[](size_t size) { return Take(size); }
void operator delete(void* memory) noexcept { Give(memory); }
void operator delete[](void* memory) noexcept { Give(memory); }
void operator delete(void* memory, size_t) noexcept { Give(memory); }
void operator delete[](void* memory, size_t) noexcept { Give(memory); }
