#include "trace/bytes/pickle_rows.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "trace/bytes/pickle_opcodes.h"
#include "trace/value/launch.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using Kind = Value::Kind;

// The maximum size of a key or of a value other than a list; this many bytes are read without a
// check.
constexpr ptrdiff_t kRoom = 32;

// How far ahead bytes are requested from memory, a row's worth at a time, since the processor does
// not do so by itself beyond the page that is being read.
constexpr size_t kPrefetchDistance = 512;
constexpr size_t kPrefetchedBytes = 192;
constexpr size_t kCacheLine = 64;

// Of as many parts of the bytes that two threads share, the machine's thread reads the first ones,
// fewer than a half because it also takes what the other one read.
constexpr ptrdiff_t kShareParts = 16;
constexpr ptrdiff_t kOwnParts = 7;

constexpr uint8_t OpAt(const char* at) { return static_cast<uint8_t>(*at); }

// Returns the eight bytes at `at`, little-endian.
uint64_t Load(const char* at) {
  uint64_t bytes;
  std::memcpy(&bytes, at, sizeof bytes);
  return bytes;
}

bool IsReference(const char* at) {
  return OpAt(at) == PickleOp("LONG_BINGET") || OpAt(at) == PickleOp("BINGET");
}
ptrdiff_t ReferenceLength(const char* at) { return OpAt(at) == PickleOp("LONG_BINGET") ? 5 : 2; }
uint64_t ReferenceSlot(const char* at) {
  const uint64_t bytes = Load(at + 1);
  return OpAt(at) == PickleOp("LONG_BINGET") ? bytes & 0xffffffff : bytes & 0xff;
}

// How an opcode writes an integer.
struct IntForm {
  uint8_t before = 0;       // bytes before the number; 0: the opcode writes something else
  uint8_t width = 0;        // of the number, in bytes
  uint8_t length_mask = 0;  // 0xff if the byte after the opcode is the width
  uint64_t kept = 0;        // bits of the number after its sign was extended
};

constexpr std::array<IntForm, 256> kIntForms = [] {
  std::array<IntForm, 256> forms;
  forms[PickleOp("BININT1")] = {1, 1, 0, 0xff};
  forms[PickleOp("BININT2")] = {1, 2, 0, 0xffff};
  forms[PickleOp("BININT")] = {1, 4, 0, ~uint64_t{0}};
  forms[PickleOp("LONG1")] = {2, 0, 0xff, ~uint64_t{0}};
  return forms;
}();

const IntForm& IntFormAt(const char* at) { return kIntForms[static_cast<uint8_t>(*at)]; }

// Reads an integer of up to 56 bits and returns its end, or null if it is longer. Has no branch on
// its form, which cannot be predicted.
[[gnu::always_inline]] inline const char* ReadInt(const IntForm& form, const char* at,
                                                  Value* value) {
  const unsigned width = form.width | (static_cast<uint8_t>(at[1]) & form.length_mask);
  if (width - 1 >= 7) return nullptr;
  const unsigned unused = 64 - 8 * width;
  const auto number = static_cast<int64_t>(Load(at + form.before) << unused) >> unused;
  *value = Value::Int(static_cast<int64_t>(static_cast<uint64_t>(number) & form.kept));
  return at + form.before + width;
}

// Returns the end of a value that ends with MEMOIZE or consists of references: EMPTY_LIST MEMOIZE,
// EMPTY_LIST MEMOIZE MARK reference ... APPENDS, integer integer TUPLE2 MEMOIZE, or
// SHORT_BINUNICODE MEMOIZE. Returns null if it is something else. kRoom bytes are there.
const char* EndOfWritten(const char* at, const char* end) {
  const char* last = at;
  Value ignored;
  switch (OpAt(at)) {
    case PickleOp("EMPTY_LIST"):
      if (static_cast<uint8_t>(at[1]) != PickleOp("MEMOIZE")) return nullptr;
      last = at + 2;
      if (OpAt(last) == PickleOp("MARK")) {
        ++last;
        while (end - last >= kRoom && IsReference(last)) last += ReferenceLength(last);
        if (end - last < kRoom || OpAt(last) != PickleOp("APPENDS")) return nullptr;
        ++last;
      }
      return last;
    case PickleOp("SHORT_BINUNICODE"):
      last += 2 + static_cast<uint8_t>(at[1]);
      if (end - last < kRoom || OpAt(last) != PickleOp("MEMOIZE")) return nullptr;
      return last + 1;
    default:
      for (int i = 0; i < 2; ++i) {
        const IntForm& form = IntFormAt(last);
        last = form.before == 0 ? nullptr : ReadInt(form, last, &ignored);
        if (last == nullptr) return nullptr;
      }
      if (OpAt(last) != PickleOp("TUPLE2") ||
          static_cast<uint8_t>(last[1]) != PickleOp("MEMOIZE")) {
        return nullptr;
      }
      return last + 2;
  }
}

