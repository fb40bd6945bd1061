// memreplay replay FILE...
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/command.h"
#include "cli/commands/file_command.h"
#include "cli/commands/help.h"
#include "cli/flags/flags.h"
#include "cli/flags/inputs.h"
#include "cli/flags/replay_flags.h"
#include "cli/io/output.h"
#include "cli/io/terminal.h"
#include "report/ask/file_report.h"
#include "report/ask/replay.h"
#include "report/device/event_log.h"
#include "report/device/loop.h"
#include "sim/observe/timeline.h"
#include "sim/observe/trace_recorder.h"
#include "sim/recording/replay_settings.h"
#include "trace/bytes/output_file.h"
#include "trace/formats/torch/torch_snapshot.h"
#include "trace/schedule/schedule.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr size_t kTerminalColumns = 32;  // of the timeline

struct ReplayFlags {
  FileFlags file;
  std::optional<std::string> events_out;
  std::optional<std::string> events_out_dir;
  std::optional<std::string> snapshot_out;
  std::string start = "recorded";
};

// Shows on the terminal how far a run is.
class ProgressObserver final : public Observer {
 public:
  explicit ProgressObserver(Progress* progress) : progress_(progress) {}
  void OnEvent(const Event& event) override {
    requests_ += IsRequest(event.kind);
    if (requests_ % 4096 == 0) progress_->SetDone(requests_);
  }

 private:
  Progress* progress_;
  size_t requests_ = 0;
};

absl::StatusOr<proto::DeviceReport> ReplayDevice(const Study& study, const ReplayFlags& options,
                                                 OutputFile* events, std::vector<RecordedRun>* runs,
                                                 Progress* progress) {
  const bool several_devices = study.trace().devices.size() > 1 && !options.file.device.has_value();
  progress->SetActivity(StrCat("preparing device ", study.device()));
  const Schedule& schedule = study.schedule();
  ObserverList watchers;
  std::optional<EventLog> log;
  if (events != nullptr) {
    std::vector<StreamHandle> streams;
    for (uint32_t stream = 0; stream < schedule.stream_count(); ++stream) {
      streams.push_back(schedule.stream_handle(stream));
    }
    log.emplace(
        std::move(streams), [events](std::string_view text) { events->Write(text); },
        several_devices ? schedule.device() : -1);
    watchers.Add(&*log);
  }
  TraceRecorder recorder;
  if (options.snapshot_out.has_value()) watchers.Add(&recorder);
  ProgressObserver progress_observer(progress);
  if (progress->visible()) watchers.Add(&progress_observer);
  UsageObserver usage;
  TimelineObserver timeline(usage, kTerminalColumns);
  const bool shows_timeline = !options.file.json && LookOfOutput().is_terminal;
  if (shows_timeline) {
    watchers.Add(&usage);
    watchers.Add(&timeline);
  }
  progress->SetActivity(StrCat("replaying device ", schedule.device()));
  progress->SetTotal(schedule.requests().size());

  ASSIGN_OR_RETURN(
      ReplayAnswer answer,
      AskReplay(study, options.start == "fresh" ? StartPolicy::kFresh : StartPolicy::kRecorded,
                watchers.size() > 0 ? &watchers : nullptr));
  runs->push_back(
      {schedule.device(), recorder.TakeEvents(), std::move(answer.segments), schedule.pools()});
  if (shows_timeline) AddTimeline(timeline.buckets(), answer.report.mutable_loop());
  return std::move(answer.report);
}

// Returns where the events of `file` are written, "" for nowhere.
std::string EventsPath(const std::string& file, const ReplayFlags& options) {
  if (options.events_out.has_value()) return *options.events_out;
  if (!options.events_out_dir.has_value()) return "";
  const std::string name = file.substr(file.rfind('/') + 1);
  return StrCat(*options.events_out_dir, "/", FileName(name, ".events.jsonl"));
}

// Returns the runs as torch.cuda.memory._dump_snapshot() would have written them.
absl::Status WriteSnapshot(const std::string& path, const Inputs& inputs, const Trace& trace,
                           const ReplaySettings& settings, std::vector<RecordedRun> runs) {
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path, inputs.paths()));
  file.Fail(WriteTorchSnapshot(MakeRecording(trace, DescribeSettings(settings.config),
                                             settings.torch.profile->release, std::move(runs)),
                               file, nullptr));
  return file.Close();
}

