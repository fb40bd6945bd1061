// Expands random and damaged programs: whatever they say, expanding ends, with the same events each
// time or with an error. Everything is seeded, so a failure repeats.
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

#include "tests/trace/support/trace_dump.h"
#include "trace/program/program_reader.h"
#include "trace/value/strings.h"
#include "trace/value/trace_builder.h"

namespace memreplay::program {
namespace {

constexpr uint64_t kMaxEvents = 2000;

absl::StatusOr<Trace> Read(std::string bytes) {
  auto source = ByteSource::FromBytes(std::move(bytes));
  if (!source.ok()) return source.status();
  CompileOptions options;
  options.max_events = kMaxEvents;
  const absl::StatusOr<ProgramCode> code = ReadProgramCode(**source, options);
  if (!code.ok()) return code.status();
  return ExpandProgram(*code);
}

// What holds for every program that expands: handles are used between their
// allocation and their free, and there are not too many events.
bool Accepts(const absl::StatusOr<Trace>& trace) {
  if (!trace.ok()) {
    EXPECT_TRUE(absl::IsInvalidArgument(trace.status())) << trace.status();
    EXPECT_FALSE(trace.status().message().empty());
    return false;
  }
  const EventList& events = trace->devices[0].events;
  EXPECT_LE(events.size(), kMaxEvents);
  std::set<uint64_t> live;
  for (const Event& event : events) {
    EXPECT_TRUE(IsRequest(event.kind));
    EXPECT_LT(event.pool, trace->pools.size());
    if (NamesStream(event)) {
      EXPECT_LT(event.stream, trace->streams.size());
    }
    const uint64_t handle = event.address.value();
    if (event.kind == EventKind::kAlloc) {
      EXPECT_TRUE(live.insert(handle).second);
    }
    if (event.kind == EventKind::kRecordStream) {
      EXPECT_TRUE(live.contains(handle));
    }
    if (event.kind == EventKind::kFree) {
      EXPECT_EQ(live.erase(handle), 1u);
    }
  }
  return true;
}

// Programs that mostly make sense.
class Writer {
 public:
  explicit Writer(uint64_t seed) : random_(seed) {}

  std::string Program() {
    std::string text =
        "format: \"memsched\"\nversion: 1\nparams { key: \"B\" value: 3 }\n"
        "streams: [\"main\", \"comm\"]\npools { name: \"graph\" }\n"
        "procs { key: \"f\" value { args: \"n\" ";
    variables_ = {"n", "B"};
    StrAppend(&text, Body("body", 2), "} }\n");
    variables_ = {"B"};
    for (size_t i = 2 + Pick(6); i > 0; --i) StrAppend(&text, "program { ", Statement(3), "}\n");
    return StrCat(text, "seed: ", Pick(100), "\n");
  }

