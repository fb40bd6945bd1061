// memreplay lint CONF
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/command.h"
#include "cli/commands/help.h"
#include "cli/flags/flags.h"
#include "cli/flags/replay_flags.h"
#include "cli/io/output.h"
#include "report/ask/settings_text.h"
#include "report/text/render.h"
#include "sim/settings/torch_profile.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
absl::StatusOr<int> RunLint(const CommandLine& line) {
  bool json = false;
  std::optional<std::string> version;
  FlagSet flags("lint CONF [flags]", kLintHelp);
  AddTorchFlag(&version, &flags);
  flags.AddSwitch("json", &json, "print the report as JSON");
  const absl::StatusOr<std::vector<std::string>> confs = flags.Parse(line.args);
  if (!confs.ok()) return Within("lint", confs.status());
  if (flags.help_requested()) return ShowHelp(line, flags);
  if (confs->size() != 1) {
    return absl::InvalidArgumentError(
        "lint: expected one CONF, quoted as a whole; see memreplay lint --help");
  }
  const TorchProfile* profile = &DefaultTorchProfile();
  if (version.has_value()) {
    const absl::StatusOr<const TorchProfile*> found = FindTorchProfile(*version);
    if (!found.ok()) return Within("lint", found.status());
    profile = *found;
  }
  const proto::Report report = LintReport(confs->front(), *profile, version.has_value());
  RETURN_IF_ERROR(PrintAnswer(report, json, [&] { return RenderLintText(report.lint()); }));
  return HasErrors(report.lint()) ? kExitBad : kExitAnswered;
}

}  // namespace memreplay
