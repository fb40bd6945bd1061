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
void* take_or_throw(std::size_t size) {
  using New = void*(std::size_t);
  auto* real = reinterpret_cast<New*>(memreplay::card::LoadedSymbol("libstdc++.so.6", "_Znwm"));
  if (real == nullptr) std::__throw_bad_alloc();
  return real(size);
}

void* take(std::size_t size) {
  void* memory = memreplay::card::TakeTensorObject(size);
  if (memory == nullptr) memory = std::malloc(size == 0 ? 1 : size);
  return memory == nullptr ? take_or_throw(size) : memory;
}

void give(void* memory) {
  if (!memreplay::card::GiveTensorObjectBack(memory)) std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) { return take(size); }
void* operator new[](std::size_t size) { return take(size); }
void operator delete(void* memory) noexcept { give(memory); }
void operator delete[](void* memory) noexcept { give(memory); }
void operator delete(void* memory, std::size_t) noexcept { give(memory); }
void operator delete[](void* memory, std::size_t) noexcept { give(memory); }