 private:
  size_t Pick(size_t n) { return static_cast<size_t>(random_() % n); }
  std::string Expression(int depth = 2) {
    if (depth == 0 || Pick(2) == 0) {
      return Pick(2) == 0 ? StrCat(Pick(6)) : variables_[Pick(variables_.size())];
    }
    static constexpr const char* kOperators[] = {" + ", " - ", "*", "%", "/", " < ", "&&"};
    const std::string left = Expression(depth - 1), right = Expression(depth - 1);
    switch (Pick(6)) {
      case 0: return StrCat("max(", left, ",", right, ")");
      case 1: return StrCat("if(", left, ",", right, ",1)");
      case 2: return StrCat("ceil(", left, ",2)");
      default: return StrCat("(", left, kOperators[Pick(7)], right, ")");
    }
  }
  std::string Handle() {
    std::string name(1, static_cast<char>('a' + Pick(3)));
    if (Pick(2) == 0) StrAppend(&name, "[", Expression(1), "]");
    return name;
  }
  std::string Body(const std::string& field, int depth) {
    const size_t visible = variables_.size();
    std::string text;
    for (size_t i = Pick(4); i > 0; --i) StrAppend(&text, field, " { ", Statement(depth), "} ");
    variables_.resize(visible);
    return text;
  }
  std::string Loop(const std::string& head, const std::string& variable, int depth) {
    variables_.push_back(variable);
    const std::string body = Body("body", depth);
    variables_.pop_back();
    return StrCat(head, body);
  }
  std::string Statement(int depth) {
    const std::string index = StrCat("i", variables_.size());
    const size_t kind = Pick(depth == 0 ? 7 : 14);
    // What a free, use or move names is often not there; that is tried seldom.
    switch (kind >= 2 && kind <= 4 && Pick(4) != 0 ? 7 : kind) {
      case 0:
      case 1: return StrCat("alloc: \"", Handle(), "\" bytes: \"1+", Expression(), "\" ");
      case 2: return StrCat("free: \"", Handle(), "\" ");
      case 3: return StrCat("use: \"", Handle(), "\" stream: \"comm\" ");
      case 4: return StrCat("move: \"", Handle(), "\" to: \"", Handle(), "\" ");
      case 5: return StrCat("mark: \"{", Expression(), "}\" ");
      case 6: {
        const std::string value = Expression();
        variables_.push_back(StrCat("v", variables_.size()));
        return StrCat("let: \"", variables_.back(), "\" ",
                      Pick(2) == 0 ? StrCat("value: \"", value, "\" ")
                                   : "from { dist: \"uniform\" min: \"0\" max: \"9\" } ");
      }
      case 7:
      case 8:
        return StrCat("temp: \"t", Pick(1000), "\" bytes: \"", Expression(), "*8\" ",
                      depth > 0 ? Body("body", depth - 1) : std::string());
      case 9:
        return Loop(StrCat("repeat: \"", Expression(), "\" index: \"", index, "\" "), index,
                    depth - 1);
      case 10:
        return Loop(
            StrCat("for: \"", index, "\" range: [\"", Expression(), "\", \"", Expression(), "\"] "),
            index, depth - 1);
      case 11:
        return StrCat("if: \"", Expression(), "\" ", Body("then", depth - 1),
                      Body("else", depth - 1));
      case 12: return StrCat("phase: \"p\" ", Body("body", depth - 1));
      default: return StrCat("call: \"f\" with { key: \"n\" value: \"", Expression(), "\" } ");
    }
  }

  std::mt19937_64 random_;
  std::vector<std::string> variables_;
};

TEST(ProgramFuzz, RandomProgramsExpandTheSameTwice) {
  size_t accepted = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    const std::string text = Writer(seed).Program();
    const absl::StatusOr<Trace> once = Read(text);
    const absl::StatusOr<Trace> twice = Read(text);
    ASSERT_EQ(once.status(), twice.status()) << text;
    SCOPED_TRACE(text);
    // Each is a program, whatever it does when it runs.
    if (!once.ok()) {
      const std::string message(once.status().message());
      ASSERT_TRUE(message.find(": program[") != std::string::npos ||
                  message.find(": procs[\"f\"]") != std::string::npos)
          << message;
    }
    if (!Accepts(once)) continue;
    ++accepted;
    ASSERT_EQ(memreplay::testing::DumpTrace(*once), memreplay::testing::DumpTrace(*twice));
  }
  EXPECT_GT(accepted, 150u);
}

constexpr char kText[] = R"program(format: "memsched" version: 1
params { key: "B" value: 4 } derived { key: "N" value: "2*B" }
streams: ["main", "comm"] pools { name: "graph" } seed: 7
procs { key: "layer" value { args: ["l", "size"]
    body { alloc: "act[l]" bytes: "size" tag: "activation" site: "h{l}.out" shape: ["B", "2"] } } }
program { phase: "it" body { repeat: "2" index: "ms" body {
    call: "layer" with { key: "l" value: "ms" } with { key: "size" value: "N + 4*ms" } } }
  body { temp: "scratch" bytes: "100" stream: "comm" body { use: "scratch" stream: "main" } }
  body { for: "l" range: ["1", "-1"] body { retag: "act[l]" tag: "gradient" } }
  body { move: "act[1]" to: "act[0]" } }
program { event: "ready[1]" stream: "comm" } program { wait: "ready[1]" }
program { pool: "graph" body { alloc: "captured" bytes: "if(B > 2, 8, 9)" } }
program { let: "T" from { dist: "lognormal" mu: 6 sigma: 0.5 max: "1024" round: "8" } }
program { random { ops: "20" size { dist: "loguniform" min: "512" max: "1MiB" }
  lifetime { dist: "geometric" mean: 9 } live_target: "4MiB" streams: "2" record_stream_p: 0.1 } }
program { call: "pattern.checkerboard" with { key: "n" value: "4" } with { key: "bytes" value: "T" } }
)program";