// Returns whether what follows an EMPTY_DICT at `begin` is that of a row.
bool MayBegin(const char* begin) {
  return static_cast<uint8_t>(begin[1]) == PickleOp("MEMOIZE") &&
         static_cast<uint8_t>(begin[2]) == PickleOp("MARK");
}

// Requests the bytes of the next rows from memory.
void RequestBytesAfter(const char* begin) {
  for (size_t i = 0; i < kPrefetchedBytes; i += kCacheLine) {
    __builtin_prefetch(begin + kPrefetchDistance + i);
  }
}

}  // namespace

void KnownRows::LearnFrom(const KnownRows& other) {
  if (keys_learned_ != other.keys_learned_) {
    Forget();
    keys_learned_ = other.keys_learned_;
    columns_ = other.columns_;
    for (Column& column : columns_) column.last = nullptr;
  }
  for (size_t i = written_.size(); i < other.written_.size(); ++i) {
    AddWritten(other.written_[i].bytes, other.written_[i].value);
  }
  shapes_ = other.shapes_;
  shape_count_ = other.shape_count_;
}

// Returns the shape of the row at `begin`, of which kShapeBytes are there; null if it is unknown.
KnownRows::Shape* KnownRows::FindShape(const char* begin) {
  const auto fits = [begin](const Shape& shape) {
    const auto differs = [&](size_t i) {
      Words words;
      std::memcpy(&words, begin + i * sizeof words, sizeof words);
      return (words ^ shape.bits[i]) & shape.mask[i];
    };
    // The action and the width of the size, in which shapes mostly differ, are in front.
    const Words front = differs(0) | differs(1);
    if ((front[0] | front[1]) != 0) return false;
    Words difference = {};
    for (size_t i = 2; i < shape.blocks; ++i) difference |= differs(i);
    return (difference[0] | difference[1]) == 0;
  };
  if (shape_count_ == 0) return nullptr;
  const Column& column = columns_.back();
  Shape* const expected =
      column.last != nullptr ? column.last->next[column.context].shape : nullptr;
  if (expected != nullptr && expected->keys == keys_learned_ && fits(*expected)) return expected;
  if (shape_credit_ < kShapePrice) return nullptr;
  for (size_t i = 0; i < shape_count_; ++i) {
    if (&shapes_[i] != expected && fits(shapes_[i])) return &shapes_[i];
  }
  return nullptr;
}

// Reads the list or text that followed the column's last one the last time. Returns its end, or
// null if another is at `at`.
[[gnu::always_inline]] inline const char* KnownRows::ReadExpected(Column& column, const char* at,
                                                                  const char* end, Value* value) {
  if (column.last == nullptr) return nullptr;
  Written* const next = column.last->next[column.context].written;
  if (next == nullptr) return nullptr;
  const std::string& bytes = next->bytes;
  if (static_cast<size_t>(end - at) <= bytes.size() ||
      std::memcmp(at, bytes.data(), bytes.size()) != 0) {
    return nullptr;
  }
  if (OpAt(at + bytes.size()) == PickleOp("MARK"))
    return nullptr;  // it began as an empty list does
  column.last = next;
  *value = memoized_[memoized_count_++] = next->value;
  return at + bytes.size();
}

