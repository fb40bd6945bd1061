#include "cli/commands/file_command.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "absl/algorithm/container.h"
#include "cli/flags/replay_flags.h"
#include "cli/io/processes.h"
#include "report/ask/file_report.h"
#include "report/ask/job.h"
#include "report/device/device_report.h"
#include "report/text/render.h"
#include "report/words/render_json.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {

absl::Status NoFile(std::string_view command) {
  return InvalidArgument(command, ": no FILE given; see memreplay ", command, " --help");
}

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
    if (error) return InvalidArgument(path, ": cannot be listed: ", error.message());
    if (inside.empty()) return InvalidArgument(path, ": the directory contains no files");
    absl::c_sort(inside);
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

absl::StatusOr<std::optional<Inputs>> ParseInputs(const CommandLine& line, std::string_view command,
                                                  FlagSet* flags, bool may_be_none) {
  absl::StatusOr<Inputs> inputs = Inputs::Parse(line.args, flags);
  if (!inputs.ok()) return Within(command, inputs.status());
  if (flags->help_requested()) {
    RETURN_IF_ERROR(ShowHelp(line, *flags).status());
    return std::nullopt;
  }
  if (inputs->files().empty() && !may_be_none) return NoFile(command);
  return std::optional<Inputs>(*std::move(inputs));
}

absl::StatusOr<proto::Report> AnswerFile(std::string_view command, const std::string& file,
                                         const Inputs& inputs, const FileFlags& options,
                                         size_t threads, DeviceQuestion ask) {
  Progress progress(StrCat("reading ", file));
  ASSIGN_OR_RETURN(const OpenedFile opened, inputs.Open(file, options.settings));
  const FileRun run = {file, threads, progress};
  return AskDevices(command, file, opened, options.device,
                    [&](const Study& study) { return ask(study, run); });
}

absl::StatusOr<int> AnswerFiles(std::string_view command, const Inputs& inputs,
                                const FileFlags& options, DeviceQuestion ask) {
  return ReportEach(command, inputs.files(), options.form(), options.jobs,
                    [&](const std::string& file, size_t threads) {
                      return AnswerFile(command, file, inputs, options, threads, ask);
                    });
}

void AddFileFlags(FileFlags* options, FlagSet* flags) {
  AddJobs(flags, &options->jobs);
  AddJsonFlag(&options->json, flags);
}

void AddJobs(FlagSet* flags, std::optional<int64_t>* jobs) {
  flags->AddNumber("jobs", "N", jobs,
                   "number of cores to use, one process each for several files (default: all)", 1);
}

absl::StatusOr<int> ReportEach(std::string_view command, const std::vector<std::string>& paths,
                               ReportForm form, const std::optional<int64_t>& jobs,
                               FileQuestion answer, Placement placement) {
  ASSIGN_OR_RETURN(const std::vector<std::string> files, ExpandDirectories(paths));
  const bool several = files.size() > 1;
  const Jobs share = ShareOut(static_cast<size_t>(jobs.value_or(0)), files.size());
  const auto answer_one = [&](const std::string& file) { return answer(file, share.threads); };
  // Shows how many files are done; the processes show nothing of their own.
  std::optional<Progress> progress;
  if (several && form != ReportForm::kJson) {
    progress.emplace(StrCat(command, " of ", files.size(), " files"));
    progress->SetTotal(files.size());
  }
  std::optional<Processes> processes;
  if (several && placement == Placement::kOwnProcesses) {
    processes.emplace(files, answer_one, share.processes);
  }
  bool first = true;
  JobFold job;
  Text texts;
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string& file = files[i];
    if (progress.has_value()) progress->SetDone(i);
    absl::StatusOr<proto::Report> report =
        processes.has_value() ? processes->Take(i) : answer_one(file);
    if (!report.ok()) {
      const std::string message(report.status().message());
      PrintError(message);
      report = FailedReport(command, file, message);
    }
    job.Add(*report);
    if (!report->error().empty() && (!several || form != ReportForm::kJson)) continue;
    Text text;
    if (form == ReportForm::kJson) {
      if (several && i + 1 == files.size()) *report->mutable_job() = job.Finish();
      text.text = RenderJson(*report, several ? JsonLayout::kOneLine : JsonLayout::kIndented);
    } else if (form == ReportForm::kText) {
      text.text = first ? "" : "\n";
      text.Append(RenderText(*report));
      first = false;
    }
    // The comparison of several files comes first.
    if (several && form == ReportForm::kText) {
      texts.Append(text);
      continue;
    }
    RETURN_IF_ERROR(form == ReportForm::kText ? PrintText(text) : Print(text.text));
  }
  progress.reset();
  if (several && form == ReportForm::kText) {
    Text all = RenderJobText(job.Finish());
    if (!all.text.empty()) all.text += '\n';
    all.Append(texts);
    RETURN_IF_ERROR(PrintText(all));
  }
  return job.status();
}

absl::StatusOr<std::vector<proto::Report>> CollectReports(std::string_view command,
                                                          const std::vector<std::string>& files,
                                                          const std::optional<int64_t>& jobs,
                                                          FileQuestion answer) {
  const Jobs share = ShareOut(static_cast<size_t>(jobs.value_or(0)), files.size());
  const auto answer_one = [&](const std::string& file) { return answer(file, share.threads); };
  Processes processes(files, answer_one, share.processes);
  std::vector<proto::Report> reports;
  for (size_t i = 0; i < files.size(); ++i) {
    absl::StatusOr<proto::Report> report = processes.Take(i);
    reports.push_back(
        report.ok() ? *std::move(report)
                    : FailedReport(command, files[i], std::string(report.status().message())));
  }
  return reports;
}

}  // namespace memreplay
