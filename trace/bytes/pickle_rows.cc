#include "trace/bytes/pickle_rows.h"

#include <cstring>
#include <utility>

#include "trace/bytes/pickle_opcodes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using Kind = Value::Kind;

// The maximum size of a key or of a value other than a list; this many bytes are read without a
// check.
constexpr ptrdiff_t kRoom = 32;

constexpr PickleOp OpAt(const char* at) { return static_cast<PickleOp>(*at); }

// Returns the eight bytes at `at`, little-endian.
uint64_t Load(const char* at) {
  uint64_t bytes;
  std::memcpy(&bytes, at, sizeof bytes);
  return bytes;
}

bool IsReference(const char* at) {
  return OpAt(at) == PickleOp::kLongBinGet || OpAt(at) == PickleOp::kBinGet;
}
ptrdiff_t ReferenceLength(const char* at) { return OpAt(at) == PickleOp::kLongBinGet ? 5 : 2; }
uint64_t ReferenceSlot(const char* at) {
  const uint64_t bytes = Load(at + 1);
  return OpAt(at) == PickleOp::kLongBinGet ? bytes & 0xffffffff : bytes & 0xff;
}

// Reads an integer of up to 55 bits; returns false if it is something else.
bool ReadInt(const char** at, Value* value) {
  const uint64_t bytes = Load(*at + 1);
  switch (OpAt(*at)) {
    case PickleOp::kBinInt1:
      *value = Value::Int(static_cast<int64_t>(bytes & 0xff));
      *at += 2;
      return true;
    case PickleOp::kBinInt2:
      *value = Value::Int(static_cast<int64_t>(bytes & 0xffff));
      *at += 3;
      return true;
    case PickleOp::kBinInt:
      *value = Value::Int(static_cast<int32_t>(bytes));
      *at += 5;
      return true;
    case PickleOp::kLong1: {
      const unsigned length = bytes & 0xff;
      if (length < 1 || length > 7) return false;
      const auto top = static_cast<int64_t>(Load(*at + 2) << (64 - 8 * length));
      const int64_t number = top >> (64 - 8 * length);
      if (!Value::FitsInline(number)) return false;
      *value = Value::Int(number);
      *at += 2 + length;
      return true;
    }
    default: return false;
  }
}

}  // namespace

size_t PickleRows::Read(const char* begin, const char* end, Value* row) {
  if (memo_rewritten_ != heap_.memo().rewritten()) {
    memo_rewritten_ = heap_.memo().rewritten();
    keys_.clear();
    lists_.clear();
    list_bytes_ = 0;
    new_lists_.clear();
  }
  if (!new_lists_.empty()) LearnLists();
  if (end - begin < kRoom || static_cast<PickleOp>(begin[1]) != PickleOp::kMemoize ||
      static_cast<PickleOp>(begin[2]) != PickleOp::kMark) {
    return 0;
  }
  if (heap_.memo().filled() != heap_.memo().size()) return 0;  // MEMOIZE would fill a hole
  size_t length = ReadRow(begin, end);
  if (length == 0) {
    const bool learned = LearnKeys(begin, end);
    new_lists_.clear();
    if (learned) length = ReadRow(begin, end);
  }
  if (length == 0 || !new_lists_.empty() || !reducer_.AddRow(values_, row)) return 0;
  uint64_t slot = heap_.memo().size();
  heap_.Memoize(slot, *row);
  for (const Value list : memoized_) heap_.Memoize(++slot, list);
  return length;
}

// Fills values_, memoized_ and new_lists_; returns the length of the dict if it is a row.
size_t PickleRows::ReadRow(const char* begin, const char* end) {
  memoized_.clear();
  new_lists_.clear();
  if (keys_.empty()) return 0;
  const char* at = begin + 3;
  bool alike = true;
  for (size_t i = 0; alike && i < keys_.size(); ++i) {
    const Key& key = keys_[i];
    alike = end - at >= kRoom && (Load(at) & key.mask) == key.bits;
    at += key.length;
    alike = alike && ReadValue(&at, end, &values_[i]);
  }
  if (alike && end > at && OpAt(at) == PickleOp::kSetItems) {
    return static_cast<size_t>(at + 1 - begin);
  }
  new_lists_.clear();  // a list may continue where reading stopped
  return 0;
}