// Reads a row of this shape into its values, and the list of the last column, if any, into
// memoized_[0]. Calls read_last(column, at, value) for a last value that is not the expected one;
// it returns the value's end, of which kRoom bytes are there, or null if it does not know it.
// Returns the row's length, or 0.
template <typename ReadLast>
[[gnu::always_inline]] inline size_t KnownRows::ReadShape(Shape& shape, const char* begin,
                                                          const char* end,
                                                          const ReadLast& read_last) {
  memoized_count_ = 0;
  const char* at = begin + shape.length;
  if (end - at < kRoom) return 0;
  Column& column = columns_.back();
  Written* const before = column.last;
  Value* const value = &shape.values.back();
  const char* const expected = ReadExpected(column, at, end, value);
  at = expected != nullptr ? expected : read_last(column, at, value);
  if (at == nullptr || end <= at || OpAt(at) != PickleOp("SETITEMS")) return 0;
  for (size_t i = 0; i < shape.integer_count; ++i) {
    const Shape::Integer& integer = shape.integers[i];
    const auto number =
        static_cast<int64_t>(Load(begin + integer.at) << integer.unused) >> integer.unused;
    shape.values[integer.column] =
        Value::Int(static_cast<int64_t>(static_cast<uint64_t>(number) & integer.kept));
  }
  if (before != nullptr) before->next[column.context].shape = &shape;
  column.context = static_cast<size_t>(&shape - shapes_.data()) % kContexts;
  shape_credit_ = std::min(shape_credit_ + 1, kMaxShapeCredit);
  return static_cast<size_t>(at + 1 - begin);
}

// Reads the list or text that is written in [at, last). Returns false if it is not known.
bool KnownRows::ReadWritten(Column& column, const char* at, const char* last, Value* value) {
  const auto known = written_index_.find(absl::string_view(at, static_cast<size_t>(last - at)));
  if (known == written_index_.end()) return false;
  Written* const written = known->second;
  if (column.last != nullptr) column.last->next[column.context].written = written;
  column.last = written;
  *value = memoized_[memoized_count_++] = written->value;
  return true;
}

void KnownRows::AddWritten(std::string bytes, Value value) {
  Written& written = written_.emplace_back(Written{std::move(bytes), value, {}});
  written_index_.emplace(written.bytes, &written);
}

void KnownRows::ForgetShapes() {
  ++keys_learned_;
  shape_count_ = 0;
  next_shape_ = 0;
}

void KnownRows::Forget() {
  ForgetShapes();
  columns_.clear();
  written_index_.clear();
  written_.clear();
}

void RowsAhead::Start(const KnownRows& known, uint64_t slots, const ByteSource& source,
                      std::string_view done, const char* begin, const char* end) {
  LearnFrom(known);
  slots_ = slots;
  taker_->Restart();
  runs_.clear();
  memo_.clear();
  reading_ = LaunchOn(2, [this, &source, done, begin, end] {
    source.Drop(done);
    Read(begin, end);
  });
}

const std::vector<RowsAhead::Run>& RowsAhead::Runs() {
  if (reading_.valid()) reading_.get();
  return runs_;
}

void RowsAhead::Read(const char* begin, const char* end) {
  const std::string_view bytes(begin, static_cast<size_t>(end - begin));
  std::string start = {static_cast<char>(PickleOp("EMPTY_DICT")),
                       static_cast<char>(PickleOp("MEMOIZE")), static_cast<char>(PickleOp("MARK"))};
  start.append(reinterpret_cast<const char*>(&columns_[0].bits),
               static_cast<size_t>(columns_[0].length));
  size_t rows = 0;
  size_t at = 0;
  while ((at = bytes.find(start, at)) != bytes.npos) {
    Run run = {begin + at, nullptr, rows, 0, memo_.size(), 0, kAnySize};
    last_list_ = kNoList;
    while (const size_t length = ReadRow(run, begin + at, end)) {
      at += length;
      ++run.row_count;
    }
    if (run.row_count == 0) {
      ++at;
      continue;
    }
    rows += run.row_count;
    run.end = begin + at;
    run.memo_end = memo_.size();
    runs_.push_back(run);
  }
}

