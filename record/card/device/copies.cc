#include "record/card/device/copies.h"

#include <cstring>
#include <deque>
#include <mutex>
#include <string>

#include "record/card/device/device.h"
#include "record/card/device/entry.h"
#include "record/card/device/host_pages.h"

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
    if (!small) {
      ZeroHostMemory(to, size);
    }
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
