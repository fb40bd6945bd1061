#include "record/run_program.h"

#include <dlfcn.h>
#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "hardware/cards.h"
#include "record/card/model/options.h"
#include "record/child.h"
#include "record/gather.h"
#include "record/interpreter.h"
#include "record/process_watch.h"
#include "record/temporary_folder.h"
#include "record/unpack.h"
#include "trace/bytes/json_scanner.h"
#include "trace/bytes/output_file.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"
#include "trace/value/utf8.h"

namespace memreplay {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kUnknownLimit = 10'000;
constexpr int64_t kCopyLimit = 1 << 20;  // bytes; INDEX_LIMIT of memreplay_record/values/memory.py

// Returns what the processes read (record/process/memreplay_record).
std::string WishesJson(const RecordOptions& options, const RecordFolders& folders,
                       const std::string& folder) {
  proto::Wishes wishes;
  wishes.set_version(proto::Wishes::current);
  wishes.set_folder(folder);
  *wishes.mutable_files() = LeftFiles();
  if (!options.card.empty()) {
    wishes.set_core(folders.core);
    wishes.set_cache(folders.cache);
    std::string ignored;
    const std::optional<Card> card = FindCard(options.card, &ignored);
    const Rates rates = card.has_value() ? RatesOf(*card) : Rates();
    if (rates.memory != 0) {
      auto& named = *wishes.mutable_rates();
      named["float32"] = rates.float32;
      named["tf32"] = rates.tf32;
      named["float16"] = rates.float16;
      named["bfloat16"] = rates.bfloat16;
      named["memory"] = rates.memory;
      named["host"] = rates.host;
    }
  }
  wishes.set_stacks(options.stacks);
  wishes.set_values(!options.no_values);
  wishes.set_notes(!options.no_notes);
  wishes.set_fast_init(options.fast_init);
  wishes.set_survey(options.survey);
  wishes.set_steps(options.steps.value_or(0));
  wishes.set_ranks(options.ranks.value_or(0));
  wishes.set_rank(options.rank.value_or(0));
  wishes.set_unknown_limit(options.unknown_limit.value_or(kUnknownLimit));
  wishes.set_dynamic_fraction(options.dynamic_fraction.value_or(1));
  for (const std::string& name : options.remedies) wishes.add_remedies(ReplaceBadUtf8(name, "?"));
  for (const proto::Edit& edit : options.edits) *wishes.add_edits() = edit;
  google::protobuf::util::JsonPrintOptions names;
  names.preserve_proto_field_names = true;
  std::string json;
  (void)google::protobuf::util::MessageToJsonString(wishes, &json, names);
  return json;
}

// Puts `path` in front of what the variable has, in `environment` or else in ours.
void PutInFront(const std::string& path, const char* variable,
                std::map<std::string, std::string>* environment) {
  const char* const inherited = std::getenv(variable);
  std::string& value =
      environment->emplace(variable, inherited == nullptr ? "" : inherited).first->second;
  value = value.empty() ? path : StrCat(path, ":", value);
}

std::map<std::string, std::string> Environment(const RecordOptions& options,
                                               const RecordFolders& folders,
                                               const std::string& folder) {
  std::map<std::string, std::string> environment = options.environment;
  environment["MEMREPLAY_RECORD"] = WishesJson(options, folders, folder);
  PutInFront(folders.python, "PYTHONPATH", &environment);
  if (std::getenv("PYTHONHASHSEED") == nullptr) environment.emplace("PYTHONHASHSEED", "0");
  if (options.outside) PutInFront(folders.pass, "LD_PRELOAD", &environment);
  if (options.card.empty()) return environment;
  // Small values are computed by several threads, which would spin while they wait for each other.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) {
    environment.emplace("OMP_WAIT_POLICY", "PASSIVE");
  }
  environment["MEMREPLAY_CARD"] = options.card;
  environment[std::string(card::kCopyLimit.variable)] = StrCat(kCopyLimit);
  environment["MEMREPLAY_CARD_PROGRESS"] = StrCat(folder, "/", LeftFiles().progress());
  for (const auto& [variable, value] : options.card_options) environment[variable] = value;
  return environment;
}