// Reads a row of a known shape with a known list. Returns its length, or 0 if it is something else.
size_t RowsAhead::ReadRow(Run& run, const char* begin, const char* end) {
  if (end - begin < static_cast<ptrdiff_t>(kShapeBytes) || !MayBegin(begin)) return 0;
  RequestBytesAfter(begin);
  Shape* const shape = FindShape(begin);
  if (shape == nullptr) return 0;
  const size_t length =
      ReadShape(*shape, begin, end, [&](Column& column, const char* at, Value* value) {
        if (IsReference(at)) return ReadReference(run, at, value);
        const char* const last = EndOfWritten(at, end);
        return last != nullptr && ReadWritten(column, at, last, value) ? last : nullptr;
      });
  if (length == 0 || !taker_->AddRow(shape->values)) return 0;
  memo_.emplace_back();
  memo_.insert(memo_.end(), shape->memoized.begin(), shape->memoized.end());
  if (memoized_count_ > 0) {
    last_list_ = memo_.size();
    memo_.push_back(memoized_[0]);
  }
  return length;
}

// Reads a reference to a list of this run; two events that one call caused have the same list.
// Where the run's slots are is not known, so the first reference is taken to be to the last list.
const char* RowsAhead::ReadReference(Run& run, const char* at, Value* value) {
  const uint64_t slot = ReferenceSlot(at);
  if (run.memo_size == kAnySize) {
    if (last_list_ == kNoList || slot < slots_ + (last_list_ - run.memo_begin)) return nullptr;
    run.memo_size = slot - (last_list_ - run.memo_begin);
  }
  const uint64_t place = slot - run.memo_size;
  if (place >= memo_.size() - run.memo_begin) return nullptr;
  *value = memo_[run.memo_begin + place];
  return value->is(Kind::kAbsent) ? nullptr : at + ReferenceLength(at);
}

PickleRows::Rows PickleRows::Read(const char* begin, const char* end) {
  if (memo_rewritten_ != heap_.memo().rewritten()) [[unlikely]] {
    memo_rewritten_ = heap_.memo().rewritten();
    Forget();
    written_bytes_ = 0;
    new_written_.clear();
  }
  if (!new_written_.empty()) LearnWritten();
  if (end - begin < kRoom || !MayBegin(begin)) return {};
  if (heap_.memo().filled() != heap_.memo().size()) return {};  // MEMOIZE would fill a hole
  if (next_run_at_ != nullptr && begin >= next_run_at_) [[unlikely]] {
    const Rows taken = TakeRun(begin);
    if (taken.count > 0) return taken;
  }
  RequestBytesAfter(begin);
  Rows rows = {0, 1, Value()};
  Shape* const shape =
      end - begin >= static_cast<ptrdiff_t>(kShapeBytes) ? FindShape(begin) : nullptr;
  if (shape != nullptr) {
    rows.length = ReadShape(*shape, begin, end, [&](Column& column, const char* at, Value* value) {
      const char* const last = ReadValue(column, at, end, value);
      if (new_written_.empty()) return last;
      new_written_.clear();
      return static_cast<const char*>(nullptr);
    });
    if (rows.length > 0) {
      if (!reducer_.AddRow(shape->values, &rows.first)) return {};
      heap_.MemoizeNext(rows.first);
      for (const Value memoized : shape->memoized) heap_.MemoizeNext(memoized);
      if (memoized_count_ > 0) heap_.MemoizeNext(memoized_[0]);
      return rows;
    }
  }
  rows.length = ReadRow(begin, end);
  if (rows.length == 0) {
    const bool learned = LearnKeys(begin, end);
    new_written_.clear();
    if (learned) rows.length = ReadRow(begin, end);
  }
  if (rows.length == 0 || !new_written_.empty() || !reducer_.AddRow(values_, &rows.first)) {
    return {};
  }
  heap_.MemoizeNext(rows.first);
  for (size_t i = 0; i < memoized_count_; ++i) heap_.MemoizeNext(memoized_[i]);
  if (shape == nullptr) LearnShape(begin, end);
  return rows;
}

