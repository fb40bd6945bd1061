#include "report/words/verdict.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/algorithm/container.h"
#include "report/words/answer.h"
#include "report/words/lines.h"
#include "report/words/names.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// Returns ", first at event 581 (kv_cache)", or "" if that is unknown.
std::string FirstOom(const proto::DeviceReport& device) {
  if (!device.has_first_oom()) return "";
  const proto::DeviceReport::FirstOom& first = device.first_oom();
  return StrCat(", first at ", PositionNoun(device.inventory().is_program()), " ",
                FormatCount(first.event_index()),
                first.stack().depth() > 0 ? StrCat(" (", first.stack().summary(), ")") : "");
}

// Returns whether memory does not run out in what was recorded, on the device that was asked about.
bool Survives(const proto::DeviceReport& device) {
  switch (device.mode()) {
    case proto::Mode::what_if: return device.ooms() == 0;
    case proto::Mode::oom: return device.oom().verdict() == proto::Verdict::none;
    default: return false;
  }
}

void AddReplayFaults(const proto::DeviceReport& device, std::vector<std::string>* faults) {
  if (device.fidelity().has_first_divergence()) {
    faults->push_back(StrCat("the replay differs from the recording from event ",
                             FormatCount(device.fidelity().first_divergence().index()), " on"));
  } else if (device.final_blocks().matched() < device.final_blocks().compared()) {
    const int64_t wrong = device.final_blocks().compared() - device.final_blocks().matched();
    faults->push_back(StrCat(FormatCount(wrong, "block"), " of the final state ",
                             wrong == 1 ? "differs" : "differ", " from the recording"));
  }
}

// Whether it fits into what was asked.
void AddCapacityFaults(const proto::DeviceReport& device, std::vector<std::string>* faults) {
  const proto::Advice& advice = device.advice();
  const bool may_survive = AsksAdvice(device) ? MaySurvive(advice) : Survives(device);
  if (AsksAdvice(device) && !AdviceFits(advice) && !may_survive) {
    faults->push_back("none of the changes tried makes it fit");
  } else if (device.is_capacity_given() && IsLowerBound(device.unseen()) && may_survive) {
    faults->emplace_back(
        "the figures are lower bounds: the whole run may need more than the device has");
  } else if (device.mode() == proto::Mode::oom && device.oom().verdict() == proto::Verdict::none &&
             device.has_unseen() && !device.unseen().has_events() && !device.is_capacity_given()) {
    faults->push_back(device.oom().sentence());
  }
}

// What a real device, the requests and the file say.
void AddInputFaults(const proto::DeviceReport& device, std::vector<std::string>* faults) {
  for (const proto::GpuFault& fault : device.gpu().faults()) {
    faults->push_back(fault.repetition() == 0
                          ? fault.sentence()
                          : StrCat("repetition ", fault.repetition() + 1, ": ", fault.sentence()));
  }
  if (device.failures_size() > 0) {
    faults->push_back(StrCat(FormatCount(device.failures_size(), "request"),
                             device.failures_size() == 1 ? " raises" : " raise", " an exception"));
  }
  for (const proto::Diagnostic& diagnostic : device.diagnostics()) {
    if (diagnostic.severity() == proto::Diagnostic::error) {
      faults->push_back(StrCat("the file contradicts itself ",
                               FormatCount(diagnostic.count(), "time"), ": ",
                               diagnostic.sentence()));
    }
  }
}

// Returns what is wrong with the peaks of a run; `capacity` is 0 if the device has no limit.
std::string WrongPeaks(std::string_view run, int64_t allocated, int64_t reserved,
                       int64_t capacity) {
  const bool is_beyond = capacity > 0 && reserved > capacity;
  if (allocated <= reserved && !is_beyond) return "";
  return StrCat("the figures of ", run, " are impossible: ", FormatSize(allocated), " allocated, ",
                FormatSize(reserved), " reserved",
                is_beyond ? StrCat(" on a device of ", FormatSize(capacity)) : "");
}

}  // namespace

std::string FidelitySentence(const proto::DeviceReport& device) {
  const proto::Fidelity& fidelity = device.fidelity();
  if (fidelity.compared_events() == 0) return "no events to replay";
  std::string counts =
      StrCat(FormatPart(fidelity.matched_events(), fidelity.compared_events()), " events and ",
             FormatPart(device.final_blocks().matched(), device.final_blocks().compared()),
             " final blocks match");
  if (device.final_blocks().matched() < device.final_blocks().compared() &&
      !fidelity.has_first_divergence()) {
    return StrCat("THE STATE AT THE END DIFFERS FROM THE RECORDING: ", counts);
  }
  if (!fidelity.has_first_divergence() && device.exact_until_event() >= device.events()) {
    return StrCat("the replay agrees with the recording: ", counts);
  }
  if (!fidelity.has_first_divergence()) {
    return StrCat("the replay is exact up to event ", FormatCount(device.exact_until_event()), ": ",
                  counts);
  }
  return StrCat("THE REPLAY DIFFERS FROM THE RECORDING: ", counts);
}

