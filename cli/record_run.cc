#include "cli/record_run.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_format.h"
#include "cli/answer_file.h"
#include "cli/interpreter.h"
#include "cli/output.h"
#include "cli/read_text.h"
#include "cli/stop_signal.h"
#include "cli/temporary_folder.h"
#include "record/child.h"
#include "record/real_gpu.h"
#include "record/unpack.h"
#include "report/answer/record_report.h"
#include "report/ask/replay.h"
#include "report/words/sizes.h"
#include "report/words/version.h"
#include "trace/bytes/json_scanner.h"
#include "trace/schedule/schedule.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// Of what a recording run leaves beside its events.
constexpr uint64_t kLongestText = uint64_t{64} << 20;

namespace fs = std::filesystem;

constexpr int64_t kCopyLimit = 1 << 20;  // bytes; INDEX_LIMIT of memreplay_record/values/memory.py

// What the processes read; the fields of Settings in record/process/memreplay_record.
std::string Wishes(const RecordOptions& options, const RecordFolders& folders,
                   const std::string& folder) {
  std::string json = "{\"folder\":";
  AppendJsonString(folder, &json);
  if (!options.card.empty()) {
    StrAppend(&json, ",\"core\":");
    AppendJsonString(folders.core, &json);
    StrAppend(&json, ",\"cache\":");
    AppendJsonString(folders.cache, &json);
  }
  StrAppend(&json, ",\"stacks\":\"", options.stacks, "\"");
  if (options.no_values) StrAppend(&json, ",\"values\":false");
  if (options.fast_init) StrAppend(&json, ",\"fast_init\":true");
  if (options.dynamic_fraction.has_value()) {
    StrAppend(&json, ",\"dynamic_fraction\":", *options.dynamic_fraction);
  }
  if (options.unknown_limit.has_value()) {
    StrAppend(&json, ",\"unknown_limit\":", *options.unknown_limit);
  }
  if (options.ranks.has_value()) {
    StrAppend(&json, ",\"ranks\":", *options.ranks, ",\"rank\":", options.rank.value_or(0));
  }
  return json + "}";
}

std::map<std::string, std::string> Environment(const RecordOptions& options,
                                               const RecordFolders& folders,
                                               const std::string& folder) {
  std::map<std::string, std::string> environment = options.environment;
  environment["MEMREPLAY_RECORD"] = Wishes(options, folders, folder);
  const char* path = std::getenv("PYTHONPATH");
  environment["PYTHONPATH"] =
      path == nullptr || path[0] == '\0' ? folders.python : StrCat(folders.python, ":", path);
  if (std::getenv("PYTHONHASHSEED") == nullptr) environment["PYTHONHASHSEED"] = "0";
  if (options.card.empty()) return environment;
  // Small values are computed by several threads, which would spin while they wait for each other.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) environment["OMP_WAIT_POLICY"] = "PASSIVE";
  environment["MEMREPLAY_CARD"] = options.card;
  environment["MEMREPLAY_CARD_COMPLETION"] = options.completion;
  environment["MEMREPLAY_CARD_COPY_LIMIT"] = StrCat(kCopyLimit);
  environment["MEMREPLAY_CARD_PROGRESS"] = StrCat(folder, "/progress");
  if (options.capacity.has_value()) {
    environment["MEMREPLAY_CARD_CAPACITY"] = StrCat(options.capacity->value());
  }
  if (options.reserve.has_value()) {
    environment["MEMREPLAY_CARD_RESERVE"] = StrCat(options.reserve->value());
  }
  if (options.nccl.has_value()) environment["MEMREPLAY_CARD_NCCL"] = StrCat(options.nccl->value());
  if (options.cards.has_value()) environment["MEMREPLAY_CARD_COUNT"] = StrCat(*options.cards);
  return environment;
}

// A script is for the interpreter, a command starts itself.
std::vector<std::string> Words(const RecordOptions& options) {
  const std::string& first = options.program[0];
  const bool is_script = first[0] == '-' ||
                         (first.size() > 3 && first.substr(first.size() - 3) == ".py") ||
                         (fs::is_regular_file(first) && access(first.c_str(), X_OK) != 0);
  std::vector<std::string> words;
  if (is_script) {
    words.push_back(options.python.empty() ? PythonWith("torch") : options.python);
  }
  words.insert(words.end(), options.program.begin(), options.program.end());
  return words;
}

