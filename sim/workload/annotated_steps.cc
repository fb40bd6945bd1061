#include "sim/workload/annotated_steps.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

struct Times {
  std::vector<int64_t> start, end;
};

// Returns "ProfilerStep#" for "ProfilerStep#7", and "" if nothing shows that it is a step.
std::string_view NumberedStep(std::string_view name) {
  const size_t last = name.find_last_not_of("0123456789");
  if (last == std::string_view::npos || last + 1 == name.size()) return {};
  const std::string_view prefix = name.substr(0, last + 1);
  const std::string lower = absl::AsciiStrToLower(ToAbsl(prefix));
  for (const char* word : {"step", "iter", "batch"}) {
    if (absl::StrContains(lower, word)) return prefix;
  }
  return {};
}

bool IsOptimizerStep(std::string_view name) {
  return absl::StartsWith(ToAbsl(name), "Optimizer.step#");
}

bool ComesOncePerStep(std::string_view name) {
  return IsOptimizerStep(name) || absl::StartsWith(ToAbsl(name), "Optimizer.zero_grad#") ||
         absl::StartsWith(ToAbsl(name), "enumerate(DataLoader)#");
}

}  // namespace

AnnotatedSteps FindAnnotatedSteps(const Trace& trace, const DeviceTrace& device, uint64_t end) {
  AnnotatedSteps steps;
  if (device.time_us.empty()) return steps;
  std::map<std::string_view, Times> numbered, others;
  for (const Annotation& annotation : trace.annotations) {
    if (annotation.device != device.device) continue;
    const std::string_view name = trace.strings[annotation.name];
    const std::string_view step = NumberedStep(name);
    if (step.empty() && !ComesOncePerStep(name)) continue;
    Times& times = step.empty() ? others[name] : numbered[step];
    const std::string_view stage = trace.strings[annotation.stage];
    if (stage == "START") times.start.push_back(annotation.time_us);
    if (stage == "END") times.end.push_back(annotation.time_us);
  }
  std::vector<int64_t> moments;
  const auto consider = [&](std::string_view name, std::vector<int64_t> candidate) {
    if (candidate.size() <= moments.size()) return;
    moments = std::move(candidate);
    steps.name = std::string(name);
  };
  for (auto& [name, times] : numbered) {
    std::sort(times.start.begin(), times.start.end());
    std::vector<int64_t> candidate = times.start;
    const int64_t last =
        times.end.empty() ? 0 : *std::max_element(times.end.begin(), times.end.end());
    if (!candidate.empty() && last > candidate.back()) candidate.push_back(last);
    consider(name, std::move(candidate));
  }
  for (auto& [name, times] : others) {
    if (times.start.size() > steps.known) {
      steps.known = times.start.size();
      steps.known_name = std::string(name);
    }
    if (!numbered.empty() || !IsOptimizerStep(name)) continue;
    std::sort(times.end.begin(), times.end.end());
    consider(name, times.end);
  }
  const auto first = device.time_us.begin();
  const auto last = first + static_cast<ptrdiff_t>(std::min<uint64_t>(end, device.time_us.size()));
  for (const int64_t moment : moments) {
    const auto at = static_cast<uint64_t>(std::lower_bound(first, last, moment) - first);
    if (steps.begins.empty() || steps.begins.back() < at) steps.begins.push_back(at);
  }
  return steps;
}

}  // namespace memreplay
