#include "cli/record_run.h"

#include <optional>
#include <string>
#include <utility>

#include "cli/answer_file.h"
#include "cli/output.h"
#include "cli/stop_signal.h"
#include "report/ask/record.h"
#include "report/ask/replay.h"
#include "report/words/record_faults.h"
#include "report/words/sizes.h"
#include "report/words/version.h"
#include "trace/schedule/schedule.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

absl::Status ReplaySnapshot(const std::string& file, proto::RecordedProcess* process) {
  const absl::StatusOr<OpenedFile> opened = OpenWithSettings(file, SettingsRequest());
  if (!opened.ok()) return opened.status();
  StackNames names(*opened->trace);
  for (size_t index = 0; index < opened->trace->devices.size(); ++index) {
    const Schedule schedule = Schedule::Build(opened->trace, index);
    const absl::StatusOr<ReplayAnswer> answer =
        AskReplay(schedule, opened->settings, StartPolicy::kRecorded, nullptr);
    if (!answer.ok()) return answer.status();
    proto::RecordedReplay& replay = *process->add_replays();
    replay = RecordedReplayOf(*opened->trace, names, index, answer->report);
    ReplaySettings on_card = opened->settings;
    if (replay.device() < process->cards_size()) {
      const proto::RecordedCard& card = process->cards(replay.device());
      on_card.capacity = Bytes(static_cast<uint64_t>(card.peak_reserved() + card.spare()));
    }
    const absl::StatusOr<std::optional<Bytes>> at_once = PeakCompletedAtOnce(schedule, on_card);
    if (!at_once.ok()) return at_once.status();
    replay.set_at_once_peak_reserved(at_once->value_or(Bytes()).signed_value());
  }
  return absl::OkStatus();
}

// Shows how far the program is, and passes Ctrl-C on.
absl::StatusOr<proto::RecordReport> RunAndShow(RecordOptions options) {
  const std::string activity = StrCat("recording ", options.program[0]);
  Progress progress(activity);
  const StopSignal stop;
  options.watch = [&](const RecordProgress& now) {
    if (now.launches > 0) {
      progress.SetActivity(StrCat(activity, ": ",
                                  FormatCount(static_cast<int64_t>(now.launches), "kernel"), ", ",
                                  FormatSize(static_cast<int64_t>(now.peak_used)), " at most,"));
    }
    return stop.to_pass_on();
  };
  return RunProgram(options);
}

}  // namespace

absl::StatusOr<proto::RecordReport> Record(RecordOptions options) {
  absl::StatusOr<proto::RecordReport> report = RunAndShow(std::move(options));
  if (!report.ok()) return report.status();
  report->set_schema_version(kReportSchemaVersion);
  report->set_tool_version(kVersion);
  for (proto::RecordedProcess& process : *report->mutable_processes()) {
    const Progress progress(StrCat("replaying ", process.snapshot()));
    const absl::Status replayed = ReplaySnapshot(process.snapshot(), &process);
    if (!replayed.ok()) return replayed;
  }
  FindRecordFaults(&*report);
  return report;
}

}  // namespace memreplay
