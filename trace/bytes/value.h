// The values of a pickle or a JSON text, in 8 bytes each, for both readers. Containers and strings
// live in a ValueHeap and are shared by reference; a DictReducer may replace dicts by smaller
// records of its own while they are read, so that no tree of a large file is ever built.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "trace/value/tables.h"

namespace memreplay {

// A value of a pickle: a scalar itself, or a reference into a ValueHeap.
class Value {
 public:
  enum class Kind : uint8_t {
    kAbsent,  // no value
    kNone,
    kFalse,
    kTrue,
    kInt,      // 56-bit signed, stored in the value itself
    kWideInt,  // ValueHeap::wide
    kHugeInt,  // exceeds 64 bits; its value is not kept
    kFloat,    // ValueHeap::wide, as bits
    kString,   // index into ValueHeap::strings()
    kOpaque,   // bytes and similar; the content is not kept
    kObject,   // a container in the ValueHeap
    kRecord,   // created by a DictReducer, which defines tag() and index()
  };

  constexpr Value() = default;
  explicit constexpr Value(Kind kind, uint64_t payload = 0)
      : bits_(payload << 8 | static_cast<uint8_t>(kind)) {}
  static constexpr Value Record(uint8_t tag, uint32_t index) {
    return Value(Kind::kRecord, uint64_t{tag} << 32 | index);
  }
  static constexpr bool FitsInline(int64_t n) { return n >= -kInlineLimit && n < kInlineLimit; }
  static constexpr Value Int(int64_t n) {  // requires FitsInline(n)
    return Value(Kind::kInt, static_cast<uint64_t>(n));
  }

  constexpr Kind kind() const { return static_cast<Kind>(bits_ & 0xff); }
  constexpr bool is(Kind kind_asked) const { return kind() == kind_asked; }
  constexpr bool is_record(uint8_t tag_asked) const {
    return is(Kind::kRecord) && tag() == tag_asked;
  }
  constexpr uint32_t index() const { return static_cast<uint32_t>(bits_ >> 8); }
  constexpr uint8_t tag() const { return static_cast<uint8_t>(bits_ >> 40); }
  constexpr int64_t inline_int() const { return static_cast<int64_t>(bits_) >> 8; }
  friend constexpr bool operator==(Value, Value) = default;

 private:
  static constexpr int64_t kInlineLimit = int64_t{1} << 55;
  uint64_t bits_ = 0;
};
static_assert(sizeof(Value) == 8);

// An integer of the input, exact if it fits into int64_t or uint64_t.
struct WideInt {
  bool negative = false;
  uint64_t bits = 0;  // two's complement if negative
};

// Reserves memory for a vector that is nearly full, if it goes on to grow with the input, of which
// `read` of `all` bytes were read. By itself, a vector doubles, and much of that may stay unused.
template <typename T>
void ReserveFor(std::vector<T>& elements, uint64_t read, uint64_t all) {
  constexpr size_t kSoon = 32768;  // elements until the next call
  const size_t size = elements.size();
  if (elements.capacity() - size >= kSoon || read == 0) return;
  const double times = static_cast<double>(all) / static_cast<double>(read);
  const double wanted = static_cast<double>(size) * std::clamp(1.01 * times, 1.125, 3.0);
  elements.reserve(static_cast<size_t>(wanted) + kSoon);
}

// Numbered slots for values, filled in order. Each takes 4 bytes, since a large pickle fills
// millions and reuses few of them.
class PickleMemo {
 public:
  size_t size() const { return slots_.size(); }      // the highest slot ever filled, plus 1
  uint64_t filled() const { return filled_; }        // number of slots that have a value
  uint64_t rewritten() const { return rewritten_; }  // how often a slot got another value
  bool is_full() const { return others_.size() > kIndexMask; }
  uint64_t MemoryUse() const {  // bytes
    return slots_.capacity() * sizeof(uint32_t) + others_.capacity() * sizeof(Value);
  }
  // Returns kAbsent for a slot that was never filled.
  Value Get(uint64_t slot) const {
    if (slot >= slots_.size()) return Value();
    const uint32_t packed = slots_[slot];
    const uint32_t index = packed & kIndexMask;
    switch (packed >> kIndexBits) {
      case kAbsent: return Value();
      case kString: return Value(Value::Kind::kString, index);
      case kObject: return Value(Value::Kind::kObject, index);
      case kOther: return others_[index];
      default: return Value::Record(static_cast<uint8_t>((packed >> kIndexBits) - kRecords), index);
    }
  }
  void Set(uint64_t slot, Value value);
  void Append(Value value) {  // sets slot size()
    const uint32_t record = kRecords + value.tag();
    const bool fits = value.is(Value::Kind::kRecord) && record < kTooHigh &&
                      value.index() <= kIndexMask;  // almost always
    slots_.push_back(fits ? record << kIndexBits | value.index() : Pack(value));
    ++filled_;
  }
  void Reserve(size_t slots) { slots_.reserve(slots); }
  void Expect(uint64_t read, uint64_t all) { ReserveFor(slots_, read, all); }
  // Replaces a value by another form of the same value, which leaves everything read from it valid.
  void Replace(uint64_t slot, Value with);

