#include "report/words/answer.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/words/sizes.h"
#include "report/words/verdict.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

std::string InspectAnswer(const proto::DeviceReport& device) {
  const proto::Inventory& inventory = device.inventory();
  if (inventory.is_program()) {
    return StrCat("a schedule of ", FormatCount(device.events(), "request"), "; peak ",
                  FormatSize(device.recorded().peak_requested_bytes()), " requested");
  }
  const std::string events = FormatCount(device.events(), "event");
  if (!inventory.has_final_state()) return StrCat(events, ", no final state");
  return StrCat(FormatSize(inventory.final_reserved_bytes()), " reserved at the end, ",
                FormatSize(inventory.final_allocated_bytes()), " of it allocated; ", events);
}

std::string WhatIfAnswer(const proto::DeviceReport& device) {
  std::string text = StrCat("peak reserved ", AtLeast(device.unseen(), device.ooms() == 0),
                            FormatSize(device.peak_reserved_bytes()));
  const int64_t recorded = device.recorded().peak_reserved_bytes();
  if (recorded > 0) {
    const int64_t change = device.peak_reserved_bytes() - recorded;
    StrAppend(&text, change == 0 ? ", as recorded"
                                 : StrCat(" instead of ", FormatSize(recorded),
                                          PercentChange(change, recorded)));
  }
  StrAppend(
      &text, OtherOrderText(device.peak_reserved_bytes(), device.other_order_peak_reserved_bytes()),
      "; ",
      device.ooms() == 0
          ? StrCat("no out of memory", IsLowerBound(device.unseen()) ? " in what was recorded" : "")
          : StrCat("OUT OF MEMORY ", FormatCount(device.ooms(), "time"),
                   device.recorded().ooms() > 0
                       ? StrCat(" (recorded: ", FormatCount(device.recorded().ooms()), ")")
                       : ""));
  return text;
}

// Returns "layout of 2.5 to 2.7 (external_annotations, no compile_context)".
std::string LayoutText(const proto::TorchProfileChoice& torch) {
  if (torch.fitting().empty()) return "the file does not identify its release";
  const std::string& oldest = torch.fitting(0);
  const std::string& newest = torch.fitting(torch.fitting_size() - 1);
  return StrCat(
      "layout of ", torch.fitting_size() == 1 ? oldest : StrCat(oldest, " to ", newest),
      torch.evidence().empty() ? "" : StrCat(" (", absl::StrJoin(torch.evidence(), ", "), ")"));
}

std::string Ties(const proto::Sweep& sweep) {
  if (sweep.ties() == 0) return "";
  return sweep.ties() + 1 == sweep.rows_size()
             ? "; all others give the same result"
             : StrCat("; ", FormatCount(sweep.ties()),
                      sweep.ties() == 1 ? " other gives the same result"
                                        : " others give the same result");
}