bool IsReproduced(const proto::DeviceReport& device) {
  return device.fidelity().compared_events() == 0 ||
         (!device.fidelity().has_first_divergence() &&
          device.exact_until_event() >= device.events() &&
          device.final_blocks().matched() == device.final_blocks().compared());
}

bool AsksAdvice(const proto::DeviceReport& device) {
  return device.has_advice() && !device.has_oom();
}

bool IsTried(const proto::Advice::Row& row) {
  return row.error().empty() && row.unwritten().empty();
}

bool SavesNothing(const proto::Advice::Row& row, const proto::Advice& advice) {
  const proto::Advice::Row& now = advice.as_is();
  return advice.source() == proto::Advice::run && row.smallest_bytes() >= now.smallest_bytes() &&
         row.peak_reserved_bytes() >= now.peak_reserved_bytes() &&
         row.peak_allocated_bytes() >= now.peak_allocated_bytes();
}

bool AdviceFits(const proto::Advice& advice) {
  return advice.goal_bytes() == 0 || advice.as_is().fits() ||
         absl::c_any_of(advice.rows(),
                        [](const proto::Advice::Row& row) { return row.fits() && IsTried(row); });
}

bool MaySurvive(const proto::Advice& advice) {
  return advice.is_lower_bound() &&
         (advice.as_is().survives() ||
          absl::c_any_of(advice.rows(),
                         [](const proto::Advice::Row& row) { return row.survives(); }));
}

std::string VerdictFault(const proto::DeviceReport& device) {
  if (!device.has_oom() || device.oom().verdict() == proto::Verdict::none) return "";
  return StrCat("out of memory: ", VerdictPhrase(device.oom().verdict()));
}

std::vector<std::string> FindFaults(const proto::DeviceReport& device) {
  std::vector<std::string> faults;
  AddReplayFaults(device, &faults);
  if (device.mode() == proto::Mode::what_if && !AsksAdvice(device) &&
      device.ooms() > device.recorded().ooms()) {
    faults.push_back(StrCat(
        "out of memory ", FormatCount(device.ooms() - device.recorded().ooms(), "time"),
        device.recorded().ooms() > 0 ? " more than in the recording" : "", FirstOom(device)));
  }
  if (std::string verdict = VerdictFault(device); !verdict.empty()) faults.push_back(verdict);
  if (device.mode() == proto::Mode::sweep && device.sweep().rows_size() > 0 &&
      device.sweep().rows(0).oom()) {
    faults.push_back("memory runs out under every setting tried");
  }
  if (device.mode() == proto::Mode::sweep && device.sweep().rows().empty()) {
    faults.emplace_back("no events were recorded, so no setting can be tried");
  }
  AddCapacityFaults(device, &faults);
  if (std::string wrong = ImpossibleFigures(device); !wrong.empty()) {
    faults.push_back(std::move(wrong));
  }
  AddInputFaults(device, &faults);
  return faults;
}

void AddFaults(proto::Report* report) {
  for (proto::DeviceReport& device : *report->mutable_devices()) {
    device.clear_faults();
    for (std::string& fault : FindFaults(device)) device.add_faults(std::move(fault));
  }
}

bool HasFaults(const proto::Report& report) {
  return absl::c_any_of(report.devices(),
                        [](const proto::DeviceReport& device) { return !device.faults().empty(); });
}

std::string ImpossibleFigures(const proto::DeviceReport& device) {
  const int64_t capacity = device.capacity_bytes();
  std::string wrong;
  if (device.mode() == proto::Mode::what_if) {
    wrong = WrongPeaks("the replay", device.peak_allocated_bytes(), device.peak_reserved_bytes(),
                       capacity);
  }
  for (const proto::SweepRow& row : device.sweep().rows()) {
    if (!wrong.empty()) break;
    wrong =
        WrongPeaks("a setting", row.peak_allocated_bytes(), row.peak_reserved_bytes(), capacity);
  }
  for (const proto::Fits::Row& row : device.fits().rows()) {
    for (const proto::Fits::Probe& probe : row.probes()) {
      if (!wrong.empty()) break;
      wrong = WrongPeaks("a size", 0, probe.peak_reserved_bytes(), probe.capacity_bytes());
    }
  }
  for (const proto::Counterfactual& change : device.oom().counterfactuals()) {
    if (!wrong.empty() || change.kind() == proto::Counterfactual::memory) continue;
    wrong = WrongPeaks("a change", 0, change.peak_reserved_bytes(), capacity);
  }
  for (const proto::Advice::Row& row : device.advice().rows()) {
    if (!wrong.empty()) break;
    wrong =
        WrongPeaks("a change of the script", row.peak_allocated_bytes(), row.peak_reserved_bytes(),
                   row.survives() ? device.advice().goal_bytes() : 0);
  }
  return wrong;
}

}  // namespace memreplay
