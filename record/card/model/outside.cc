#include "record/card/model/outside.h"

#include <cstring>

#include "record/card/model/options.h"
#include "record/card/stubs/loaded_symbol.h"

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
                            uint64_t bytes, uint64_t count) {
  size_t i = 0;
  while (i < rows_.size() && (rows_[i].card != card || std::strcmp(rows_[i].what, what) != 0 ||
                              rows_[i].library != library)) {
    ++i;
  }
  if (i == rows_.size()) {
    rows_.push_back({library, what, card, is_object});
    rows_.back().first_at = moment;
  }
  Row& row = rows_[i];
  row.made += count;
  row.live += count;
  row.now += bytes;
  if (row.live > row.most) row.most = row.live;
  if (row.now > row.peak) {
    row.peak = row.now;
    row.peak_at = moment;
  }
  return {i, bytes, count, false};
}

void Outside::Remove(const Piece& piece) {
  Row& row = rows_[piece.row];
  row.live -= piece.count;
  row.now -= piece.bytes;
  if (piece.is_torchs) row.torchs_now -= piece.bytes;
}

void Outside::GiveToTorch(Piece* piece) {
  if (piece->is_torchs) return;
  piece->is_torchs = true;
  Row& row = rows_[piece->row];
  row.torchs_now += piece->bytes;
  if (row.torchs_now > row.torchs_peak) row.torchs_peak = row.torchs_now;
}

void Outside::Mapped(uint64_t key, uint64_t address, uint64_t bytes) {
  const auto found = memory_.find(key);
  if (found == memory_.end()) return;
  ranges_[address] = {bytes, key};
  if (torchs_addresses_.count(address) != 0) GiveToTorch(&found->second);
}

void Outside::Unmapped(uint64_t address) { ranges_.erase(address); }

void Outside::FindOwner(uint64_t address) {
  auto range = ranges_.upper_bound(address);
  if (range == ranges_.begin()) return;
  --range;
  if (address - range->first >= range->second.bytes) return;
  const auto piece = memory_.find(range->second.key);
  if (piece == memory_.end()) return;
  if (range->second.key != range->first) torchs_addresses_.insert(range->first);
  GiveToTorch(&piece->second);
}

void Outside::UseCard(const char* library, int card) {
  const uint64_t bit = uint64_t{1} << card;
  if ((contexts_ & bit) != 0) return;
  contexts_ |= bit;
  Add(library, kContextObject, card, true, 0, 1);
}

void Outside::Allocated(const char* what, const void* caller, int card, uint64_t key,
                        uint64_t bytes) {
  const char* library = LoadedName(caller);
  UseCard(library, card);
  if (!IsAllocators(library)) AllocatedBy(library, what, card, key, bytes);
}

void Outside::AllocatedBy(const char* library, const char* what, int card, uint64_t key,
                          uint64_t bytes) {
  memory_[key] = Add(library, what, card, false, bytes, 1);
}

void Outside::Freed(uint64_t key) {
  if (memory_.empty()) return;
  const auto found = memory_.find(key);
  if (found == memory_.end()) return;
  Remove(found->second);
  memory_.erase(found);
}

void Outside::Made(const char* what, const void* caller, int card, uint64_t key, uint64_t count) {
  const char* library = LoadedName(caller);
  UseCard(library, card);
  objects_[{what, key}] = Add(library, what, card, true, 0, count);
}

void Outside::Destroyed(const char* what, uint64_t key) {
  const auto found = objects_.find({what, key});
  if (found == objects_.end()) return;
  Remove(found->second);
  objects_.erase(found);
}

void Outside::Write(Json* json) const {
  json->Open('[');
  for (const Row& row : rows_) {
    json->Open('{').Key("library").Value(row.library).Key(row.is_object ? "object" : "function");
    json->Value(row.what).Key("device").Value(static_cast<uint64_t>(row.card));
    json->Key("calls").Value(row.made).Key("most").Value(row.most).Key("peak").Value(row.peak);
    json->Key("torchs_peak").Value(row.torchs_peak).Key("first_at").Value(row.first_at);
    json->Key("peak_at").Value(row.peak_at).Close('}');
  }
  json->Close(']');
}

}  // namespace memreplay::card
