#include "tests/fuzz/mutated_text.h"

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/fuzz/choices.h"

namespace memreplay::fuzz {
namespace {

constexpr const char* kTexts[] = {
    // An op log.
    R"text(0 512
1 2097152
0 -512
2 31457280
3 1048577
1 -2097152
4 20971520
2 -31457280
5 10485760
4 -20971520
)text",
    // A schedule in JSON lines.
    R"text({"k":"h","format":"memsched-flat","version":1,"streams":2,"devices":2,"total":104857600}
{"k":"m","phase":"load"}
{"k":"a","id":1,"b":31457280,"tag":"parameter"}
{"k":"a","id":2,"b":1000,"s":1,"d":1}
{"k":"f","id":1}
{"k":"a","id":3,"b":20971520}
{"k":"u","id":3,"s":1}
{"k":"a","id":4,"b":15728640}
{"k":"c"}
{"k":"f","id":2}
{"k":"f","id":3}
{"k":"f","id":4}
)text",
    // Schedules in the language.
    R"text(format: "memsched"
version: 1
device { total: 2147483648 }
streams: ["main", "comm"]
params { key: "ops" value: 300 }
params { key: "x" value: 3 }
derived { key: "flat" value: "64MiB" }
derived { key: "shard" value: "ceil(flat, x)" }
seed: 42
max_events: 20000
program { phase: "init" body { for: "l" range: ["0", "x"] body { alloc: "p[l]" bytes: "shard"
  tag: "parameter" site: "h{l}" } } }
program { repeat: "2" index: "it" body { phase: "it{it}"
  body { alloc: "a" bytes: "48MiB" saved: true stream: "comm" }
  body { event: "e" stream: "comm" }
  body { wait: "e" stream: "main" }
  body { use: "a" stream: "main" }
  body { if: "it + 1 < x" then { alloc: "b" bytes: "1MiB" } then { free: "b" } }
  body { free: "a" }
  body { empty_cache: true } } }
program { random { ops: "ops" live_target: "256MiB"
  size { dist: "mix" weights: [0.7, 0.3] mix { dist: "loguniform" min: "512" max: "1MiB" } mix {
  dist: "choice" values: ["64MiB", "96MiB"] } }
  lifetime { dist: "geometric" mean: 20 }
  streams: "2"
  record_stream_p: 0.01
  empty_cache_p: 0.001 } }
)text",
    R"text(format: "memsched"
version: 1
device { total: 4294967296 }
max_events: 200000
params { key: "x" value: 8 }
program { phase: "sawtooth" body { call: "pattern.sawtooth" with { key: "n" value: "4" } with {
  key: "unit" value: "20MiB" } with { key: "rounds" value: "3" } } body { empty_cache: true } }
program { phase: "ramp" body { call: "pattern.ramp" with { key: "n" value: "8" } with { key:
  "bytes" value: "20MiB" } with { key: "step" value: "2MiB" } } }
program { phase: "checkerboard" body { call: "pattern.checkerboard" with { key: "n" value: "x" }
  with { key: "bytes" value: "20MiB" } } }
program { phase: "pinhole" body { call: "pattern.pinhole" with { key: "n" value: "8" } with {
  key: "bytes" value: "8MiB" } with { key: "pin" value: "2MiB" } } }
program { phase: "straddle" body { call: "pattern.straddle" } }
)text",
    // Error texts and tables.
    R"text(  File "/home/me/train.py", line 33, in step
    loss = model(batch)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a )text"
    R"text(total capacity of 79.15 GiB of which 11.94 MiB is free. Process 4242 has 79.13 GiB )text"
    R"text(memory in use. Of the allocated memory 76.21 GiB is allocated by PyTorch, with 1.20 GiB )text"
    R"text(allocated in private pools (e.g., CUDA Graphs), and 2.30 GiB is reserved by PyTorch but )text"
    R"text(unallocated. If reserved but unallocated memory is large try setting )text"
    R"text(PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.
)text",
    R"text(RuntimeError: CUDA out of memory. Tried to allocate 26.00 MiB (GPU 0; 7.79 )text"
    R"text(GiB total capacity; 7.02 GiB already allocated; 21.56 MiB free; 7.10 GiB reserved in )text"
    R"text(total by PyTorch)
|===========================================================================|
|                  PyTorch CUDA memory summary, device ID 0                 |
|---------------------------------------------------------------------------|
|            CUDA OOMs: 1            |        cudaMalloc retries: 2         |
|===========================================================================|
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
|---------------------------------------------------------------------------|
| Allocated memory      |   7020 MiB |   7021 MiB |  99123 MiB |  92103 MiB |
|---------------------------------------------------------------------------|
| GPU reserved memory   |   7100 MiB |   7100 MiB |   8000 MiB |    900 MiB |
|---------------------------------------------------------------------------|
| Non-releasable memory |     80 MiB |    200 MiB |   9000 MiB |   8920 MiB |
|===========================================================================|
|    0   N/A  N/A      4242      C   python3                          7200MiB |
)text",
};
constexpr size_t kFirstMessage = 4;

