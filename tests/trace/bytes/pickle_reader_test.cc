#include "trace/bytes/pickle_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/trace/support/py_value.h"
#include "trace/bytes/pickle_opcodes.h"

namespace memreplay {
namespace {

using std::string_literals::operator""s;  // NOLINT(misc-unused-using-decls)

// Keeps dicts as they are.
class KeepDicts : public DictReducer {
 public:
  absl::Status AddItems(ValueHeap& heap, Value* target, absl::Span<Value> pairs,
                        uint64_t position) override {
    if (!target->is(Value::Kind::kObject) || heap.type(*target) != ValueHeap::Type::kDict) {
      return absl::InvalidArgumentError("no dict");
    }
    heap.Extend(*target, pairs, position);
    return absl::OkStatus();
  }
};

// Returns a value as Python would print it; containers below `depth` as "...".
std::string Print(ValueHeap& heap, Value value, int depth = 8) {
  const auto list = [&](const char* begin, const char* end) {
    std::string out = begin;
    const absl::Span<Value> items = heap.items(value);
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += ", ";
      out += Print(heap, items[i], depth - 1);
    }
    return out + end;
  };
  switch (value.kind()) {
    case Value::Kind::kNone: return "None";
    case Value::Kind::kTrue: return "True";
    case Value::Kind::kFalse: return "False";
    case Value::Kind::kInt:
    case Value::Kind::kWideInt: {
      const WideInt n = *heap.AsInteger(value);
      return n.negative ? std::to_string(static_cast<int64_t>(n.bits)) : std::to_string(n.bits);
    }
    case Value::Kind::kHugeInt: return "huge";
    case Value::Kind::kFloat: return std::to_string(*heap.AsNumber(value));
    case Value::Kind::kString: return "'" + std::string(heap.strings()[value.index()]) + "'";
    case Value::Kind::kOpaque: return "bytes";
    case Value::Kind::kObject:
      if (depth == 0) return "...";
      switch (heap.type(value)) {
        case ValueHeap::Type::kList: return list("[", "]");
        case ValueHeap::Type::kTuple: return list("(", ")");
        case ValueHeap::Type::kSet: return list("<", ">");
        case ValueHeap::Type::kDict: return list("{", "}");
        default: return "?";
      }
    default: return "?";
  }
}

// What a pickle holds, or the message why not.
std::string Read(std::string bytes) {
  auto source = ByteSource::FromBytes(std::move(bytes));
  if (!source.ok()) return std::string(source.status().message());
  ValueHeap heap;
  KeepDicts reducer;
  const absl::StatusOr<Pickle> pickle = ReadPickle(**source, heap, reducer);
  if (!pickle.ok()) return std::string(pickle.status().message());
  return Print(heap, pickle->root);
}

// After a protocol 5 header, which is 2 bytes.
std::string Read5(const std::string& body) { return Read("\x80\x05" + body + "."); }

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Reads `all` bytes with an element for `dense` bytes up to the middle, and for `dense_later` after
// it. Returns how much was reserved in vain, and how often.
std::pair<size_t, size_t> CapacityAndMoves(size_t all, size_t dense, size_t dense_later) {
  std::vector<int> elements;
  size_t moves = 0;
  for (size_t read = 0; read < all; read += 65536) {
    const size_t before = elements.capacity();
    ReserveFor(elements, read, all);
    if (elements.capacity() != before) ++moves;
    elements.resize(elements.size() + 65536 / (read < all / 2 ? dense : dense_later));
  }
  EXPECT_GE(elements.capacity(), elements.size());
  return {elements.capacity() - elements.size(), moves};
}

TEST(ReserveFor, LeavesLittleUnusedAndMovesSeldom) {
  const auto [unused, moves] = CapacityAndMoves(1 << 30, 64, 64);  // 16 M elements
  EXPECT_LT(unused, 1'000'000u);
  EXPECT_LT(moves, 10u);
  const auto [unused_later, moves_later] = CapacityAndMoves(1 << 30, 64, 16);
  EXPECT_LT(unused_later, 40'000'000u / 8);
  EXPECT_LT(moves_later, 20u);
  const auto [unused_small, moves_small] = CapacityAndMoves(1 << 20, 16, 64);
  EXPECT_LT(unused_small, 40'000u * 3);
  EXPECT_LT(moves_small, 4u);
}

TEST(PickleReader, Scalars) {
  EXPECT_EQ(Read5("N"), "None");
  EXPECT_EQ(Read5("\x88"), "True");
  EXPECT_EQ(Read5("\x89"), "False");
  EXPECT_EQ(Read5("K\xff"), "255");
  EXPECT_EQ(Read5("M\xff\xff"), "65535");
  EXPECT_EQ(Read5("J\xfe\xff\xff\xff"), "-2");
  EXPECT_EQ(Read5("G\x3f\xf8\0\0\0\0\0\0"s), "1.500000");
  EXPECT_EQ(Read5("\x8c\x02hi"), "'hi'");
  EXPECT_EQ(Read5("X\x02\0\0\0hi"s), "'hi'");
  EXPECT_EQ(Read5("\x8d\x02\0\0\0\0\0\0\0hi"s), "'hi'");
  EXPECT_EQ(Read5("C\x02hi"), "bytes");
  EXPECT_EQ(Read5("B\x02\0\0\0hi"s), "bytes");
  EXPECT_EQ(Read5("\x8e\x02\0\0\0\0\0\0\0hi"s), "bytes");
  EXPECT_EQ(Read5("\x96\x02\0\0\0\0\0\0\0hi"s), "bytes");
}

TEST(PickleReader, LongIntegersAreExact) {
  EXPECT_EQ(Read5("\x8a\0"s), "0");
  EXPECT_EQ(Read5("\x8a\x01\xff"), "-1");
  EXPECT_EQ(Read5("\x8a\x02\xff\0"s), "255");
  EXPECT_EQ(Read5("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"), "9223372036854775807");
  EXPECT_EQ(Read5("\x8a\x08\0\0\0\0\0\0\0\x80"s), "-9223372036854775808");
  EXPECT_EQ(Read5("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0"s), "18446744073709551615");
  EXPECT_EQ(Read5("\x8a\x09\0\0\0\0\0\0\0\0\x01"s), "huge");
  EXPECT_EQ(Read5("\x8a\x09\0\0\0\0\0\0\0\0\xff"s), "huge");
  EXPECT_EQ(Read5("\x8a\x09\x01\0\0\0\0\0\0\x80\xff"s), "-9223372036854775807");
  EXPECT_EQ(Read5("\x8b\x03\0\0\0\x01\x02\x03"s), "197121");
  for (const int64_t n : {(int64_t{1} << 55) - 1, int64_t{1} << 55, -(int64_t{1} << 55),
                          -(int64_t{1} << 55) - 1, int64_t{0x7fff12345678}}) {
    EXPECT_EQ(Read(PythonPickle(Py(n))), std::to_string(n));
    EXPECT_EQ(Read(CppPickle(Py(n))), std::to_string(n));
  }
}

TEST(PickleReader, Containers) {
  EXPECT_EQ(Read5("]"), "[]");
  EXPECT_EQ(Read5("]K\x01"
                  "a"),
            "[1]");
  EXPECT_EQ(Read5("](K\x01K\x02"
                  "e(K\x03"
                  "e"),
            "[1, 2, 3]");
  EXPECT_EQ(Read5("](e"), "[]");
  EXPECT_EQ(Read5("(K\x01K\x02l"), "[1, 2]");
  EXPECT_EQ(Read5(")"), "()");
  EXPECT_EQ(Read5("K\x01\x85"), "(1)");
  EXPECT_EQ(Read5("K\x01K\x02\x86"), "(1, 2)");
  EXPECT_EQ(Read5("K\x01K\x02K\x03\x87"), "(1, 2, 3)");
  EXPECT_EQ(Read5("(K\x01K\x02K\x03K\x04t"), "(1, 2, 3, 4)");
  EXPECT_EQ(Read5("}"), "{}");
  EXPECT_EQ(Read5("}K\x01K\x02s"), "{1, 2}");
  EXPECT_EQ(Read5("}(K\x01K\x02K\x03K\x04u"), "{1, 2, 3, 4}");
  EXPECT_EQ(Read5("(K\x01K\x02"
                  "d"),
            "{1, 2}");
  EXPECT_EQ(Read5("\x8f(K\x01\x90"), "<1>");
  EXPECT_EQ(Read5("(K\x01\x91"), "<1>");
}

TEST(PickleReader, StackAndMemo) {
  EXPECT_EQ(Read5("K\x01K\x02"
                  "0"),
            "1");
  EXPECT_EQ(Read5("K\x01(0"), "1");  // POP of a mark
  EXPECT_EQ(Read5("K\x01(K\x02K\x03"
                  "1"),
            "1");
  EXPECT_EQ(Read5("]2a"), "[[[[[[[[...]]]]]]]]");
  EXPECT_EQ(Read5("](K\x07\x94h\0e"s), "[7, 7]");
  EXPECT_EQ(Read5("](K\x07q\x05h\x05j\x05\0\0\0e"s), "[7, 7, 7]");
  EXPECT_EQ(Read5("](K\x07r\x05\0\0\0h\x05"
                  "e"s),
            "[7, 7]");
  EXPECT_EQ(Read5("\x95\x02\0\0\0\0\0\0\0K\x01"s), "1");
}

TEST(PickleReader, SharedContainersStayShared) {
  auto source = ByteSource::FromBytes("\x80\x04](]\x94h\0h\0e."s);
  ASSERT_TRUE(source.ok());
  ValueHeap heap;
  KeepDicts reducer;
  const absl::StatusOr<Pickle> pickle = ReadPickle(**source, heap, reducer);
  ASSERT_TRUE(pickle.ok()) << pickle.status();
  EXPECT_EQ(pickle->protocol, 4);
  const absl::Span<Value> items = heap.items(pickle->root);
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0], items[1]);
  EXPECT_EQ(items[1], items[2]);
}

