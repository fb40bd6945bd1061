#include "sim/whatif/smallest_capacity.h"

#include <algorithm>

namespace memreplay {
namespace {

constexpr Bytes kUnit = MiB(2);  // the allocation unit of devices
constexpr uint64_t kGrid = 16;   // devices tried after a walk that had to stop

bool SetsFraction(const Schedule& schedule) {
  return std::any_of(schedule.requests().begin(), schedule.requests().end(),
                     [](const Event& event) { return event.kind == EventKind::kFraction; });
}

class Edge {
 public:
  Edge(const SweepContext& context, const ReplaySettings& settings, uint64_t max_sizes)
      : context_(context),
        settings_(settings),
        max_sizes_(max_sizes),
        depends_on_size_(SetsFraction(context.study.schedule()) ||
                         settings.fraction.value_or(1) < 1 ||
                         settings.config.per_process_memory_fraction < 1 ||
                         settings.config.garbage_collection_threshold > 0) {}

  SmallestCapacity Find(Bytes least) {
    SmallestCapacity result;
    settings_.TakeDevice(std::nullopt);
    const SweepRow unlimited = ReplayRow(context_, settings_, /*keep=*/false);
    result.unlimited_peak_reserved = unlimited.peak_reserved;
    result.unlimited_peak_allocated = unlimited.peak_allocated;
    const uint64_t low = RoundUp(least, kUnit) / kUnit;
    uint64_t high = std::max(low, RoundUp(unlimited.peak_reserved, kUnit) / kUnit);
    // A limit, and what depends on the device's size, may need more than that.
    for (int doubled = 0; !Survives(kUnit * high) && doubled < 4; ++doubled) high *= 2;
    if (Survives(kUnit * high)) {
      const Bytes edge = kUnit * Bisect(low, high);
      Prove(kUnit * low, edge, kUnit * high, &result);
    }
    result.is_cut = is_cut_;
    for (const auto& [capacity, probe] : probes_) {
      result.probes.push_back(probe);
      if (probe.survives && probe.alloc_retries == 0 && !result.without_retries.has_value()) {
        result.without_retries = probe.capacity;
      }
    }
    return result;
  }

 private:
  uint64_t sizes_left() const {
    return max_sizes_ - std::min<uint64_t>(max_sizes_, probes_.size());
  }

  bool Survives(Bytes capacity) { return Probe(capacity).survives; }

  const CapacityProbe& Probe(Bytes capacity) {
    const auto found = probes_.find(capacity);
    if (found != probes_.end()) return found->second;
    settings_.capacity = capacity;
    const SweepRow row = ReplayRow(context_, settings_, /*keep=*/false);
    CapacityProbe& probe = probes_[capacity];
    probe.capacity = capacity;
    probe.same_until = depends_on_size_ ? std::optional(capacity + kUnit) : row.same_until;
    probe.survives = row.survives();
    probe.ooms = row.ooms;
    probe.alloc_retries = row.alloc_retries;
    probe.peak_reserved = row.peak_reserved;
    probe.device_calls = row.calls.total();
    return probe;
  }

