#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "proto/gpu_report.pb.h"
#include "record/gather.h"
#include "record/run_cache.h"
#include "report/ask/advise_script.h"
#include "report/ask/script_search.h"
#include "report/message/explain.h"
#include "report/text/render_advice.h"
#include "report/text/render_explanation.h"
#include "report/text/render_record.h"
#include "report/text/render_script.h"
#include "report/words/record_faults.h"
#include "report/words/render_json.h"
#include "report/words/sizes.h"
#include "report/words/version.h"
#include "tests/fuzz/mutated_message.h"
#include "tests/fuzz/mutated_recording.h"
#include "tests/fuzz/mutated_text.h"
#include "tests/fuzz/targets.h"

namespace memreplay::fuzz {
namespace {

// Reads the text in one piece and in two: what is found must not depend on where a read ended.
void Message(std::string_view bytes) {
  const absl::StatusOr<proto::Report> report = ExplainText(bytes);
  LogScan scan;
  scan.Add(bytes.substr(0, bytes.size() / 3));
  scan.Add(bytes.substr(bytes.size() / 3));
  const absl::StatusOr<proto::Report> again = Explain(&scan);
  if (report.ok() != again.ok()) std::abort();
  if (!report.ok()) return;
  const std::string text = RenderExplanationText(report->explanation());
  if (text != RenderExplanationText(again->explanation())) std::abort();
  if (report->explanation().actions_size() < 1 || report->explanation().actions_size() > 4) {
    std::abort();
  }
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n') std::abort();
  }
}

// A file that is nowhere on a disk, and its name.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : file_(memfd_create("input", MFD_CLOEXEC)) {
    if (file_ < 0 || write(file_, bytes.data(), bytes.size()) < 0) std::abort();
  }
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  const int file_;
};