constexpr const char* kReplacements[] = {"-1",
                                         "0.5",
                                         "nan",
                                         "1e308",
                                         "99999999999999999999",
                                         "x",
                                         "x*x*x*x",
                                         "1/0",
                                         "-9223372036854775808",
                                         ""};

// Replaces the number that `which` chooses.
void ChangeNumber(uint64_t which, uint64_t how, uint64_t by, std::string* text) {
  std::vector<std::pair<size_t, size_t>> numbers;  // begin and length
  for (size_t at = 0; at < text->size(); ++at) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>((*text)[at]))) continue;
    const size_t begin = at;
    while (at < text->size() && absl::ascii_isdigit(static_cast<unsigned char>((*text)[at]))) ++at;
    numbers.emplace_back(begin, at - begin);
  }
  if (numbers.empty()) return;
  const auto [begin, length] = numbers[which % numbers.size()];
  uint64_t value = 0;
  for (size_t i = begin; i < begin + length; ++i) {
    value = 10 * value + static_cast<uint64_t>((*text)[i] - '0');
  }
  text->replace(begin, length,
                how % 8 == 7 ? std::string(kReplacements[by % std::size(kReplacements)])
                             : absl::StrCat(Changed(value, which, how, by)));
}

void ChangeLines(uint64_t which, uint64_t how, uint64_t by, std::string* text) {
  std::vector<std::string> lines = absl::StrSplit(*text, '\n');
  std::string& line = lines[which % lines.size()];
  switch (how % 3) {
    case 0: std::swap(line, lines[by % lines.size()]); break;
    case 1:
      lines.insert(lines.begin() + static_cast<ptrdiff_t>(by % lines.size()), std::string(line));
      break;
    default: line.clear();
  }
  *text = absl::StrJoin(lines, "\n");
}

// Does to an error text what terminals, logs, mail and PowerShell do to one.
void DamageText(uint64_t which, uint64_t how, uint64_t by, std::string* text) {
  constexpr const char* kPrefixes[] = {"> ", "[rank0]: ", "\x1b[36m(Worker pid=7)\x1b[0m ",
                                       "2026-01-02T03:04:05.6Z "};
  std::string damaged;
  switch (how % 4) {
    case 0:  // wrapped, with a prefix or without
      for (size_t at = 0; at < text->size(); at += 60 + by) {
        absl::StrAppend(&damaged, which % 2 == 0 ? "" : kPrefixes[which / 2 % 4],
                        text->substr(at, 60 + by), "\n");
      }
      break;
    case 1:
      for (const char c : *text) {
        const bool is_digit = absl::ascii_isdigit(static_cast<unsigned char>(c));
        absl::StrAppend(&damaged, is_digit ? "\x1b[1;36m" : "", std::string(1, c),
                        is_digit ? "\x1b[0m" : "");
      }
      break;
    case 2:
      damaged = "\xff\xfe";
      for (const char c : *text) damaged += {c, '\0'};
      break;
    default: damaged = text->substr(text->size() * which / 512, text->size() * (by + 1) / 256);
  }
  *text = damaged;
}

}  // namespace

MutatedRecording MutateText(std::string_view bytes) {
  static const auto* const lines = [] {
    auto* const all = new std::vector<std::vector<std::string>>(AttackedCommands());
    for (const char* const line : {"synth FILE", "synth FILE --check", "synth FILE --check --json",
                                   "synth FILE --to protobuf -o /dev/null --max_events 1000",
                                   "replay FILE --set ops=20 --set x=2", "fit FILE --set ops=?"}) {
      all->push_back(absl::StrSplit(line, ' '));
    }
    return all;
  }();
  constexpr const char* kMessageLines[] = {"explain FILE", "explain FILE --json",
                                           "oom --message FILE"};
  MutatedRecording made;
  Choices choices(bytes);
  const uint64_t which = choices.Below(std::size(kTexts));
  const uint64_t line = choices.Byte();
  made.arguments = which < kFirstMessage
                       ? (*lines)[line % lines->size()]
                       : absl::StrSplit(kMessageLines[line % std::size(kMessageLines)], ' ');
  constexpr size_t kFlagBytes = 7;
  if (bytes.size() > 16) AddFlags(bytes.substr(bytes.size() - kFlagBytes), &made.arguments);
  made.other = made.file = kTexts[which];
  for (int change = 0; change < 24 && !choices.empty(); ++change) {
    const uint64_t what = choices.Byte();
    const uint64_t place = choices.Byte();
    const uint64_t how = choices.Byte();
    const uint64_t by = choices.Byte();
    const bool damages = what % 8 == 5 && which >= kFirstMessage;
    (damages ? DamageText : what % 4 == 0 ? ChangeLines : ChangeNumber)(place, how, by, &made.file);
    if (made.file.size() > (1 << 16)) break;
  }
  return made;
}

}  // namespace memreplay::fuzz