// Returns whether NVIDIA's driver counts at least one GPU.
bool HasRealGpu() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return false;
  using Init = int (*)(unsigned);
  using Count = int (*)(int*);
  const auto init = reinterpret_cast<Init>(dlsym(driver, "cuInit"));
  const auto count = reinterpret_cast<Count>(dlsym(driver, "cuDeviceGetCount"));
  int devices = 0;
  return init != nullptr && count != nullptr && init(0) == 0 && count(&devices) == 0 && devices > 0;
}

// Returns "rank3" if torchrun, srun or mpirun runs this command itself for each rank of a job.
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

// Reads a growing file, each byte once, until it has a text.
class TextWatch {
 public:
  TextWatch(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) {}

  // Returns whether the file has the text now, or had it before.
  bool IsThere() {
    if (text_.empty() || is_there_) return is_there_;
    std::ifstream file(path_, std::ios::binary);
    file.seekg(read_);
    std::string piece(size_t{64} << 10, '\0');
    while (!is_there_ && (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) ||
                          file.gcount() > 0)) {
      read_ += file.gcount();
      last_.append(piece, 0, static_cast<size_t>(file.gcount()));
      is_there_ = last_.find(text_) != std::string::npos;
      last_.erase(0, last_.size() - std::min(last_.size(), text_.size() - 1));
    }
    return is_there_;
  }

 private:
  const std::string path_;
  const std::string text_;
  std::streamoff read_ = 0;
  std::string last_;  // of what was read: the text may begin in it
  bool is_there_ = false;
};

// Waits until the script has ended, and adds its exit status and what stopped it.
void WaitFor(Child* child, const std::string& folder, const RecordOptions& options,
             proto::RecordReport* report) {
  TextWatch until(options.output, options.until);
  ProcessWatch processes(child->pid(), options.quiet);
  int sent = 0;
  while (true) {
    if (const std::optional<int> status = child->Wait(500)) {
      report->set_exit_status(*status);
      return;
    }
    const RecordProgress progress = ReadProgress(folder);
    const std::string said = processes.Look(progress.launches);
    if (!said.empty() && options.tell != nullptr) options.tell(said);
    if (report->stopped_by().empty() && until.IsThere()) {
      report->set_stopped_by("--until");
      child->Signal(SIGTERM);
    }
    if (options.watch == nullptr) continue;
    const int signal = options.watch(progress);
    if (signal == 0 || std::exchange(sent, signal) == signal) continue;
    if (const std::string quiet = processes.Sentence(); !quiet.empty()) report->add_faults(quiet);
    child->Signal(signal);
  }
}

// Returns whether a process runs: it exists, and is not just waiting for its parent to notice.
bool Runs(const std::string& pid) {
  std::ifstream file(StrCat("/proc/", pid, "/stat"));
  std::string state;  // "12 (name) S ..."
  std::getline(file, state, ')');
  return file.get() == ' ' && file.get() != 'Z';
}

// Returns the processes that left a file of this kind in the folder, but no recording and no reason
// why it could not be written.
std::vector<std::string> Unwritten(const std::string& folder, const std::string& kind) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (fs::path path : PathsIn(folder, &ignored)) {
    if (path.extension() != kind ||
        fs::exists(path.replace_extension(LeftFiles().summary()), ignored) ||
        fs::exists(path.replace_extension(LeftFiles().problem()), ignored)) {
      continue;
    }
    found.push_back(path.stem().string());
  }
  return found;
}

// Waits for processes that are writing their recordings although the script has ended: a signal to
// a whole job ends them all at once, and a server's processes have more to write than its main one.
void WaitForWriters(const std::string& folder, Child* child) {
  constexpr int kSteps = 300;  // of 100 ms
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<std::string> writing = Unwritten(folder, LeftFiles().snapshot());
    if (absl::c_none_of(writing, Runs)) return;
    child->PassOn(100);
  }
}

