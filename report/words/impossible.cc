#include <string_view>

#include "report/words/sizes.h"
#include "report/words/verdict.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

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
