// What the commands that answer with reports share.
#ifndef MEMREPLAY_CLI_REPORT_EACH_H_
#define MEMREPLAY_CLI_REPORT_EACH_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "proto/report.pb.h"

namespace memreplay {

enum class ReportForm { kText, kJson, kNone };

// `paths` with each directory replaced by the files in it (not those below, not
// hidden ones), by name. Error: a directory that cannot be listed or is empty.
absl::StatusOr<std::vector<std::string>> ExpandDirectories(const std::vector<std::string>& paths);

// Prints the report of each file as soon as it is there, in order: text, or
// JSON, indented for one file and one line each for several. Directories count
// as their files. Several files are answered at once, by up to four threads and
// `most_at_once`, so `answer` must be callable from any (with 1: from this one); the job's table
// comes at the end, in JSON as `job` of the last line. A file without an answer is a line on
// stderr, and with several files in JSON also a report that holds the error, so that lines and
// files stay in step. Returns the worst exit status; an error only if standard output cannot be
// written.
absl::StatusOr<int> ReportEach(
    std::string_view command, const std::vector<std::string>& files, ReportForm form,
    absl::FunctionRef<absl::StatusOr<proto::Report>(const std::string& file)> answer,
    size_t most_at_once = 4);

// `status` with the command named in front: "replay: unknown flag ...".
absl::Status InCommand(std::string_view command, const absl::Status& status);

// Prints a --help text.
absl::StatusOr<int> PrintHelp(std::string_view text);

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_REPORT_EACH_H_