// Launches and highest use so far, of all processes; see record/card.
struct Counters {
  uint64_t launches = 0;
  uint64_t peak_used = 0;
};

Counters ReadCounters(const std::string& folder) {
  Counters sum;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().rfind("progress.", 0) != 0) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    uint64_t values[8] = {};
    if (!file.read(reinterpret_cast<char*>(values), sizeof(values))) continue;
    sum.launches += values[0];
    sum.peak_used = std::max(sum.peak_used, values[4]);
  }
  return sum;
}

// Whether the terminal sends its Ctrl-C to the program too.
bool TerminalSignalsAll() {
  const int terminal = open("/dev/tty", O_RDONLY | O_CLOEXEC);
  if (terminal < 0) return false;
  const bool foreground = tcgetpgrp(terminal) == getpgrp();
  close(terminal);
  return foreground;
}

// Passes Ctrl-C on, and shows how far the program is where `progress` is given.
int WaitFor(Child* child, const std::string& folder, const StopSignal& stop,
            const std::string& activity, Progress* progress) {
  bool passed_on = false;
  while (true) {
    if (const std::optional<int> status = child->Wait(500)) return *status;
    if (stop.received() && !passed_on) {
      passed_on = true;
      if (stop.name() != "SIGINT") {
        child->Signal(SIGTERM);
      } else if (!TerminalSignalsAll()) {
        child->Signal(SIGINT);
      }
    }
    if (progress == nullptr) continue;
    const Counters now = ReadCounters(folder);
    if (now.launches > 0) {
      progress->SetActivity(StrCat(activity, ": ",
                                   FormatCount(static_cast<int64_t>(now.launches), "kernel"), ", ",
                                   FormatSize(static_cast<int64_t>(now.peak_used)), " at most,"));
    }
  }
}

int WaitFor(Child* child, const std::string& folder, const RecordOptions& options) {
  const std::string activity = StrCat("recording ", options.program[0]);
  if (options.stop != nullptr) return WaitFor(child, folder, *options.stop, activity, nullptr);
  Progress progress(activity);
  const StopSignal stop;
  return WaitFor(child, folder, stop, activity, &progress);
}

absl::Status ReplaySnapshot(const std::string& file, proto::RecordedProcess* process) {
  const absl::StatusOr<OpenedFile> opened = OpenWithSettings(file, SettingsRequest());
  if (!opened.ok()) return opened.status();
  StackNames names(*opened->trace);
  for (size_t index = 0; index < opened->trace->devices.size(); ++index) {
    const Schedule schedule = Schedule::Build(opened->trace, index);
    const absl::StatusOr<ReplayAnswer> answer =
        AskReplay(schedule, opened->settings, StartPolicy::kRecorded, nullptr);
    if (!answer.ok()) return answer.status();
    proto::RecordedReplay& replay = *process->add_replays();
    replay = RecordedReplayOf(*opened->trace, names, index, answer->report);
    ReplaySettings on_card = opened->settings;
    if (replay.device() < process->cards_size()) {
      const proto::RecordedCard& card = process->cards(replay.device());
      on_card.capacity = Bytes(static_cast<uint64_t>(card.peak_reserved() + card.spare()));
    }
    const absl::StatusOr<std::optional<Bytes>> at_once = PeakCompletedAtOnce(schedule, on_card);
    if (!at_once.ok()) return at_once.status();
    replay.set_at_once_peak_reserved(at_once->value_or(Bytes()).signed_value());
  }
  return absl::OkStatus();
}

// "run/snapshot.rank3.pickle" of "run/snapshot.pickle".
std::string WithTag(const std::string& out, const std::string& tag) {
  const fs::path path(out);
  return (path.parent_path() / StrCat(path.stem().string(), ".", tag, path.extension().string()))
      .string();
}