// Makes the keys of the dict at `begin` those of the following rows if the reducer accepts them.
bool PickleRows::LearnKeys(const char* begin, const char* end) {
  std::vector<Key> found;
  std::vector<Value> keys;
  Value ignored;
  const char* at = begin + 3;
  while (end - at >= kRoom && IsReference(at) && keys.size() < kMaxKeys) {
    const ptrdiff_t length = ReferenceLength(at);
    const uint64_t mask = ~uint64_t{0} >> (64 - 8 * length);
    found.push_back({Load(at) & mask, mask, length});
    keys.push_back(heap_.memo().Get(ReferenceSlot(at)));
    at += length;
    if (!keys.back().is(Kind::kString) || !ReadValue(&at, end, &ignored)) return false;
  }
  if (end <= at || OpAt(at) != PickleOp::kSetItems || !reducer_.BeginRows(keys)) return false;
  keys_ = std::move(found);
  values_.resize(keys_.size());
  return true;
}

bool PickleRows::ReadValue(const char** at, const char* end, Value* value) {
  const char* const begin = *at;
  if (end - begin < kRoom) return false;
  switch (OpAt(begin)) {
    case PickleOp::kBinGet:
    case PickleOp::kLongBinGet:
      *value = heap_.memo().Get(ReferenceSlot(begin));
      *at += ReferenceLength(begin);
      // The machine handles a container that may still change.
      return !value->is(Kind::kAbsent) && (!value->is(Kind::kObject) || heap_.is_used(*value));
    case PickleOp::kNone:
      *value = Value(Kind::kNone);
      ++*at;
      return true;
    case PickleOp::kNewTrue:
    case PickleOp::kNewFalse:
      *value = Value(OpAt(begin) == PickleOp::kNewTrue ? Kind::kTrue : Kind::kFalse);
      ++*at;
      return true;
    case PickleOp::kEmptyList: return ReadList(at, end, value);
    default:
      if (!ReadInt(at, value)) return false;
      // A key or the end follows a value; two integers are a pair.
      return IsReference(*at) || OpAt(*at) == PickleOp::kSetItems || ReadPair(begin, at, value);
  }
}

// Reads EMPTY_LIST MEMOIZE, or EMPTY_LIST MEMOIZE MARK reference ... APPENDS.
bool PickleRows::ReadList(const char** at, const char* end, Value* value) {
  const char* const begin = *at;
  if (static_cast<PickleOp>(begin[1]) != PickleOp::kMemoize) return false;
  const char* last = begin + 2;
  if (OpAt(last) == PickleOp::kMark) {
    ++last;
    while (end - last >= kRoom && IsReference(last)) last += ReferenceLength(last);
    if (end - last < kRoom || OpAt(last) != PickleOp::kAppends) return false;
    ++last;
  }
  *at = last;
  return LookUp(std::string_view(begin, static_cast<size_t>(last - begin)), value);
}

// Reads a pair from `begin` on, whose first integer is already read: integer integer TUPLE2
// MEMOIZE.
bool PickleRows::ReadPair(const char* begin, const char** at, Value* value) {
  if (!ReadInt(at, value) || OpAt(*at) != PickleOp::kTuple2 ||
      static_cast<PickleOp>((*at)[1]) != PickleOp::kMemoize) {
    return false;
  }
  *at += 2;
  return LookUp(std::string_view(begin, static_cast<size_t>(*at - begin)), value);
}

bool PickleRows::LookUp(std::string_view bytes, Value* value) {
  const auto known = lists_.find(ToAbsl(bytes));
  const uint64_t slot = heap_.memo().size() + 1 + memoized_.size();
  if (known == lists_.end()) {
    // The machine reads this list; the memo will then have its value.
    new_lists_.emplace_back(std::string(bytes), slot);
    *value = Value(Kind::kNone);
  } else {
    *value = known->second;
  }
  memoized_.push_back(*value);
  return true;
}

void PickleRows::LearnLists() {
  for (auto& [bytes, slot] : new_lists_) {
    const Value value = heap_.memo().Get(slot);
    const bool final = value.is(Kind::kRecord) || (value.is(Kind::kObject) && heap_.is_used(value));
    if (!final || list_bytes_ + bytes.size() > kMaxListBytes) continue;
    heap_.MarkShared(value);
    list_bytes_ += bytes.size();
    lists_.emplace(std::move(bytes), value);
  }
  new_lists_.clear();
}

}  // namespace memreplay
