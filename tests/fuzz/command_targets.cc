#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/commands/command.h"
#include "experiment/advise_script.h"
#include "experiment/script_runner.h"
#include "experiment/script_search.h"
#include "experiment/value_trials.h"
#include "proto/gpu_report.pb.h"
#include "record/gather.h"
#include "record/run_cache.h"
#include "report/message/explain.h"
#include "report/text/render.h"
#include "report/words/record_faults.h"
#include "report/words/render_json.h"
#include "report/words/sizes.h"
#include "report/words/text.h"
#include "report/words/version.h"
#include "tests/fuzz/mutated_message.h"
#include "tests/fuzz/mutated_recording.h"
#include "tests/fuzz/mutated_text.h"
#include "tests/fuzz/mutated_value.h"
#include "tests/fuzz/targets.h"
#include "tests/trace/support/py_value.h"
#include "trace/value/strings.h"

namespace memreplay::fuzz {
namespace {

// stderr as the process began: libFuzzer, asked to keep its own reports apart, closes it later.
const int kFirstErrors = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

// What is printed is valid UTF-8 without control characters, whatever texts a file has.
void ExpectClean(std::string_view text) {
  std::string one_line(text);
  std::replace(one_line.begin(), one_line.end(), '\n', ' ');
  const std::string clean = CleanText(one_line);
  if (clean == one_line) return;
  const auto [at, raw] = std::mismatch(clean.begin(), clean.end(), one_line.begin());
  dprintf(kFirstErrors, "printed as it is, before: %s\n", std::string(at, clean.end()).c_str());
  std::abort();
}

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
  for (const auto& figure : report->explanation().figures()) {
    const int64_t end = figure.offset() + figure.length();
    if (figure.offset() < 0 || figure.length() < 0 || end > std::ssize(bytes)) std::abort();
  }
  ExpectClean(text);
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

// What is written to a descriptor of this process while this lives.
class Printed {
 public:
  explicit Printed(int descriptor) : descriptor_(descriptor), before_(dup(descriptor)) {
    if (before_ < 0 || file_ < 0 || dup2(file_, descriptor) < 0) std::abort();
  }
  ~Printed() {
    close(before_);
    close(file_);
  }
  Printed(const Printed&) = delete;
  Printed& operator=(const Printed&) = delete;
  // Ends it, and returns the lines in the first MiB.
  std::string Take() {
    dup2(before_, descriptor_);
    std::string text(1 << 20, '\0');
    const ssize_t got = pread(file_, text.data(), text.size(), 0);
    if (got < 0) std::abort();
    const bool is_all = static_cast<size_t>(got) < text.size();
    text.resize(is_all ? static_cast<size_t>(got) : text.rfind('\n') + 1);
    return text;
  }