// "rank3" if this command itself is run for each rank of a job, by torchrun, srun or mpirun.
std::optional<std::string> OwnRank() {
  for (const auto& [rank, ranks] :
       {std::pair("RANK", "WORLD_SIZE"), std::pair("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
        std::pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")}) {
    const char* own = std::getenv(rank);
    const char* all = std::getenv(ranks);
    if (own == nullptr || all == nullptr) continue;
    const std::optional<int64_t> number = ParseInt64(own);
    if (number.has_value() && ParseInt64(all).value_or(1) > 1) return StrCat("rank", *number);
  }
  return std::nullopt;
}

// Moves what the processes left to where it belongs.
absl::Status Gather(const RecordOptions& options, const std::string& out, const std::string& folder,
                    proto::RecordReport* report) {
  struct Left {
    std::string pid;
    proto::RecordedProcess process;
  };
  std::vector<Left> all;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const absl::StatusOr<std::string> text = ReadText(entry.path().string(), kLongestText);
    if (!text.ok()) return text.status();
    absl::StatusOr<proto::RecordedProcess> process = ParseRecordedProcess(*text);
    if (!process.ok()) return process.status();
    all.push_back({entry.path().stem().string(), *std::move(process)});
  }
  const auto key = [](const Left& left) {
    return std::make_tuple(left.process.rank(), left.pid.size(), left.pid);
  };
  std::sort(all.begin(), all.end(),
            [&key](const Left& a, const Left& b) { return key(a) < key(b); });
  for (size_t i = 0; i < all.size(); ++i) {
    Left& left = all[i];
    const int rank = left.process.rank();
    const bool alone_in_rank = rank >= 0 && (i == 0 || all[i - 1].process.rank() != rank) &&
                               (i + 1 == all.size() || all[i + 1].process.rank() != rank);
    const std::string to = all.size() == 1 ? out
                           : alone_in_rank ? WithTag(out, StrCat("rank", rank))
                                           : WithTag(out, StrCat("process", left.pid));
    std::error_code error;
    fs::rename(StrCat(folder, "/", left.pid, ".pickle"), to, error);
    if (error) {
      return absl::InvalidArgumentError(StrCat(to, ": cannot write: ", error.message()));
    }
    left.process.set_snapshot(to);
    if (options.replay) {
      const Progress progress(StrCat("replaying ", to));
      if (const absl::Status replayed = ReplaySnapshot(to, &left.process); !replayed.ok()) {
        return replayed;
      }
    }
    *report->add_processes() = std::move(left.process);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<proto::RecordReport> Record(const RecordOptions& options) {
  if (options.card.empty() && !HasRealGpu()) {
    return absl::InvalidArgumentError(
        "no GPU is here; --card NAME imagines one (--card list tells which)");
  }
  const absl::StatusOr<RecordFolders> folders = UnpackRecordFiles();
  if (!folders.ok()) return folders.status();
  const std::optional<std::string> rank = OwnRank();
  const std::string out = rank.has_value() ? WithTag(options.out, *rank) : options.out;
  absl::StatusOr<TemporaryFolder> folder = TemporaryFolder::Make(out);
  if (!folder.ok()) return folder.status();
  proto::RecordReport report;
  report.set_schema_version(kReportSchemaVersion);
  report.set_tool_version(kVersion);
  report.set_command("record");
  for (const std::string& word : options.program) report.add_program(word);

  ChildOptions start;
  start.words = Words(options);
  start.environment = Environment(options, *folders, folder->path());
  start.fixed_addresses = !options.aslr;
  start.output = options.output;
  absl::StatusOr<Child> child = Child::Start(start);
  if (!child.ok()) return child.status();
  const auto began = std::chrono::steady_clock::now();
  report.set_exit_status(WaitFor(&*child, folder->path(), options));
  report.set_seconds(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());

  const std::string unusable = StrCat(folder->path(), "/unusable");
  if (fs::exists(unusable)) {
    const absl::StatusOr<std::string> why = ReadText(unusable, kLongestText);
    return absl::InvalidArgumentError(why.ok() ? *why : std::string(why.status().message()));
  }
  if (const absl::Status gathered = Gather(options, out, folder->path(), &report); !gathered.ok()) {
    return gathered;
  }
  FindRecordFaults(&report);
  return report;
}

}  // namespace memreplay