 private:
  static constexpr int kIndexBits = 28;
  static constexpr uint32_t kIndexMask = (1u << kIndexBits) - 1;
  // The classes that a slot's upper bits encode; a record's tag is added to kRecords.
  enum Class : uint32_t { kAbsent, kString, kObject, kOther, kRecords, kTooHigh = 16 };
  uint32_t Pack(Value value);

  std::vector<uint32_t> slots_;
  std::vector<Value> others_;  // values that do not fit or are rarely memoized
  uint64_t filled_ = 0;
  uint64_t rewritten_ = 0;
};

// The owner of containers, strings and wide numbers. A container is recycled as soon as a reducer
// has taken what it needs. The only reference to it is that of its holder or the memo's; otherwise
// the container is marked shared and stays.
class ValueHeap {
 public:
  enum class Type : uint8_t { kList, kTuple, kDict, kSet, kReplaced, kUnused };

  static std::string_view TypeName(Type type);

  // The maximum number of containers at once. Real files need a few thousand.
  static constexpr size_t kMaxObjects = size_t{1} << 26;
  bool is_full() const { return objects_.size() >= kMaxObjects && unused_.empty(); }

  Value NewObject(Type type, uint64_t position);  // requires !is_full()
  Value NewWide(Value::Kind kind, uint64_t bits, bool negative = false);

  // The elements of a container, for reading only. Valid until the heap changes.
  class View {
   public:
    size_t size() const { return range_ > 0 ? range_ : items_.size(); }
    Value operator[](size_t i) const {
      if (range_ == 0) return items_[i];
      return Value::Record(begin_.tag(), begin_.index() + static_cast<uint32_t>(i));
    }
    // Returns true if the elements are `first` and the records that follow it; may return false
    // although they are.
    bool is_range_from(Value first) const { return range_ > 0 && begin_ == first; }

   private:
    friend ValueHeap;
    absl::Span<const Value> items_;
    uint32_t range_ = 0;
    Value begin_;
  };

  Type type(Value object) const { return objects_[object.index()].type; }
  bool is(Value value, Type wanted) const {
    return value.is(Value::Kind::kObject) && type(value) == wanted;
  }
  bool is_sequence(Value value) const { return is(value, Type::kList) || is(value, Type::kTuple); }
  // Returns the elements of a list, tuple or set, or key, value, key, value ... of a dict. Later
  // keys override earlier ones.
  absl::Span<Value> items(Value object) {
    Object& asked = objects_[object.index()];
    if (asked.range > 0) Unfold(asked);
    return absl::MakeSpan(asked.items);
  }
  // Returns the same elements, of which it makes none if they are consecutive records.
  View view(Value object) const {
    const Object& asked = objects_[object.index()];
    View view;
    view.items_ = asked.items;
    view.range_ = asked.range;
    view.begin_ = asked.range_begin;
    return view;
  }
  // Returns the position in the input at which something was last added to the object.
  uint64_t position(Value object) const { return objects_[object.index()].position; }
  void Extend(Value object, absl::Span<const Value> more, uint64_t position);
  // Returns the holder's slot of the value under a key of a dict; null if there is none.
  Value* Find(Value dict, std::string_view key);

  // Follows the reference that Replace() leaves behind for shared containers.
  Value Resolve(Value value) const;
  // Replaces a container by `with`. The memo and other holders see the change; the caller updates
  // its own slot. Frees the storage unless there are other holders, since one of them may be
  // reading it.
  void Replace(Value object, Value with);
  // Empties a holder's slot; recycles contents that have no other holder.
  void Release(Value* slot) {
    if (slot->is(Value::Kind::kObject)) ReleaseObject(*slot);
    *slot = Value(Value::Kind::kNone);
  }
  // Notes a further reference, which matters for containers only.
  void MarkShared(Value value) {
    if (value.is(Value::Kind::kObject)) objects_[value.index()].shared = true;
  }
  // Marks a list whose content was used; extending it afterwards is an error.
  void MarkUsed(Value object) { objects_[object.index()].used = true; }
  bool is_used(Value object) const { return objects_[object.index()].used; }

  const PickleMemo& memo() const { return memo_; }
  // Takes a further reference to a value of the memo. Returns kAbsent for a slot that was never
  // filled.
  Value Recall(uint64_t slot) {
    const Value value = memo_.Get(slot);
    MarkShared(value);
    return value;
  }
  void Memoize(uint64_t slot, Value value);
  void MemoizeNext(Value value) {  // after the highest slot
    if (value.is(Value::Kind::kObject)) return Memoize(memo_.size(), value);
    memo_.Append(value);
  }
  void ReserveMemo(size_t slots) { memo_.Reserve(slots); }                   // a hint
  void ExpectMemo(uint64_t read, uint64_t all) { memo_.Expect(read, all); }  // as ReserveFor()
  void DropMemo() { memo_ = PickleMemo(); }

