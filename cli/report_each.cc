#include "cli/report_each.h"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/output.h"
#include "report/answer/build_report.h"
#include "report/answer/job_report.h"
#include "report/text/render_text.h"
#include "report/words/render_json.h"
#include "report/words/verdict.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using Answer = absl::FunctionRef<absl::StatusOr<proto::Report>(const std::string& file)>;

// Answers several files at once, handed out in order. At most as many traces
// as there are workers are in memory, and reports wait for no more than that
// many before them.
class Workers {
 public:
  Workers(const std::vector<std::string>& files, Answer answer, size_t most)
      : files_(files), answer_(answer), answers_(files.size()) {
    const size_t cores = std::max<size_t>(1, std::thread::hardware_concurrency());
    const size_t count = std::min({cores, most, files.size()});
    ahead_ = 2 * count;
    for (size_t i = 0; i < count; ++i) threads_.emplace_back([this] { Work(); });
  }
  ~Workers() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      next_ = files_.size();
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  // Of the next file in order.
  absl::StatusOr<proto::Report> Take(size_t file) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return answers_[file].has_value(); });
    absl::StatusOr<proto::Report> report = *std::move(answers_[file]);
    answers_[file].reset();
    taken_ = file + 1;
    lock.unlock();
    changed_.notify_all();
    return report;
  }

 private:
  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return next_ >= files_.size() || next_ < taken_ + ahead_; });
      if (next_ >= files_.size()) return;
      const size_t file = next_++;
      lock.unlock();
      absl::StatusOr<proto::Report> report = answer_(files_[file]);
      lock.lock();
      answers_[file] = std::move(report);
      changed_.notify_all();
    }
  }

  const std::vector<std::string>& files_;
  Answer answer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::optional<absl::StatusOr<proto::Report>>> answers_;
  size_t next_ = 0;
  size_t taken_ = 0;
  size_t ahead_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandDirectories(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (auto it = std::filesystem::directory_iterator(path, error);
         !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
      const std::string name = it->path().filename().string();
      if (name[0] != '.' && it->is_regular_file(error)) inside.push_back(it->path().string());
    }
    if (error) {
      return absl::InvalidArgumentError(StrCat(path, ": cannot be listed: ", error.message()));
    }
    if (inside.empty()) {
      return absl::InvalidArgumentError(StrCat(path, ": a directory without files"));
    }
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

absl::StatusOr<int> ReportEach(std::string_view command, const std::vector<std::string>& paths,
                               ReportForm form, Answer answer, size_t most_at_once) {
  const absl::StatusOr<std::vector<std::string>> files = ExpandDirectories(paths);
  if (!files.ok()) return files.status();
  const bool several = files->size() > 1;
  std::optional<Workers> workers;
  if (several && most_at_once > 1) workers.emplace(*files, answer, most_at_once);
  int status = kExitAnswered;
  bool first = true;
  proto::Job job;
  for (size_t i = 0; i < files->size(); ++i) {
    const std::string& file = (*files)[i];
    absl::StatusOr<proto::Report> report = workers.has_value() ? workers->Take(i) : answer(file);
    if (report.ok()) {
      if (HasFaults(*report)) status = std::max(status, kExitBad);
    } else {
      const std::string message(report.status().message());
      PrintError(message);
      status = kExitUnusable;
      report = FailedReport(command, file, message);
    }
    if (several) AddToJob(*report, &job);
    if (!report->error().empty() && (!several || form != ReportForm::kJson)) continue;
    std::string text;
    if (form == ReportForm::kJson) {
      if (several && i + 1 == files->size()) {
        FinishJob(&job);
        *report->mutable_job() = job;
      }
      text = RenderJson(*report, several ? JsonLayout::kOneLine : JsonLayout::kIndented);
    } else if (form == ReportForm::kText) {
      text = StrCat(first ? "" : "\n", RenderText(*report));
      first = false;
    }
    if (const absl::Status printed = Print(text); !printed.ok()) return printed;
  }
  if (several && form == ReportForm::kText) {
    FinishJob(&job);
    const std::string table = RenderJobText(job);
    if (!table.empty()) {
      if (const absl::Status printed = Print(StrCat("\n", table)); !printed.ok()) return printed;
    }
  }
  return status;
}

absl::Status InCommand(std::string_view command, const absl::Status& status) {
  return absl::Status(status.code(), StrCat(command, ": ", ToStd(status.message())));
}

absl::StatusOr<int> PrintHelp(std::string_view text) {
  if (const absl::Status printed = Print(text); !printed.ok()) return printed;
  return kExitAnswered;
}

}  // namespace memreplay
