// What the commands that answer with reports share.
#ifndef MEMREPLAY_CLI_REPORT_EACH_H_
#define MEMREPLAY_CLI_REPORT_EACH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "proto/report.pb.h"

namespace memreplay {

enum class ReportForm { kText, kJson, kNone };
enum class Placement { kOwnProcesses, kThisProcess };

// Registers --jobs.
void AddJobs(FlagSet* flags, std::optional<int64_t>* jobs);

// `paths` with each directory replaced by the files in it (not those below, not
// hidden ones), by name. Error: a directory that cannot be listed or is empty.
absl::StatusOr<std::vector<std::string>> ExpandDirectories(const std::vector<std::string>& paths);

// Prints the report of each file in order: text, of several files after the job's table,
// or JSON as soon as it is there, indented for one file and one line each for several. Directories
// count as their files. Several files are answered each in a process of its own (cli/processes.h),
// unless `placement` is kThisProcess; `answer` is told how many threads it may use. `jobs`: --jobs,
// null if it was not given. In JSON the job's table is `job` of the last line. A
// file without an answer is a line on stderr and a row of the table, and with several files in JSON
// also a report that holds the error, so that lines and files stay in step. Returns the worst exit
// status; an error only if standard output cannot be written, or `jobs` is less than 1.
absl::StatusOr<int> ReportEach(
    std::string_view command, const std::vector<std::string>& files, ReportForm form,
    const std::optional<int64_t>& jobs,
    absl::FunctionRef<absl::StatusOr<proto::Report>(const std::string& file, size_t threads)>
        answer,
    Placement placement = Placement::kOwnProcesses);

// The same reports as values, in order; of a file without an answer one that holds the error.
absl::StatusOr<std::vector<proto::Report>> CollectReports(
    std::string_view command, const std::vector<std::string>& files,
    const std::optional<int64_t>& jobs,
    absl::FunctionRef<absl::StatusOr<proto::Report>(const std::string& file, size_t threads)>
        answer);

// `status` with the command named in front: "replay: unknown flag ...".
absl::Status InCommand(std::string_view command, const absl::Status& status);

// Prints a --help text.
absl::StatusOr<int> PrintHelp(std::string_view text);
// What the command would print; not of those that Python runs.
absl::StatusOr<std::string> HelpOf(const Command& command);

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_REPORT_EACH_H_