  // Returns, in units, a value that survives while the one below does not, or `low`. `high` must
  // survive. Without enough sizes left, the value is larger.
  uint64_t Bisect(uint64_t low, uint64_t high) {
    while (low < high) {
      if (sizes_left() == 0) {
        is_cut_ = true;
        break;
      }
      const uint64_t middle = low + (high - low) / 2;
      if (Survives(kUnit * middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return high;
  }

  void Prove(Bytes low, Bytes edge, Bytes high, SmallestCapacity* result) {
    uint64_t runs = RunsFor(context_.study.schedule().requests().size());
    const auto run = [&](Bytes capacity) {
      const CapacityProbe& probe = Probe(capacity);
      runs -= runs > 0 ? 1 : 0;
      return CapacityOutcome{probe.survives, probe.same_until};
    };
    const auto walk = [&](Bytes from, std::optional<Bytes> to) {
      const uint64_t allowed = std::min(runs, sizes_left());
      const bool is_limited = allowed < runs;
      const CapacityWalk walked = WalkCapacities(from, to, allowed, run);
      is_cut_ = is_cut_ || (is_limited && walked.stopped_at.has_value());
      return walked;
    };
    // Nothing is refused on a device as large as an unlimited one's reserved memory.
    const std::optional<Bytes> end = depends_on_size_ ? std::optional(high + kUnit) : std::nullopt;
    const CapacityWalk above = walk(edge, end);
    result->safe_capacity = above.safe;
    if (depends_on_size_) result->proven_until = high;
    if (above.stopped_at.has_value()) {
      result->proven_until = *above.stopped_at;
      // The rest is sampled, up to `high`, which was tried. The last failure is below the safe
      // ones.
      const uint64_t parts = std::min(kGrid, std::max<uint64_t>(sizes_left(), 1));
      is_cut_ = is_cut_ || parts < kGrid;
      for (uint64_t i = 0; i <= parts; ++i) {
        const Bytes capacity =
            RoundUp(*above.stopped_at +
                        Bytes((high - std::min(high, *above.stopped_at)).value() / parts * i),
                    kUnit);
        if (sizes_left() == 0 && probes_.count(capacity) == 0) continue;
        if (!Survives(capacity)) {
          result->safe_capacity.reset();
        } else if (!result->safe_capacity.has_value()) {
          result->safe_capacity = capacity;
          result->proven_until = capacity;
        }
      }
    }
    const CapacityWalk below = walk(low, edge);
    result->capacity = below.smallest.value_or(edge);
    result->is_smallest = below.smallest.has_value() || !below.stopped_at.has_value();
  }

  const SweepContext& context_;
  ReplaySettings settings_;
  const uint64_t max_sizes_;
  bool is_cut_ = false;
  const bool depends_on_size_;
  std::map<Bytes, CapacityProbe> probes_;
};

// A question of four walks takes no more than twenty times a replay and its reading, which together
// cost about six of these runs and a hundredth of a second.
constexpr uint64_t kMaxRequests = uint64_t{1} << 20;  // replayed for one answer
constexpr uint64_t kMinRuns = 24;
constexpr uint64_t kMaxRuns = 256;

// A search on any schedule of up to 0.6 million requests is not limited by these.
constexpr uint64_t kMaxSizeRequests = 40'000'000;
constexpr uint64_t kMinSizes = 8;

}  // namespace

SmallestCapacity FindSmallestCapacity(const SweepContext& context, const ReplaySettings& settings,
                                      Bytes least, uint64_t max_sizes) {
  return Edge(context, settings, max_sizes).Find(least);
}

CapacityWalk WalkCapacities(Bytes from, std::optional<Bytes> below, uint64_t max_runs,
                            const std::function<CapacityOutcome(Bytes capacity)>& run) {
  CapacityWalk walk;
  Bytes capacity = from;
  for (uint64_t runs = 0; !below.has_value() || capacity < *below; ++runs) {
    if (runs == max_runs) {
      walk.stopped_at = capacity;
      return walk;
    }
    const CapacityOutcome outcome = run(capacity);
    if (outcome.survives) {
      if (!walk.smallest.has_value()) walk.smallest = capacity;
      if (!walk.safe.has_value()) walk.safe = capacity;
    } else {
      walk.safe.reset();
    }
    if (!outcome.same_until.has_value()) return walk;
    capacity = *outcome.same_until;
  }
  return walk;
}

uint64_t RunsFor(uint64_t requests) {
  return std::clamp(kMaxRequests / std::max<uint64_t>(requests, 1), kMinRuns, kMaxRuns);
}

uint64_t MaxSizes(uint64_t requests) {
  return std::max(kMaxSizeRequests / std::max<uint64_t>(requests, 1), kMinSizes);
}

LargestFit FindLargestFit(int64_t limit, uint64_t max_tries,
                          const std::function<FitOutcome(int64_t value)>& outcome) {
  LargestFit found;
  const auto probe = [&](int64_t value) {
    const auto known = found.tried.find(value);
    if (known != found.tried.end()) return known->second;
    const FitOutcome is = outcome(value);
    if (is != FitOutcome::kUntried) found.tried.emplace(value, is);
    return is;
  };
  const auto fits = [&](int64_t value) { return probe(value) == FitOutcome::kFits; };

  int64_t low = 0;  // the edge: low fits (or is 0), high does not (or is above limit)
  int64_t high = 1;
  while (high <= limit && fits(high)) {
    low = high;
    high = high <= limit / 2 ? 2 * high : high == limit ? limit + 1 : limit;
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  const auto may_try = [&](int64_t value) {
    return found.tried.count(value) > 0 || found.tried.size() < max_tries;
  };
  const auto is_end = [](FitOutcome is) {
    return is == FitOutcome::kNever || is == FitOutcome::kUntried;
  };
  int64_t above = low + 1;
  while (above <= limit && may_try(above) && !is_end(probe(above))) ++above;
  found.largest_is_proven = above > limit || found.tried.count(above) > 0;
  int64_t below = low;
  while (below >= 1 && may_try(below) && probe(below) != FitOutcome::kUntried) --below;
  found.safe_is_proven = below < 1 && (low == limit || found.tried.count(low + 1) > 0);

  bool all_fit = true;
  for (const auto& [value, is] : found.tried) {
    all_fit = all_fit && (is == FitOutcome::kFits || is == FitOutcome::kNoValue);
    if (is != FitOutcome::kFits) continue;
    found.largest = value;
    if (all_fit) found.safe = value;
  }
  return found;
}

}  // namespace memreplay
