// The ends of errors that the C++ library would provide, for libraries that need libc alone.
#include <cstdio>
#include <cstdlib>

namespace {

[[noreturn]] void Stop(const char* what) {
  std::fprintf(stderr, "memreplay: the library in this process stops: %s\n", what);
  std::abort();
}

}  // namespace

namespace std {
void __throw_length_error(const char* what) { Stop(what); }
void __throw_logic_error(const char* what) { Stop(what); }
void __throw_out_of_range(const char* what) { Stop(what); }
void __throw_out_of_range_fmt(const char* what, ...) { Stop(what); }
void __throw_bad_alloc() { Stop("bad_alloc"); }
void __throw_bad_array_new_length() { Stop("bad_array_new_length"); }
void __throw_system_error(int) { Stop("system_error"); }
}  // namespace std
