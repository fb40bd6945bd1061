#include "record/card/device/copies.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>

#include "record/card/device/device.h"
#include "record/card/device/entry.h"
#include "record/card/stubs/page.h"

namespace memreplay::card {
namespace {

// Never destroyed: threads may end after this library's destructors.
thread_local std::deque<std::string>* answers = nullptr;

// Copies the first answer of this size and removes it.
bool Answered(void* to, size_t size) {
  if (answers == nullptr) return false;
  for (auto answer = answers->begin(); answer != answers->end(); ++answer) {
    if (answer->size() != size) continue;
    std::memcpy(to, answer->data(), size);
    answers->erase(answer);
    return true;
  }
  return false;
}

// Reads the known bytes. The lock is held, and the address is open memory of a card.
bool ReadKnown(const Device& d, uint64_t address, void* bytes, size_t size) {
  size_t known = 0;
  std::memset(bytes, 0, size);
  if (!d.backing.real()) return false;
  d.known.ForEach(address, size, [&](uint64_t from, uint64_t n) {
    std::memcpy(static_cast<char*>(bytes) + (from - address), Pointer<char>(from), n);
    known += n;
  });
  return known == size;
}

void WriteKnown(Device* d, uint64_t address, const void* bytes, size_t size) {
  if (!d->backing.real()) return;
  std::memmove(Pointer<char>(address), bytes, size);
  d->known.Add(address, size);
}

void BetweenCards(Device* d, uint64_t to, uint64_t from, size_t size) {
  std::string bytes(size, '\0');
  ReadKnown(*d, from, bytes.data(), size);
  KnownBytes moved;
  d->known.ForEach(from, size, [&](uint64_t part, uint64_t n) { moved.Add(part - from, n); });
  d->known.Forget(to, size);
  moved.ForEach(0, size, [&](uint64_t part, uint64_t n) {
    WriteKnown(d, to + part, bytes.data() + part, n);
  });
}

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

// Fills `size` bytes at `to` with zeros. The pages of a large piece of private anonymous memory are
// released to the system, for which they read as zero and take nothing: a script that offloads its
// activations does not need their size on this machine. Other memory is written.
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

}  // namespace

bool Copy(void* to, const void* from, size_t size) {
  if (size == 0) return true;
  if (to == nullptr || from == nullptr) return false;
  Device& d = TheDevice();
  d.Tick();
  const bool to_card = d.backing.CardOf(Number(to)) >= 0;
  const bool from_card = d.backing.CardOf(Number(from)) >= 0;
  if (!to_card && !from_card) {
    std::memmove(to, from, size);
    return true;
  }
  const bool small = size <= d.settings.copy_limit;
  if (!to_card && Answered(to, size)) return true;
  const std::lock_guard<std::mutex> lock(d.mutex);
  if (!to_card) {
    if (!small) ZeroHostMemory(to, size);
    if (!small || !ReadKnown(d, Number(from), to, size)) {
      Assume(small ? "values that were never computed were copied to the host as zeros"
                   : "large copies to the host delivered zeros instead of computed values");
    }
  } else if (!small) {
    d.known.Forget(Number(to), size);
    d.backing.Clear(Number(to), size);
  } else if (from_card) {
    BetweenCards(&d, Number(to), Number(from), size);
  } else {
    WriteKnown(&d, Number(to), from, size);
  }
  return true;
}

bool Copy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
            size_t height) {
  if (width != 0 && height != 0 && (to == nullptr || from == nullptr)) return false;
  for (size_t row = 0; row < height; ++row) {
    Copy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch,
         width);
  }
  return true;
}

bool Fill(void* to, int byte, size_t size) {
  if (size == 0) return true;
  if (to == nullptr) return false;
  Device& d = TheDevice();
  d.Tick();
  if (d.backing.CardOf(Number(to)) < 0) {
    std::memset(to, byte, size);
    return true;
  }
  const std::lock_guard<std::mutex> lock(d.mutex);
  if (size <= d.settings.copy_limit && d.backing.real()) {
    std::memset(to, byte, size);
    d.known.Add(Number(to), size);
  } else {
    d.known.Forget(Number(to), size);
    d.backing.Clear(Number(to), size);
  }
  return true;
}

void AnswerNext(const void* bytes, size_t size) {
  if (answers == nullptr) answers = new std::deque<std::string>;
  answers->emplace_back(static_cast<const char*>(bytes), size);
}

void ForgetAnswers() {
  if (answers != nullptr) answers->clear();
}

void WriteBytes(uint64_t address, const void* bytes, size_t size) {
  const auto [d, lock] = LockedDevice();
  WriteKnown(&d, address, bytes, size);
}

void FillWithZeros(uint64_t address, size_t size) {
  const auto [d, lock] = LockedDevice();
  if (!d.backing.real()) return;
  d.backing.Clear(address, size);
  d.known.Add(address, size);
}

bool ReadBytes(uint64_t address, void* bytes, size_t size) {
  const auto [d, lock] = LockedDevice();
  return ReadKnown(d, address, bytes, size);
}

}  // namespace memreplay::card
