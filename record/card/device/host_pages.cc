#include "record/card/device/host_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "record/card/stubs/page.h"

namespace memreplay::card {
namespace {

constexpr size_t kLarge = size_t{4} << 20;  // below it, reading the table takes longer

// Reads /proc/self/maps; empty if it cannot be read.
std::string ReadMaps() {
  std::string text;
  const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  char part[16384];
  ssize_t n = 0;
  while ((n = read(file, part, sizeof part)) > 0) text.append(part, static_cast<size_t>(n));
  close(file);
  return text;
}

// Returns whether each page of a range is private anonymous memory that can be written. A line of
// the table is "7f00-7f10 rw-p 00000000 00:00 0    [heap]"; device and inode are zero if there is
// no file.
bool IsAnonymous(uint64_t from, uint64_t to) {
  const std::string maps = ReadMaps();
  const char* line = maps.c_str();
  while (*line != 0 && from < to) {
    char* rest = nullptr;
    const uint64_t begin = std::strtoull(line, &rest, 16);
    const uint64_t end = *rest == '-' ? std::strtoull(rest + 1, &rest, 16) : 0;
    const char* next = std::strchr(line, '\n');
    next = next == nullptr ? maps.c_str() + maps.size() : next + 1;
    if (begin <= from && from < end) {
      const std::string flags(rest + 1, 4);
      const std::string names(static_cast<const char*>(rest) + 6, next);
      if (flags.substr(0, 2) != "rw" || flags[3] != 'p') return false;
      if (names.find(" 00:00 0") == std::string::npos) return false;
      from = end;
    }
    line = next;
  }
  return from >= to;
}

}  // namespace

void ZeroHostMemory(void* to, size_t size) {
  const auto address = reinterpret_cast<uint64_t>(to);
  const uint64_t from = (address + kPage - 1) / kPage * kPage;
  const uint64_t end = (address + size) / kPage * kPage;
  if (size >= kLarge && IsAnonymous(from, end) &&
      madvise(reinterpret_cast<void*>(from), end - from, MADV_DONTNEED) == 0) {
    std::memset(to, 0, from - address);
    std::memset(reinterpret_cast<void*>(end), 0, address + size - end);
    return;
  }
  std::memset(to, 0, size);
}

}  // namespace memreplay::card
