// Counts GPU memory that is requested past PyTorch's allocator, by requesting library.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace memreplay::card {

// The memory that libraries other than PyTorch's allocator hold.
class Outside {
 public:
  struct Library {
    std::string name;                 // "libcupy_backends.so"; "" for the executable itself
    std::uint64_t now = 0, peak = 0;  // bytes, as requested
    std::uint64_t calls = 0;
  };

  // Counts an allocation. `caller` is an address in the code that called; does nothing, and
  // allocates nothing, if that is PyTorch's allocator. `key` names the memory until it is freed: an
  // address or a handle.
  void Allocated(const void* caller, std::uint64_t key, std::uint64_t bytes);
  void Allocated(const char* library, std::uint64_t key, std::uint64_t bytes);
  void Freed(std::uint64_t key);
  const std::vector<Library>& libraries() const { return libraries_; }  // in order of first call

 private:
  struct Piece {
    std::size_t library;
    std::uint64_t bytes;
  };
  std::vector<Library> libraries_;
  std::unordered_map<std::uint64_t, Piece> live_;
};

}  // namespace memreplay::card
