// memreplay lint CONF
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/report_each.h"
#include "report/ask/lint.h"
#include "report/text/render_lint.h"
#include "sim/settings/torch_profile.h"

namespace memreplay {
namespace {

constexpr char kLintDescription[] =
    "Tells what is wrong, useless or risky in CONF, a PYTORCH_CUDA_ALLOC_CONF string:\n"
    "what the release refuses, keys without effect, harmful pairs, what later settings\n"
    "forget, which variable the release reads. NAME=CONF checks the name too.\n"
    "\n"
    "Exit status 1 tells of settings that the release refuses.";

}  // namespace

absl::StatusOr<int> RunLint(absl::Span<const std::string> args) {
  bool json = false;
  std::optional<std::string> version;
  FlagSet flags("lint CONF [flags]", kLintDescription);
  flags.AddOptionalText("torch", "V", &version, "the PyTorch release, such as 2.6");
  flags.AddSwitch("json", &json, "print the report as JSON");
  const absl::StatusOr<std::vector<std::string>> confs = flags.Parse(args);
  if (!confs.ok()) return InCommand("lint", confs.status());
  if (flags.help_requested()) return PrintHelp(flags.Help());
  if (confs->size() != 1) {
    return absl::InvalidArgumentError(
        "lint: expected one CONF, quoted as a whole; memreplay lint --help tells more");
  }
  const TorchProfile* profile = &DefaultTorchProfile();
  if (version.has_value()) {
    const absl::StatusOr<const TorchProfile*> found = FindTorchProfile(*version);
    if (!found.ok()) return InCommand("lint", found.status());
    profile = *found;
  }
  const proto::Report report =
      LintReport(confs->front(), *profile, version.has_value() ? "given" : "the default");
  const absl::Status printed =
      PrintAnswer(report, json, [&] { return RenderLintText(report.lint()); });
  if (!printed.ok()) return printed;
  return HasErrors(report.lint()) ? kExitBad : kExitAnswered;
}

}  // namespace memreplay
