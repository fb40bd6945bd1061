#include "sim/workload/steps.h"

#include <algorithm>
#include <bit>
#include <map>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "sim/workload/repetition.h"
#include "trace/value/median.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr int64_t kMinSwing = 1000;  // of a step: this fraction of all that moves

// Returns "it" for "it12.fwd", and "" if the first part of the name has no number.
std::string_view StepName(std::string_view phase) {
  phase = phase.substr(0, phase.find('.'));
  const size_t digits = phase.find_first_of("0123456789");
  if (digits == std::string_view::npos) return {};
  return phase.substr(0, digits);
}

// Returns the begins of steps; phases in a row that begin with one numbered name are one step.
std::vector<uint64_t> BeginsByMarks(const Trace& trace, const DeviceTrace& device, uint64_t end,
                                    std::string* name) {
  std::map<std::string, std::vector<uint64_t>> by_name;
  std::string_view last;
  bool in_step = false;
  std::string last_step;
  for (uint64_t i = 0; i < end; ++i) {
    const Event& event = device.events[i];
    if (!event.is_mark(MarkKind::kPhase)) {
      continue;
    }
    const std::string_view phase = trace.strings[event.text_or_stack];
    const std::string_view step = phase.substr(0, phase.find('.'));
    if (step == last) continue;
    if (in_step) by_name[last_step].push_back(i);  // the step before ends here
    last = step;
    last_step = std::string(StepName(phase));
    in_step = !last_step.empty();
    if (in_step && (by_name[last_step].empty() || by_name[last_step].back() != i)) {
      by_name[last_step].push_back(i);
    }
  }
  std::vector<uint64_t> best;
  for (auto& [step, begins] : by_name) {
    // A step cut off by `end` is not whole.
    if (begins.size() > best.size() || (begins.size() == best.size() && begins < best)) {
      best = std::move(begins);
      *name = step;
    }
  }
  return best;
}

// The allocations before `end`.
struct Allocations {
  std::vector<uint64_t> positions;
  std::vector<int64_t> live;  // before each of them
};

Allocations AllocationsOf(const Trace& trace, const DeviceTrace& device, uint64_t end) {
  Allocations all;
  all.positions.reserve(end / 2);
  all.live.reserve(end / 2);
  LiveBytes bytes(trace, device);
  for (uint64_t i = 0; i < end; ++i) {
    const Event& event = device.events[i];
    if (event.kind == EventKind::kAlloc) {
      all.positions.push_back(i);
      all.live.push_back(bytes.now());
    }
    bytes.Pass(event);
  }
  return all;
}

// A numbering of the distinguishing properties of allocations, from 0 in order of appearance.
class Numbering {
 public:
  struct What {
    uint64_t size;
    uint32_t stack, stream;
    uint16_t pool;
    friend bool operator==(const What&, const What&) = default;
    template <typename H>
    friend H AbslHashValue(H state, const What& what) {
      return H::combine(std::move(state), what.size, what.stack, what.stream, what.pool);
    }
  };
  uint32_t Of(const What& what) {
    // Most were seen recently.
    const uint64_t mixed = (what.size ^ uint64_t{what.stack} << 32) * 0x9e3779b97f4a7c15;
    Met& met = met_[mixed >> (64 - kMetBits)];
    if (!met.is_set || met.what != what) {
      met = {what, known_.try_emplace(what, static_cast<uint32_t>(known_.size())).first->second,
             true};
    }
    return met.number;
  }
  size_t size() const { return known_.size(); }

 private:
  static constexpr int kMetBits = 10;
  struct Met {
    What what;
    uint32_t number;
    bool is_set = false;
  };
  absl::flat_hash_map<What, uint32_t> known_;
  std::vector<Met> met_ = std::vector<Met>(size_t{1} << kMetBits);
};

// Finds repeats of allocations, which are the same if these properties agree. Without a stack, the
// size always counts, at least roughly.
Repetition Repeats(const DeviceTrace& device, const Allocations& all, bool exact_sizes) {
  std::vector<uint32_t> tokens;
  tokens.reserve(all.positions.size());
  Numbering numbers;
  for (const uint64_t position : all.positions) {
    const Event& event = device.events[position];
    uint64_t size = event.size.value();
    if (!exact_sizes) {
      size = event.text_or_stack != kNoStack ? 0 : static_cast<uint64_t>(std::bit_width(size));
    }
    tokens.push_back(numbers.Of({size, event.text_or_stack, event.stream, event.pool}));
  }
  return FindRepetition(tokens, numbers.size(), all.live);
}

// Returns half a sentence on why the repeats do not explain how memory moves while they last, or ""
// if they do.
std::string WhyNotSteps(const DeviceTrace& device, const Allocations& all,
                        const Repetition& repeats) {
  const auto size = [&](size_t i) { return device.events[all.positions[i]].size.signed_value(); };
  std::vector<int64_t> differences, swings;
  int64_t inside = 0, meanwhile = 0;
  for (size_t i = repeats.begins.front(); i < repeats.begins.back(); ++i) meanwhile += size(i);
  for (size_t step = 0; step < repeats.ends.size(); ++step) {
    const int64_t begin = all.live[repeats.begins[step]];
    int64_t high = begin;
    for (size_t i = repeats.begins[step]; i < repeats.ends[step]; ++i) {
      inside += size(i);
      high = std::max(high, all.live[i] + size(i));
    }
    swings.push_back(high - begin);
    if (step > 0) differences.push_back(begin - all.live[repeats.begins[step - 1]]);
  }
  const std::string repeated = StrCat("what repeats ", repeats.ends.size(), " times ");
  if (inside * 2 < meanwhile) {
    return StrCat(repeated, "requests less than half of the memory requested in that time");
  }
  const int64_t swing = Median(std::move(swings));
  const auto [lowest, highest] = std::minmax_element(all.live.begin(), all.live.end());
  if (swing < (*highest - *lowest) / kMinSwing) {
    return StrCat(repeated, "allocates less than a thousandth of the memory allocated");
  }
  if (-Median(std::move(differences)) * 2 > swing) {
    return StrCat(repeated, "releases memory each time");
  }
  return "";
}

