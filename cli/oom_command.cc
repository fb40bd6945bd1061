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
#include "cli/record_flags.h"
#include "cli/replay_flags.h"
#include "cli/report_each.h"
#include "report/ask/oom.h"
#include "sim/recording/replay_settings.h"
#include "trace/schedule/schedule.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr char kOomDescription[] =
    "Reports why memory ran out: what was requested, where all the memory of the GPU was at\n"
    "that moment, what pins the free parts of it, and what would have helped. Every change\n"
    "that it suggests was simulated.\n"
    "\n"
    "The out-of-memory event is the recorded one, or the last if there are several. With\n"
    "--capacity, --conf or --fraction, and for schedules, the file is replayed on such a\n"
    "device and the first out-of-memory event is examined. --message explains an error text\n"
    "or a log instead, as the command explain does.\n"
    "\n"
    "verdicts: TOO LARGE        the file needs more at once than the device has\n"
    "          MEMORY SHORTAGE  even without fragmentation there was not enough memory\n"
    "          FRAGMENTATION    there was enough memory, but in pieces\n"
    "          LEAK             every step leaves something behind\n"
    "          PENDING FREE     the request succeeds when repeated after a synchronisation\n"
    "\n"
    "The exit status is 1 if memory runs out, 0 if it does not.";

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
                  "replay on a device with this much memory, such as 16GiB, with that of a GPU,\n"
                  "such as rtx-4090, or unlimited");
  AddConfFlag(&flags, &options.settings.conf, "PYTORCH_CUDA_ALLOC_CONF to replay under");
  flags.AddOptionalText("torch", "V", &options.settings.torch,
                        "PyTorch release whose allocator is modelled");
  AddDeviceFlags(&flags, &options.settings);
  flags.AddParsed("card", "SIZE|NAME",
                  "GPU that was recorded, or its memory; estimated if not given",
                  [&options](std::string_view text) {
                    const absl::StatusOr<Bytes> memory = ParseMemory(text);
                    if (memory.ok()) options.card = *memory;
                    return memory.status();
                  });
  AddDeviceFlag(&options.device, &flags);
  AddHeldFlags(&options.held, &flags);
  flags.AddOptionalText("message", "TEXT", &options.message,
                        "explain an error text instead: a file or log that contains it, - for\n"
                        "standard input, or the text itself");
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
    return absl::InvalidArgumentError("oom: no FILE given; see memreplay oom --help");
  }
  return ReportEach(
      "oom", files, options.json ? ReportForm::kJson : ReportForm::kText, options.jobs,
      [&](const std::string& file, size_t) { return OomOfFile(file, *inputs, options); });
}

}  // namespace memreplay