TEST(PickleReader, WhatCouldNameCodeIsRefusedByName) {
  const std::pair<const char*, std::string> refused[] = {
      {"GLOBAL", "cos\nsystem\n"},
      {"INST", "(ios\nsystem\n"},
      {"REDUCE", "N)R"},
      {"BUILD", "NNb"},
      {"OBJ", "(No"},
      {"NEWOBJ", "N)\x81"},
      {"NEWOBJ_EX", "N)}\x92"},
      {"STACK_GLOBAL", "\x8c\x02os\x8c\x06system\x93"},
      {"EXT1", "\x82\x01"},
      {"EXT2", "\x83\x01\x01"},
      {"EXT4", "\x84\x01\x01\x01\x01"},
      {"PERSID", "P1\n"},
      {"BINPERSID", "NQ"},
      {"NEXT_BUFFER", "\x97"},
      {"READONLY_BUFFER", "N\x98"},
      {"INT", "I1\n"},
      {"LONG", "L1L\n"},
      {"FLOAT", "F1\n"},
      {"STRING", "S'a'\n"},
      {"BINSTRING", "T\x01\x01\x01\x01"},
      {"SHORT_BINSTRING",
       "U\x01"
       "a"},
      {"UNICODE", "Va\n"},
      {"GET", "g0\n"},
      {"PUT", "Np0\n"},
  };
  for (const auto& [name, body] : refused) {
    const std::string message = Read5(body);
    EXPECT_TRUE(Contains(message, "opcode "s + name + " is refused")) << name << ": " << message;
    EXPECT_TRUE(Contains(message, "byte ")) << message;
  }
  EXPECT_TRUE(Contains(Read5("cos\nsystem\n"), "byte 2: ")) << Read5("cos\nsystem\n");
  // A whole attack.
  EXPECT_TRUE(Contains(Read("\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x04true\x85R."),
                       "byte 17: opcode STACK_GLOBAL is refused"));
}