constexpr char kJson[] = R"json({"format":"memsched","version":1,"params":{"B":2,"L":2},
"procs":{"f":{"args":["l"],"body":[{"alloc":"q[l]","bytes":"3*B"},
{"temp":"t","bytes":"4*B","body":[{"mark":"m{l}"}]},{"free":"q[l]"}]}},
"program":[{"phase":"fwd","body":[{"for":"l","range":["0","L"],"body":[{"call":"f","with":{"l":"l"}}]},
{"if":"B % 2 == 0","then":[{"empty_cache":true}]}]}]})json";

void Mutate(const std::string& whole, int rounds, uint64_t seed) {
  ASSERT_TRUE(Accepts(Read(whole)));
  std::mt19937_64 random(seed);
  const auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
  size_t accepted = 0;
  for (int round = 0; round < rounds; ++round) {
    std::string bytes = whole;
    for (size_t edits = 1 + pick(3); edits > 0; --edits) {
      constexpr char kCharacters[] = "{}[]()\":,.-+*/%<!&|0129eE xlB#\n\\";
      const size_t at = pick(bytes.size()), from = pick(bytes.size());
      switch (pick(5)) {
        case 0: bytes[at] = static_cast<char>(random()); break;
        case 1: bytes[at] = kCharacters[pick(sizeof kCharacters - 1)]; break;
        case 2: bytes.insert(at, 1, kCharacters[pick(sizeof kCharacters - 1)]); break;
        case 3: bytes.erase(at, 1 + pick(16)); break;
        default: bytes.insert(at, bytes.substr(from, 1 + pick(24))); break;
      }
      if (bytes.empty()) bytes = ".";
    }
    accepted += Accepts(Read(bytes)) ? 1 : 0;
  }
  EXPECT_GT(accepted, 0u);
}

TEST(ProgramFuzz, SeededMutationsOfText) { Mutate(kText, 6000, 1); }
TEST(ProgramFuzz, SeededMutationsOfJson) { Mutate(kJson, 3000, 2); }

TEST(ProgramFuzz, PrefixesEnd) {
  const std::string whole(kText);
  for (size_t length = 0; length < whole.size(); length += 3) {
    Accepts(Read(whole.substr(0, length) + "."));
  }
  EXPECT_FALSE(
      Accepts(Read("format: \"memsched\" version: 1 program {" + std::string(100000, '{'))));
  std::string deep = "format: \"memsched\" version: 1 program { phase: \"p\" ";
  for (int i = 0; i < 20000; ++i) deep += "body { phase: \"p\" ";
  EXPECT_FALSE(Accepts(Read(deep)));
  std::string deep_json = "{\"format\":\"memsched\",\"version\":1,\"program\":[{\"phase\":\"p\"";
  for (int i = 0; i < 20000; ++i) deep_json += ",\"body\":[{\"phase\":\"p\"";
  EXPECT_FALSE(Accepts(Read(deep_json)));
}

}  // namespace
}  // namespace memreplay::program
