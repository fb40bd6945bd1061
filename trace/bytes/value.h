// What a pickle or a JSON text says, in 8 bytes per value: the common ground of
// both readers. Containers and strings live in a ValueHeap and are shared by
// reference; a DictReducer may replace dicts by smaller records of its own
// while they are read, so that no tree of a large file is ever built.
#ifndef MEMREPLAY_TRACE_BYTES_VALUE_H_
#define MEMREPLAY_TRACE_BYTES_VALUE_H_

#include <cstdint>
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
    kAbsent,  // no value at all
    kNone,
    kFalse,
    kTrue,
    kInt,      // 56-bit signed, in the value itself
    kWideInt,  // ValueHeap::wide
    kHugeInt,  // does not fit into 64 bits; its value is not kept
    kFloat,    // ValueHeap::wide, as bits
    kString,   // index into ValueHeap::strings()
    kOpaque,   // bytes and the like; the content is not kept
    kObject,   // a container in the ValueHeap
    kRecord,   // made by a DictReducer: tag() and index() are its own
  };

  constexpr Value() = default;
  explicit constexpr Value(Kind kind, uint64_t payload = 0)
      : bits_(payload << 8 | static_cast<uint8_t>(kind)) {}
  static constexpr Value Record(uint8_t tag, uint32_t index) {
    return Value(Kind::kRecord, uint64_t{tag} << 32 | index);
  }
  static constexpr bool FitsInline(int64_t n) { return n >= -kInlineLimit && n < kInlineLimit; }
  static constexpr Value Int(int64_t n) {  // FitsInline(n)
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

// An integer of the input: exact for all that fit into int64_t or uint64_t.
struct WideInt {
  bool negative = false;
  uint64_t bits = 0;  // two's complement if negative
};

// Numbered places for values, filled one after the other: 4 bytes each, since a large
// pickle fills millions and uses few of them again.
class PickleMemo {
 public:
  size_t size() const { return slots_.size(); }      // the highest number ever filled, and 1
  uint64_t filled() const { return filled_; }        // numbers that have a value
  uint64_t rewritten() const { return rewritten_; }  // how often one got another value
  bool is_full() const { return others_.size() > kIndexMask; }
  uint64_t MemoryUse() const {  // bytes
    return slots_.capacity() * sizeof(uint32_t) + others_.capacity() * sizeof(Value);
  }
  // kAbsent where nothing was filled in.
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
  // The same value in another form: nothing that was read of it is wrong now.
  void Replace(uint64_t slot, Value with);

 private:
  static constexpr int kIndexBits = 28;
  static constexpr uint32_t kIndexMask = (1u << kIndexBits) - 1;
  // What a slot's upper bits say; a record's tag is added to kRecords.
  enum Class : uint32_t { kAbsent, kString, kObject, kOther, kRecords, kTooHigh = 16 };
  uint32_t Pack(Value value);

  std::vector<uint32_t> slots_;
  std::vector<Value> others_;  // what does not fit, and what is rarely memoized
  uint64_t filled_ = 0;
  uint64_t rewritten_ = 0;
};

// Owner of containers, strings and wide numbers. Containers are recycled as
// soon as a reducer has taken what it needs; a reference is either the one
// holder's, or the memo's, or the container is marked shared and stays.
class ValueHeap {
 public:
  enum class Type : uint8_t { kList, kTuple, kDict, kSet, kReplaced, kUnused };

  static std::string_view TypeName(Type type);

  // Containers that may exist at once. Real files need a few thousand.
  static constexpr size_t kMaxObjects = size_t{1} << 26;
  bool is_full() const { return objects_.size() >= kMaxObjects && unused_.empty(); }

  Value NewObject(Type type, uint64_t position);  // not is_full()
  Value NewWide(Value::Kind kind, uint64_t bits, bool negative = false);

  Type type(Value object) const { return objects_[object.index()].type; }
  // Elements of a list, tuple or set; key, value, key, value ... of a dict.
  // Later keys override earlier ones.
  absl::Span<Value> items(Value object) {
    Object& asked = objects_[object.index()];
    if (asked.range > 0) Unfold(asked);
    return absl::MakeSpan(asked.items);
  }
  // Where in the input it was last added to.
  uint64_t position(Value object) const { return objects_[object.index()].position; }
  void Extend(Value object, absl::Span<const Value> more, uint64_t position);
  // The value under a key of a dict: the holder's slot, null if there is none.
  Value* Find(Value dict, std::string_view key);

  // Follows the trace that Replace() leaves behind for shared containers.
  Value Resolve(Value value) const;
  // Puts `with` in the place of a container: the memo and other holders see
  // it; the caller updates its own slot. Storage is freed unless other
  // holders exist: then someone may be in the middle of reading it.
  void Replace(Value object, Value with);
  // Empties a holder's slot; contents that nobody else holds are recycled.
  void Release(Value* slot) {
    if (slot->is(Value::Kind::kObject)) ReleaseObject(*slot);
    *slot = Value(Value::Kind::kNone);
  }
  // A further reference was taken. Only containers care.
  void MarkShared(Value value) {
    if (value.is(Value::Kind::kObject)) objects_[value.index()].shared = true;
  }
  // A list whose content was used as it is now; extending it is an error.
  void MarkUsed(Value object) { objects_[object.index()].used = true; }
  bool is_used(Value object) const { return objects_[object.index()].used; }

  const PickleMemo& memo() const { return memo_; }
  // A further reference to what the memo holds. kAbsent for slots never filled.
  Value Recall(uint64_t slot) {
    const Value value = memo_.Get(slot);
    MarkShared(value);
    return value;
  }
  void Memoize(uint64_t slot, Value value);
  void DropMemo() { memo_ = PickleMemo(); }

  // Bytes of memory, about: what containers, memo, numbers and texts take.
  uint64_t MemoryUse() const {
    return objects_.capacity() * sizeof(Object) + held_items_ * sizeof(Value) +
           unused_.capacity() * sizeof(uint32_t) + memo_.MemoryUse() +
           wide_.capacity() * sizeof(Wide) + text_memory_;
  }
  // Interns a text and counts what it takes.
  Value NewString(std::string_view text) {
    const size_t before = strings_.size();
    const uint32_t index = strings_.Intern(text);
    if (strings_.size() != before) text_memory_ += kTextMemory + text.size();
    return Value(Value::Kind::kString, index);
  }

  StringTable& strings() { return strings_; }
  const StringTable& strings() const { return strings_; }

  // Typed access; nullopt if it is something else (a bool is no integer).
  std::optional<WideInt> AsInteger(Value value) const;
  std::optional<double> AsNumber(Value value) const;
  // "a list", "an integer", "the string 'x'": for messages.
  std::string Describe(Value value) const;

 private:
  static constexpr uint32_t kNoSlot = 0xffffffff;
  struct Object {
    Type type = Type::kUnused;
    bool shared = false;
    bool used = false;
    uint32_t memo_slot = kNoSlot;
    uint64_t position = 0;
    Value replacement;  // kReplaced
    // A list that holds nothing but records made one after the other (the entries of a
    // trace) is kept as their number and the first of them, and `items` is empty.
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
  static constexpr uint64_t kTextMemory = 80;  // of a short one, with its place in the table
  uint64_t text_memory_ = 0;
  uint64_t held_items_ = 0;  // of all containers, with the room to grow
  std::vector<Wide> wide_;
  StringTable strings_;
};

// Sees every dict while it is filled.
class DictReducer {
 public:
  virtual ~DictReducer() = default;
  // `pairs` (key, value, key, value ...) go into `*target`, a dict or a record
  // that an earlier call made of one. May replace *target. Values taken are to
  // be released or stored. Not OK ends the reading.
  virtual absl::Status AddItems(ValueHeap& heap, Value* target, absl::Span<Value> pairs,
                                uint64_t position) = 0;

  // Dicts with the same keys in the same order come in thousands. A reducer may
  // offer to take them as rows of values, which spares their containers.
  // True: rows under `keys` (strings) may come, until the next call of this.
  virtual bool BeginRows(absl::Span<const Value> /*keys*/) { return false; }
  // A new dict of BeginRows()' keys with these values, none of them a container that
  // could still change. True: *record is what AddItems() would have made of it.
  // False: nothing has happened; the dict comes again, by AddItems().
  virtual bool AddRow(absl::Span<const Value> /*values*/, Value* /*record*/) { return false; }
  // Bytes of memory that its records take, about.
  virtual uint64_t MemoryUse() const { return 0; }
};

// Not OK: what was read takes more memory than the text it came from explains. A
// file of n bytes may become at most 4 n + 48 MiB of values and records.
absl::Status CheckMemory(uint64_t position, uint64_t memory);
// How often a reader asks, in bytes of input.
inline constexpr uint64_t kMemoryCheckStep = uint64_t{64} << 10;

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_BYTES_VALUE_H_
