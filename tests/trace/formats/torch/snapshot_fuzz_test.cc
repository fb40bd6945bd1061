// Reads damaged and hostile snapshots: whatever the bytes are, reading ends, soon and with a trace
// or an error. Mutations are seeded, so a failure repeats.
#include <gtest/gtest.h>
#include <malloc.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/trace/support/py_value.h"
#include "tests/trace/support/sample_snapshot.h"
#include "trace/bytes/byte_source.h"
#include "trace/bytes/pickle_reader.h"
#include "trace/formats/torch/snapshot_records.h"
#include "trace/formats/torch/torch_snapshot.h"

namespace memreplay {
namespace {

using std::string_literals::operator""s;  // NOLINT(misc-unused-using-decls)

// Enough to visit every branch of the reader, few enough for every check-in.
constexpr int kRounds = 4000;

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

absl::StatusOr<Trace> ReadPickle(std::string bytes) {
  auto source = ByteSource::FromBytes(std::move(bytes));
  if (!source.ok()) return source.status();
  return ReadSnapshotPickle(**source, "f");
}

// Reads, and checks what must hold for any trace that is accepted.
bool Accepts(const absl::StatusOr<Trace>& trace) {
  if (!trace.ok()) {
    EXPECT_FALSE(trace.status().message().empty());
    return false;
  }
  for (const DeviceTrace& device : trace->devices) {
    for (const Event& event : device.events) {
      EXPECT_LT(event.stream, trace->streams.size());
      EXPECT_LT(event.pool, trace->pools.size());
      EXPECT_LT(event.text_or_stack, trace->stacks.size());
    }
    for (const SegmentInfo& segment : device.final_state) {
      for (const BlockInfo& block : segment.blocks) EXPECT_LT(block.stack, trace->stacks.size());
    }
  }
  return true;
}

std::string Sample(Release release, int variant) {
  switch (variant % 3) {
    case 0: return PythonPickle(SampleSnapshot(release));
    case 1: return CppPickle(SampleSnapshot(release));
    default: return PythonPickle(SampleSnapshot(release), {.protocol = 2, .batch = 2});
  }
}

// One segment and one entry.
std::string SmallSample(Release release) {
  Py sample = SampleSnapshot(release);
  sample["device_traces"].items.resize(1);
  sample["device_traces"].items[0].items.resize(1);
  return PythonPickle(sample);
}

TEST(SnapshotFuzz, EveryPrefixIsAnError) {
  for (int variant = 0; variant < 3; ++variant) {
    const std::string whole = Sample(Release::k210, variant);
    EXPECT_TRUE(Accepts(ReadPickle(whole)));
    for (size_t length = 0; length < whole.size(); length += variant == 0 ? 1 : 5) {
      EXPECT_FALSE(Accepts(ReadPickle(whole.substr(0, length)))) << length;
    }
  }
}

TEST(SnapshotFuzz, EveryBitFlipEnds) {
  for (const Release release : {Release::k20, Release::k22}) {
    const std::string whole = SmallSample(release);
    size_t accepted = 0;
    for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
      std::string flipped = whole;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
      accepted += Accepts(ReadPickle(flipped)) ? 1 : 0;
    }
    // Flips within texts and numbers pass, flips of opcodes do not.
    EXPECT_GT(accepted, whole.size() / 8);
    EXPECT_LT(accepted, whole.size() * 8);
  }
}

TEST(SnapshotFuzz, SeededMutations) {
  std::mt19937_64 random(20240229);
  const auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
  constexpr char kOpcodes[] =
      "}](),.aesuldt012NKMJGXqrhj\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x90\x91\x94\x95\x96";
  std::vector<std::string> samples;
  for (const Release release : kReleases) {
    for (int variant = 0; variant < 3; ++variant) samples.push_back(Sample(release, variant));
  }
  for (int round = 0; round < kRounds; ++round) {
    std::string bytes = samples[pick(samples.size())];
    for (size_t edits = 1 + pick(4); edits > 0; --edits) {
      const size_t at = pick(bytes.size()), from = pick(bytes.size());
      const size_t length = 1 + pick(24);
      switch (pick(6)) {
        case 0: bytes[at] = static_cast<char>(random()); break;
        case 1: bytes[at] = kOpcodes[pick(sizeof kOpcodes - 1)]; break;
        case 2: bytes.insert(at, 1, kOpcodes[pick(sizeof kOpcodes - 1)]); break;
        case 3: bytes.erase(at, length); break;
        case 4: bytes.insert(at, bytes.substr(from, length)); break;
        // A reference to some earlier value: cycles and shared containers.
        default: bytes.insert(at, "h" + std::string(1, static_cast<char>(pick(80)))); break;
      }
      if (bytes.empty()) bytes = ".";
    }
    Accepts(ReadPickle(bytes));
  }
}

// Many entries of one form, as a long recording has them: texts, and frames, are written once and
// then come from the memo; each entry has a dict and a compile_context of its own, and a list of
// frames unless it is a free_completed, which has that of the entry before it.
class RowWriter {
 public:
  explicit RowWriter(bool with_times = true) : with_times_(with_times) {}