TEST(PickleReader, EveryOtherByteIsNoOpcode) {
  for (int byte = 0; byte < 256; ++byte) {
    if (!PickleOpName(static_cast<uint8_t>(byte)).empty()) continue;
    EXPECT_TRUE(Contains(Read5(std::string(1, static_cast<char>(byte))), "is no pickle opcode"))
        << byte;
  }
}

TEST(PickleReader, DefectsAreNamedWithTheirPlace) {
  const std::pair<std::string, std::string> defects[] = {
      {"", "is empty"},
      {"hello", "expected the PROTO opcode"},
      {"\x80\x06.", "pickle protocol 6"},
      {"\x80\x04", "ends after 2 bytes"},
      {"\x80\x04.", "STOP with 0 values"},
      {"\x80\x04NN.", "STOP with 2 values"},
      {"\x80\x04N(.", "1 marks"},
      {"\x80\x04K", "within or after this BININT1"},
      {"\x80\x04\x8c\xff"
       "a.",
       "byte 2: SHORT_BINUNICODE declares 255 bytes, but only 2"},
      {"\x80\x04X\xff\xff\xff\xff.", "declares 4294967295 bytes"},
      {"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", "declares 18446744073709551615 bytes"},
      {"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7fN.", "FRAME declares"},
      {"\x80\x04h\x01.", "memo slot 1, which was never filled"},
      {"\x80\x04j\xff\xff\xff\xff.", "memo slot 4294967295, which was never filled"},
      {"\x80\x04Nr\xff\xff\xff\xff.", "memo slot 4294967295 is beyond"},
      {"\x80\x04\x94.", "MEMOIZE finds too few"},
      {"\x80\x04K\x01"
       "a.",
       "APPEND finds too few"},
      {"\x80\x04](K\x01"
       "a.",
       "APPEND finds too few"},
      {"\x80\x04"
       "e.",
       "APPENDS finds too few"},
      {"\x80\x04(e.", "APPENDS finds too few"},
      {"\x80\x04}(e.", "adds to a dict; expected a list"},
      {"\x80\x04K\x05(Ne.", "adds to the integer 5; expected a list"},
      {"\x80\x04}(Nu.", "has no value"},
      {"\x80\x04(Nd.", "has no value"},
      {"\x80\x04](NNu.", "no dict"},
      {"\x80\x04N\x86.", "TUPLE2 finds too few"},
      {"\x80\x04"
       "0.",
       "POP finds too few"},
      {"\x80\x04"
       "2.",
       "DUP finds too few"},
      {"\x80\x04t.", "TUPLE finds too few"},
      {"\x80\x04(NNs.", "SETITEM finds too few"},
  };
  for (const auto& [bytes, expected] : defects) {
    // A literal with a zero byte would end early; protocol bytes have none here.
    EXPECT_TRUE(Contains(Read(bytes), expected)) << Read(bytes) << "\nexpected " << expected;
  }
}