std::string BestOf(const proto::Sweep& sweep, const proto::Unseen& unseen) {
  if (sweep.rows_size() == 0) return "no events were recorded, so no setting can be tried";
  const proto::SweepRow& best = sweep.rows(0);
  const proto::SweepRow& current = sweep.current();
  if (!best.refused().empty()) return "this PyTorch release rejects all of these settings";
  if (best.peak_reserved_bytes() == 0 && sweep.lower_bounds().peak_live_bytes() == 0) {
    return "nothing is allocated on this device";
  }
  const int64_t gain = current.peak_reserved_bytes() - best.peak_reserved_bytes();
  if (!best.is_current() && gain > 0 && !best.oom() && !current.oom() &&
      best.alloc_retries() == current.alloc_retries() &&
      static_cast<double>(gain) <=
          kNegligibleGain * static_cast<double>(current.peak_reserved_bytes())) {
    return StrCat("none of ", FormatCount(sweep.rows_size(), "setting"),
                  " is worth a change: peak reserved ", AtLeast(unseen, true),
                  FormatSize(current.peak_reserved_bytes()), " under the current settings, ",
                  ConfName(current.conf(), current.memory_fraction()), ", ",
                  FormatSize(best.peak_reserved_bytes()), " at best");
  }
  std::string text = best.oom()
                         ? StrCat("OUT OF MEMORY under each of ", FormatCount(sweep.rows_size()),
                                  " settings, the least often with ")
                         : StrCat("best of ", FormatCount(sweep.rows_size(), "setting"), ": ");
  StrAppend(&text, ConfName(best.conf(), best.memory_fraction()), ", peak reserved ",
            AtLeast(unseen, !best.oom()), FormatSize(best.peak_reserved_bytes()),
            OtherOrderText(best.peak_reserved_bytes(), best.other_order_peak_reserved_bytes()));
  if (best.is_current()) return text + ", the current settings";
  if (best.peak_reserved_bytes() == current.peak_reserved_bytes() && best.oom() == current.oom()) {
    return StrCat(text, ", no less than the current settings, ",
                  ConfName(current.conf(), current.memory_fraction()));
  }
  StrAppend(&text, " instead of ", FormatSize(current.peak_reserved_bytes()),
            PercentChange(best.peak_reserved_bytes() - current.peak_reserved_bytes(),
                          current.peak_reserved_bytes()));
  if (current.oom() && !best.oom()) {
    StrAppend(&text, "; it survives, whereas memory runs out at event ",
              FormatCount(current.first_oom_event()), " under ",
              ConfName(current.conf(), current.memory_fraction()));
  }
  return text;
}

// Returns "3.55 GiB", the smaller sizes that also work, and the error bar.
std::string SafeSize(const proto::Fits::Row& row) {
  std::vector<std::string> limits;
  if (row.safe_bytes() != row.smallest_bytes()) {
    limits.push_back(
        StrCat(FormatSize(row.smallest_bytes()), " also works, but not every size above it"));
  }
  if (row.safe_bytes() != row.other_order_safe_bytes()) {
    limits.push_back(StrCat(row.other_order_safe_bytes() == 0
                                ? "no size is enough"
                                : FormatSize(row.other_order_safe_bytes()),
                            " with addresses in the opposite order"));
  }
  std::string text = FormatSize(row.safe_bytes());
  if (!limits.empty()) StrAppend(&text, " (", absl::StrJoin(limits, "; "), ")");
  return text;
}

}  // namespace

std::string AnswerSentence(const proto::DeviceReport& device) {
  if (device.mode() == proto::Mode::inspect) return InspectAnswer(device);
  if (device.mode() == proto::Mode::as_recorded) return FidelitySentence(device);
  return WhatIfAnswer(device);
}

std::vector<Line> AnswerLines(const proto::DeviceReport& device) {
  const proto::Diagnosis& said = device.diagnosis();
  std::vector<Line> lines = {
      {StrCat("device ", device.device()),
       said.what().empty() ? StrCat(AnswerSentence(device), ".") : said.what(),
       device.faults().empty() ? Tone::kAnswer : Tone::kBadAnswer}};
  if (!said.why().empty()) lines.push_back({"why", said.why()});
  if (!said.do_().empty()) lines.push_back({"do", said.do_(), Tone::kGood});
  const std::string verdict = VerdictFault(device);
  google::protobuf::RepeatedPtrField<std::string> faults;
  for (const std::string& fault : device.faults()) {
    if (fault != verdict) *faults.Add() = fault;  // The diagnosis begins with the verdict.
  }
  for (Line& line : ProblemLines(faults)) lines.push_back(std::move(line));
  for (Line& line : CaveatLines(device)) lines.push_back(std::move(line));
  return lines;
}

std::string_view NothingLine(const proto::Report& report) {
  return report.devices().empty()
             ? "The file lists no events and no memory of any device: was the snapshot taken "
               "before CUDA was used, or without torch.cuda.memory._record_memory_history()?\n"
             : "";
}

std::string SettingsName(std::string_view conf) {
  return std::string(conf.empty() ? "default settings" : conf);
}

int64_t ComparedBytes(const proto::Job::Row& row) {
  return row.reserved_bytes() > 0 ? row.reserved_bytes() : row.requested_bytes();
}