// Takes the rows that were read ahead and begin at `begin`, if any. When all are taken, reading
// ahead begins anew.
PickleRows::Rows PickleRows::TakeRun(const char* begin) {
  if (ahead_ != nullptr) {
    const std::vector<RowsAhead::Run>& runs = ahead_->Runs();
    while (next_run_ < runs.size() && runs[next_run_].begin < begin) ++next_run_;
    if (next_run_ < runs.size()) {
      const RowsAhead::Run& run = runs[next_run_];
      next_run_at_ = run.begin;
      if (run.begin != begin) return {};
      ++next_run_;
      if (ahead_->keys_learned() != keys_learned_ ||
          (run.memo_size != RowsAhead::kAnySize && run.memo_size != heap_.memo().size())) {
        return {};
      }
      Rows rows = {static_cast<size_t>(run.end - begin), run.row_count,
                   ahead_->taker().Pass(run.first_row, run.row_count)};
      uint32_t record = rows.first.index();
      for (const Value value :
           ahead_->memo().subspan(run.memo_begin, run.memo_end - run.memo_begin)) {
        heap_.MemoizeNext(value.is(Kind::kAbsent) ? Value::Record(rows.first.tag(), record++)
                                                  : value);
      }
      return rows;
    }
  }
  next_run_at_ = nullptr;
  const auto done = static_cast<size_t>(begin - unread_.data());
  if (unread_.size() - done < static_cast<size_t>(share_)) return {};
  next_run_at_ = begin + share_ / kShareParts * kOwnParts;
  if (shape_count_ == 0) return {};
  if (ahead_ == nullptr) {
    std::unique_ptr<RowTaker> taker = reducer_.NewRowTaker();
    if (taker == nullptr) return {};
    ahead_ = std::make_unique<RowsAhead>(std::move(taker));
  }
  next_run_ = 0;
  ahead_->Start(*this, heap_.memo().size(), *source_, unread_.substr(0, done), next_run_at_,
                begin + share_);
  unread_.remove_prefix(done);
  return {};
}

// Keeps the shape of the row at `begin`, which ReadRow() has just read.
void PickleRows::LearnShape(const char* begin, const char* end) {
  const size_t last = columns_.size() - 1;
  const ptrdiff_t length =
      (last == 0 ? begin + 3 : ends_[last - 1]) + columns_.back().length - begin;
  if (shape_credit_ < kShapePrice || length > static_cast<ptrdiff_t>(kShapeBytes) ||
      end - begin < static_cast<ptrdiff_t>(kShapeBytes)) {
    return;
  }
  shape_credit_ -= kShapePrice;
  if (shapes_.empty()) shapes_.resize(kMaxShapes);
  Shape* const shape = &shapes_[next_shape_];
  next_shape_ = (next_shape_ + 1) % kMaxShapes;
  shape_count_ = std::min(shape_count_ + 1, kMaxShapes);
  shape->keys = keys_learned_;
  std::array<char, kShapeBytes> fixed = {};  // 0xff: compared
  std::memset(fixed.data(), 0xff, static_cast<size_t>(length));
  shape->integer_count = 0;
  const char* at = begin + 3;
  for (size_t i = 0; i < last; ++i) {
    at += columns_[i].length;
    // A pair begins with an integer, too.
    const IntForm& form = IntFormAt(at);
    const ptrdiff_t digits = ends_[i] - at - form.before;
    if (form.before != 0 && values_[i].is(Kind::kInt)) {
      std::memset(&fixed[static_cast<size_t>(at + form.before - begin)], 0,
                  static_cast<size_t>(digits));
      shape->integers[shape->integer_count++] = {static_cast<uint8_t>(i),
                                                 static_cast<uint8_t>(at + form.before - begin),
                                                 static_cast<uint8_t>(64 - 8 * digits), form.kept};
    }
    at = ends_[i];
  }
  std::memcpy(shape->mask.data(), fixed.data(), kShapeBytes);
  std::memcpy(shape->bits.data(), begin, kShapeBytes);
  shape->length = length;
  shape->blocks = (static_cast<size_t>(length) + sizeof(Words) - 1) / sizeof(Words);
  shape->values = values_;
  // The list of the last column, which it may have, is read with each row.
  shape->memoized.assign(memoized_.begin(), memoized_.begin() + memoized_before_last_);
  columns_.back().context = static_cast<size_t>(shape - shapes_.data()) % kContexts;
}

