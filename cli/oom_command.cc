// memreplay oom FILE...
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/answer_file.h"
#include "cli/command.h"
#include "cli/explain.h"
#include "cli/flags.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/replay_flags.h"
#include "cli/report_each.h"
#include "report/ask/oom.h"
#include "sim/recording/replay_settings.h"
#include "trace/schedule/schedule.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr char kOomDescription[] =
    "Tells why memory ran out: what was asked, where all bytes of the card were at that\n"
    "moment, what pins the free ones, and what would have helped, each answer simulated.\n"
    "\n"
    "The out-of-memory event is the recorded one (of several, the last). With --capacity,\n"
    "--conf or --fraction, and for programs, the file is replayed on such a device, and\n"
    "the first one is looked at. --message explains an error text or a log instead, as the\n"
    "command explain does.\n"
    "\n"
    "verdicts: too_large       the file needs more at once than the device has\n"
    "          true_shortage   no packing of what was live leaves room\n"
    "          fragmentation   there was room, in pieces; settings that would have served\n"
    "          leak            every step leaves something behind\n"
    "          pending_free    made again after a synchronisation, the request succeeds\n"
    "\n"
    "Exit status 1 tells that memory runs out, 0 that it does not.";

struct OomFlags {
  SettingsRequest settings;
  std::optional<Bytes> card;
  std::optional<int64_t> device;
  HeldOptions held;
  std::optional<std::string> message;
  std::optional<int64_t> jobs;
  bool json = false;
};

absl::StatusOr<proto::Report> OomOfFile(const std::string& file, const Inputs& inputs,
                                        const OomFlags& options) {
  Progress progress(StrCat("reading ", file));
  const absl::StatusOr<OpenedFile> opened = inputs.Open(file, options.settings);
  if (!opened.ok()) return opened.status();
  const std::shared_ptr<const Trace>& trace = opened->trace;
  ReplaySettings settings = opened->settings;
  // Another release's rules may be held against the same recording.
  settings.as_recorded = !trace->is_program && !options.settings.conf.has_value() &&
                         !options.settings.capacity.has_value() && !options.settings.unlimited &&
                         !options.settings.order.has_value() &&
                         !options.settings.fraction.has_value();
  OomReportOptions report_options;
  report_options.card = options.card;
  report_options.held = options.held;

  const auto examine = [&](size_t index) -> absl::StatusOr<proto::DeviceReport> {
    progress.SetActivity(StrCat("examining device ", trace->devices[index].device));
    return AskOom(Schedule::Build(trace, index), settings, report_options, &progress);
  };
  absl::StatusOr<proto::Report> report =
      ReportDevices("oom", file, *trace, options.device, examine);
  if (report.ok()) LiftOom(&*report);
  return report;
}

}  // namespace

absl::StatusOr<int> RunOom(absl::Span<const std::string> args) {
  OomFlags options;
  FlagSet flags("oom FILE...|MODEL [flags]", kOomDescription);
  AddCapacityFlag(&flags, &options.settings,
                  "replay on a device of this memory, such as 16GiB, or on a card, such as\n"
                  "rtx-4090; or unlimited");
  AddConfFlag(&flags, &options.settings.conf, "PYTORCH_CUDA_ALLOC_CONF to replay under");
  flags.AddOptionalText("torch", "V", &options.settings.torch,
                        "PyTorch release whose allocator to model");
  AddDeviceFlags(&flags, &options.settings);
  flags.AddSize("card", &options.card,
                "memory of the card that the recording was made on; else estimated");
  AddDeviceFlag(&options.device, &flags);
  AddHeldFlags(&options.held, &flags);
  flags.AddOptionalText("message", "TEXT", &options.message,
                        "explain an error text instead: a file or log that has it, - for standard\n"
                        "input, or the text itself");
  AddJobs(&flags, &options.jobs);
  AddJsonFlag(&options.json, &flags);
  absl::StatusOr<Inputs> inputs = Inputs::Split(args);
  if (!inputs.ok()) return InCommand("oom", inputs.status());
  absl::StatusOr<std::vector<std::string>> names = flags.Parse(inputs->args());
  if (!names.ok()) return InCommand("oom", names.status());
  if (flags.help_requested()) return PrintHelp(flags.Help());
  if (const absl::Status set = inputs->SetNames(*std::move(names)); !set.ok()) {
    return InCommand("oom", set);
  }
  const std::vector<std::string>& files = inputs->files();
  if (options.message.has_value()) {
    if (!files.empty()) {
      return absl::InvalidArgumentError("oom: give a FILE or --message, not both");
    }
    return PrintExplanation(*options.message, options.json);
  }
  if (files.empty()) {
    return absl::InvalidArgumentError("oom: no FILE given; memreplay oom --help tells more");
  }
  return ReportEach(
      "oom", files, options.json ? ReportForm::kJson : ReportForm::kText, options.jobs,
      [&](const std::string& file, size_t) { return OomOfFile(file, *inputs, options); });
}

}  // namespace memreplay