TEST(PickleReader, SelfReferenceNeitherHangsNorCrashes) {
  // l = []; l.append(l); l.append(l); d = {}; d[1] = d
  EXPECT_TRUE(Contains(Read5("]\x94(h\0h\0e"s), "[[[[[[[[..., ...]"));
  EXPECT_EQ(Read5("}\x94K\x01h\0s"s), "{1, {1, {1, {1, {1, {1, {1, {1, ...}}}}}}}}");
}

TEST(PickleReader, DeepNestingIsBounded) {
  // Containers nest with marks, to the limit and beyond.
  EXPECT_TRUE(Contains(Read5(std::string(kMaxPickleMarks + 1, '(')), "nested more than"));
  // Without marks depth costs no stack: 100000 lists within each other.
  const int deep = 100000;
  const std::string nested = Read5(std::string(deep, ']') + std::string(deep - 1, 'a'));
  EXPECT_EQ(nested, "[[[[[[[[...]]]]]]]]");
}

TEST(PickleReader, TruncatedAnywhereIsAnError) {
  const std::string whole = PythonPickle(Py::Dict({{"a", Py::List({1, 70000, 1.5, "text", Py()})},
                                                   {"b", Py::Tuple({int64_t{1} << 40, true})}}));
  EXPECT_EQ(Read(whole), "{'a', [1, 70000, 1.500000, 'text', None], 'b', (1099511627776, True)}");
  for (size_t length = 0; length < whole.size(); ++length) {
    const std::string message = Read(whole.substr(0, length));
    EXPECT_TRUE(Contains(message, "byte ") || Contains(message, "empty")) << length << message;
  }
}

TEST(PickleReader, BothWritersAndAllProtocolsAgree) {
  const Py value = Py::Dict({{"list", Py::List({1, 2, 3, Py::Dict({{"k", "list"}})})},
                             {"empty", Py::List({})},
                             {"none", Py::Dict({})},
                             {"pair", Py::Tuple({0, 300})}});
  const std::string expected = Read(CppPickle(value));
  EXPECT_TRUE(Contains(expected, "[1, 2, 3, {'k', 'list'}]")) << expected;
  for (const int protocol : {2, 3, 4, 5}) {
    for (const size_t batch : {1, 2, 3, 1000}) {
      EXPECT_EQ(Read(PythonPickle(value, {.protocol = protocol, .batch = batch})), expected);
    }
  }
}

}  // namespace
}  // namespace memreplay