  std::string Write(int entries) {
    Open("}", "(");
    Text("device_traces");
    Open("]", "");
    Open("]", "(");
    for (int i = 0; i < entries; ++i) Entry(i);
    return bytes_ + "eau.";
  }

 private:
  void Open(const std::string& opcode, const std::string& mark) {
    bytes_ += opcode + "\x94" + mark;
    ++next_slot_;
  }
  // A reference if the name was written before.
  bool Known(const std::string& name) {
    const auto [it, is_new] = slots_.try_emplace(name, next_slot_);
    if (!is_new) bytes_ += "h" + std::string(1, static_cast<char>(it->second));
    return !is_new;
  }
  void Text(const std::string& text) {
    if (!Known(text)) NewText(text);
  }
  void NewText(const std::string& text) {
    Open("\x8c" + std::string(1, static_cast<char>(text.size())) + text, "");
  }
  void Int(uint64_t number) {
    const char* const opcode = number < 0x100 ? "K" : number < 0x10000 ? "M" : "\x8a\x06";
    const size_t width = number < 0x100 ? 1 : number < 0x10000 ? 2 : 6;
    bytes_ += opcode;
    bytes_.append(reinterpret_cast<const char*>(&number), width);
  }
  void Frame(int number) {
    if (Known("frame " + std::to_string(number))) return;
    Open("}", "(");
    Text("name");
    Text("f" + std::to_string(number));
    Text("filename");
    Text("m.py");
    Text("line");
    Int(static_cast<uint64_t>(number));
    bytes_ += "u";
  }
  void Entry(int i) {
    Open("}", "(");
    Text("action");
    Text(i % 3 == 2 ? "free_completed" : "alloc");
    Text("addr");
    Int(0x7f0000000000u + static_cast<uint64_t>(i) * 512);
    Text("size");
    Int(static_cast<uint64_t>(i) * 100);
    Text("stream");
    Int(i % 7 == 0 ? 1 : 0);
    if (with_times_) {
      Text("time_us");
      Int(static_cast<uint64_t>(i) * 1000);
    }
    Text("segment_pool_id");
    Int(0);
    Int(i % 5 == 0 ? 3 : 0);
    Open("\x86", "");
    Text("compile_context");
    NewText(i % 8 == 7 ? "0/" + std::to_string(i) : "N/A");
    Text("frames");
    if (i % 3 == 2) {
      bytes_ += "j";
      bytes_.append(reinterpret_cast<const char*>(&last_list_), sizeof last_list_);
    } else if (last_list_ = next_slot_; i % 4 == 3) {
      Open("]", "");
    } else {
      Open("]", "(");
      for (int frame = 0; frame < 2 + i % 3; ++frame) Frame(frame);
      bytes_ += "e";
    }
    bytes_ += "u";
  }

  const bool with_times_;
  std::string bytes_ = "\x80\x04";
  int next_slot_ = 0;
  int last_list_ = 0;
  std::map<std::string, int> slots_;  // below 256 for all that is used twice
};

// How many rows a reader took itself, and how many from another thread.
struct RowCount {
  size_t own = 0;
  size_t taken = 0;
};

// Takes rows if it is told how to count them; otherwise every entry goes opcode by opcode.
class Counted : public DictReducer {
 public:
  Counted(DictReducer& records, RowCount* count) : records_(records), count_(count) {}
  absl::Status AddItems(ValueHeap& heap, Value* target, absl::Span<Value> pairs,
                        uint64_t position) override {
    return records_.AddItems(heap, target, pairs, position);
  }
  bool BeginRows(absl::Span<const Value> keys) override {
    return count_ != nullptr && records_.BeginRows(keys);
  }
  bool AddRow(absl::Span<const Value> values, Value* record) override {
    const bool taken = records_.AddRow(values, record);
    count_->own += taken ? 1 : 0;
    return taken;
  }
  std::unique_ptr<RowTaker> NewRowTaker() override {
    return std::make_unique<CountedTaker>(records_.NewRowTaker(), count_);
  }