// Adds a fault if processes were killed: each writes its recording when it ends by itself.
void AddKilled(const std::string& folder, proto::RecordReport* report) {
  if (!report->faults().empty()) return;
  const RecordProgress progress = ReadProgress(folder);
  const int signal = report->exit_status() - 128;
  if (signal <= 0 || !report->processes().empty() || progress.peak_used == 0) {
    for (const std::string& pid : Unwritten(folder, LeftFiles().recording())) {
      if (Runs(pid)) continue;
      report->add_faults(StrCat("process ", pid,
                                " used the GPU and ended without writing its "
                                "recording, as a process does that is killed or becomes "
                                "another program (exec)"));
    }
    return;
  }
  report->add_faults(StrCat("the script was ended by signal ", signal, " (", strsignal(signal),
                            ") after ", progress.launches,
                            " kernels, and a process that is killed "
                            "cannot write its recording"));
}

}  // namespace

std::vector<std::string> CommandWords(const RecordOptions& options) {
  const std::string& first = options.program[0];
  std::error_code ignored;
  const bool is_script = first[0] == '-' ||
                         (first.size() > 3 && first.substr(first.size() - 3) == ".py") ||
                         (fs::is_regular_file(first, ignored) && access(first.c_str(), X_OK) != 0);
  std::vector<std::string> words;
  if (is_script) {
    words.push_back(options.python.empty() ? PythonWith("torch") : options.python);
  }
  words.insert(words.end(), options.program.begin(), options.program.end());
  return words;
}

absl::StatusOr<ScriptRecording> RunProgram(const RecordOptions& options) {
  if (options.card.empty() && !HasRealGpu()) {
    return absl::InvalidArgumentError(
        "this machine has no GPU; --card NAME simulates one (--card list prints the names)");
  }
  SnapshotPlace place = options.place;
  if (const std::optional<std::string> rank = OwnRank()) place.out = WithTag(place.out, *rank);
  for (const std::string& word : options.program) {  // "train.py", "--config=a.yaml"
    place.inputs.push_back(word);
    place.inputs.push_back(word.substr(word.find('=') + 1));
  }
  RETURN_IF_ERROR(CheckPlace(&place));
  ASSIGN_OR_RETURN(const RecordFolders folders, UnpackRecordFiles());
  ASSIGN_OR_RETURN(
      TemporaryFolder folder,
      TemporaryFolder::Make(FolderBeside(place.out), fs::path(place.out).filename().string()));
  std::error_code ignored;
  place.began = fs::last_write_time(folder.path(), ignored);
  if (ignored) place.began = fs::file_time_type::max();
  proto::RecordReport report;
  report.set_command("record");
  for (const std::string& word : options.program) report.add_program(ReplaceBadUtf8(word, "?"));

  ChildOptions start;
  start.words = CommandWords(options);
  start.environment = Environment(options, folders, folder.path());
  start.fixed_addresses = !options.aslr;
  start.output = options.output;
  start.heard = options.heard;
  ASSIGN_OR_RETURN(Child child, Child::Start(start));
  const auto began = std::chrono::steady_clock::now();
  WaitFor(&child, folder.path(), options, &report);
  WaitForWriters(folder.path(), &child);
  child.PassOn(0);
  child.LeaveChildren();
  report.set_seconds(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());

  const std::string unusable = StrCat(folder.path(), "/", LeftFiles().unusable());
  if (fs::exists(unusable, ignored)) {
    const absl::StatusOr<std::string> why = ReadSmallFile(unusable);
    return absl::InvalidArgumentError(why.ok() ? *why : std::string(why.status().message()));
  }
  absl::StatusOr<std::vector<std::string>> snapshots =
      GatherProcesses(folder.path(), place, options.judge, &report);
  if (!snapshots.ok()) {
    const std::string kept = folder.path();
    folder.Keep();
    return absl::InvalidArgumentError(
        StrCat(ToStd(snapshots.status().message()), "; the recording is kept in ", kept));
  }
  AddKilled(folder.path(), &report);
  return ScriptRecording{std::move(folder), std::move(report), *std::move(snapshots)};
}

}  // namespace memreplay