std::string SettingsText(const proto::DeviceReport& device) {
  std::string text = SettingsName(device.conf());
  if (device.capacity_bytes() > 0) {
    StrAppend(&text, ", device of ", FormatSize(device.capacity_bytes()));
  }
  return text;
}

std::string CardSentence(const proto::Control& control) {
  if (control.card_refused_bytes() == 0) return "";
  const auto mib = [](int64_t bytes) { return StrCat(FormatCount(bytes >> 20), " MiB"); };
  const bool ran_out = control.card_at_oom_bytes() >= control.card_granted_bytes() &&
                       control.card_at_oom_bytes() < control.card_refused_bytes();
  return StrCat("granted PyTorch ", mib(control.card_granted_bytes()), " and refused ",
                mib(control.card_refused_bytes()),
                ran_out ? StrCat("; ", mib(control.card_at_oom_bytes()),
                                 " were in use or free when memory ran out")
                        : "",
                "; --capacity unlimited removes this limit");
}

std::string ControlSentence(const proto::Control& control) {
  const int64_t recorded = control.recorded_peak_reserved_bytes();
  const int64_t change = control.peak_reserved_bytes() - recorded;
  return StrCat(
      "simulating the original settings gives ",
      change == 0 ? StrCat("the recorded ", FormatSize(recorded))
                  : StrCat(FormatSize(control.peak_reserved_bytes()), " instead of the recorded ",
                           FormatSize(recorded), PercentChange(change, recorded)),
      OtherOrderText(control.peak_reserved_bytes(), control.other_order_peak_reserved_bytes()));
}

std::string ControlWarning(const proto::Control& control) {
  const int64_t recorded = control.recorded_peak_reserved_bytes();
  const int64_t change = std::abs(control.peak_reserved_bytes() - recorded);
  if (change <= recorded / 100) return "";
  return StrCat("the figures below are less certain: ", ControlSentence(control));
}

std::vector<Line> CaveatLines(const proto::DeviceReport& device) {
  std::vector<Line> lines;
  if (device.mode() == proto::Mode::sweep && !IsReproduced(device)) {
    lines.push_back({"WARNING", "the figures below are estimates."});
  }
  if (const std::string warning = ControlWarning(device.control()); !warning.empty()) {
    lines.push_back({"WARNING", StrCat(warning, ".")});
  }
  for (Line& line : UnseenLines(device.unseen())) lines.push_back(std::move(line));
  return lines;
}

std::string OtherOrderText(int64_t peak, int64_t other_order_peak) {
  if (other_order_peak == 0 || other_order_peak == peak) return "";
  return StrCat("; ", FormatSize(other_order_peak), " with addresses in the opposite order");
}

bool IsLowerBound(const proto::Unseen& unseen) {
  return unseen.ooms() > 0 || unseen.start_allocations() > 0 || unseen.start_reserved_bytes() > 0 ||
         unseen.ends_in_pass() || !unseen.ended().empty();
}

std::string_view AtLeast(const proto::Unseen& unseen, bool survives) {
  return survives && IsLowerBound(unseen) ? "at least " : "";
}

