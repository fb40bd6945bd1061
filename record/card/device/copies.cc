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
bool answered(void* to, std::size_t size) {
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
bool read_known(const Device& d, std::uint64_t address, void* bytes, std::size_t size) {
  std::size_t known = 0;
  std::memset(bytes, 0, size);
  if (!d.backing.real()) return false;
  d.known.for_each(address, size, [&](std::uint64_t from, std::uint64_t n) {
    std::memcpy(static_cast<char*>(bytes) + (from - address), pointer<char>(from), n);
    known += n;
  });
  return known == size;
}

void write_known(Device* d, std::uint64_t address, const void* bytes, std::size_t size) {
  if (!d->backing.real()) return;
  std::memmove(pointer<char>(address), bytes, size);
  d->known.add(address, size);
}

void between_cards(Device* d, std::uint64_t to, std::uint64_t from, std::size_t size) {
  std::string bytes(size, '\0');
  read_known(*d, from, bytes.data(), size);
  KnownBytes moved;
  d->known.for_each(from, size,
                    [&](std::uint64_t part, std::uint64_t n) { moved.add(part - from, n); });
  d->known.forget(to, size);
  moved.for_each(0, size, [&](std::uint64_t part, std::uint64_t n) {
    write_known(d, to + part, bytes.data() + part, n);
  });
}

}  // namespace

bool Copy(void* to, const void* from, std::size_t size) {
  if (size == 0) return true;
  if (to == nullptr || from == nullptr) return false;
  Device& d = device();
  d.tick();
  const bool to_card = d.backing.card_of(number(to)) >= 0;
  const bool from_card = d.backing.card_of(number(from)) >= 0;
  if (!to_card && !from_card) {
    std::memmove(to, from, size);
    return true;
  }
  const bool small = size <= d.settings.copy_limit;
  if (!to_card && answered(to, size)) return true;
  const std::lock_guard<std::mutex> lock(d.mutex);
  if (!to_card) {
    if (!small) {
      ZeroHostMemory(to, size);
    }
    if (!small || !read_known(d, number(from), to, size)) {
      Assume(small ? "values that were never computed were copied to the host as zeros"
                   : "large copies to the host delivered zeros instead of computed values");
    }
  } else if (!small) {
    d.known.forget(number(to), size);
    d.backing.clear(number(to), size);
  } else if (from_card) {
    between_cards(&d, number(to), number(from), size);
  } else {
    write_known(&d, number(to), from, size);
  }
  return true;
}

bool Copy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
            std::size_t width, std::size_t height) {
  if (width != 0 && height != 0 && (to == nullptr || from == nullptr)) return false;
  for (std::size_t row = 0; row < height; ++row) {
    Copy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch,
         width);
  }
  return true;
}

bool Fill(void* to, int byte, std::size_t size) {
  if (size == 0) return true;
  if (to == nullptr) return false;
  Device& d = device();
  d.tick();
  if (d.backing.card_of(number(to)) < 0) {
    std::memset(to, byte, size);
    return true;
  }
  const std::lock_guard<std::mutex> lock(d.mutex);
  if (size <= d.settings.copy_limit && d.backing.real()) {
    std::memset(to, byte, size);
    d.known.add(number(to), size);
  } else {
    d.known.forget(number(to), size);
    d.backing.clear(number(to), size);
  }
  return true;
}

void AnswerNext(const void* bytes, std::size_t size) {
  if (answers == nullptr) answers = new std::deque<std::string>;
  answers->emplace_back(static_cast<const char*>(bytes), size);
}

void ForgetAnswers() {
  if (answers != nullptr) answers->clear();
}

void WriteBytes(std::uint64_t address, const void* bytes, std::size_t size) {
  Device& d = device();
  const std::lock_guard<std::mutex> lock(d.mutex);
  write_known(&d, address, bytes, size);
}

void FillWithZeros(std::uint64_t address, std::size_t size) {
  Device& d = device();
  const std::lock_guard<std::mutex> lock(d.mutex);
  if (!d.backing.real()) return;
  d.backing.clear(address, size);
  d.known.add(address, size);
}

bool ReadBytes(std::uint64_t address, void* bytes, std::size_t size) {
  Device& d = device();
  const std::lock_guard<std::mutex> lock(d.mutex);
  return read_known(d, address, bytes, size);
}

}  // namespace memreplay::card