  // Returns the approximate memory of containers, memo, numbers and texts, in bytes.
  uint64_t MemoryUse() const {
    return objects_.capacity() * sizeof(Object) + held_items_ * sizeof(Value) +
           unused_.capacity() * sizeof(uint32_t) + memo_.MemoryUse() +
           wide_.capacity() * sizeof(Wide) + text_memory_;
  }
  // Interns a text and counts its memory.
  Value NewString(std::string_view text) {
    const size_t before = strings_.size();
    const uint32_t index = strings_.Intern(text);
    if (strings_.size() != before) text_memory_ += kTextMemory + text.size();
    return Value(Value::Kind::kString, index);
  }

  StringTable& strings() { return strings_; }
  const StringTable& strings() const { return strings_; }

  // Return the value; nullopt if it has another type (a bool is no integer).
  std::optional<WideInt> AsInteger(Value value) const;
  std::optional<double> AsNumber(Value value) const;
  // Returns "a list", "an integer", "the string 'x'", for messages.
  std::string Describe(Value value) const;
  // Returns InvalidArgument: "expected `what`, found a list".
  absl::Status Expected(std::string_view what, Value found) const;

 private:
  static constexpr uint32_t kNoSlot = 0xffffffff;
  struct Object {
    Type type = Type::kUnused;
    bool shared = false;
    bool used = false;
    uint32_t memo_slot = kNoSlot;
    uint64_t position = 0;
    Value replacement;  // kReplaced
    // A list of consecutive records only (the entries of a trace) is stored as their number and the
    // first of them, and `items` is empty.
    uint32_t range = 0;
    Value range_begin;
    std::vector<Value> items;
  };
  struct Wide {
    uint64_t bits;
    bool negative;
  };

  static bool ExtendRange(Object& list, absl::Span<const Value> more);
  static void Unfold(Object& list);
  void Recycle(uint32_t index);
  void ReleaseObject(Value value);

  std::vector<Object> objects_;
  std::vector<uint32_t> unused_;
  PickleMemo memo_;
  static constexpr uint64_t kTextMemory = 80;  // of a short text, including its place in the table
  uint64_t text_memory_ = 0;
  uint64_t held_items_ = 0;  // capacity of all containers
  std::vector<Wide> wide_;
  StringTable strings_;
};

// Takes rows for a DictReducer on another thread, before it is known whether they count.
class RowTaker {
 public:
  virtual ~RowTaker() = default;
  // Forgets all rows; the next ones have the keys of the reducer's last BeginRows().
  virtual void Restart() = 0;
  // Keeps a row. Returns false, and keeps none, unless DictReducer::AddRow() would take it and it
  // needs nothing that the reducer did not know at the time of Restart().
  virtual bool AddRow(absl::Span<const Value> values) = 0;
  // Passes rows [first, first + count) to the reducer, as AddRow() would one by one. Returns what
  // it made of the first one; the others are the records that follow it.
  virtual Value Pass(size_t first, size_t count) = 0;
};

// Receives every dict while it is filled.
class DictReducer {
 public:
  virtual ~DictReducer() = default;
  // Adds `pairs` (key, value, key, value ...) to `*target`, a dict or a record that an earlier call
  // made of one. May replace *target. The reducer releases or stores the values that it takes. An
  // error ends the reading.
  virtual absl::Status AddItems(ValueHeap& heap, Value* target, absl::Span<Value> pairs,
                                uint64_t position) = 0;

  // Offers to take dicts as rows of values, which saves their containers, since dicts with the same
  // keys in the same order come in thousands. Returns true if rows under `keys` (strings) may come
  // until the next call.
  virtual bool BeginRows(absl::Span<const Value> /*keys*/) { return false; }
  // Takes a new dict with the keys of BeginRows() and these values, none of them a container that
  // could still change. Returns true if *record is what AddItems() would have made of it. After
  // false nothing has changed, and the dict comes again through AddItems().
  virtual bool AddRow(absl::Span<const Value> /*values*/, Value* /*record*/) { return false; }
  // Returns a taker of rows for another thread; null if only AddRow() takes rows.
  virtual std::unique_ptr<RowTaker> NewRowTaker() { return nullptr; }
  // Says now and then how many bytes of how many were read, so that the reducer can reserve memory.
  virtual void Expect(uint64_t /*read*/, uint64_t /*all*/) {}
  // Returns the approximate memory of the records, in bytes.
  virtual uint64_t MemoryUse() const { return 0; }
};

// Returns an error if the values and records read so far take more memory than 4 n + 48 MiB for a
// file of n bytes.
absl::Status CheckMemory(uint64_t position, uint64_t memory);
// The number of input bytes between two calls of CheckMemory().
inline constexpr uint64_t kMemoryCheckStep = uint64_t{64} << 10;

}  // namespace memreplay
