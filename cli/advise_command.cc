// memreplay advise: about a script (advise_script_command.cc) or a recording
// (advise_recording_command.cc).
#include <algorithm>
#include <string>

#include "cli/command.h"

namespace memreplay {

bool IsAboutScript(absl::Span<const std::string> args) {
  return std::any_of(args.begin(), args.end(), [](const std::string& word) {
    return word == "--" || (word.size() > 3 && word.substr(word.size() - 3) == ".py");
  });
}

absl::StatusOr<int> RunAdvise(const CommandLine& line) {
  const auto is_help = [](const std::string& word) { return word == "--help" || word == "-h"; };
  if (!IsAboutScript(line.args) && std::none_of(line.args.begin(), line.args.end(), is_help)) {
    if (!line.args.empty()) return RunAdviseRecording(line);
    return absl::InvalidArgumentError(
        "advise: expected a script, such as train.py, -- and a command that starts one, or the "
        "FILE of a recording");
  }
  const absl::StatusOr<int> status = RunAdviseScript(line);
  return status.ok() ? status : InCommand("advise", status.status());
}

}  // namespace memreplay