 private:
  class CountedTaker : public RowTaker {
   public:
    CountedTaker(std::unique_ptr<RowTaker> taker, RowCount* count)
        : taker_(std::move(taker)), count_(count) {}
    void Restart() override { taker_->Restart(); }
    bool AddRow(absl::Span<const Value> values) override { return taker_->AddRow(values); }
    Value Pass(size_t first, size_t count) override {
      count_->taken += count;
      return taker_->Pass(first, count);
    }

   private:
    std::unique_ptr<RowTaker> taker_;
    RowCount* count_;
  };

  DictReducer& records_;
  RowCount* count_;
};

// Reads as ReadSnapshotPickle does, but two threads share so many bytes at a time; 0: one thread
// reads all. Without a count nothing is read in rows.
absl::StatusOr<Trace> ReadWith(std::string bytes, RowCount* count, size_t share = 0) {
  auto source = ByteSource::FromBytes(std::move(bytes));
  if (!source.ok()) return source.status();
  Trace trace;
  ValueHeap heap;
  SnapshotRecords records(heap, &trace);
  Counted reducer(records, count);
  const absl::StatusOr<Pickle> pickle = ReadPickle(**source, heap, reducer, share);
  if (!pickle.ok()) return pickle.status();
  const absl::Status status =
      AssembleSnapshot(pickle->root, (*source)->position(), heap, records, &trace);
  if (!status.ok()) return status;
  return trace;
}

void ExpectSame(const absl::StatusOr<Trace>& a, const absl::StatusOr<Trace>& b) {
  ASSERT_EQ(a.status(), b.status());
  if (!a.ok()) return;
  EXPECT_EQ(a->streams, b->streams);
  EXPECT_EQ(a->pools, b->pools);
  EXPECT_EQ(a->layout.has_time_us, b->layout.has_time_us);
  EXPECT_EQ(a->layout.has_event_pool_id, b->layout.has_event_pool_id);
  EXPECT_EQ(a->layout.has_compile_context, b->layout.has_compile_context);
  ASSERT_EQ(a->devices.size(), b->devices.size());
  for (size_t d = 0; d < a->devices.size(); ++d) {
    EXPECT_EQ(a->devices[d].time_us, b->devices[d].time_us);
    ASSERT_EQ(a->devices[d].events.size(), b->devices[d].events.size());
    for (size_t i = 0; i < a->devices[d].events.size(); ++i) {
      const Event& x = a->devices[d].events[i];
      const Event& y = b->devices[d].events[i];
      EXPECT_EQ(x.kind, y.kind);
      EXPECT_EQ(x.pool, y.pool);
      EXPECT_EQ(x.address, y.address);
      EXPECT_EQ(x.size, y.size);
      EXPECT_EQ(x.stream, y.stream);
      EXPECT_EQ(a->stacks[x.text_or_stack], b->stacks[y.text_or_stack]);
    }
  }
}

TEST(SnapshotFuzz, EntriesInRowsSayTheSame) {
  RowCount count;
  const absl::StatusOr<Trace> rows = ReadWith(RowWriter().Write(240), &count);
  EXPECT_GT(count.own, 180u);
  EXPECT_EQ(count.taken, 0u);
  ExpectSame(rows, ReadWith(RowWriter().Write(240), nullptr));
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->devices.size(), 1u);
  const DeviceTrace& device = rows->devices[0];
  ASSERT_EQ(device.events.size(), 240u);
  for (size_t i = 0; i < 240; ++i) {
    EXPECT_EQ(device.events[i].size, Bytes(i * 100));
    EXPECT_EQ(device.events[i].address, Address(0x7f0000000000 + i * 512));
    EXPECT_EQ(device.time_us[i], static_cast<int64_t>(i * 1000));
    EXPECT_EQ(rows->pools[device.events[i].pool].second, i % 5 == 0 ? 3u : 0u);
    const size_t from = i % 3 == 2 ? i - 1 : i;
    EXPECT_EQ(rows->stacks[device.events[i].text_or_stack].size(),
              from % 4 == 3 ? 0 : 2 + from % 3);
  }
}

TEST(SnapshotFuzz, EntriesWithoutTimesSayTheSame) {
  const std::string sample = RowWriter(false).Write(240);
  RowCount count;
  const absl::StatusOr<Trace> rows = ReadWith(sample, &count, 2000);
  ExpectSame(rows, ReadWith(sample, nullptr));
  EXPECT_GT(count.own, 80u);
  EXPECT_GT(count.taken, 40u);
  ASSERT_EQ(rows->devices.size(), 1u);
  EXPECT_TRUE(rows->devices[0].time_us.empty());
}

