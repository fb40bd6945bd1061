#include "record/card/outside.h"

#include <cstring>

#include "record/card/elf/loaded_symbol.h"
#include "record/card/options.h"

namespace memreplay::card {
namespace {

static_assert(kMaxCards <= 64);  // Outside::contexts_

// Returns whether this is the library that has PyTorch's allocator.
bool IsAllocators(const char* library) {
  constexpr char kName[] = "libc10_cuda.";
  return std::strncmp(library, kName, sizeof(kName) - 1) == 0;
}

}  // namespace

Outside::Piece Outside::Add(const char* library, const char* what, int card, bool is_object,
                            std::uint64_t bytes, std::uint64_t count) {
  std::size_t i = 0;
  while (i < rows_.size() && (rows_[i].card != card || std::strcmp(rows_[i].what, what) != 0 ||
                              rows_[i].library != library)) {
    ++i;
  }
  if (i == rows_.size()) rows_.push_back({library, what, card, is_object});
  Row& row = rows_[i];
  row.made += count;
  row.live += count;
  row.now += bytes;
  if (row.live > row.most) row.most = row.live;
  if (row.now > row.peak) row.peak = row.now;
  return {i, bytes, count};
}

void Outside::Remove(const Piece& piece) {
  Row& row = rows_[piece.row];
  row.live -= piece.count;
  row.now -= piece.bytes;
}

void Outside::UseCard(const char* library, int card) {
  const std::uint64_t bit = std::uint64_t{1} << card;
  if ((contexts_ & bit) != 0) return;
  contexts_ |= bit;
  Add(library, kContextObject, card, true, 0, 1);
}

void Outside::Allocated(const char* what, const void* caller, int card, std::uint64_t key,
                        std::uint64_t bytes) {
  const char* library = LoadedName(caller);
  UseCard(library, card);
  if (!IsAllocators(library)) AllocatedBy(library, what, card, key, bytes);
}

void Outside::AllocatedBy(const char* library, const char* what, int card, std::uint64_t key,
                          std::uint64_t bytes) {
  memory_[key] = Add(library, what, card, false, bytes, 1);
}

void Outside::Freed(std::uint64_t key) {
  if (memory_.empty()) return;
  const auto found = memory_.find(key);
  if (found == memory_.end()) return;
  Remove(found->second);
  memory_.erase(found);
}

void Outside::Made(const char* what, const void* caller, int card, std::uint64_t key,
                   std::uint64_t count) {
  const char* library = LoadedName(caller);
  UseCard(library, card);
  objects_[{what, key}] = Add(library, what, card, true, 0, count);
}

void Outside::Destroyed(const char* what, std::uint64_t key) {
  const auto found = objects_.find({what, key});
  if (found == objects_.end()) return;
  Remove(found->second);
  objects_.erase(found);
}

}  // namespace memreplay::card
