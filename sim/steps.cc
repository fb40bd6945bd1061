#include "sim/steps.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"

namespace memreplay {
namespace {

constexpr size_t kMaxCandidates = 48;
constexpr size_t kMaxEvidence = 5;
// A mismatch outweighs this many matches: stretches agree to at least 7/8.
constexpr int64_t kMismatchCost = 7;
constexpr double kGoodEnough = 0.9;

// Requested bytes live, followed through the events of a file. Frees of a
// program name a handle, those of a recording a size too.
class LiveBytes {
 public:
  explicit LiveBytes(const Trace& trace, const DeviceTrace& device)
      : is_program_(trace.is_program) {
    // A recording that lacks one kind of free is followed by the other.
    const bool completes =
        !is_program_ && std::any_of(device.events.begin(), device.events.end(), [](const Event& e) {
          return e.kind == EventKind::kFreeCompleted;
        });
    end_of_life_ = completes ? EventKind::kFreeCompleted : EventKind::kFree;
  }
  bool IsEndOfLife(const Event& event) const { return event.kind == end_of_life_; }
  void Pass(const Event& event) {
    if (event.kind == EventKind::kAlloc) {
      now_ += event.size.signed_value();
      if (is_program_) sizes_[event.address.value()] = event.size.signed_value();
    } else if (event.kind == end_of_life_) {
      if (!is_program_) {
        now_ -= event.size.signed_value();
      } else if (const auto found = sizes_.find(event.address.value()); found != sizes_.end()) {
        now_ -= found->second;
        sizes_.erase(found);
      }
    }
  }
  int64_t now() const { return now_; }

