// What the C++ library would bring besides templates: memory and the ends of errors. With these the
// core needs libc alone and loads wherever torch does.
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

[[noreturn]] void stop(const char* what) {
  std::fprintf(stderr, "memreplay: the imaginary card stops: %s\n", what);
  std::abort();
}

void* take(std::size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) stop("the host has no memory left");
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return take(size); }
void* operator new[](std::size_t size) { return take(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace std {
void __throw_length_error(const char* what) { stop(what); }
void __throw_logic_error(const char* what) { stop(what); }
void __throw_out_of_range(const char* what) { stop(what); }
void __throw_out_of_range_fmt(const char* what, ...) { stop(what); }
void __throw_bad_alloc() { stop("bad_alloc"); }
void __throw_bad_array_new_length() { stop("bad_array_new_length"); }
void __throw_system_error(int) { stop("system_error"); }
}  // namespace std
