// What the C++ library would provide other than templates: memory and the ends of errors. With
// these the core needs libc alone and loads wherever torch does. Libraries that are loaded after
// it, torch's among them, also take their memory from here (tensor_objects.h).
#include <cstdio>
#include <cstdlib>
#include <new>

#include "record/card/elf/loaded_symbol.h"
#include "record/card/tensor_objects.h"

namespace {

[[noreturn]] void stop(const char* what) {
  std::fprintf(stderr, "memreplay: the simulated GPU stops: %s\n", what);
  std::abort();
}

// Calls the C++ library's own operator new, which can throw; this code cannot.
void* take_or_throw(std::size_t size) {
  using New = void*(std::size_t);
  auto* real = reinterpret_cast<New*>(memreplay::card::LoadedSymbol("libstdc++.so.6", "_Znwm"));
  if (real == nullptr) stop("the host is out of memory");
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

namespace std {
void __throw_length_error(const char* what) { stop(what); }
void __throw_logic_error(const char* what) { stop(what); }
void __throw_out_of_range(const char* what) { stop(what); }
void __throw_out_of_range_fmt(const char* what, ...) { stop(what); }
void __throw_bad_alloc() { stop("bad_alloc"); }
void __throw_bad_array_new_length() { stop("bad_array_new_length"); }
void __throw_system_error(int) { stop("system_error"); }
}  // namespace std
