#include "report/words/record_faults.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/algorithm/container.h"
#include "report/words/sizes.h"
#include "report/words/text.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr size_t kMaxFaultLength = 400;

// Returns the first line of an exception's message.
std::string FirstLine(std::string_view text) {
  return CleanText(text.substr(0, text.find('\n')), kMaxFaultLength);
}

// Returns a hint about one process that runs as a rank of a job (record/card/api/nccl_values.cc).
std::string HintOfLoneRank(const proto::RecordedProcess& process) {
  for (const auto& assumption : process.card().assumptions()) {
    if (assumption.what() == "the other ranks are assumed to send what this one holds") {
      return " (what the other ranks send was assumed; with real processes, --cards N -- torchrun "
             "..., they send what they hold)";
    }
  }
  return "";
}

}  // namespace

std::string LineOf(std::string_view place, std::string_view function) {
  const std::string line = CleanText(place.substr(place.rfind('/') + 1));
  const bool has_function = !line.empty() && !function.empty() && !function.starts_with('<');
  return StrCat(line, has_function ? StrCat(" in ", CleanText(function)) : "");
}

std::string ErrorOf(std::string_view error, std::string_view text, std::string_view line) {
  const std::string message = FirstLine(text);
  return StrCat(CleanText(error), message.empty() ? "" : StrCat(": ", message),
                line.empty() ? "" : StrCat(" (", line, ")"));
}

std::string ErrorOf(const proto::RecordedProcess& process) {
  return ErrorOf(process.error(), process.error_text(),
                 LineOf(process.error_place(), process.error_function()));
}

std::string ErrorOf(const proto::ScriptRow& row) {
  return ErrorOf(row.error(), row.error_text(), LineOf(row.error_place(), row.error_function()));
}

RunEnd EndOf(const proto::RecordReport& report, const proto::RecordedProcess& process) {
  if (process.ooms() > 0) return RunEnd::kRanOut;
  if (!process.refusal().empty()) return RunEnd::kRefused;
  if (!report.stopped_by().empty()) return RunEnd::kStopped;  // whatever that raised
  if (!process.error().empty()) return RunEnd::kFailed;
  if (process.stopped_after_steps() > 0) return RunEnd::kStopped;
  const auto& all = report.processes();
  const bool is_of_another = absl::c_any_of(
      all, [](const auto& other) { return !other.error().empty() || other.ooms() > 0; });
  if (!report.refusal().empty() && !is_of_another) return RunEnd::kRefused;
  return report.exit_status() == 0 && !is_of_another ? RunEnd::kWhole : RunEnd::kFailed;
}

RunEnd EndOf(const proto::RecordReport& report) {
  RunEnd end = !report.refusal().empty()      ? RunEnd::kRefused
               : !report.stopped_by().empty() ? RunEnd::kStopped
               : report.exit_status() != 0    ? RunEnd::kFailed
                                              : RunEnd::kWhole;
  for (const proto::RecordedProcess& process : report.processes()) {
    end = std::max(end, EndOf(report, process));
  }
  return end;
}

std::string LateStateText(int64_t late_state) {
  constexpr int64_t kWorthSaying = int64_t{1} << 20;
  if (late_state < kWorthSaying) return "";
  return StrCat("Only one step of the optimizer was run. It made ", FormatSize(late_state),
                " of state, which the backward pass of the next step needs on top of these "
                "figures: run two steps.");
}

void AddEnds(proto::RecordReport* report) {
  for (proto::RecordedProcess& process : *report->mutable_processes()) {
    const RunEnd end = EndOf(*report, process);
    if (end == RunEnd::kWhole || end == RunEnd::kRanOut) continue;
    std::string by = "an error of another process";
    if (end == RunEnd::kStopped) {
      by = report->stopped_by().empty() ? "--steps" : report->stopped_by();
    } else if (!process.error().empty()) {
      by = ErrorOf(process);
    } else if (end == RunEnd::kRefused) {
      by = report->refusal();
    } else if (report->exit_status() != 0) {
      by = StrCat("exit status ", report->exit_status());
    }
    process.set_ended(CleanText(by, kMaxFaultLength));
  }
}

void FindRecordFaults(proto::RecordReport* report) {
  report->set_is_lower_bound(EndOf(*report) != RunEnd::kWhole);
  for (std::string& fault : *report->mutable_faults())
    fault = CleanText(fault);  // a process's words
  for (const proto::RecordedProcess& process : report->processes()) {
    const std::string name = process.name().empty() ? "" : StrCat(CleanText(process.name()), ": ");
    if (process.ooms() > 0) {
      report->add_faults(StrCat(name, "out of memory ", FormatCount(process.ooms(), "time")));
    }
    if (!process.error().empty()) {
      report->add_faults(
          StrCat(name, ErrorOf(process), process.ooms() > 0 ? "" : HintOfLoneRank(process)));
    }
    for (const proto::RecordedReplay& replay : process.replays()) {
      if (!replay.agrees()) {
        report->add_faults(
            StrCat(name, "device ", replay.device(), ": ", CleanText(replay.sentence())));
      }
    }
  }
  const auto& all = report->processes();
  if (!report->refusal().empty() &&
      absl::c_none_of(all, [](const auto& process) { return !process.refusal().empty(); })) {
    report->add_faults(StrCat("memory is too little: ", CleanText(report->refusal())));
  }
  if (report->exit_status() == 0 || !report->faults().empty()) return;
  const char* when = report->processes().empty() ? " before it allocated GPU memory" : "";
  if (report->stopped_by().empty()) {
    report->add_faults(StrCat("the script exited with status ", report->exit_status(), when));
  } else if (report->processes().empty()) {
    report->add_faults(StrCat(report->stopped_by(), " stopped the script", when));
  }
}

}  // namespace memreplay
