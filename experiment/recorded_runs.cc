#include "experiment/recorded_runs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "experiment/advised_run.h"
#include "experiment/script_search.h"
#include "record/temporary_folder.h"
#include "record/unpack.h"
#include "report/message/explain.h"
#include "report/message/facts.h"
#include "report/message/log_scan.h"
#include "report/words/record_faults.h"
#include "report/words/text.h"
#include "sim/run/parallel.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxLine = 400;
constexpr size_t kMaxTraceback = 64 << 10;
constexpr size_t kMaxJobs = 4;  // each is a process with PyTorch in it

// Returns the last line that a script printed; with the line of the script if it ends a traceback.
std::string LastLine(const std::string& path) {
  std::ifstream file(path);
  std::string text, line, last;  // `text` is what precedes `last`, from the last traceback on
  while (std::getline(file, line)) {
    if (line.empty()) continue;
    if (text.size() > kMaxTraceback || line.starts_with("Traceback (")) text.clear();
    StrAppend(&text, last, "\n");
    last = line;
  }
  Facts facts;
  ReadTraceback(text, text.size(), &facts);
  const size_t word = last.find_first_of(": ");
  if (!facts.frame.has_value() || (word < last.size() && last[word] != ':')) {
    return CleanText(last, kMaxLine);
  }
  const std::string_view message =
      std::string_view(last).substr(std::min(last.find(": "), last.size()));
  return ErrorOf(std::string_view(last).substr(0, word),
                 message.empty() ? facts.frame->code : message.substr(2),
                 LineOf(StrCat(facts.frame->file, ":", facts.frame->line), facts.frame->function));
}

// Returns a scan of what a script printed into a file.
LogScan ScanOf(const std::string& path) {
  constexpr size_t kPiece = size_t{64} << 10;
  std::ifstream file(path, std::ios::binary);
  std::string piece(kPiece, '\0');
  LogScan scan;
  while (file.read(piece.data(), kPiece) || file.gcount() > 0) {
    scan.Add(std::string_view(piece).substr(0, static_cast<size_t>(file.gcount())));
  }
  return scan;
}

// Adds what the script printed about too little memory to the report of its run. Errors: it used no
// GPU, or failed for another reason.
absl::Status CheckRun(const std::string& name, const RecordOptions& options,
                      proto::RecordReport* report) {
  if (EndOf(*report) > RunEnd::kStopped) {
    LogScan printed = ScanOf(options.output);
    AddRefusals(&printed, report);
  }
  const proto::ScriptRow row = ScriptRowOf(*report);
  const std::string value = name.empty() ? "" : StrCat(" (", name, ")");
  if (report->processes().empty() && report->exit_status() == 0) {
    return absl::InvalidArgumentError(StrCat(options.program[0], value, ": ",
                                             report->faults().empty()
                                                 ? "none of its processes allocated GPU memory"
                                                 : report->faults(0)));
  }
  if (row.fits() || row.ooms() > 0 || !row.refusal().empty()) return absl::OkStatus();
  const std::string last = LastLine(options.output);
  return absl::InvalidArgumentError(
      StrCat("the script failed for a reason other than memory", value, ": ",
             row.error().empty()
                 ? StrCat("status ", report->exit_status(), last.empty() ? "" : StrCat(": ", last))
                 : ErrorOf(row)));
}

}  // namespace

RecordedRuns::RecordedRuns(size_t jobs, bool use_cache)
    : jobs_(jobs != 0 ? jobs
                      : std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMaxJobs)),
      use_cache_(use_cache),
      cache_(fs::path(CacheFolder()) / "runs") {}

absl::StatusOr<ScriptRunner::Answer> RecordedRuns::RunOne(const ScriptRun& run,
                                                          const std::string& folder) const {
  const std::string key = RunCacheKey(run.options);
  if (use_cache_) {
    if (std::optional<proto::RecordReport> known = cache_.Find(key)) return Answer{*known, true};
  }
  RecordOptions options = run.options;
  options.place.out = StrCat(folder, "/snapshot.pickle");
  options.output = StrCat(folder, "/output");
  options.watch = [this](const RecordProgress&) { return stop_.to_pass_on(); };
  ASSIGN_OR_RETURN(ScriptRecording made, RunProgram(options));
  proto::RecordReport* const report = &made.report;
  if (stop_.received()) return absl::CancelledError("interrupted");
  RETURN_IF_ERROR(CheckRun(run.name, options, report));
  if (run.is_studied) RETURN_IF_ERROR(StudyRun(report));
  if (!report->processes().empty()) cache_.Keep(key, *report);  // its source files are known
  return Answer{std::move(*report), false};
}

ScriptRunner::Answers RecordedRuns::RunAll(absl::Span<const ScriptRun> runs,
                                           ProgressSink* progress) {
  Answers answers(runs.size(), absl::CancelledError("interrupted"));
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  const absl::StatusOr<TemporaryFolder> root =
      error ? absl::InvalidArgumentError(
                  StrCat("there is no folder for temporary files (TMPDIR): ", error.message()))
            : TemporaryFolder::Make(temporary.string(), "memreplay");
  if (!root.ok()) {
    std::fill(answers.begin(), answers.end(), root.status());
    return answers;
  }
  if (progress != nullptr) {
    progress->SetDone(0);
    progress->SetTotal(runs.size());
  }
  ParallelFor(runs.size(), jobs_, [&](size_t i) {
    if (stop_.received()) return;
    const std::string folder = StrCat(root->path(), "/", i);
    std::error_code ignored;
    fs::create_directory(folder, ignored);
    answers[i] = RunOne(runs[i], folder);
    fs::remove_all(folder, ignored);  // its snapshots
    if (progress != nullptr) progress->AddDone();
  });
  return answers;
}

}  // namespace memreplay