TEST(SnapshotFuzz, RowsThatAnotherThreadReadSayTheSame) {
  const std::string sample = RowWriter().Write(2000);
  const absl::StatusOr<Trace> alone = ReadWith(sample, nullptr);
  for (const size_t share : {1, 200, 1000, 5000, 50000}) {
    SCOPED_TRACE(share);
    RowCount count;
    ExpectSame(alone, ReadWith(sample, &count, share));
    EXPECT_EQ(count.taken > 300, share >= 1000) << count.taken;
  }
}

// Between two entries that a second thread may read together, the memo gets another value.
TEST(SnapshotFuzz, RowsOfAnotherThreadEndWhereTheMemoChanges) {
  const std::string sample = RowWriter().Write(400);
  size_t taken = 0, places = 0;
  for (size_t at = sample.find("u}\x94("); at != sample.npos; at = sample.find("u}\x94(", at + 1)) {
    std::string bytes = sample;
    bytes.insert(at + 1,
                 "Nq\x05"
                 "0");  // None, for the key of slot 5, and off the stack again
    RowCount count;
    ExpectSame(ReadWith(bytes, nullptr), ReadWith(bytes, &count, 4000));
    if (HasFailure()) FAIL() << "at " << at;
    taken += count.taken;
    ++places;
  }
  EXPECT_GT(places, 300u);
  EXPECT_GT(taken, places * 10);
}

TEST(SnapshotFuzz, MutationsOfRowsSayTheSame) {
  std::mt19937_64 random(19700101);
  const auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
  constexpr char kOpcodes[] = "}](.aeu02NKMJq\x86\x8a\x94";
  const std::string sample = RowWriter().Write(96);  // most of them of a shape seen before
  size_t accepted = 0, taken = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::string bytes = sample;
    const size_t at = pick(bytes.size()), from = pick(bytes.size());
    switch (pick(6)) {
      case 0: bytes[at] = static_cast<char>(random()); break;
      case 1: bytes[at] = kOpcodes[pick(sizeof kOpcodes - 1)]; break;
      case 2: bytes.insert(at, bytes.substr(from, 1 + pick(12))); break;
      case 3: bytes.erase(at, 1 + pick(12)); break;
      // Another value for a slot, and a reference.
      case 4: bytes.insert(at, "q" + std::string(1, static_cast<char>(pick(80)))); break;
      default: bytes.insert(at, "h" + std::string(1, static_cast<char>(pick(80)))); break;
    }
    RowCount count;
    const absl::StatusOr<Trace> rows = ReadWith(bytes, &count);
    const absl::StatusOr<Trace> alone = ReadWith(bytes, nullptr);
    ExpectSame(rows, alone);
    ExpectSame(ReadWith(bytes, &count, 1000), alone);
    if (HasFailure()) FAIL() << "round " << round;
    accepted += rows.ok() ? 1 : 0;
    taken += count.taken;
  }
  EXPECT_GT(accepted, 100u);
  EXPECT_GT(taken, 1000u);
}

TEST(SnapshotFuzz, SeededMutationsOfJson) {
  std::mt19937_64 random(7);
  const std::string whole = Json(SampleSnapshot(Release::k210));
  for (int round = 0; round < kRounds / 4; ++round) {
    std::string bytes = whole;
    for (size_t edits = 1 + random() % 3; edits > 0; --edits) {
      constexpr char kCharacters[] = "{}[],:\"\\0-9.eEtfnu \n";
      bytes[random() % bytes.size()] = kCharacters[random() % (sizeof kCharacters - 1)];
    }
    auto source = ByteSource::FromBytes(bytes);
    ASSERT_TRUE(source.ok());
    Accepts(ReadSnapshotJson(**source, "f"));
  }
}

