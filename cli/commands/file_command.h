// Answers one question about each file of a command line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "cli/commands/command.h"
#include "cli/flags/flags.h"
#include "cli/flags/inputs.h"
#include "cli/io/output.h"
#include "proto/report.pb.h"
#include "sim/recording/replay_settings.h"
#include "sim/study/study.h"

namespace memreplay {

enum class ReportForm { kText, kJson, kNone };
enum class Placement { kOwnProcesses, kThisProcess };

// The options that every such command has.
struct FileFlags {
  SettingsRequest settings;
  std::optional<int64_t> device;  // only this device of the file
  std::optional<int64_t> jobs;
  bool json = false;
  ReportForm form() const { return json ? ReportForm::kJson : ReportForm::kText; }
};

// --jobs and --json.
void AddFileFlags(FileFlags* options, FlagSet* flags);
void AddJobs(FlagSet* flags, std::optional<int64_t>* jobs);

// Returns the files of a command line, or a model, once its flags are read; nullopt after showing
// the help for --help. `may_be_none`: files need not be given. Errors name the command.
absl::StatusOr<std::optional<Inputs>> ParseInputs(const CommandLine& line, std::string_view command,
                                                  FlagSet* flags, bool may_be_none = false);

// The error of a command line without files.
absl::Status NoFile(std::string_view command);

// Returns `paths` with each directory replaced by the files in it, by name, without hidden files
// and subdirectories. Error: a directory that cannot be listed or is empty.
absl::StatusOr<std::vector<std::string>> ExpandDirectories(const std::vector<std::string>& paths);

// What is at hand while a file is being answered.
struct FileRun {
  const std::string& file;
  size_t threads;  // that the answer may use
  Progress& progress;
};
using DeviceQuestion =
    absl::FunctionRef<absl::StatusOr<proto::DeviceReport>(const Study& study, const FileRun& run)>;

// Opens a file, and returns its report: what `ask` says about each device in order, or about the
// one that --device names. The first error of `ask` is returned. Error: NotFound if the file has
// nothing of that device.
absl::StatusOr<proto::Report> AnswerFile(std::string_view command, const std::string& file,
                                         const Inputs& inputs, const FileFlags& options,
                                         size_t threads, DeviceQuestion ask);

// Prints the report of each file in order. Text of several files follows the table of the job; JSON
// is printed as soon as it is ready, indented for one file and one line each for several, with the
// job's table as `job` of the last line. A directory stands for its files. Each of several files is
// answered in a process of its own (cli/io/processes.h) unless `placement` is kThisProcess. `jobs`
// is
// --jobs, null if it was not given. A file without an answer is a line on stderr and a row of the
// table; with several files in JSON it is also a report that holds the error, so that lines and
// files stay in step. Returns the worst exit status. Errors: standard output cannot be written, or
// `jobs` is less than 1.
using FileQuestion =
    absl::FunctionRef<absl::StatusOr<proto::Report>(const std::string& file, size_t threads)>;
absl::StatusOr<int> ReportEach(std::string_view command, const std::vector<std::string>& files,
                               ReportForm form, const std::optional<int64_t>& jobs,
                               FileQuestion answer, Placement placement = Placement::kOwnProcesses);

// Runs a command whose answer about a file is what `ask` says about its devices.
absl::StatusOr<int> AnswerFiles(std::string_view command, const Inputs& inputs,
                                const FileFlags& options, DeviceQuestion ask);

// Returns the same reports as values, in order; a file without an answer has one that holds the
// error.
absl::StatusOr<std::vector<proto::Report>> CollectReports(std::string_view command,
                                                          const std::vector<std::string>& files,
                                                          const std::optional<int64_t>& jobs,
                                                          FileQuestion answer);

}  // namespace memreplay