// Returns by stack whether it is under Python code that is not a backward pass.
std::vector<bool> ForwardStacks(const Trace& trace) {
  std::vector<bool> forward(trace.stacks.size());
  for (uint32_t stack = 0; stack < trace.stacks.size(); ++stack) {
    for (const uint32_t index : trace.stacks[stack]) {
      const Frame& frame = trace.stacks.frame(index);
      if (absl::EndsWith(ToAbsl(trace.strings[frame.filename]), ".py")) forward[stack] = true;
      if (absl::StrContains(ToAbsl(trace.strings[frame.name]), "backward")) {
        forward[stack] = false;
        break;
      }
    }
  }
  return forward;
}

void Measure(const Trace& trace, const DeviceTrace& device, const Allocations& all, uint64_t inside,
             Steps* steps) {
  const std::vector<bool> forward = ForwardStacks(trace);
  std::vector<int64_t> counts;
  uint64_t held = 0, whole = 0;
  for (size_t step = 0; step < steps->count(); ++step) {
    int64_t count = 0, ahead = 0;
    for (uint64_t i = steps->begins[step]; i < steps->begins[step + 1]; ++i) {
      if (device.events[i].kind != EventKind::kAlloc) continue;
      ++count;
      ahead += forward[device.events[i].text_or_stack];
    }
    counts.push_back(count);
    held += static_cast<uint64_t>(count);
    whole += ahead > 0 && ahead < count;
  }
  steps->whole = whole * 4 >= steps->count() * 3;
  steps->allocations_per_step = static_cast<uint64_t>(Median(std::move(counts)));
  if (inside > 0) held = inside;
  steps->coverage = all.positions.empty()
                        ? 0
                        : static_cast<double>(held) / static_cast<double>(all.positions.size());
}

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

// The steps that annotations of a recording mark.
struct AnnotatedSteps {
  std::string name;  // of the annotations used
  // Positions in DeviceTrace::events where steps begin and where the last ends.
  std::vector<uint64_t> begins;
  // The maximum number of steps that any name which occurs once in a step (an optimizer's step or
  // zero_grad, a DataLoader's next) shows; 0 if there is none.
  uint64_t known = 0;
  std::string known_name;
};

// Finds ranges with a number at the end and "step", "iter" or "batch" in their name
// (ProfilerStep#7), or else the intervals between the ends of one optimizer's steps. Uses events
// before `end`. Returns nothing if there are no times. O(annotations * log events).
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

}  // namespace

Steps FindSteps(const Trace& trace, const DeviceTrace& device, uint64_t end) {
  Steps steps;
  end = std::min<uint64_t>(end, device.events.size());
  const Allocations all = AllocationsOf(trace, device, end);

  steps.begins = BeginsByMarks(trace, device, end, &steps.name);
  if (steps.begins.size() > kMinSteps) {
    steps.source = StepSource::kMarks;
    Measure(trace, device, all, 0, &steps);
    return steps;
  }
  AnnotatedSteps annotated = FindAnnotatedSteps(trace, device, end);
  if (annotated.begins.size() > kMinSteps) {
    steps.source = StepSource::kAnnotations;
    steps.name = std::move(annotated.name);
    steps.begins = std::move(annotated.begins);
    Measure(trace, device, all, 0, &steps);
    return steps;
  }

  Steps none;
  none.why_none = "no sequence of allocations repeats three times";
  Repetition repeats = Repeats(device, all, /*exact_sizes=*/true);
  if (repeats.inside() * 2 < all.positions.size()) {
    Repetition rough = Repeats(device, all, /*exact_sizes=*/false);
    if (rough.inside() > repeats.inside() + repeats.inside() / 2) repeats = std::move(rough);
  }
  if (repeats.begins.size() <= kMinSteps) return none;
  steps.source = StepSource::kPeriod;
  steps.name.clear();
  steps.begins.clear();
  for (const size_t begin : repeats.begins) {
    steps.begins.push_back(begin < all.positions.size() ? all.positions[begin] : end);
  }
  steps.agreement = repeats.agreement;
  if (annotated.known > 0 && steps.count() > annotated.known + 1) {
    none.why_none =
        StrCat("what repeats ", steps.count(), " times is part of a step: ", annotated.known_name,
               " comes ", annotated.known, annotated.known == 1 ? " time" : " times");
    return none;
  }
  if (std::string why = WhyNotSteps(device, all, repeats); !why.empty()) {
    none.why_none = std::move(why);
    return none;
  }
  Measure(trace, device, all, repeats.inside(), &steps);
  return steps;
}

}  // namespace memreplay
