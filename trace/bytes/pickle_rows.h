// A fast path for the thousands of dicts in a pickle that have the same keys: each is read at once,
// as a row of values, for which the machine of pickle_reader would execute some fifty opcodes.
// Whatever is written differently is left to the machine, which implements every rule; nothing here
// is ever an error. Where there are two processors, a second thread reads rows that the machine has
// not reached; they count when it gets there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "trace/bytes/byte_source.h"
#include "trace/bytes/value.h"

namespace memreplay {

// What is known of the rows of a file: their keys, the shapes in which they are written, and the
// lists and texts that they had. Rows of a known shape are read without the memo.
class KnownRows {
 protected:
  // The maximum number of keys in a record.
  static constexpr size_t kMaxKeys = 32;

  // The size of what is compared of a row, and the maximum number of shapes. A file whose rows do
  // not repeat their shapes is not to pay for learning them, so that it needs credit.
  using Words [[gnu::vector_size(16)]] = uint64_t;
  static constexpr size_t kShapeBytes = 128;
  static constexpr size_t kMaxShapes = 32;
  // What follows a list depends on the row that had it: an allocation and its free have the same.
  static constexpr size_t kContexts = 4;
  static constexpr int kShapePrice = 4;  // rows read by shape
  static constexpr int kMaxShapeCredit = 64 * kShapePrice;

  struct Shape;
  // A list, a pair or a text as it is written in the file, and what the machine made of it: equal
  // references to the memo are equal lists, as long as no slot of the memo gets another value.
  struct Written {
    std::string bytes;
    Value value;
    // What followed it the last time, and the shape of that row, by Column::context.
    struct Next {
      Written* written = nullptr;
      Shape* shape = nullptr;
    };
    std::array<Next, kContexts> next;
  };
  // A key of the rows, which is a reference to the memo (the lower bytes of `bits`), and the last
  // list or text among its values. Scripts repeat themselves, so what followed that one before
  // mostly follows it again; one comparison of bytes then replaces reading the list.
  struct Column {
    uint64_t bits;
    uint64_t mask;
    ptrdiff_t length;
    Written* last = nullptr;
    size_t context = 0;  // says what kind of row that was
  };

  // How the values before the last one are written in a row: everything but the digits of its
  // integers. A row of a known shape is recognised by comparing words, and its integers are loaded
  // from where they are; only the last value, which is mostly a list, is read by itself.
  struct Shape {
    // The place of an integer among the bytes of a row.
    struct Integer {
      uint8_t column;
      uint8_t at;
      uint8_t unused;  // bits of the word at `at`
      uint64_t kept;   // bits of the number after its sign was extended
    };
    std::array<Words, kShapeBytes / sizeof(Words)> bits;
    std::array<Words, kShapeBytes / sizeof(Words)> mask;
    uint64_t keys = 0;     // keys_learned_ when it was set
    size_t blocks = 0;     // of those above that are compared
    ptrdiff_t length = 0;  // with the last key, without its value
    std::array<Integer, kMaxKeys> integers;
    size_t integer_count = 0;
    std::vector<Value> values;    // of all columns; those that are not integers stay
    std::vector<Value> memoized;  // what its texts and pairs are
  };

  KnownRows() = default;
  KnownRows(const KnownRows&) = delete;
  KnownRows& operator=(const KnownRows&) = delete;

  // Learns everything that `other` knows. O(its shapes and what it has learned since the last
  // call).
  void LearnFrom(const KnownRows& other);
  Shape* FindShape(const char* begin);
  template <typename ReadLast>
  size_t ReadShape(Shape& shape, const char* begin, const char* end, const ReadLast& read_last);
  const char* ReadExpected(Column& column, const char* at, const char* end, Value* value);
  bool ReadWritten(Column& column, const char* at, const char* last, Value* value);
  void AddWritten(std::string bytes, Value value);
  void ForgetShapes();
  void Forget();

  std::vector<Column> columns_;           // of the rows that the reducer accepts; empty: unknown
  std::array<Value, kMaxKeys> memoized_;  // what a row's lists and texts became, in order
  size_t memoized_count_ = 0;

  std::vector<Shape> shapes_;  // empty or kMaxShapes; its elements stay where they are
  size_t shape_count_ = 0;     // the first ones have the current keys
  size_t next_shape_ = 0;      // the next to be set
  uint64_t keys_learned_ = 0;  // how often the keys changed
  int shape_credit_ = kMaxShapeCredit;

