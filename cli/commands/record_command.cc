// memreplay record PROGRAM
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "cli/commands/command.h"
#include "cli/commands/help.h"
#include "cli/flags/flags.h"
#include "cli/flags/record_flags.h"
#include "cli/io/output.h"
#include "record/stop_signal.h"
#include "report/ask/file_report.h"
#include "report/ask/replay.h"
#include "report/device/device_report.h"
#include "report/message/explain.h"
#include "report/text/render.h"
#include "report/words/new_report.h"
#include "report/words/record_faults.h"
#include "report/words/sizes.h"
#include "trace/bytes/output_file.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// For tests: after how many seconds without anything the command says so, rather than 60.
constexpr char kQuietSeconds[] = "MEMREPLAY_RECORD_QUIET";

struct RecordFlags {
  RecordOptions run;
  std::optional<std::string> out;
  bool json = false;
};

// Shows how far the script is, and passes Ctrl-C on to it.
absl::StatusOr<ScriptRecording> RunAndShow(RecordOptions options) {
  const std::string activity = StrCat("recording ", options.program[0]);
  Progress progress(activity);
  const StopSignal stop(StopSignal::kNoteAll);
  options.watch = [&](const RecordProgress& now) {
    if (now.launches > 0) {
      progress.SetActivity(StrCat(activity, ": ",
                                  FormatCount(static_cast<int64_t>(now.launches), "kernel"), ", ",
                                  FormatSize(static_cast<int64_t>(now.peak_used)), " at most,"));
    }
    return stop.to_pass_on();
  };
  options.tell = [&](const std::string& sentence) { progress.Say(sentence); };
  if (const char* seconds = std::getenv(kQuietSeconds)) {
    options.quiet = std::chrono::duration<double>(std::max(0.1, std::strtod(seconds, nullptr)));
  }
  LogScan printed;
  options.heard = [&printed](std::string_view text) { printed.Add(text); };
  options.judge = [&](proto::RecordReport* report) {
    report->set_stopped_by(std::string(stop.name()));
    AddRefusals(&printed, report);
    AddEnds(report);
  };
  return RunProgram(options);
}

// Adds a fault for each change that a script which ended well did not get to.
void AddUnmet(const std::vector<std::string>& remedies, proto::RecordReport* report) {
  if (EndOf(*report) != RunEnd::kWhole) return;
  for (const std::string& name : remedies) {
    const auto& all = report->processes();
    const bool is_met = absl::c_any_of(all, [&](const auto& process) {
      return absl::c_find(process.met(), name) != process.met().end();
    });
    if (!is_met) {
      report->add_faults(StrCat("--remedy ", name, " was not made: the script never gets to it"));
    }
  }
}

absl::StatusOr<proto::RecordReport> Record(RecordOptions options) {
  const std::vector<std::string> remedies = options.remedies;
  ASSIGN_OR_RETURN(ScriptRecording run, RunAndShow(std::move(options)));
  proto::RecordReport& report = run.report;
  SetVersions(&report);
  for (size_t i = 0; i < run.snapshots.size(); ++i) {
    proto::RecordedProcess& process = *report.mutable_processes(static_cast<int>(i));
    const Progress progress(StrCat("replaying ", process.snapshot()));
    ASSIGN_OR_RETURN(const OpenedFile opened, OpenFile(run.snapshots[i]));
    RETURN_IF_ERROR(AddReplays(opened, &process));
    AddProcessMemory(&process);
  }
  AddUnmet(remedies, &report);
  FindRecordFaults(&report);
  return std::move(report);
}

absl::StatusOr<int> RecordProgram(const CommandLine& line) {
  RecordFlags options;
  RecordOptions& run = options.run;
  FlagSet flags("record [flags] [--] PROGRAM [ARGUMENTS]", kRecordHelp);
  flags.AddText("card", "NAME", &run.card,
                "the GPU to simulate; --card list prints those known, and\n"
                "custom:12GiB,cc=8.9,sms=46 is one of your own");
  AddRecordFlags(&run, &flags);
  flags.AddSwitch("aslr", &run.aslr, "leave address randomisation on; runs may then differ");
  flags.AddChoice(
      "stacks", {"python", "all"}, &run.stacks,
      "which frames to record; all includes those of C++, which show what the backward\n"
      "pass requests, in a file of twice the size");
  flags.AddTexts("remedy", "NAME", &run.remedies,
                 "make this change to the script while it runs, such as checkpoint:Block; may be\n"
                 "given several times (docs/advise.md)");
  flags.AddSwitch("outside", &run.outside,
                  "on a real GPU, count what libraries allocate past PyTorch's allocator; their\n"
                  "calls are passed on. It was tried on a simulated GPU only");
  flags.AddSwitch("survey", &run.survey, "list in --json the changes that advise would try");
  flags.AddText("out", "FILE", &options.out,
                "the snapshot to write (default: snapshot.pickle, or snapshot.2.pickle and so on\n"
                "where the script or another program wrote that); with - it goes to standard\n"
                "output, and the script's output to standard error");
  flags.AddShort('o', "out");
  flags.AddSwitch("json", &options.json,
                  "print the summary as JSON; the script's output goes to standard error");
  ASSIGN_OR_RETURN(std::vector<std::string> program, flags.ParseLeading(line.args));
  if (flags.help_requested()) return ShowHelp(line, flags);
  if (IsCardList(run.card)) return ListCards(options.json);
  SetProgram(std::move(program), &run);
  run.place.is_default = !options.out.has_value();
  if (options.out.has_value()) run.place.out = *options.out;
  const bool is_taken = IsStandardOutput(run.place.out);
  if (is_taken && options.json) {
    return absl::InvalidArgumentError("--json and -o - cannot both have standard output");
  }
  if (options.json || is_taken) run.output = "-";
  RETURN_IF_ERROR(CheckRecordCall(run));
  const absl::StatusOr<proto::RecordReport> report = Record(run);
  if (!report.ok() && run.card.empty() && HasFlag(run.program, "--card")) {
    return Within(ToStd(report.status().message()), NoCard(run.program));
  }
  if (!report.ok()) return report.status();
  if (!is_taken) {
    RETURN_IF_ERROR(PrintAnswer(*report, options.json, [&] { return RenderRecord(*report); }));
  }
  if (report->exit_status() != 0) return report->exit_status();
  return report->faults().empty() ? kExitAnswered : kExitBad;
}

}  // namespace

bool IsCardList(std::string_view card) { return card == "list" || card == "LIST"; }

absl::StatusOr<int> ListCards(bool json) {
  const absl::Status listed = json ? Print(CardsJson()) : PrintText(RenderCards());
  return listed.ok() ? absl::StatusOr<int>(kExitAnswered) : listed;
}

absl::StatusOr<int> RunRecord(const CommandLine& line) {
  const absl::StatusOr<int> status = RecordProgram(line);
  return status.ok() ? status : Within("record", status.status());
}

}  // namespace memreplay