// Fills values_, memoized_ and new_written_; returns the length of the dict if it is a row.
size_t PickleRows::ReadRow(const char* begin, const char* end) {
  memoized_count_ = 0;
  new_written_.clear();
  if (columns_.empty()) return 0;
  const char* at = begin + 3;
  for (size_t i = 0; i < columns_.size(); ++i) {
    Column& column = columns_[i];
    if (end - at < kRoom || (Load(at) & column.mask) != column.bits) {
      at = nullptr;
      break;
    }
    memoized_before_last_ = memoized_count_;
    at = ends_[i] = ReadValue(column, at + column.length, end, &values_[i]);
    if (at == nullptr) break;
  }
  if (at != nullptr && end > at && OpAt(at) == PickleOp("SETITEMS")) {
    return static_cast<size_t>(at + 1 - begin);
  }
  new_written_.clear();  // a list may continue where reading stopped
  return 0;
}

// Makes the keys of the dict at `begin` those of the following rows if the reducer accepts them.
bool PickleRows::LearnKeys(const char* begin, const char* end) {
  std::vector<Column> found;
  std::vector<Value> keys;
  Value ignored;
  memoized_count_ = 0;
  const char* at = begin + 3;
  while (end - at >= kRoom && IsReference(at) && keys.size() < kMaxKeys) {
    const ptrdiff_t length = ReferenceLength(at);
    const uint64_t mask = ~uint64_t{0} >> (64 - 8 * length);
    found.push_back({Load(at) & mask, mask, length});
    keys.push_back(heap_.memo().Get(ReferenceSlot(at)));
    if (!keys.back().is(Kind::kString)) return false;
    at = ReadValue(found.back(), at + length, end, &ignored);
    if (at == nullptr) return false;
  }
  if (end <= at || OpAt(at) != PickleOp("SETITEMS") || !reducer_.BeginRows(keys)) return false;
  ForgetShapes();
  columns_ = std::move(found);
  values_.resize(columns_.size());
  ends_.resize(columns_.size());
  return true;
}

// Reads the value of a key, of which kRoom bytes are there together with the key. Returns its end,
// or null if the machine must read it.
[[gnu::always_inline]] inline const char* PickleRows::ReadValue(Column& column, const char* at,
                                                                const char* end, Value* value) {
  if (const IntForm& form = IntFormAt(at); form.before != 0) {
    const char* const last = ReadInt(form, at, value);
    // A key or the end follows a value; two integers are a pair.
    if (last != nullptr && (IsReference(last) || OpAt(last) == PickleOp("SETITEMS"))) return last;
  } else if (IsReference(at)) {
    *value = heap_.memo().Get(ReferenceSlot(at));
    // The machine handles a container that may still change.
    if (value->is(Kind::kAbsent) || (value->is(Kind::kObject) && !heap_.is_used(*value))) {
      return nullptr;
    }
    return at + ReferenceLength(at);
  } else if (OpAt(at) == PickleOp("NONE")) {
    *value = Value(Kind::kNone);
    return at + 1;
  } else if (OpAt(at) == PickleOp("NEWTRUE") || OpAt(at) == PickleOp("NEWFALSE")) {
    *value = Value(OpAt(at) == PickleOp("NEWTRUE") ? Kind::kTrue : Kind::kFalse);
    return at + 1;
  }
  const char* const expected = ReadExpected(column, at, end, value);
  return expected != nullptr ? expected : LookUp(column, at, EndOfWritten(at, end), value);
}

// Reads what is written in [at, last), or leaves it to be learned from the machine. Returns `last`,
// which may be null: then nothing was done.
const char* PickleRows::LookUp(Column& column, const char* at, const char* last, Value* value) {
  if (last == nullptr || ReadWritten(column, at, last, value)) return last;
  // The memo will have it when the machine has read it.
  new_written_.emplace_back(std::string(at, last), heap_.memo().size() + 1 + memoized_count_);
  *value = memoized_[memoized_count_++] = Value(Kind::kNone);
  return last;
}

void PickleRows::LearnWritten() {
  for (auto& [bytes, slot] : new_written_) {
    const Value value = heap_.memo().Get(slot);
    const bool final = value.is(Kind::kRecord) || value.is(Kind::kString) ||
                       (value.is(Kind::kObject) && heap_.is_used(value));
    const size_t taken = kWrittenMemory + bytes.size();
    if (!final || written_bytes_ + taken > kMaxWrittenBytes) continue;
    heap_.MarkShared(value);
    written_bytes_ += taken;
    AddWritten(std::move(bytes), value);
  }
  new_written_.clear();
}

}  // namespace memreplay
