#include "cli/script_runs.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <optional>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"
#include "cli/output_file.h"
#include "record/files.h"
#include "record/temporary_folder.h"
#include "record/unpack.h"
#include "report/words/text.h"
#include "sim/run/parallel.h"
#include "trace/value/strings.h"

extern char** environ;

namespace memreplay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostJobs = 4;  // each is a process with PyTorch in it

// All of a run that is known before it runs.
std::string ScriptCacheKey(const RecordOptions& options) {
  std::string key = StrCat("record ", kRecordFilesDigest, "\n");
  const auto add = [&key](std::string_view name, std::string_view value) {
    StrAppend(&key, name, "=", value.size(), ":", value, "\n");
  };
  for (const std::string& word : options.program) add("word", word);
  for (const auto& [name, value] : options.environment) add(name, value);
  std::error_code ignored;
  add("folder", fs::current_path(ignored).string());
  add("python", options.python);
  const auto count = [](const std::optional<int64_t>& number) { return number.value_or(-1); };
  add("card", options.card);
  for (const auto& [variable, value] : options.card_options) add(variable, value);
  add("rank", StrCat(count(options.ranks), " ", count(options.rank)));
  add("run", StrCat(options.no_values ? 1 : 0, " ", options.no_notes ? 1 : 0, " ",
                    absl::StrFormat("%g", options.dynamic_fraction.value_or(-1)), " ",
                    count(options.unknown_limit), " ", options.fast_init ? 1 : 0));
  // What PyTorch and Python read of the environment, and where programs are looked for.
  std::vector<std::string> inherited;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    for (const std::string_view prefix :
         {"PYTORCH_", "TORCH", "CUDA_", "PYTHON", "PATH=", "NCCL_"}) {
      if (text.substr(0, prefix.size()) == prefix) inherited.emplace_back(text);
    }
  }
  std::sort(inherited.begin(), inherited.end());
  for (const std::string& entry : inherited) add("inherited", entry);
  return key;
}

fs::path ScriptCacheFile(const std::string& key) {
  return fs::path(CacheFolder()) / "runs" /
         absl::StrFormat("%016x", static_cast<uint64_t>(std::hash<std::string>()(key)));
}

bool IsUnchanged(const proto::Source& source) {
  struct stat found;
  if (stat(source.path().c_str(), &found) != 0) return false;
  return found.st_size == source.size() &&
         int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec == source.modified();
}

std::optional<proto::RecordReport> FromScriptCache(const std::string& key) {
  std::ifstream file(ScriptCacheFile(key), std::ios::binary);
  proto::CachedRun run;
  if (!file || !run.ParseFromIstream(&file) || run.key() != key) return std::nullopt;
  for (const proto::RecordedProcess& process : run.report().processes()) {
    if (!std::all_of(process.sources().begin(), process.sources().end(), IsUnchanged)) {
      return std::nullopt;
    }
  }
  return run.report();
}

// A cache that cannot be written is none.
void KeepInScriptCache(const std::string& key, const proto::RecordReport& report) {
  const fs::path path = ScriptCacheFile(key);
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  proto::CachedRun run;
  run.set_key(key);
  *run.mutable_report() = report;
  absl::StatusOr<OutputFile> file = OutputFile::Open(path.string(), {});
  if (!file.ok()) return;
  file->Write(run.SerializeAsString());
  file->Close().IgnoreError();
}

proto::ScriptRow ScriptRowOf(const proto::RecordReport& report) {
  proto::ScriptRow row;
  row.set_seconds(report.seconds());
  row.set_spare(std::numeric_limits<int64_t>::max());
  bool failed = false;
  for (const proto::RecordedProcess& process : report.processes()) {
    failed = failed || !process.error().empty();
    if (!process.error().empty() && row.error().empty()) {
      row.set_error(process.error());
      row.set_error_text(process.error_text());
      row.set_error_place(process.error_place());
    }
    row.set_ooms(row.ooms() + process.ooms());
    for (const proto::RecordedCard& card : process.cards()) {
      row.set_peak_reserved(std::max(row.peak_reserved(), card.peak_reserved()));
      row.set_peak_allocated(std::max(row.peak_allocated(), card.peak_allocated()));
      row.set_spare(std::min(row.spare(), card.spare()));
      row.set_retries(row.retries() + card.retries());
    }
  }
  row.set_fits(row.ooms() == 0 && !failed && report.exit_status() == 0);
  return row;
}

