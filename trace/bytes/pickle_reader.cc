#include "trace/bytes/pickle_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "trace/bytes/pickle_opcodes.h"
#include "trace/bytes/pickle_rows.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using Kind = Value::Kind;

// The maximum size of an opcode's fixed arguments: that of FRAME.
constexpr size_t kMaxFixedLength = 9;
constexpr size_t kSkipChunk = 64 << 10;

template <typename T>
T Load(const char* bytes) {  // little-endian, as are all supported machines
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

class Machine {
 public:
  Machine(ByteSource& source, ValueHeap& heap, DictReducer& reducer)
      : source_(source), heap_(heap), reducer_(reducer), rows_(heap, reducer) {}

  absl::StatusOr<Pickle> Run(size_t share) {
    Pickle result;
    Refill(kMaxFixedLength);
    if (!Have(2)) return Truncated();
    if (static_cast<uint8_t>(*at_) != PickleOp("PROTO")) {
      return Error(absl::StrFormat("expected the PROTO opcode of a pickle, found 0x%02x",
                                   static_cast<uint8_t>(*at_)));
    }
    result.protocol = static_cast<uint8_t>(at_[1]);
    if (share > 0 && source_.remaining().has_value()) rows_.ShareWork(source_, share);
    absl::Status status;  // OK at the start of every iteration
    for (;;) {
      if (static_cast<size_t>(end_ - at_) < kMaxFixedLength) Refill(kMaxFixedLength);
      opcode_offset_ = offset();
      if (at_ == end_) return Truncated();
      if (opcode_offset_ >= next_memory_check_) {
        status = CheckMemory(opcode_offset_, stack_.capacity() * sizeof(Value) + heap_.MemoryUse() +
                                                 reducer_.MemoryUse());
        if (!status.ok()) return status;
        next_memory_check_ = opcode_offset_ + kMemoryCheckStep;
        if (const auto remaining = source_.remaining(); remaining.has_value()) {
          const uint64_t all = source_.position() + *remaining;
          heap_.ExpectMemo(opcode_offset_, all);
          reducer_.Expect(opcode_offset_, all);
        }
      }
      opcode_ = static_cast<uint8_t>(*at_);
      size_t length = 1;  // of the opcode and its fixed arguments
      size_t mark = 0;
      switch (opcode_) {
        case PickleOp("PROTO"):
          if (!Have(length = 2)) return Truncated();
          if (at_[1] < 2 || at_[1] > 5) {
            return Error(
                StrCat("pickle protocol ", static_cast<uint8_t>(at_[1]), "; expected 2 to 5"));
          }
          break;
        case PickleOp("FRAME"): {
          uint64_t frame;
          status = ReadLength(8, &frame);
          length = 0;
          break;
        }
        case PickleOp("STOP"):
          if (stack_.size() != 1 || !marks_.empty()) {
            return Error(StrCat("STOP with ", stack_.size(), " values and ", marks_.size(),
                                " marks on the stack; expected one value"));
          }
          ++at_;
          source_.Skip(static_cast<size_t>(at_ - window_));
          result.root = stack_.back();
          return result;
        case PickleOp("MARK"):
          if (marks_.size() >= kMaxPickleMarks) {
            return Error(StrCat("containers are nested more than ", kMaxPickleMarks, " deep"));
          }
          marks_.push_back(stack_.size());
          break;
        case PickleOp("POP"):
          if (height() > 0) {
            stack_.pop_back();
          } else if (!PopMark(&mark)) {
            return Underflow();
          }
          break;
        case PickleOp("POP_MARK"):
          if (!PopMark(&mark)) return Underflow();
          stack_.resize(mark);
          break;
        case PickleOp("DUP"):
          if (height() == 0) return Underflow();
          heap_.MarkShared(stack_.back());
          Push(stack_.back());
          break;
        case PickleOp("NONE"): Push(Value(Kind::kNone)); break;
        case PickleOp("NEWTRUE"): Push(Value(Kind::kTrue)); break;
        case PickleOp("NEWFALSE"): Push(Value(Kind::kFalse)); break;
        case PickleOp("BININT"):
          if (!Have(length = 5)) return Truncated();
          Push(Value::Int(Load<int32_t>(at_ + 1)));
          break;
        case PickleOp("BININT1"):
          if (!Have(length = 2)) return Truncated();
          Push(Value::Int(static_cast<uint8_t>(at_[1])));
          break;
        case PickleOp("BININT2"):
          if (!Have(length = 3)) return Truncated();
          Push(Value::Int(Load<uint16_t>(at_ + 1)));
          break;
        case PickleOp("LONG1"):
          status = PushLong(1);
          length = 0;
          break;
        case PickleOp("LONG4"):
          status = PushLong(4);
          length = 0;
          break;
        case PickleOp("BINFLOAT"):
          if (!Have(length = 9)) return Truncated();
          Push(heap_.NewWide(Kind::kFloat, __builtin_bswap64(Load<uint64_t>(at_ + 1))));
          break;
        case PickleOp("SHORT_BINUNICODE"):
          status = PushString(1);
          length = 0;
          break;
        case PickleOp("BINUNICODE"):
          status = PushString(4);
          length = 0;
          break;
        case PickleOp("BINUNICODE8"):
          status = PushString(8);
          length = 0;
          break;
        case PickleOp("SHORT_BINBYTES"):
          status = PushOpaque(1);
          length = 0;
          break;
        case PickleOp("BINBYTES"):
          status = PushOpaque(4);
          length = 0;
          break;
        case PickleOp("BINBYTES8"):
        case PickleOp("BYTEARRAY8"):
          status = PushOpaque(8);
          length = 0;
          break;
        case PickleOp("EMPTY_LIST"): status = PushContainer(ValueHeap::Type::kList); break;
        case PickleOp("EMPTY_TUPLE"): status = PushContainer(ValueHeap::Type::kTuple); break;
        case PickleOp("EMPTY_DICT"): {
          const PickleRows::Rows rows = rows_.Read(at_, end_);
          if (rows.count == 0) {
            status = PushContainer(ValueHeap::Type::kDict);
            break;
          }
          for (uint32_t i = 0; i < rows.count; ++i) {
            Push(Value::Record(rows.first.tag(), rows.first.index() + i));
          }
          length = rows.length;
          break;
        }
        case PickleOp("EMPTY_SET"): status = PushContainer(ValueHeap::Type::kSet); break;
        case PickleOp("APPEND"):
          if (height() < 2) return Underflow();
          status = AddToList(ValueHeap::Type::kList, stack_.size() - 1);
          break;
        case PickleOp("APPENDS"):
        case PickleOp("ADDITEMS"):
          if (!PopMark(&mark)) return Underflow();
          status = AddToList(
              opcode_ == PickleOp("APPENDS") ? ValueHeap::Type::kList : ValueHeap::Type::kSet,
              mark);
          break;
        case PickleOp("SETITEM"):
          if (height() < 3) return Underflow();
          status = AddToDict(stack_.size() - 2);
          break;
        case PickleOp("SETITEMS"):
          if (!PopMark(&mark)) return Underflow();
          status = AddToDict(mark);
          break;
        case PickleOp("LIST"):
        case PickleOp("TUPLE"):
        case PickleOp("DICT"):
        case PickleOp("FROZENSET"):
          if (!PopMark(&mark)) return Underflow();
          status = Collect(opcode_ == PickleOp("LIST")    ? ValueHeap::Type::kList
                           : opcode_ == PickleOp("TUPLE") ? ValueHeap::Type::kTuple
                           : opcode_ == PickleOp("DICT")  ? ValueHeap::Type::kDict
                                                          : ValueHeap::Type::kSet,
                           mark);
          break;
        case PickleOp("TUPLE1"):
        case PickleOp("TUPLE2"):
        case PickleOp("TUPLE3"): {
          const size_t items = opcode_ - PickleOp("TUPLE1") + 1u;
          if (height() < items) return Underflow();
          status = Collect(ValueHeap::Type::kTuple, stack_.size() - items);
          break;
        }
        case PickleOp("MEMOIZE"): status = Put(heap_.memo().filled()); break;
        case PickleOp("BINPUT"):
          if (!Have(length = 2)) return Truncated();
          status = Put(static_cast<uint8_t>(at_[1]));
          break;
        case PickleOp("LONG_BINPUT"):
          if (!Have(length = 5)) return Truncated();
          status = Put(Load<uint32_t>(at_ + 1));
          break;
        case PickleOp("BINGET"):
          if (!Have(2)) return Truncated();
          status = GetRun();
          length = 0;
          break;
        case PickleOp("LONG_BINGET"):
          if (!Have(5)) return Truncated();
          status = GetRun();
          length = 0;
          break;
        default: {
          const std::string_view name = PickleOpName(opcode_);
          if (name.empty()) return Error(absl::StrFormat("0x%02x is no pickle opcode", opcode_));
          return Error(StrCat("opcode ", name,
                              " is refused: a snapshot holds plain containers, numbers and "
                              "texts, and nothing of a pickle is executed"));
        }
      }
      if (!status.ok()) return status;
      at_ += length;
    }
  }

 private:
  // Moves the window of unread bytes. `at_` is the first unread byte, whose offset is `base_` +
  // (at_ - window_); `end_` is the end of the bytes in memory.
  bool Refill(size_t n) {
    source_.Skip(static_cast<size_t>(at_ - window_));
    const std::string_view unread = source_.Peek(n);
    base_ = source_.position();
    window_ = at_ = unread.data();
    end_ = at_ + unread.size();
    return unread.size() >= n;
  }
  bool Have(size_t n) { return static_cast<size_t>(end_ - at_) >= n || Refill(n); }
  uint64_t offset() const { return base_ + static_cast<uint64_t>(at_ - window_); }

  // Returns an error at the offset of the current opcode.
  absl::Status Error(std::string_view what) const {
    return absl::InvalidArgumentError(StrCat("byte ", opcode_offset_, ": ", what));
  }
  absl::Status Truncated() const {
    RETURN_IF_ERROR(source_.status());
    return Error(StrCat("the pickle ends after ", base_ + static_cast<uint64_t>(end_ - window_),
                        " bytes, within or after this ", PickleOpName(opcode_),
                        "; expected more up to a STOP"));
  }
  absl::Status Underflow() const {
    return Error(StrCat(PickleOpName(opcode_), " finds too few values on the stack"));
  }

  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  size_t height() const { return stack_.size() - floor(); }
  void Push(Value value) { stack_.push_back(value); }
  // Pops the topmost mark into *mark; returns false if there is none.
  bool PopMark(size_t* mark) {
    if (marks_.empty()) return false;
    *mark = marks_.back();
    marks_.pop_back();
    return true;
  }

  absl::Status PushContainer(ValueHeap::Type type) {
    if (heap_.is_full()) return Error("more containers than any snapshot has");
    Push(heap_.NewObject(type, opcode_offset_));
    return absl::OkStatus();
  }
  // Replaces the values above `mark` by one container of them.

  absl::Status Collect(ValueHeap::Type type, size_t mark) {
    if (heap_.is_full()) return Error("more containers than any snapshot has");
    Value object = heap_.NewObject(type, opcode_offset_);
    const absl::Span<Value> items = absl::MakeSpan(stack_).subspan(mark);
    if (type == ValueHeap::Type::kDict) {
      if (items.size() % 2 != 0) return Error("DICT with a key that has no value");
      RETURN_IF_ERROR(reducer_.AddItems(heap_, &object, items, opcode_offset_));
    } else {
      heap_.Extend(object, items, opcode_offset_);
    }
    stack_.resize(mark);
    Push(object);
    return absl::OkStatus();
  }

  absl::Status AddToDict(size_t mark) {
    if (mark <= floor()) return Underflow();
    const absl::Span<Value> pairs = absl::MakeSpan(stack_).subspan(mark);
    if (pairs.size() % 2 != 0) {
      return Error(StrCat(PickleOpName(opcode_), " with a key that has no value"));
    }
    RETURN_IF_ERROR(reducer_.AddItems(heap_, &stack_[mark - 1], pairs, opcode_offset_));
    stack_.resize(mark);
    return absl::OkStatus();
  }

  absl::Status AddToList(ValueHeap::Type type, size_t mark) {
    if (mark <= floor()) return Underflow();
    const Value target = heap_.Resolve(stack_[mark - 1]);
    if (!target.is(Kind::kObject) || heap_.type(target) != type) {
      return Error(StrCat(PickleOpName(opcode_), " adds to ", heap_.Describe(target), "; expected ",
                          ValueHeap::TypeName(type), " that was not used before"));
    }
    if (heap_.is_used(target) && mark < stack_.size()) {
      return Error("a list of frames grows after it was used");
    }
    heap_.Extend(target, absl::MakeConstSpan(stack_).subspan(mark), opcode_offset_);
    stack_.resize(mark);
    return absl::OkStatus();
  }

  absl::Status PushString(size_t length_bytes) {
    uint64_t length;
    RETURN_IF_ERROR(ReadLength(length_bytes, &length));
    if (length > kMaxPickleString) {
      return Error(
          StrCat("a string of ", length, " bytes; at most ", kMaxPickleString, " are accepted"));
    }
    if (!Have(length)) return Truncated();
    Push(heap_.NewString(std::string_view(at_, length)));
    at_ += length;
    return absl::OkStatus();
  }

  absl::Status PushOpaque(size_t length_bytes) {
    uint64_t length;
    RETURN_IF_ERROR(ReadLength(length_bytes, &length));
    while (length > 0) {
      const size_t step = std::min<uint64_t>(length, kSkipChunk);
      if (!Have(step)) return Truncated();
      at_ += step;
      length -= step;
    }
    Push(Value(Kind::kOpaque));
    return absl::OkStatus();
  }

  // Pushes a little-endian two's complement integer of any length; exact up to 64 bits.
  absl::Status PushLong(size_t length_bytes) {
    uint64_t length;
    RETURN_IF_ERROR(ReadLength(length_bytes, &length));
    if (length > kSkipChunk) return Error(StrCat("an integer of ", length, " bytes"));
    if (!Have(length)) return Truncated();
    uint64_t bits = 0;
    std::memcpy(&bits, at_, std::min<uint64_t>(length, 8));
    const bool negative = length > 0 && (at_[length - 1] & 0x80) != 0;
    if (negative && length < 8) bits |= ~uint64_t{0} << (8 * length);
    bool fits = !negative || length <= 8 || (bits >> 63) != 0;
    for (uint64_t i = 8; i < length; ++i) {
      fits = fits && at_[i] == static_cast<char>(negative ? 0xff : 0);
    }
    at_ += length;
    const auto as_signed = static_cast<int64_t>(bits);
    if (!fits) {
      Push(Value(Kind::kHugeInt));
    } else if (negative == (as_signed < 0) && Value::FitsInline(as_signed)) {
      Push(Value::Int(as_signed));
    } else {
      Push(heap_.NewWide(Kind::kWideInt, bits, negative));
    }
    return absl::OkStatus();
  }

  // Reads the length after the opcode and moves at_ behind it. Rejects a length beyond the end of
  // the input before using it.
  absl::Status ReadLength(size_t length_bytes, uint64_t* length) {
    if (!Have(1 + length_bytes)) return Truncated();
    switch (length_bytes) {
      case 1: *length = static_cast<uint8_t>(at_[1]); break;
      case 4: *length = Load<uint32_t>(at_ + 1); break;
      default: *length = Load<uint64_t>(at_ + 1); break;
    }
    at_ += 1 + length_bytes;
    const std::optional<uint64_t> remaining = source_.remaining();
    const uint64_t left = static_cast<uint64_t>(end_ - at_);
    if (*length > left && remaining.has_value()) {
      return Error(StrCat(PickleOpName(opcode_), " declares ", *length, " bytes, but only ", left,
                          " are left in the file"));
    }
    return absl::OkStatus();
  }

  absl::Status Put(uint64_t slot) {
    if (height() == 0) return Underflow();
    // Slots are assigned one by one and each takes bytes, so a valid slot number is below the
    // offset. This bounds the memo by the input.
    if (slot > opcode_offset_) {
      return Error(StrCat("memo slot ", slot, " is beyond anything written so far"));
    }
    if (heap_.memo().is_full()) return Error("more in the memo than any snapshot has");
    heap_.Memoize(slot, stack_.back());
    return absl::OkStatus();
  }

  // Reads a run of consecutive BINGETs and LONG_BINGETs, which make up most of a file with stacks.
  // At least one is complete at at_.
  absl::Status GetRun() {
    constexpr ptrdiff_t kLong = 5;
    const char* at = at_;
    const char* const last =
        end_ - at_ > static_cast<ptrdiff_t>(kMemoryCheckStep) ? at_ + kMemoryCheckStep : end_;
    bool found = true;
    uint32_t slot = 0;
    do {
      ptrdiff_t length = kLong;
      if (*at == static_cast<char>(PickleOp("LONG_BINGET"))) {
        slot = Load<uint32_t>(at + 1);
      } else if (*at == static_cast<char>(PickleOp("BINGET"))) {
        slot = static_cast<uint8_t>(at[1]);
        length = 2;
      } else {
        break;
      }
      const Value value = heap_.Recall(slot);
      found = !value.is(Kind::kAbsent);
      if (!found) break;
      Push(value);
      at += length;
    } while (last - at >= kLong);
    at_ = at;
    if (found) return absl::OkStatus();
    opcode_offset_ = offset();
    return Error(StrCat(PickleOpName(static_cast<uint8_t>(*at)), " of memo slot ", slot,
                        ", which was never filled"));
  }

  ByteSource& source_;
  ValueHeap& heap_;
  DictReducer& reducer_;
  PickleRows rows_;
  const char* window_ = nullptr;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  uint64_t base_ = 0;
  uint64_t opcode_offset_ = 0;
  uint8_t opcode_ = 0;
  uint64_t next_memory_check_ = kMemoryCheckStep;
  std::vector<Value> stack_;
  std::vector<size_t> marks_;  // sizes of stack_
};

}  // namespace

absl::StatusOr<Pickle> ReadPickle(ByteSource& source, ValueHeap& heap, DictReducer& reducer,
                                  size_t share) {
  return Machine(source, heap, reducer).Run(share);
}

}  // namespace memreplay