 private:
  const int descriptor_;
  const int before_;
  const int file_ = memfd_create("printed", MFD_CLOEXEC);
};

// Runs a command line in this process and drops what it prints, after a look at it: a child
// process that crashed is one of the errors.
void RunQuietly(const std::vector<std::string>& words) {
  std::fflush(stdout);
  std::fflush(stderr);
  Printed out(STDOUT_FILENO), err(STDERR_FILENO);
  absl::StatusOr<int> status = absl::NotFoundError("");
  for (const Command& command : memreplay::Commands()) {
    if (command.name == words[0]) status = command.run({.args = {words.begin() + 1, words.end()}});
  }
  std::fflush(stdout);
  std::fflush(stderr);
  const std::string answer = out.Take(), errors = err.Take();
  if (status.ok() ? *status < 0 || *status > 2 : status.status().message().empty()) std::abort();
  ExpectClean(answer);
  ExpectClean(errors);
  for (const std::string_view phrase :
       {"it was ended by signal ", "it gave no answer; its exit status was "}) {
    const size_t found = errors.find(phrase);
    // The number is what a text in the file lacks: libFuzzer puts what is searched for into inputs.
    if (found == std::string::npos ||
        !std::isdigit(static_cast<unsigned char>(errors.c_str()[found + phrase.size()]))) {
      continue;
    }
    dprintf(kFirstErrors, "%s", errors.c_str());
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

// Writes a finding where a person can run it: MEMREPLAY_FUZZ_SHOW is a folder, and the command line
// goes to stderr.
void Show(const MutatedRecording& made) {
  const char* const folder = std::getenv("MEMREPLAY_FUZZ_SHOW");
  if (folder == nullptr) return;
  std::ofstream(std::string(folder) + "/FILE") << made.file;
  std::ofstream(std::string(folder) + "/OTHER") << made.other;
  std::string line;
  for (const std::string& word : made.arguments) line += " '" + word + "'";
  dprintf(kFirstErrors, "(cd %s && memreplay%s)\n", folder, line.c_str());
}

void RunMade(const MutatedRecording& made) {
  if (made.file.empty()) return;
  Show(made);
  const MemoryFile file(made.file), other(made.other);
  RunQuietly(WithFiles(made.arguments, file.path(), other.path()));
}

// Puts recordings and schedules with some of their numbers changed through every command in turn.
void Recordings(std::string_view bytes) { RunMade(MutateRecording(bytes)); }

// The same with op logs, schedules as text and error messages.
void Texts(std::string_view bytes) { RunMade(MutateText(bytes)); }

// Returns a process's answer, of which only the version is as it must be.
std::string SummaryOf(const proto::RecordedProcess& process) {
  proto::ProcessSummary summary;
  summary.set_version(proto::Wishes::current);
  *summary.mutable_process() = process;
  return RenderJson(summary, JsonLayout::kOneLine);
}

// What the processes of a recorded script leave: their summaries as JSON, and from them the answer.
void Summaries(Choices& choices) {
  proto::RecordReport report;
  proto::RecordedProcess process;
  FillMessage(&process);
  for (uint64_t count = 1 + choices.Below(3); count > 0; --count) {
    MutateMessage(choices, &process);
    const absl::StatusOr<proto::RecordedProcess> read = ParseRecordedProcess(SummaryOf(process));
    if (read.ok()) *report.add_processes() = *read;
  }
  FindRecordFaults(&report);
  (void)RenderRecord(report);
  (void)RenderJson(report, JsonLayout::kIndented);
  (void)ScriptRowOf(report);
}

// Returns a folder of this process, which is not there.
std::string FolderOf(const std::string& name) {
  static const std::string root = [] {
    std::string path = "/tmp/memreplay_fuzz.XXXXXX";
    if (mkdtemp(path.data()) == nullptr) std::abort();
    return path;
  }();
  std::filesystem::remove_all(root + "/" + name);
  return root + "/" + name;
}

// Runs nothing: what came of a run is made up, kept and found again.
class FuzzedRunner final : public ScriptRunner {
 public:
  FuzzedRunner(const RunCache& cache, Choices& choices)
      : cache_(cache), choices_(choices), at_once_(1 + choices.Below(4)) {}

  size_t at_once() const override { return at_once_; }
  std::string_view stopped_by() const override { return ""; }

 private:
  Answers RunAll(absl::Span<const ScriptRun> runs, ProgressSink*) override {
    Answers answers;
    while (answers.size() < runs.size()) {
      proto::RecordReport run;
      FillMessage(&run);
      // It ended by itself, unless a change says otherwise.
      run.clear_refusal();
      run.clear_exit_status();
      run.mutable_advised()->clear_error();
      run.mutable_advised()->clear_interrupted();
      for (proto::RecordedProcess& process : *run.mutable_processes()) {
        process.clear_sources();
        process.clear_error();
        process.clear_refusal();
        process.clear_ooms();
      }
      MutateMessage(choices_, &run);
      cache_.Keep("key", run);
      answers.emplace_back(Answer{cache_.Find("key").value_or(proto::RecordReport()), true});
    }
    return answers;
  }

  const RunCache& cache_;
  Choices& choices_;
  size_t at_once_;
};

// What is kept of the runs of a script, and the answers that are made of it.
void CachedRuns(Choices& choices) {
  const RunCache cache(FolderOf("runs"));
  FuzzedRunner runner(cache, choices);
  AdviceQuestion advice;
  advice.script.program = {"train.py"};
  advice.script.ranks = 2;
  advice.memory = GiB(1) * (1 + choices.Below(40));
  advice.key.name = "--batch_size";
  advice.value = static_cast<int64_t>(choices.Below(3));
  advice.finds_largest = choices.Below(2) == 0;
  if (const auto found = AdviseScript(advice, &runner); found.ok()) {
    ExpectClean(RenderAdvice("train.py", *found));
  }
  ValueQuestion values;
  values.script.program = {"train.py"};
  values.cards = {"a-card"};
  values.key.name = "--batch_size";
  values.values.step = static_cast<int64_t>(1 + choices.Below(5));
  values.values.max = 1000;
  values.finds_largest = true;
  if (const auto found = TryValues(values, &runner); found.ok()) {
    ExpectClean(RenderScriptFit(*found));
    ExpectClean(RenderScriptSweep(*found));
  }
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

void WriteFile(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

// Returns `text` with a few of its bytes changed, or its end missing.
std::string ChangeBytes(Choices& choices, std::string text) {
  for (uint64_t changes = choices.Below(5); changes > 0 && !text.empty(); --changes) {
    const size_t at = choices.Word() % text.size();
    switch (choices.Below(4)) {
      case 0: text[at] = static_cast<char>(choices.Byte()); break;
      case 1: text.erase(at, 1 + choices.Below(8)); break;
      case 2:
        text.insert(at, text.substr(choices.Word() % text.size(), 1 + choices.Below(40)));
        break;
      default: text.resize(at);
    }
  }
  return text;
}

// What record finds when its script has ended: a summary, a snapshot, a reason why there is none
// and the progress of each process, any of which may be missing, cut off or something else.
void LeftFiles(Choices& choices) {
  const std::string folder = FolderOf("left"), out = FolderOf("out");
  std::filesystem::create_directories(folder);
  std::filesystem::create_directories(out);
  for (uint64_t process = 1 + choices.Below(4); process > 0; --process) {
    const std::string path = StrCat(folder, "/", process * (1 + choices.Below(3)));
    const uint64_t files = choices.Byte();
    Choices fields = choices.Take(24);
    if ((files & 1) != 0) {
      proto::RecordedProcess summary;
      FillMessage(&summary);
      MutateMessage(fields, &summary);
      WriteFile(path + ".json", ChangeBytes(choices, SummaryOf(summary)));
    }
    if ((files & 6) != 0) WriteFile(path + ".pickle", "");
    if ((files & 24) == 24)
      WriteFile(path + ".problem", ChangeBytes(choices, "OSError: \x1b[31m\n\xff"));
    std::error_code is_there;
    if ((files & 96) == 96) std::filesystem::create_directories(path + ".json", is_there);
    if ((files & 160) == 160) {
      std::filesystem::create_symlink("/dev/zero", path + ".problem", is_there);
    }
    std::string counts(16, '\0');
    for (size_t i = 0; i < 2; ++i)
      counts[8 * i + choices.Below(8)] = static_cast<char>(choices.Byte());
    WriteFile(StrCat(folder, "/progress.", process), counts.substr(choices.Below(8) == 0 ? 9 : 0));
  }
  (void)ReadProgress(folder);
  proto::RecordReport report;
  SnapshotPlace place;
  place.out = out + "/snapshot.pickle";
  const absl::Status gathered = GatherProcesses(folder, place, AddEnds, &report).status();
  if (!gathered.ok() && gathered.message().empty()) std::abort();
  FindRecordFaults(&report);
  ExpectClean(RenderRecord(report).text);
  (void)RenderJson(report, JsonLayout::kIndented);
}

// A file of the cache of runs that something else has written to.
void CachedFile(Choices& choices) {
  const std::string folder = FolderOf("runs");
  const RunCache cache(folder);
  proto::RecordReport run;
  FillMessage(&run);
  run.mutable_processes()->Clear();
  Choices fields = choices.Take(32);
  MutateMessage(fields, &run);
  cache.Keep("key", run);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string kept(std::istreambuf_iterator<char>(file), {});
    WriteFile(entry.path().string(), ChangeBytes(choices, kept));
  }
  if (const std::optional<proto::RecordReport> found = cache.Find("key")) {
    (void)ScriptRowOf(*found);
    (void)RenderJson(*found, JsonLayout::kOneLine);
  }
}

// What record finds in folders. The first byte chooses which.
void RecordFolder(std::string_view bytes) {
  if (bytes.empty()) return;
  Choices choices(bytes.substr(1));
  (bytes[0] % 2 == 0 ? LeftFiles : CachedFile)(choices);
}

// The answers about the files of a job, a line each, which fleet keeps and reads again.
void FleetLines(std::string_view bytes) {
  const auto row = [](const char* conf, int64_t mib, int64_t ooms, bool is_current) {
    return Py::Dict({{"conf", conf},
                     {"peak_reserved_bytes", mib << 20},
                     {"ooms", ooms},
                     {"memory_fraction", 0.0},
                     {"needs_call", false},
                     {"refused", ""},
                     {"is_current", is_current}});
  };
  Choices choices(bytes);
  std::vector<Py> lines;
  for (int64_t rank = 0; rank < 5; ++rank) {
    std::vector<Py> rows = {row("", 900 + rank, 0, true)};
    rows.push_back(row("expandable_segments:True", 800 - rank, rank % 2, false));
    rows.push_back(row("max_split_size_mb:20", 850, 0, false));
    Py sweep = Py::Dict({{"searched", true}, {"current", rows[0]}, {"rows", Py::List(rows)}});
    Py device = Py::Dict({{"device", 0}, {"sweep", std::move(sweep)}});
    lines.push_back(Py::Dict({{"schema_version", kReportSchemaVersion},
                              {"command", "sweep"},
                              {"devices", Py::List({std::move(device)})},
                              {"file", StrCat("rank", rank)}}));
  }
  const std::vector<std::string> commands[] = {
      {"sweep", "FILE", "--together", "--json"},
      {"sweep", "FILE", "--together"},
      {"sweep", "FILE", "OTHER", "--together", "--top", "1"},
      {"sweep", "OTHER", "FILE", "--together", "--conf", "", "--conf", "max_split_size_mb:20"},
      {"diff", "FILE", "OTHER"}};
  MutatedRecording made;
  made.arguments = commands[choices.Below(std::size(commands))];
  const auto text = [](const Py& all) {
    std::string joined;
    for (const Py& line : all.items) joined += Json(line) + "\n";
    return joined;
  };
  Py all = Py::List(std::move(lines));
  made.other = text(all);
  for (int change = 0; change < 4 && !choices.empty(); ++change) {
    all = MutateValue(std::move(all), [&](uint64_t n) { return choices.Below(n); });
  }
  made.file = text(all);
  RunMade(made);
}

constexpr Target kTargets[] = {
    {"oom_message", Message},    {"commands", Commands},
    {"recordings", Recordings},  {"texts", Texts},
    {"read_back", ReadBack},     {"record_folder", RecordFolder},
    {"fleet_lines", FleetLines},
};

}  // namespace

absl::Span<const Target> CommandTargets() { return kTargets; }

}  // namespace memreplay::fuzz