 private:
  bool is_program_;
  EventKind end_of_life_;
  int64_t now_ = 0;  // from an unknown start, taken as 0
  absl::flat_hash_map<uint64_t, int64_t> sizes_;
};

// "it12.fwd" -> "it"; empty if the first part of the name holds no number.
std::string_view StepName(std::string_view phase) {
  phase = phase.substr(0, phase.find('.'));
  const size_t digits = phase.find_first_of("0123456789");
  if (digits == std::string_view::npos) return {};
  return phase.substr(0, digits);
}

// Runs of phases that begin with one numbered name are one step.
std::vector<uint64_t> BeginsByMarks(const Trace& trace, const DeviceTrace& device, uint64_t end) {
  absl::flat_hash_map<std::string, std::vector<uint64_t>> by_name;
  std::string_view last;
  bool in_step = false;
  std::string last_step;
  for (uint64_t i = 0; i < end; ++i) {
    const Event& event = device.events[i];
    if (event.kind != EventKind::kMark ||
        static_cast<MarkKind>(event.size.value()) != MarkKind::kPhase) {
      continue;
    }
    const std::string_view phase = trace.strings[event.text_or_stack];
    const std::string_view step = phase.substr(0, phase.find('.'));
    if (step == last) continue;
    if (in_step) by_name[last_step].push_back(i);  // where the step before ends
    last = step;
    last_step = std::string(StepName(phase));
    in_step = !last_step.empty();
    if (in_step && (by_name[last_step].empty() || by_name[last_step].back() != i)) {
      by_name[last_step].push_back(i);
    }
  }
  std::vector<uint64_t> best;
  for (auto& [name, begins] : by_name) {
    // A step cut off by `end` is no whole step.
    if (begins.size() > best.size() || (begins.size() == best.size() && begins < best)) {
      best = std::move(begins);
    }
  }
  return best;
}

struct Stretch {
  size_t period = 0;
  size_t begin = 0;  // in the tokens
  size_t length = 0;
  double agreement = 0;
};

// The longest stretch of tokens that repeats after `period`.
Stretch LongestRepeat(const std::vector<uint32_t>& tokens, size_t period) {
  Stretch best;
  best.period = period;
  int64_t score = 0;
  int64_t best_score = 0;
  size_t begin = 0;
  size_t matches = 0;
  for (size_t i = 0; i + period < tokens.size(); ++i) {
    const bool same = tokens[i] == tokens[i + period];
    score += same ? 1 : -kMismatchCost;
    matches += same;
    if (score <= 0) {
      score = 0;
      matches = 0;
      begin = i + 1;
    } else if (score > best_score) {
      best_score = score;
      best.begin = begin;
      best.length = i + 1 - begin + period;
      best.agreement = static_cast<double>(matches) / static_cast<double>(i + 1 - begin);
    }
  }
  return best;
}

// Distances between occurrences of one token that are common and long.
std::vector<size_t> CandidatePeriods(const std::vector<uint32_t>& tokens, size_t distinct) {
  std::vector<size_t> last(distinct, tokens.size());
  absl::flat_hash_map<size_t, size_t> weight;
  for (size_t i = 0; i < tokens.size(); ++i) {
    size_t& before = last[tokens[i]];
    if (before != tokens.size() && i - before > 1) weight[i - before] += 1;
    before = i;
  }
  std::vector<std::pair<size_t, size_t>> ranked;  // weight * distance, distance
  for (const auto& [distance, count] : weight) {
    if (count < 2 || distance * kLeastSteps > tokens.size()) continue;
    ranked.emplace_back(count * distance, distance);
  }
  std::sort(ranked.rbegin(), ranked.rend());
  if (ranked.size() > kMaxCandidates) ranked.resize(kMaxCandidates);
  std::vector<size_t> candidates;
  for (const auto& [score, distance] : ranked) candidates.push_back(distance);
  std::sort(candidates.begin(), candidates.end());
  return candidates;
}

Stretch FindPeriod(const std::vector<uint32_t>& tokens, size_t distinct) {
  std::vector<Stretch> stretches;
  size_t longest = 0;
  for (const size_t period : CandidatePeriods(tokens, distinct)) {
    const Stretch stretch = LongestRepeat(tokens, period);
    if (stretch.length < kLeastSteps * period) continue;
    stretches.push_back(stretch);
    longest = std::max(longest, stretch.length);
  }
  for (const Stretch& stretch : stretches) {
    if (static_cast<double>(stretch.length) >= kGoodEnough * static_cast<double>(longest)) {
      return stretch;
    }
  }
  return {};
}

int64_t Median(std::vector<int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

uint64_t AllocationsPerStep(const DeviceTrace& device, const std::vector<uint64_t>& begins,
                            uint64_t* all) {
  std::vector<int64_t> counts;
  *all = 0;
  for (size_t step = 0; step + 1 < begins.size(); ++step) {
    int64_t count = 0;
    for (uint64_t i = begins[step]; i < begins[step + 1]; ++i) {
      count += device.events[i].kind == EventKind::kAlloc;
    }
    counts.push_back(count);
    *all += static_cast<uint64_t>(count);
  }
  return static_cast<uint64_t>(Median(std::move(counts)));
}

}  // namespace

Steps FindSteps(const Trace& trace, const DeviceTrace& device, uint64_t end) {
  Steps steps;
  end = std::min<uint64_t>(end, device.events.size());
  std::vector<uint32_t> tokens;
  std::vector<uint64_t> positions;  // of the allocations
  std::vector<int64_t> live;        // before each
  absl::flat_hash_map<uint64_t, uint32_t> known;
  LiveBytes bytes(trace, device);
  for (uint64_t i = 0; i < end; ++i) {
    const Event& event = device.events[i];
    if (event.kind == EventKind::kAlloc) {
      const uint64_t hash =
          absl::HashOf(event.size.value(), event.stream, event.text_or_stack, event.pool);
      tokens.push_back(known.emplace(hash, static_cast<uint32_t>(known.size())).first->second);
      positions.push_back(i);
      live.push_back(bytes.now());
    }
    bytes.Pass(event);
  }

  std::vector<uint64_t> begins = BeginsByMarks(trace, device, end);
  if (begins.size() > kLeastSteps) {
    steps.source = StepSource::kMarks;
  } else {
    const Stretch stretch = FindPeriod(tokens, known.size());
    if (stretch.period == 0) return steps;
    steps.source = StepSource::kPeriod;
    steps.agreement = stretch.agreement;
    // Steps begin where, on average, least is live.
    const size_t last = stretch.begin + stretch.length;
    size_t best_offset = 0;
    double best_live = 0;
    for (size_t offset = 0; offset < stretch.period; ++offset) {
      double sum = 0;
      size_t count = 0;
      for (size_t i = stretch.begin + offset; i < last; i += stretch.period, ++count) {
        sum += static_cast<double>(live[i]);
      }
      // Over the same number of steps, lest a growing trend prefers a phase.
      const size_t whole = stretch.length / stretch.period;
      if (count < whole) continue;
      if (count > whole) {
        sum -= static_cast<double>(live[stretch.begin + offset + whole * stretch.period]);
        count = whole;
      }
      if (offset == 0 || sum / static_cast<double>(count) < best_live) {
        best_live = sum / static_cast<double>(count);
        best_offset = offset;
      }
    }
    begins.clear();
    for (size_t i = stretch.begin + best_offset; i < last; i += stretch.period) {
      begins.push_back(positions[i]);
    }
    if (begins.size() <= kLeastSteps) return Steps();
  }
  steps.begins = std::move(begins);
  uint64_t inside = 0;
  steps.allocations_per_step = AllocationsPerStep(device, steps.begins, &inside);
  steps.coverage =
      tokens.empty() ? 0 : static_cast<double>(inside) / static_cast<double>(tokens.size());
  return steps;
}

StepGrowth GrowthPerStep(const Trace& trace, const DeviceTrace& device, const Steps& steps,
                         uint64_t survives_until) {
  StepGrowth growth;
  if (steps.count() == 0) return growth;
  survives_until = std::min<uint64_t>(survives_until, device.events.size());
  struct Born {
    uint64_t event;
    size_t step;
  };
  absl::flat_hash_map<uint64_t, Born> born;  // live allocations of the steps, by address
  LiveBytes bytes(trace, device);
  std::vector<int64_t> swings;
  size_t step = 0;  // begins[0 .. step) are behind
  int64_t highest = 0;
  for (uint64_t i = 0; i < survives_until; ++i) {
    if (step < steps.begins.size() && i == steps.begins[step]) {
      if (step > 0) swings.push_back(highest - growth.live.back());
      growth.live.push_back(bytes.now());
      highest = bytes.now();
      ++step;
    }
    const Event& event = device.events[i];
    bytes.Pass(event);
    highest = std::max(highest, bytes.now());
    if (event.kind == EventKind::kAlloc && step > 0 && step < steps.begins.size()) {
      born[event.address.value()] = {i, step - 1};
    } else if (bytes.IsEndOfLife(event)) {
      born.erase(event.address.value());
    }
  }
  if (growth.live.size() < steps.begins.size()) return growth;  // the events end before the steps
  std::vector<int64_t> differences;
  for (size_t i = 1; i < growth.live.size(); ++i) {
    differences.push_back(growth.live[i] - growth.live[i - 1]);
    growth.growing += differences.back() > 0;
  }
  growth.median = Median(std::move(differences));
  growth.swing = Median(std::move(swings));

  std::vector<Born> left;
  left.reserve(born.size());
  for (const auto& [address, birth] : born) left.push_back(birth);
  std::sort(left.begin(), left.end(),
            [](const Born& a, const Born& b) { return a.event < b.event; });
  absl::flat_hash_map<uint32_t, std::pair<size_t, size_t>> rows;  // stack: row, last step
  for (const Born& birth : left) {
    const Event& event = device.events[birth.event];
    const auto [it, is_new] =
        rows.try_emplace(event.text_or_stack, growth.stacks.size(), steps.begins.size());
    if (is_new) growth.stacks.emplace_back().stack = event.text_or_stack;
    StackGrowth& stack = growth.stacks[it->second.first];
    if (it->second.second != birth.step) ++stack.steps;
    it->second.second = birth.step;
    ++stack.allocations;
    stack.bytes += event.size.signed_value();
    if (stack.events.size() < kMaxEvidence) stack.events.push_back(birth.event);
  }
  std::sort(growth.stacks.begin(), growth.stacks.end(),
            [](const StackGrowth& a, const StackGrowth& b) {
              return std::pair(-a.bytes, a.stack) < std::pair(-b.bytes, b.stack);
            });
  return growth;
}

const StackGrowth* FindLeak(const Steps& steps, const StepGrowth& growth) {
  if (steps.count() < kLeastSteps || growth.median <= 0) return nullptr;
  if (growth.growing * 4 < steps.count() * 3 || growth.median * 2 > growth.swing) return nullptr;
  for (const StackGrowth& stack : growth.stacks) {
    if (stack.steps * 4 >= steps.count() * 3) return &stack;
  }
  return nullptr;
}

}  // namespace memreplay
