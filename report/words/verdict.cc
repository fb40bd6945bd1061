#include "report/words/verdict.h"

#include <algorithm>
#include <utility>

#include "report/words/lines.h"
#include "report/words/memory_use.h"
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

std::string VerdictFault(const proto::DeviceReport& device) {
  if (!device.has_oom() || device.oom().verdict() == proto::Verdict::none) return "";
  return StrCat("out of memory: ", VerdictPhrase(device.oom().verdict()));
}

std::vector<std::string> FindFaults(const proto::DeviceReport& device) {
  std::vector<std::string> faults;
  if (device.fidelity().has_first_divergence()) {
    faults.push_back(StrCat("the replay differs from the recording from event ",
                            FormatCount(device.fidelity().first_divergence().index()), " on"));
  } else if (device.final_blocks().matched() < device.final_blocks().compared()) {
    const int64_t wrong = device.final_blocks().compared() - device.final_blocks().matched();
    faults.push_back(StrCat(FormatCount(wrong, "block"), " of the final state ",
                            wrong == 1 ? "differs" : "differ", " from the recording"));
  }
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
  if (const proto::Advice& advice = device.advice();
      AsksAdvice(device) && advice.goal_bytes() > 0 && !advice.as_is().fits() &&
      (advice.rows().empty() || !advice.rows(0).fits())) {
    faults.push_back("none of the changes tried makes it fit");
  }
  for (const proto::GpuFault& fault : device.gpu().faults()) {
    faults.push_back(fault.repetition() == 0
                         ? fault.sentence()
                         : StrCat("repetition ", fault.repetition() + 1, ": ", fault.sentence()));
  }
  if (device.failures_size() > 0) {
    faults.push_back(StrCat(FormatCount(device.failures_size(), "request"),
                            device.failures_size() == 1 ? " raises" : " raise", " an exception"));
  }
  for (const proto::Diagnostic& diagnostic : device.diagnostics()) {
    if (diagnostic.severity() == proto::Diagnostic::error) {
      faults.push_back(StrCat("the file contradicts itself ",
                              FormatCount(diagnostic.count(), "time"), ": ",
                              diagnostic.sentence()));
    }
  }
  return faults;
}

void AddFaults(proto::Report* report) {
  for (proto::DeviceReport& device : *report->mutable_devices()) {
    device.clear_faults();
    for (std::string& fault : FindFaults(device)) device.add_faults(std::move(fault));
  }
}

bool HasFaults(const proto::Report& report) {
  return std::any_of(report.devices().begin(), report.devices().end(),
                     [](const proto::DeviceReport& device) { return !device.faults().empty(); });
}

}  // namespace memreplay
