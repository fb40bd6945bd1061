// memreplay report FILE...
#include <malloc.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "cli/commands/command.h"
#include "cli/commands/file_command.h"
#include "cli/commands/help.h"
#include "cli/flags/flags.h"
#include "cli/flags/inputs.h"
#include "cli/flags/replay_flags.h"
#include "cli/io/output.h"
#include "report/ask/file_report.h"
#include "report/ask/job.h"
#include "report/page/render_html.h"
#include "trace/bytes/output_file.h"
#include "trace/schedule/schedule.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

struct ReportFlags {
  FileFlags file;
  std::vector<std::string> confs;
  std::optional<std::string> output;
  bool search = false;
};

absl::Status WritePage(const std::string& path, const Inputs& files, const std::string& html) {
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path, files.paths()));
  file.Write(html);
  return file.Close();
}

// `page` is "" for a file without a page of its own; `part`, which may be null, receives what a
// page needs.
absl::StatusOr<proto::Report> ReportFile(const std::string& file, const Inputs& inputs,
                                         const std::string& page, const ReportFlags& options,
                                         PageInput* part) {
  Progress progress(StrCat("reading ", file));
  PageQuestion question;
  question.search = options.search;
  question.threads = std::max<size_t>(1, std::thread::hardware_concurrency());
  ASSIGN_OR_RETURN(const OpenedFile opened,
                   inputs.Open(file, options.file.settings, question.threads));
  question.progress = &progress;
  ASSIGN_OR_RETURN(PageInput input, AskFilePage(file, opened, options.file.settings, options.confs,
                                                options.file.device, std::move(question)));
  if (part != nullptr) {  // the page is the job's
    *part = std::move(input);
    return part->report;
  }
  if (page.empty()) return std::move(input.report);
  progress.SetActivity(StrCat("writing ", page));
  RETURN_IF_ERROR(WritePage(page, inputs, RenderHtml(absl::MakeConstSpan(&input, 1))));
  input.report.mutable_written()->set_path(page);
  return std::move(input.report);
}

// "dir/step.pickle.gz" -> "step.html"; with `whole_path`, "dir_step.html".
std::string PageName(std::string file, bool whole_path) {
  if (!whole_path) file = file.substr(file.rfind('/') + 1);
  for (const std::string_view ending :
       {".gz", ".zst", ".pickle", ".pkl", ".jsonl", ".json", ".txt", ".txtpb", ".pb"}) {
    if (file.size() > ending.size() && file.ends_with(ending)) {
      file.resize(file.size() - ending.size());
    }
  }
  while (file.starts_with("/") || file.starts_with(".")) file.erase(0, 1);
  for (char& c : file) {
    if (c == '/') c = '_';
  }
  return FileName(file.empty() ? "page" : file, ".html");
}

// Returns a page for each file; nothing where all share one, or there is none.
std::map<std::string, std::string> PagesOf(const std::vector<std::string>& files,
                                           const Inputs& inputs, const ReportFlags& options) {
  std::map<std::string, std::string> pages;
  if (options.file.json && !options.output.has_value()) return pages;
  std::error_code error;
  const std::string output = options.output.value_or(".");
  const bool is_folder = !options.output.has_value() || output.ends_with('/') ||
                         std::filesystem::is_directory(output, error);
  if (!is_folder) {
    if (files.size() == 1) pages[files[0]] = output;
    return pages;
  }
  std::map<std::string, std::set<std::string>> claims;
  for (const std::string& file : files) claims[PageName(file, false)].insert(file);
  const synth::ModelKind* const model = inputs.model();
  for (const std::string& file : files) {
    const bool is_shared = claims[PageName(file, false)].size() > 1;
    const std::string name =
        model != nullptr ? StrCat(model->name, ".html") : PageName(file, is_shared);
    pages[file] = !options.output.has_value() ? name
                  : output.ends_with('/')     ? StrCat(output, name)
                                              : StrCat(output, "/", name);
  }
  return pages;
}

}  // namespace

absl::StatusOr<int> RunReport(const CommandLine& line) {
  // Memory that one part frees is reused by the next; returned to the system, it would have to be
  // mapped again page by page.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ReportFlags options;
  FlagSet flags("report FILE...|MODEL [flags]", kReportHelp);
  flags.AddText("out", "PAGE", &options.output,
                "where to write the page: a file, a directory, or - for standard output;\n"
                "the default is FILE's name with .html, in the current directory. One page\n"
                "for several FILEs shows them as ranks of a job and marks the outlier");
  flags.AddShort('o', "out");
  AddConfsFlag(&flags, &options.confs,
               "PYTORCH_CUDA_ALLOC_CONF to compare with; may be given several times");
  flags.AddSwitch(
      "search", &options.search,
      "search settings as memreplay sweep does; show the ranking and draw the best run");
  AddSettingsFlags(&options.file.settings, &flags);
  AddDeviceFlag(&options.file.device, &flags);
  AddJobs(&flags, &options.file.jobs);
  flags.AddSwitch("json", &options.file.json,
                  "print the data of the page as JSON; a page is written only with -o");
  ASSIGN_OR_RETURN(const std::optional<Inputs> parsed, ParseInputs(line, "report", &flags));
  if (!parsed.has_value()) return kExitAnswered;
  const Inputs& inputs = *parsed;
  ASSIGN_OR_RETURN(const std::vector<std::string> files, ExpandDirectories(inputs.files()));
  const bool is_printed = options.output.has_value() && IsStandardOutput(*options.output);
  if (is_printed && options.file.json) {
    return absl::InvalidArgumentError("report: --json and -o - cannot both have standard output");
  }
  const std::map<std::string, std::string> pages = PagesOf(files, inputs, options);
  // The ranks of one job share one page.
  const bool is_job = files.size() > 1 && options.output.has_value() && pages.empty();
  std::vector<std::string> outputs;
  if (!is_printed) outputs.emplace_back("-");
  for (const auto& [file, page] : pages) {
    outputs.push_back(page);
    if (page == options.output) continue;
    RETURN_IF_ERROR(CheckReplacesOwn(page, kPageMark));
  }
  if (is_job) outputs.push_back(*options.output);
  RETURN_IF_ERROR(CheckOutputs(outputs, files));
  std::map<std::string, PageInput> parts;
  const ReportForm form = is_printed          ? ReportForm::kNone
                          : options.file.json ? ReportForm::kJson
                                              : ReportForm::kText;
  const absl::StatusOr<int> status = ReportEach(
      "report", files, form, options.file.jobs,
      [&](const std::string& file, size_t) {
        const auto page = pages.find(file);
        return ReportFile(file, inputs, page == pages.end() ? "" : page->second, options,
                          is_job ? &parts[file] : nullptr);
      },
      is_job ? Placement::kThisProcess : Placement::kOwnProcesses);
  if (!is_job || !status.ok()) return status;
  std::vector<PageInput> ranks;
  for (const std::string& file : files) ranks.push_back(std::move(parts[file]));
  const std::string html = RenderJobPage(std::move(ranks));
  if (!html.empty()) RETURN_IF_ERROR(WritePage(*options.output, inputs, html));
  return status;
}

}  // namespace memreplay