absl::StatusOr<proto::Report> ReplayFile(const std::string& file, const Inputs& inputs,
                                         const ReplayFlags& options, size_t threads) {
  Progress progress(StrCat("reading ", file));
  ASSIGN_OR_RETURN(const OpenedFile opened, inputs.Open(file, options.file.settings, threads));

  std::optional<OutputFile> events;
  if (const std::string path = EventsPath(file, options); !path.empty()) {
    ASSIGN_OR_RETURN(OutputFile opened_events, OutputFile::Open(path, inputs.paths()));
    events.emplace(std::move(opened_events));
  }
  std::vector<RecordedRun> runs;
  absl::StatusOr<proto::Report> report =
      AskDevices("replay", file, opened, options.file.device, [&](const Study& study) {
        return ReplayDevice(study, options, events.has_value() ? &*events : nullptr, &runs,
                            &progress);
      });
  if (!report.ok()) return report;
  if (events.has_value()) {
    RETURN_IF_ERROR(events->Close());
  }
  if (options.snapshot_out.has_value()) {
    RETURN_IF_ERROR(WriteSnapshot(*options.snapshot_out, inputs, *opened.trace, opened.settings,
                                  std::move(runs)));
  }
  return report;
}

bool IsToStandardOutput(const std::optional<std::string>& path) {
  return path.has_value() && IsStandardOutput(*path);
}

absl::Status CheckCall(const std::vector<std::string>& files, const Inputs& inputs,
                       const ReplayFlags& options, ReportForm form) {
  if (options.events_out.has_value() && options.events_out_dir.has_value()) {
    return absl::InvalidArgumentError(
        "replay: give either --events-out or --events-out-dir, not both");
  }
  if (options.events_out.has_value() && files.size() > 1) {
    return absl::InvalidArgumentError(
        "replay: --events-out accepts one FILE; use --events-out-dir for several");
  }
  if (options.snapshot_out.has_value() && files.size() > 1) {
    return absl::InvalidArgumentError("replay: --snapshot-out accepts one FILE");
  }
  for (const auto& [flag, path] : {std::pair("--events-out", &options.events_out),
                                   std::pair("--snapshot-out", &options.snapshot_out)}) {
    if (IsToStandardOutput(*path) && options.file.json) {
      return InvalidArgument("replay: --json and ", flag,
                             " - cannot both write to standard output");
    }
  }
  std::vector<std::string> outputs, all_inputs = inputs.paths();
  if (form != ReportForm::kNone) outputs.emplace_back("-");
  for (const std::string& file : files) {
    all_inputs.push_back(file);
    if (std::string path = EventsPath(file, options); !path.empty()) {
      outputs.push_back(std::move(path));
    }
  }
  if (options.snapshot_out.has_value()) outputs.push_back(*options.snapshot_out);
  return CheckOutputs(outputs, all_inputs);
}

}  // namespace

absl::StatusOr<int> RunReplay(const CommandLine& line) {
  ReplayFlags options;
  FlagSet flags("replay FILE...|MODEL [flags]", kReplayHelp);
  AddConfFlag(&flags, &options.file.settings.conf, "PYTORCH_CUDA_ALLOC_CONF to replay under");
  AddSettingsFlags(&options.file.settings, &flags);
  AddStartFlag(&options.start, &flags);
  AddDeviceFlag(&options.file.device, &flags);
  flags.AddText("events-out", "FILE", &options.events_out,
                "write every event, one JSON object per line; - is standard output");
  flags.AddText("events-out-dir", "DIR", &options.events_out_dir,
                "the same for several files: DIR/<name of the file>.events.jsonl");
  flags.AddText("snapshot-out", "FILE", &options.snapshot_out,
                "write the run as a PyTorch memory snapshot, for torch.cuda._memory_viz and\n"
                "pytorch.org/memory_viz");
  AddFileFlags(&options.file, &flags);
  ASSIGN_OR_RETURN(const std::optional<Inputs> inputs, ParseInputs(line, "replay", &flags));
  if (!inputs.has_value()) return kExitAnswered;
  ASSIGN_OR_RETURN(const std::vector<std::string> files, ExpandDirectories(inputs->files()));
  // The text of the report is not printed where something else goes to standard output.
  const bool is_taken =
      IsToStandardOutput(options.events_out) || IsToStandardOutput(options.snapshot_out);
  const ReportForm form = is_taken ? ReportForm::kNone : options.file.form();
  RETURN_IF_ERROR(CheckCall(files, *inputs, options, form));
  return ReportEach("replay", files, form, options.file.jobs,
                    [&](const std::string& file, size_t threads) {
                      return ReplayFile(file, *inputs, options, threads);
                    });
}

}  // namespace memreplay