  std::deque<Written> written_;  // its elements stay where they are
  absl::flat_hash_map<absl::string_view, Written*> written_index_;
};

// Reads rows on another thread, from a place that the machine has not reached.
class RowsAhead : private KnownRows {
 public:
  // Consecutive rows, [begin, end) in the file.
  struct Run {
    const char* begin;
    const char* end;
    size_t first_row;  // of the taker's
    size_t row_count;
    size_t memo_begin;  // in memo()
    size_t memo_end;
    uint64_t memo_size;  // what the size of the memo must be at `begin`; kAnySize: whatever it is
  };
  static constexpr uint64_t kAnySize = ~uint64_t{0};

  explicit RowsAhead(std::unique_ptr<RowTaker> taker) : taker_(std::move(taker)) {}

  // Begins to read the rows of [begin, end) by what `known` knows now, after the memo has got
  // `slots` slots, and drops `done` from `source` first; forgets the rows of the last call. The
  // bytes stay where they are until Runs() returns. Memory: O(end - begin).
  void Start(const KnownRows& known, uint64_t slots, const ByteSource& source,
             std::string_view done, const char* begin, const char* end);
  // Waits for the reading to end. Returns the runs in order. Bytes between them are unread, and the
  // first of a run may be something else than the row that it seems to be.
  const std::vector<Run>& Runs();

  // Returns what the rows put into the memo; kAbsent stands for the next row.
  absl::Span<const Value> memo() const { return memo_; }
  // Returns the number of changes of the keys that `known` had seen.
  uint64_t keys_learned() const { return KnownRows::keys_learned_; }
  RowTaker& taker() { return *taker_; }

 private:
  void Read(const char* begin, const char* end);
  size_t ReadRow(Run& run, const char* begin, const char* end);
  const char* ReadReference(Run& run, const char* at, Value* value);

  std::unique_ptr<RowTaker> taker_;
  std::vector<Run> runs_;
  std::vector<Value> memo_;
  static constexpr size_t kNoList = ~size_t{0};
  size_t last_list_ = kNoList;  // of the run, in memo_
  uint64_t slots_ = 0;          // of the memo before all runs
  std::future<void> reading_;   // waits for it when destroyed, so it is the last member
};

// Reads the dicts of a list that have the same keys, without the general machine.
class PickleRows : private KnownRows {
 public:
  PickleRows(ValueHeap& heap, DictReducer& reducer) : heap_(heap), reducer_(reducer) {}

  // Lets another thread read a part of all the unread bytes of `source`, which are in memory. The
  // two share `share` bytes at a time.
  void ShareWork(ByteSource& source, size_t share) {
    source_ = &source;
    unread_ = source.Peek(0);
    next_run_at_ = unread_.data();
    share_ = static_cast<ptrdiff_t>(share);
  }

  // Rows that follow one another in the file. What the reducer made of them is `first` and the
  // records after it.
  struct Rows {
    size_t length = 0;  // in bytes
    size_t count = 0;
    Value first;
  };
  // Reads the dict whose EMPTY_DICT is at `begin`, if it ends before `end` and is a row of the
  // reducer's (DictReducer::AddRow), and perhaps rows after it; fills the memo. Returns none if
  // nothing was done. O(bytes of the rows).
  Rows Read(const char* begin, const char* end);

 private:
  // The maximum memory of what is kept of lists and texts, and that of one without its bytes.
  static constexpr size_t kMaxWrittenBytes = size_t{16} << 20;
  static constexpr size_t kWrittenMemory = 160;

  size_t ReadRow(const char* begin, const char* end);
  Rows TakeRun(const char* begin);
  void LearnShape(const char* begin, const char* end);
  bool LearnKeys(const char* begin, const char* end);
  const char* ReadValue(Column& column, const char* at, const char* end, Value* value);
  const char* LookUp(Column& column, const char* at, const char* last, Value* value);
  void LearnWritten();

  ValueHeap& heap_;
  DictReducer& reducer_;
  std::vector<Value> values_;
  size_t memoized_before_last_ = 0;  // those that are not of the last column
  std::vector<const char*> ends_;    // of the values of the last row read

  size_t written_bytes_ = 0;
  uint64_t memo_rewritten_ = 0;
  std::vector<std::pair<std::string, uint64_t>> new_written_;  // bytes and slot, to be learned

  const char* next_run_at_ = nullptr;   // where reading ahead or its next run begins; null: nowhere
  const ByteSource* source_ = nullptr;  // of ShareWork()
  std::string_view unread_;             // of its bytes, those that are not dropped
  ptrdiff_t share_ = 0;
  size_t next_run_ = 0;
  std::unique_ptr<RowsAhead> ahead_;
};

}  // namespace memreplay