std::vector<Line> UnseenLines(const proto::Unseen& unseen) {
  constexpr char kLabel[] = "LOWER BOUND";
  std::vector<Line> lines;
  if (unseen.ooms() > 0) {
    const std::string event = StrCat("at event ", FormatCount(unseen.first_oom_event()));
    std::string text = StrCat(
        "the recording ran out of memory ",
        unseen.ooms() == 1 ? event : StrCat(FormatCount(unseen.ooms()), " times, first ", event),
        ", so what would have followed is not in the file");
    const std::string_view step = unseen.may_be_layers() ? "repeat" : "step";
    const std::string steps =
        StrCat(FormatCount(unseen.steps(), step), " before it",
               unseen.may_be_layers() ? " (perhaps the layers of one pass)" : "");
    if (unseen.steps() > 0 && unseen.growth_bytes_per_step() > 0) {
      StrAppend(&text, "; each of the ", steps, " left ",
                FormatSize(unseen.growth_bytes_per_step()), " more live, and further ", step,
                "s may need as much again");
    } else if (unseen.steps() > 0) {
      StrAppend(&text, "; the ", steps, " left nothing behind, so further ", step,
                "s may need no more");
    }
    lines.push_back({kLabel, text + "."});
  }
  if (unseen.start_allocations() > 0 || unseen.start_reserved_bytes() > 0) {
    lines.push_back(
        {kLabel, StrCat(unseen.has_events() ? "the recording began with "
                                            : "no requests were recorded, only the final state: ",
                        FormatSize(unseen.start_requested_bytes()), " live in ",
                        FormatCount(unseen.start_allocations(), "allocation"), " and ",
                        FormatSize(unseen.start_reserved_bytes()),
                        " reserved; what happened before is not in the file.")});
  }
  if (unseen.ends_in_pass()) {
    lines.push_back({kLabel,
                     "the recording ends before the backward pass of its last forward pass, which "
                     "is not in the file."});
  }
  if (!unseen.ended().empty()) {
    lines.push_back({kLabel, StrCat("its script ended by ", unseen.ended(),
                                    ", so a whole run may need more.")});
  }
  return lines;
}

std::string PercentChange(int64_t change, int64_t of) {
  if (of == 0) return "";
  return absl::StrFormat(" (%+.1f %%)",
                         100.0 * static_cast<double>(change) / static_cast<double>(of));
}

std::string TorchReason(const proto::TorchProfileChoice& torch) {
  using Choice = proto::TorchProfileChoice;
  const std::string assumed = StrCat("; assumed to be ", torch.release());
  const auto rejected = [&torch] {
    return StrCat(": ", torch.rejected(), " would behave differently at event ",
                  torch.rejected_at_event());
  };
  switch (torch.reason()) {
    case Choice::given: return "given";
    case Choice::in_file: return "according to the file";
    case Choice::unnamed: return "not in the file; the default";
    case Choice::no_file: return "the default";
    case Choice::layout:
      return StrCat("inferred: ", LayoutText(torch), torch.fitting_size() == 1 ? "" : assumed);
    case Choice::reproduces:
      return StrCat("inferred: ", LayoutText(torch), assumed,
                    ", the newest release that reproduces it", rejected());
    case Choice::reproduces_most:
      return StrCat("inferred: ", LayoutText(torch), assumed,
                    ", the release that reproduces most of it", rejected());
    case Choice::newest_key:
      return StrCat(
          "inferred: layout of no release; assumed to be the oldest release with all its keys, ",
          torch.release());
    case Choice::unknown_layout: return StrCat("inferred: layout of no release", assumed);
    default: return "";
  }
}

std::string ConfName(std::string_view conf, double fraction) {
  std::string name = SettingsName(conf);
  if (fraction > 0) StrAppend(&name, absl::StrFormat(", fraction %g", fraction));
  return name;
}

std::string SweepSentence(const proto::Sweep& sweep, const proto::Unseen& unseen) {
  std::string text = BestOf(sweep, unseen);
  return text.rfind("none of", 0) == 0 ? text : text + Ties(sweep);
}

std::string FitSentence(const proto::Fits& fits, const proto::Unseen& unseen) {
  const proto::Fits::Row* best = nullptr;
  const proto::Fits::Row* current = nullptr;
  for (const auto& row : fits.rows()) {
    if (row.is_current()) current = &row;
    if (row.safe_bytes() == 0) continue;
    if (best == nullptr || row.safe_bytes() < best->safe_bytes()) best = &row;
  }
  if (best == nullptr && fits.lower_bounds().peak_live_bytes() == 0) {
    return "nothing is allocated on this device";
  }
  if (best == nullptr) return "no device size is enough under these settings";
  std::string text = StrCat("needs ", AtLeast(unseen, true), SafeSize(*best), " under ",
                            ConfName(best->conf(), best->memory_fraction()));
  if (current != nullptr && current != best) {
    StrAppend(&text, "; ", current->safe_bytes() == 0 ? "no size is enough" : SafeSize(*current),
              " under the current settings (",
              ConfName(current->conf(), current->memory_fraction()), ")");
  }
  return text;
}

}  // namespace memreplay