// Containers that hold themselves where records are expected.
TEST(SnapshotFuzz, CyclesInPlaceOfRecords) {
  const std::string cases[] = {
      // e = {"frames": [e], "action": "alloc"}; e alone, then with a second SETITEM
      "}\x94(X\6\0\0\0frames](h\0eX\6\0\0\0actionX\5\0\0\0allocu"s,
      "}\x94X\6\0\0\0frames](h\0esX\6\0\0\0actionX\5\0\0\0allocs"s,
      // frames = [frames]
      "}(X\6\0\0\0actionX\5\0\0\0allocX\6\0\0\0frames]\x94(h\0eu"s,
      // history = [{"frames": [that dict]}] of a block
      "}(X\5\0\0\0stateX\10\0\0\0inactiveX\7\0\0\0history](}\x94X\6\0\0\0frames](h\0eseu"s,
      "}(X\5\0\0\0stateX\10\0\0\0inactiveX\7\0\0\0history]\x94(}X\6\0\0\0framesh\0seu"s,
      // pool_id = (pool_id, pool_id)
      "}(X\6\0\0\0actionX\5\0\0\0allocX\7\0\0\0pool_id]\x94(h\0h\0eu"s,
  };
  for (const std::string& record : cases) {
    for (const std::string& where : {"device_traces"s, "segments"s}) {
      const std::string text =
          "X" + std::string(1, static_cast<char>(where.size())) + "\0\0\0"s + where;
      EXPECT_FALSE(Accepts(ReadPickle("\x80\x04}" + text + "](](" + record + "ees.")));
      EXPECT_FALSE(Accepts(ReadPickle("\x80\x04}" + text + "](" + record + "es.")));
    }
  }
  // The snapshot that is its own list of traces, segments, settings, annotations.
  for (const std::string& key : {"device_traces"s, "segments"s}) {
    const std::string text = "X" + std::string(1, static_cast<char>(key.size())) + "\0\0\0"s + key;
    EXPECT_FALSE(Accepts(ReadPickle("\x80\x04}\x94" + text + "h\0s."s)));
    EXPECT_FALSE(Accepts(ReadPickle("\x80\x04}\x94" + text + "]\x94(h\0h\1es."s)));
  }
}

// These few hundred bytes would list one million entries a million times.
TEST(SnapshotFuzz, SharedContainersCannotMultiply) {
  std::string bytes = "\x80\x04}(X\6\0\0\0blocks]\x94("s;
  const std::string block = "}(X\5\0\0\0stateX\10\0\0\0inactiveX\4\0\0\0sizeK\0uq\1"s;  // BINPUT 1
  bytes += block;
  for (int i = 0; i < 2000; ++i) bytes += "h\1"s;
  bytes += "eX\7\0\0\0addressK\0X\12\0\0\0total_sizeK\0uq\2"s;
  std::string list = "\x80\x04](" + bytes.substr(2);
  for (int i = 0; i < 2000; ++i) list += "h\2"s;
  const absl::StatusOr<Trace> trace = ReadPickle(list + "e.");
  ASSERT_FALSE(trace.ok());
  EXPECT_TRUE(Contains(std::string(trace.status().message()), "one container is listed very often"))
      << trace.status();
}

// Heap in use after reading, at most; what was claimed but not given costs nothing.
TEST(SnapshotFuzz, SmallHostileFilesStaySmall) {
  const std::string cases[] = {
      "\x80\x04" + std::string(1000, ']'),
      "\x80\x04" + std::string(1000, '}'),
      "\x80\x04N" + std::string(500, '\x94'),
      "\x80\x04Nr\x00\x00\x00\x7f."s,
      "\x80\x04Nr\xff\xff\xff\xff."s,
      "\x80\x04\x8d\x00\x00\x00\x00\x10\x00\x00\x00"s + std::string(900, 'x'),
      "\x80\x04\x96\xff\xff\xff\xff\xff\xff\xff\x7f"s,
      "\x80\x04\x8b\xff\xff\xff\x7f"s,
      "\x80\x04" + std::string(1000, '('),
  };
  for (const std::string& bytes : cases) {
    const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    auto source = ByteSource::FromBytes(bytes);
    ASSERT_TRUE(source.ok());
    EXPECT_FALSE(Accepts(ReadSnapshotPickle(**source, "f")));
    malloc_trim(0);
    const size_t after = mallinfo2().uordblks + mallinfo2().hblkhd;
    EXPECT_LT(after, before + (1 << 20));
  }
}

TEST(SnapshotFuzz, ListsAndFramesThatChangeAfterUse) {
  // frames list L used by an entry, then L grows.
  const std::string entry =
      "}(X\6\0\0\0actionX\5\0\0\0allocX\6\0\0\0frames]\x94(}X\4\0\0\0nameX\1\0\0\0fseu0"s;
  const absl::StatusOr<Trace> grown = ReadPickle("\x80\x04" + entry + "h\0Na."s);
  ASSERT_FALSE(grown.ok());
  EXPECT_TRUE(Contains(std::string(grown.status().message()), "not used before")) << grown.status();
  // The same with an empty list.
  const std::string empty = "}(X\6\0\0\0actionX\5\0\0\0allocX\6\0\0\0frames]\x94u0"s;
  const absl::StatusOr<Trace> filled = ReadPickle("\x80\x04" + empty + "h\0Na."s);
  ASSERT_FALSE(filled.ok());
  EXPECT_TRUE(Contains(std::string(filled.status().message()), "grows after it was used"))
      << filled.status();
}

}  // namespace
}  // namespace memreplay
