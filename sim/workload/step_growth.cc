#include "sim/workload/step_growth.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "trace/value/median.h"

namespace memreplay {
namespace {

constexpr size_t kMaxEvidence = 5;
constexpr uint64_t kMinRegular = 3;

struct Born {
  uint64_t event;
  Bytes size;
  uint32_t site;
  bool before_steps;
};

// One site while the steps are processed.
struct Site {
  SiteGrowth growth;
  int64_t now = 0;       // bytes it holds
  int64_t at_begin = 0;  // of the current step
  int64_t first = 0;     // at the first begin
  int64_t since = 0;     // at the last time that it held less than before
  uint64_t grown_since = 0;
  uint64_t last_grown = 0;  // step
  uint64_t least_gap = ~uint64_t{0}, largest_gap = 0;
  bool shrank = false;
  bool touched = false;
};

class Sites {
 public:
  explicit Sites(size_t steps) : steps_(steps), late_(steps - (steps + 3) / 4) {}

  uint32_t Of(const Event& event) {
    // Sizes distinguish sites without stacks.
    const uint64_t size = event.text_or_stack == kNoStack ? event.size.value() : 0;
    const auto [it, is_new] = index_.try_emplace(std::pair(event.text_or_stack, size),
                                                 static_cast<uint32_t>(sites_.size()));
    if (is_new) {
      SiteGrowth& growth = sites_.emplace_back().growth;
      growth.stack = event.text_or_stack;
      growth.size = Bytes(size);
    }
    return it->second;
  }
  void Add(uint32_t site, int64_t bytes) {
    sites_[site].now += bytes;
    if (!sites_[site].touched) touched_.push_back(site);
    sites_[site].touched = true;
  }
  // Begins step `step`, counted from 0; the number of steps ends the last one.
  void Begin(size_t step) {
    for (const uint32_t index : touched_) {
      Site& site = sites_[index];
      site.touched = false;
      if (step == 0) {
        site.first = site.since = site.now;
      } else if (site.now > site.at_begin) {
        Grew(step - 1, &site);
      } else if (site.now < site.at_begin) {
        site.shrank = true;
        const int64_t added = site.at_begin - site.since;
        if (site.grown_since >= kMinRegular && (site.now - site.since) * 2 <= added) {
          site.growth.released = true;
        }
        site.since = std::min(site.since, site.now);
        site.grown_since = 0;
      }
      site.at_begin = site.now;
    }
    touched_.clear();
    if (step != steps_) return;
    for (Site& site : sites_) {
      site.growth.bytes = site.now - site.first;
      const bool regular = !site.shrank && site.growth.steps >= kMinRegular &&
                           site.largest_gap <= site.least_gap + 1 &&
                           site.last_grown + site.largest_gap + 1 >= steps_;
      if (regular) site.growth.every = site.largest_gap;
    }
  }
  Site& operator[](uint32_t site) { return sites_[site]; }
  std::vector<Site>& all() { return sites_; }

 private:
  void Grew(size_t step, Site* site) {
    if (site->growth.steps > 0) {
      site->least_gap = std::min<uint64_t>(site->least_gap, step - site->last_grown);
      site->largest_gap = std::max<uint64_t>(site->largest_gap, step - site->last_grown);
    }
    ++site->growth.steps;
    ++site->grown_since;
    site->growth.late_steps += step >= late_;
    site->last_grown = step;
  }

  const size_t steps_;
  const size_t late_;  // begin of the last quarter
  std::vector<Site> sites_;
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, uint32_t> index_;
  std::vector<uint32_t> touched_;  // since the last begin
};

}  // namespace

StepGrowth GrowthPerStep(const Trace& trace, const DeviceTrace& device, const Steps& steps,
                         uint64_t survives_until) {
  StepGrowth growth;
  if (steps.count() == 0) return growth;
  survives_until = std::min<uint64_t>(survives_until, device.events.size());
  absl::flat_hash_map<uint64_t, Born> born;  // live allocations, by address
  LiveBytes bytes(trace, device);
  Sites sites(steps.count());
  std::vector<int64_t> swings;
  size_t step = 0;  // begins[0 .. step) have passed
  int64_t highest = 0;
  for (uint64_t i = 0; i <= survives_until; ++i) {
    if (step < steps.begins.size() && i == steps.begins[step]) {
      if (step > 0) swings.push_back(highest - growth.live.back());
      growth.live.push_back(bytes.now());
      highest = bytes.now();
      sites.Begin(step++);
    }
    if (i == survives_until) break;
    const Event& event = device.events[i];
    bytes.Pass(event);
    highest = std::max(highest, bytes.now());
    if (event.kind == EventKind::kAlloc) {
      const Born birth = {i, event.size, sites.Of(event), step == 0};
      born[event.address.value()] = birth;
      sites.Add(birth.site, event.size.signed_value());
    } else if (bytes.IsEndOfLife(event)) {
      const auto found = born.find(event.address.value());
      if (found == born.end()) continue;
      sites.Add(found->second.site, -found->second.size.signed_value());
      born.erase(found);
    }
  }
  if (growth.live.size() < steps.begins.size()) return {};  // the events end before the steps
  std::vector<int64_t> differences;
  for (size_t i = 1; i < growth.live.size(); ++i) {
    differences.push_back(growth.live[i] - growth.live[i - 1]);
    growth.growing += differences.back() > 0;
  }
  growth.median = Median(std::move(differences));
  growth.swing = Median(std::move(swings));

  std::vector<Born> kept;
  for (const auto& [address, birth] : born) {  // in any order
    if (!birth.before_steps) kept.push_back(birth);
  }
  std::sort(kept.begin(), kept.end(),
            [](const Born& a, const Born& b) { return a.event < b.event; });
  const auto add = [&](const Born& birth) {
    SiteGrowth& site = sites[birth.site].growth;
    ++site.allocations;
    if (site.events.size() < kMaxEvidence) site.events.push_back(birth.event);
  };
  // What came after the steps is evidence only if nothing else is left: for a buffer that is made
  // anew each time.
  std::vector<bool> within(sites.all().size());
  for (const Born& birth : kept) {
    if (birth.event >= steps.begins.back()) continue;
    within[birth.site] = true;
    add(birth);
  }
  for (const Born& birth : kept) {
    if (!within[birth.site]) add(birth);
  }
  for (Site& site : sites.all()) {
    site.growth.kept = site.now - site.first;
    if (site.growth.bytes > 0) growth.sites.push_back(std::move(site.growth));
  }
  std::sort(growth.sites.begin(), growth.sites.end(), [](const SiteGrowth& a, const SiteGrowth& b) {
    return std::tuple(-a.bytes, a.stack, a.size) < std::tuple(-b.bytes, b.stack, b.size);
  });
  return growth;
}

bool MayBeLayers(const Steps& steps, const StepGrowth& growth) {
  return steps.source == StepSource::kPeriod && !steps.whole && growth.median * 2 > growth.swing;
}

const SiteGrowth* FindLeak(const Steps& steps, const StepGrowth& growth) {
  const size_t count = steps.count();
  if (count < kMinSteps || MayBeLayers(steps, growth)) return nullptr;
  for (const SiteGrowth& site : growth.sites) {
    const bool goes_on = site.steps * 4 >= count * 3 && site.late_steps * 4 >= (count + 3) / 4 * 3;
    if ((goes_on || site.every > 0) && !site.released && site.kept * 2 >= site.bytes) {
      return &site;
    }
  }
  return nullptr;
}

}  // namespace memreplay