// A program's last words.
std::string LastLine(const std::string& path) {
  std::ifstream file(path);
  std::string line, last;
  while (std::getline(file, line)) {
    if (!line.empty()) last = line;
  }
  return CleanText(last.substr(0, 300));
}

}  // namespace

std::vector<std::string> ScriptKey::WordsWith(const std::vector<std::string>& program,
                                              int64_t value) const {
  std::vector<std::string> words = program;
  bool placed = false;
  for (std::string& word : words) {
    const bool ends = word == "?" || (word.size() > 2 && word.substr(word.size() - 2) == "=?");
    if (!ends) continue;
    word = StrCat(word.substr(0, word.size() - 1), value);
    placed = true;
  }
  if (!placed) words.push_back(StrCat(name, "=", value));
  return words;
}

ScriptRunner::ScriptRunner(size_t jobs, bool use_cache)
    : jobs_(jobs != 0 ? jobs
                      : std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMostJobs)),
      use_cache_(use_cache) {}

absl::StatusOr<ScriptRunner::Answer> ScriptRunner::RunOne(const ScriptRun& run,
                                                          const std::string& folder) const {
  const std::string key = ScriptCacheKey(run.options);
  if (use_cache_) {
    if (std::optional<proto::RecordReport> known = FromScriptCache(key))
      return Answer{*known, true};
  }
  RecordOptions options = run.options;
  options.out = StrCat(folder, "/snapshot.pickle");
  options.output = StrCat(folder, "/output");
  options.watch = [this](const RecordProgress&) { return stop_.to_pass_on(); };
  absl::StatusOr<proto::RecordReport> report = RunProgram(options);
  if (!report.ok()) return report.status();
  if (stop_.received()) return absl::CancelledError("interrupted");
  const proto::ScriptRow row = ScriptRowOf(*report);
  const std::string value = StrCat(" (", run.value, ")");
  if (report->processes().empty() && report->exit_status() == 0) {
    return absl::InvalidArgumentError(
        StrCat(options.program[0], value, ": none of its processes allocated GPU memory"));
  }
  if (!row.fits() && row.ooms() == 0) {
    const std::string last = LastLine(options.output);
    return absl::InvalidArgumentError(StrCat(
        "the script failed for a reason other than memory", value, ": ",
        row.error().empty()
            ? StrCat("status ", report->exit_status(), last.empty() ? "" : StrCat(": ", last))
            : CleanText(StrCat(row.error(), ": ", row.error_text()))));
  }
  KeepInScriptCache(key, *report);
  return Answer{*std::move(report), false};
}

absl::StatusOr<std::vector<proto::ScriptRow>> ScriptRunner::Run(absl::Span<const ScriptRun> runs) {
  const absl::StatusOr<TemporaryFolder> root =
      TemporaryFolder::Make((fs::temp_directory_path() / "memreplay").string());
  if (!root.ok()) return root.status();
  std::vector<absl::StatusOr<Answer>> answers(runs.size(), absl::CancelledError("interrupted"));
  ParallelFor(runs.size(), jobs_, [&](size_t i) {
    if (stop_.received()) return;
    const std::string folder = StrCat(root->path(), "/", i);
    std::error_code ignored;
    fs::create_directory(folder, ignored);
    answers[i] = RunOne(runs[i], folder);
  });
  std::vector<proto::ScriptRow> rows;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!answers[i].ok()) return answers[i].status();
    proto::ScriptRow row = ScriptRowOf(answers[i]->report);
    row.set_value(runs[i].value);
    row.set_cached(answers[i]->cached);
    ++(row.cached() ? from_cache_ : made_);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace memreplay
