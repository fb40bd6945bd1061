#include "trace/bytes/value.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "trace/value/strings.h"
#include "trace/value/utf8.h"

namespace memreplay {
namespace {

// The maximum storage that a recycled container keeps.
constexpr size_t kKeptItems = 256;

}  // namespace

uint32_t PickleMemo::Pack(Value value) {
  uint32_t kind = kOther;
  if (value.is(Value::Kind::kAbsent)) return kAbsent;
  if (value.is(Value::Kind::kString)) kind = kString;
  if (value.is(Value::Kind::kObject)) kind = kObject;
  if (value.is(Value::Kind::kRecord)) kind = std::min<uint32_t>(kRecords + value.tag(), kTooHigh);
  if (kind != kOther && kind != kTooHigh && value.index() <= kIndexMask) {
    return kind << kIndexBits | value.index();
  }
  others_.push_back(value);
  return static_cast<uint32_t>(kOther) << kIndexBits | static_cast<uint32_t>(others_.size() - 1);
}

void PickleMemo::Set(uint64_t slot, Value value) {
  if (slot == slots_.size()) {  // almost always
    Append(value);
    return;
  }
  if (slot > slots_.size()) slots_.resize(slot + 1);
  const Value before = Get(slot);
  if (before.is(Value::Kind::kAbsent)) {
    ++filled_;
  } else if (!(before == value)) {
    ++rewritten_;
  }
  slots_[slot] = Pack(value);
}

void PickleMemo::Replace(uint64_t slot, Value with) { slots_[slot] = Pack(with); }

absl::Status CheckMemory(uint64_t position, uint64_t memory) {
  constexpr uint64_t kFree = uint64_t{48} << 20;
  constexpr uint64_t kRatio = 4;
  if (memory <= kFree || (memory - kFree) / kRatio <= position) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      StrCat("byte ", position, ": the values read so far take ", memory >> 20,
             " MiB of memory, more than ", kRatio,
             " times what was read and 48 MiB; no valid snapshot does"));
}

std::string_view ValueHeap::TypeName(Type type) {
  switch (type) {
    case Type::kList: return "a list";
    case Type::kTuple: return "a tuple";
    case Type::kDict: return "a dict";
    case Type::kSet: return "a set";
    case Type::kReplaced: return "a record";
    case Type::kUnused: break;
  }
  return "nothing";
}

Value ValueHeap::NewObject(Type type, uint64_t position) {
  uint32_t index;
  if (!unused_.empty()) {
    index = unused_.back();
    unused_.pop_back();
  } else {
    index = static_cast<uint32_t>(objects_.size());
    objects_.emplace_back();
  }
  objects_[index].type = type;
  objects_[index].position = position;
  return Value(Value::Kind::kObject, index);
}

Value ValueHeap::NewWide(Value::Kind kind, uint64_t bits, bool negative) {
  wide_.push_back({bits, negative});
  return Value(kind, wide_.size() - 1);
}

void ValueHeap::Extend(Value object, absl::Span<const Value> more, uint64_t position) {
  Object& target = objects_[object.index()];
  target.position = position;
  if (target.type == Type::kList && ExtendRange(target, more)) return;
  if (target.range > 0) Unfold(target);
  const size_t before = target.items.capacity();
  target.items.insert(target.items.end(), more.begin(), more.end());
  held_items_ += target.items.capacity() - before;
}

// Adds `more` to a list kept as a range; returns false if the result is no range.
bool ValueHeap::ExtendRange(Object& list, absl::Span<const Value> more) {
  if (!list.items.empty() || more.empty() || !more[0].is(Value::Kind::kRecord)) return false;
  const Value begin = list.range > 0 ? list.range_begin : more[0];
  uint32_t next = begin.index() + list.range;
  for (const Value value : more) {
    if (!(value == Value::Record(begin.tag(), next++))) return false;
  }
  list.range_begin = begin;
  list.range = next - begin.index();
  return true;
}

void ValueHeap::Unfold(Object& list) {
  list.items.reserve(list.range);
  for (uint32_t i = 0; i < list.range; ++i) {
    list.items.push_back(Value::Record(list.range_begin.tag(), list.range_begin.index() + i));
  }
  list.range = 0;
}

Value* ValueHeap::Find(Value dict, std::string_view key) {
  std::vector<Value>& items = objects_[dict.index()].items;
  for (size_t i = items.size(); i >= 2; i -= 2) {
    const Value k = items[i - 2];
    if (k.is(Value::Kind::kString) && strings_[k.index()] == key) return &items[i - 1];
  }
  return nullptr;
}