// Runs a command line in this process and drops what it prints, after a look at the errors: a child
// process that crashed is one of them.
void RunQuietly(const std::vector<std::string>& words) {
  static const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  static const int errors = memfd_create("errors", MFD_CLOEXEC);
  const int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
  std::fflush(stderr);
  if (ftruncate(errors, 0) != 0 || lseek(errors, 0, SEEK_SET) != 0) std::abort();
  dup2(nowhere, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  absl::StatusOr<int> status = absl::NotFoundError("");
  for (const Command& command : memreplay::Commands()) {
    if (command.name == words[0]) status = command.run({.args = {words.begin() + 1, words.end()}});
  }
  std::fflush(stderr);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  close(out);
  close(err);
  if (status.ok() ? *status < 0 || *status > 2 : status.status().message().empty()) std::abort();
  char text[1 << 14] = {};
  if (pread(errors, text, sizeof(text) - 1, 0) < 0) std::abort();
  if (std::strstr(text, "was ended by signal") != nullptr ||
      std::strstr(text, "gave no answer") != nullptr) {
    std::fprintf(stderr, "%s", text);
    std::abort();
  }
}

// The first byte chooses the command, and the rest is the file.
void Commands(std::string_view bytes) {
  if (bytes.empty()) return;
  const MemoryFile file(bytes.substr(1));
  const std::string path = file.path();
  const std::vector<std::string> lines[] = {
      {"inspect", path},
      {"inspect", path, "--deep", "--json"},
      {"replay", path, "--jobs", "1"},
      {"replay", path, "--conf", "expandable_segments:True", "--torch", "2.3"},
      {"report", path, "-o", "/dev/null", "--conf", "max_split_size_mb:64"},
      {"oom", path, "--jobs", "1"},
      {"sweep", path, "--conf", "expandable_segments:True", "--conf", "", "--jobs", "1"},
      {"convert", path, "/dev/null", "--to", "torch_snapshot_pickle"},
      {"diff", path, path},
      {"convert", path, "/dev/null", "--to", "perfetto"},
      {"convert", path, "/dev/null", "--to", "svg"},
      {"convert", path, "/dev/null", "--to", "protobuf"},
      {"replay", path, "--capacity", "1GiB", "--json"},
      {"fit", path, "--jobs", "1"},
      {"synth", path},
  };
  RunQuietly(lines[static_cast<uint8_t>(bytes[0]) % std::size(lines)]);
}

void RunMade(const MutatedRecording& made) {
  if (made.file.empty()) return;
  const MemoryFile file(made.file), other(made.other);
  std::vector<std::string> words = made.arguments;
  std::replace(words.begin(), words.end(), std::string("FILE"), file.path());
  std::replace(words.begin(), words.end(), std::string("OTHER"), other.path());
  RunQuietly(words);
}

// Puts recordings and schedules with some of their numbers changed through every command in turn.
void Recordings(std::string_view bytes) { RunMade(MutateRecording(bytes)); }

// The same with op logs, schedules as text and error messages.
void Texts(std::string_view bytes) { RunMade(MutateText(bytes)); }

// What the processes of a recorded script leave: their summaries as JSON, and from them the answer.
void Summaries(Choices& choices) {
  proto::RecordReport report;
  proto::RecordedProcess process;
  FillMessage(&process);
  for (uint64_t count = 1 + choices.Below(3); count > 0; --count) {
    MutateMessage(choices, &process);
    const absl::StatusOr<proto::RecordedProcess> read =
        ParseRecordedProcess(RenderJson(process, JsonLayout::kOneLine));
    if (read.ok()) *report.add_processes() = *read;
  }
  FindRecordFaults(&report);
  (void)RenderRecord(report);
  (void)RenderJson(report, JsonLayout::kIndented);
  (void)ScriptRowOf(report);
}

// What is kept of the runs of a script, and the answers that are made of it.
void CachedRuns(Choices& choices) {
  static const std::string folder = [] {
    std::string name = "/tmp/memreplay_fuzz.XXXXXX";
    if (mkdtemp(name.data()) == nullptr) std::abort();
    return name;
  }();
  const RunCache cache(folder);
  AdviceQuestion question;
  question.memory = GiB(1) * (1 + choices.Below(40));
  question.key = "--batch_size";
  question.value = static_cast<int64_t>(choices.Below(3));
  question.finds_largest = choices.Below(2) == 0;
  question.at_once = 1 + choices.Below(3);
  const auto next = [&]() -> std::optional<proto::RecordReport> {
    proto::RecordReport run;
    FillMessage(&run);
    for (proto::RecordedProcess& process : *run.mutable_processes()) process.clear_sources();
    run.mutable_advised()->clear_error();
    MutateMessage(choices, &run);
    cache.Keep("key", run);
    return cache.Find("key");
  };
  const auto runs = [&](size_t count) {
    std::vector<proto::AdvisedRun> all;
    for (size_t i = 0; i < count; ++i) {
      const std::optional<proto::RecordReport> found = next();
      all.push_back(found.has_value() ? found->advised() : proto::AdvisedRun());
    }
    return all;
  };
  const absl::StatusOr<proto::Advice> advice = AdviseScript(
      question,
      [&](absl::Span<const std::vector<std::string>> remedies) { return runs(remedies.size()); },
      [&](const std::vector<std::string>&, const std::string&) { return choices.Below(2) == 0; },
      [&](const std::vector<std::string>&, absl::Span<const int64_t> values) {
        return runs(values.size());
      });
  if (advice.ok()) (void)RenderAdvice("train.py", *advice);
  proto::ScriptReport report;
  ScriptSearch search(
      [&](absl::Span<const int64_t> values) {
        std::vector<proto::ScriptRow> rows;
        for (const int64_t value : values) {
          const std::optional<proto::RecordReport> found = next();
          if (found.has_value()) rows.push_back(ScriptRowOf(*found));
          if (!found.has_value()) rows.emplace_back();
          rows.back().set_value(static_cast<double>(value));
        }
        return rows;
      },
      1 + choices.Below(4));
  const absl::StatusOr<int64_t> largest = search.FindLargest(1 + choices.Below(5), 1000);
  proto::ScriptCase& found = *report.add_cases();
  if (largest.ok()) found.set_largest(*largest);
  for (const auto& [value, row] : search.tried()) *found.add_rows() = row;
  (void)RenderScriptFit(report);
  (void)RenderScriptSweep(report);
}

// Reports that --json printed, here or elsewhere.
void Reports(Choices& choices) {
  proto::Report report;
  FillMessage(&report, 6);
  report.clear_error();
  report.set_schema_version(kReportSchemaVersion);
  report.set_command("sweep");
  proto::Report other = report;
  const std::vector<std::string> lines[] = {{"diff", "FILE", "OTHER"},
                                            {"diff", "OTHER", "FILE", "--json"},
                                            {"sweep", "FILE", "OTHER", "--together"},
                                            {"sweep", "FILE", "OTHER", "--together", "--json"}};
  MutatedRecording made;
  made.arguments = lines[choices.Below(std::size(lines))];
  MutateMessage(choices, &report);
  other.set_file("other");
  made.file = RenderJson(report, JsonLayout::kOneLine);
  made.other = RenderJson(other, JsonLayout::kIndented);
  RunMade(made);
}

// The cost of driver calls, as memreplay gpu measured them.
void Costs(Choices& choices) {
  constexpr const char* kCalls[] = {"cuMemAlloc",     "cuMemFree",  "cuMemCreate", "cuMemMap",
                                    "cuMemSetAccess", "cuMemUnmap", "cuMemRelease"};
  proto::GpuCosts costs;
  FillMessage(&costs);
  for (const char* const call : kCalls) {
    for (const int64_t size : {2 << 20, 20 << 20}) {
      proto::GpuTime& time = *costs.add_times();
      time.set_call(call);
      time.set_size(size);
      time.set_count(10);
      time.set_median_ns(size / 100);
    }
  }
  MutateMessage(choices, &costs);
  MutatedRecording made = MutateText("\1");
  made.other = RenderJson(costs, JsonLayout::kIndented);
  made.arguments = {"sweep", "FILE", "--costs", "OTHER", "--jobs", "1", "--conf", ""};
  RunMade(made);
}

// Numbers of any size, as a progress file has them.
void Sizes(Choices& choices) {
  while (!choices.empty()) {
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | choices.Byte();
    const auto number = static_cast<int64_t>(value);
    for (const std::string& text : {FormatSize(number), FormatSizeExactly(number),
                                    FormatSizeChange(number), FormatCount(number)}) {
      if (text.empty()) std::abort();
    }
  }
}

// What memreplay wrote and reads again. The first byte chooses what.
void ReadBack(std::string_view bytes) {
  if (bytes.empty()) return;
  Choices choices(bytes.substr(1));
  void (*const kinds[])(Choices&) = {Summaries, CachedRuns, Reports, Costs, Sizes};
  const size_t kind = static_cast<uint8_t>(bytes[0]) % (std::size(kinds) + 1);
  if (kind < std::size(kinds)) return kinds[kind](choices);
  (void)ParseRecordedProcess(bytes.substr(1));
}

constexpr Target kTargets[] = {
    {"oom_message", Message}, {"commands", Commands},  {"recordings", Recordings},
    {"texts", Texts},         {"read_back", ReadBack},
};

}  // namespace

absl::Span<const Target> CommandTargets() { return kTargets; }

}  // namespace memreplay::fuzz