Value ValueHeap::Resolve(Value value) const {
  // A replacement is a record, never an object, so one step is enough.
  if (value.is(Value::Kind::kObject) && objects_[value.index()].type == Type::kReplaced) {
    return objects_[value.index()].replacement;
  }
  return value;
}

void ValueHeap::Recycle(uint32_t index) {
  Object& object = objects_[index];
  object.type = Type::kUnused;
  object.used = false;
  object.memo_slot = kNoSlot;
  object.range = 0;
  if (object.items.capacity() > kKeptItems) {
    held_items_ -= std::min<uint64_t>(held_items_, object.items.capacity());
    std::vector<Value>().swap(object.items);
  } else {
    object.items.clear();
  }
  unused_.push_back(index);
}

void ValueHeap::Replace(Value object, Value with) {
  Object& old = objects_[object.index()];
  if (old.memo_slot < memo_.size()) memo_.Replace(old.memo_slot, with);
  if (!old.shared) return Recycle(object.index());
  old.type = Type::kReplaced;
  old.replacement = with;
}

void ValueHeap::ReleaseObject(Value value) {
  std::vector<Value> doomed = {value};
  while (!doomed.empty()) {
    const Value next = doomed.back();
    doomed.pop_back();
    if (!next.is(Value::Kind::kObject)) continue;
    Object& object = objects_[next.index()];
    if (object.shared || object.memo_slot != kNoSlot) continue;
    doomed.insert(doomed.end(), object.items.begin(), object.items.end());
    Recycle(next.index());
  }
}

void ValueHeap::Memoize(uint64_t slot, Value value) {
  // A container refers to one slot. If it gets a second one, or if its slot gets another value, the
  // memo no longer leads to the container, so it must stay.
  const Value before = memo_.Get(slot);
  if (before.is(Value::Kind::kObject) && !(before == value)) {
    objects_[before.index()].shared = true;
    objects_[before.index()].memo_slot = kNoSlot;
  }
  if (value.is(Value::Kind::kObject)) {
    Object& object = objects_[value.index()];
    if (object.memo_slot == kNoSlot && slot < kNoSlot) {
      object.memo_slot = static_cast<uint32_t>(slot);
    } else {
      object.shared = true;
    }
  }
  memo_.Set(slot, value);
}

std::optional<WideInt> ValueHeap::AsInteger(Value value) const {
  if (value.is(Value::Kind::kInt)) {
    return WideInt{value.inline_int() < 0, static_cast<uint64_t>(value.inline_int())};
  }
  if (value.is(Value::Kind::kWideInt)) {
    const Wide& wide = wide_[value.index()];
    return WideInt{wide.negative, wide.bits};
  }
  return std::nullopt;
}

std::optional<double> ValueHeap::AsNumber(Value value) const {
  if (value.is(Value::Kind::kFloat)) {
    double number;
    std::memcpy(&number, &wide_[value.index()].bits, sizeof number);
    return number;
  }
  const std::optional<WideInt> integer = AsInteger(value);
  if (!integer.has_value()) return std::nullopt;
  return integer->negative ? static_cast<double>(static_cast<int64_t>(integer->bits))
                           : static_cast<double>(integer->bits);
}

absl::Status ValueHeap::Expected(std::string_view what, Value found) const {
  return absl::InvalidArgumentError(StrCat("expected ", what, ", found ", Describe(found)));
}

std::string ValueHeap::Describe(Value value) const {
  switch (value.kind()) {
    case Value::Kind::kAbsent: return "nothing";
    case Value::Kind::kNone: return "None";
    case Value::Kind::kFalse: return "False";
    case Value::Kind::kTrue: return "True";
    case Value::Kind::kInt: return StrCat("the integer ", value.inline_int());
    case Value::Kind::kWideInt: {
      const Wide& wide = wide_[value.index()];
      return wide.negative ? StrCat("the integer ", static_cast<int64_t>(wide.bits))
                           : StrCat("the integer ", wide.bits);
    }
    case Value::Kind::kHugeInt: return "an integer of more than 64 bits";
    case Value::Kind::kFloat: return StrCat("the number ", *AsNumber(value));
    case Value::Kind::kString: {
      const std::string_view text = strings_[value.index()];
      return StrCat("the string '", CutText(text, 40), text.size() > 40 ? "...'" : "'");
    }
    case Value::Kind::kOpaque: return "a byte string";
    case Value::Kind::kObject: return std::string(TypeName(type(value)));
    case Value::Kind::kRecord: return "a record";
  }
  return "nothing";
}

}  // namespace memreplay
