// A bounded search of the settings that a release allows (sweep.h).
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "sim/whatif/sweep.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// The memory fraction for garbage collection, which leaves the rest free.
constexpr double kFraction = 0.95;

// Limits of the search: the requests that all its replays have together, unless there are few
// settings, and those of one family if not all of its settings are tried.
constexpr uint64_t kMaxSearchRequests = uint64_t{1} << 27;
constexpr size_t kMinSearch = 16;
constexpr size_t kFamilies = 4;  // that have several settings

enum class Family : uint8_t { kExpandable, kMaxSplit, kRoundup, kLargeSegment, kGarbage };

struct Single {
  Family family;
  Candidate candidate;
};

// Returns the bytes requested by size in MiB, rounded down, for sizes of at least a MiB.
std::map<uint64_t, uint64_t> SizesInMib(const Schedule& schedule) {
  std::map<uint64_t, uint64_t> sizes;
  const auto add = [&sizes](Bytes size) {
    if (size >= MiB(1)) sizes[size / MiB(1)] += size.value();
  };
  for (const StartAllocation& start : schedule.start_allocations()) add(start.requested_size);
  for (const Event& request : schedule.requests()) {
    if (request.kind == EventKind::kAlloc) add(request.size);
  }
  return sizes;
}

class ConfSearch {
 public:
  explicit ConfSearch(const SweepContext& context)
      : context_(context),
        profile_(*context.settings.torch.profile),
        sizes_(SizesInMib(context.study.schedule())),
        most_(MaxSearch(context.study.schedule())) {}

  std::vector<SweepRow> Find() {
    rows_.push_back(ReplayRow(context_, context_.settings));
    tried_.push_back({context_.settings.config, context_.settings.fraction});
    Expandable();
    MaxSplit();
    Roundup();
    LargeSegment();
    Garbage();
    Try();
    Pairs();
    Try();
    NearBestMaxSplit();
    Try();
    std::sort(rows_.begin(), rows_.end(), RanksBefore);
    return std::move(rows_);
  }

 private:
  struct Tried {
    AllocatorConfig config;
    std::optional<double> fraction;
  };

  bool Knows(ConfKey key) const { return profile_.conf_keys.Has(key); }

  uint64_t least_split() const { return profile_.max_split_may_equal_large_segment ? 20 : 21; }
  uint64_t largest() const { return sizes_.empty() ? 0 : sizes_.rbegin()->first; }

  // Returns the size in MiB below which `share` of the bytes are requested.
  uint64_t Quantile(double share) const {
    double total = 0, below = 0;
    for (const auto& [mib, bytes] : sizes_) total += static_cast<double>(bytes);
    for (const auto& [mib, bytes] : sizes_) {
      below += static_cast<double>(bytes);
      if (below >= share * total) return mib;
    }
    return largest();
  }

  void Expandable() {
    if (Knows(ConfKey::kExpandableSegments)) {
      Add(Family::kExpandable, "expandable_segments:True");
    }
  }

  void AddMaxSplit(uint64_t mib) {
    if (mib < least_split() || mib > std::max(largest() + 1, least_split())) return;
    if (split_tried_.insert(mib).second) {
      Add(Family::kMaxSplit, StrCat("max_split_size_mb:", mib));
    }
  }
  void MaxSplit() {
    if (largest() < 2) return;  // no size could have a limit
    AddMaxSplit(least_split());
    for (const uint64_t mib : {32, 64, 128, 256, 512, 1024}) AddMaxSplit(mib);
    for (const double share : {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}) {
      const uint64_t mib = Quantile(share);
      AddMaxSplit(mib);
      AddMaxSplit(mib + 1);
    }
  }

  void Roundup() {
    for (const int divisions : {4, 8, 16, 32, 64}) {
      Add(Family::kRoundup, StrCat("roundup_power2_divisions:", divisions));
    }
    // Tries coarse divisions for only the large sizes, or for all others. If 1 would leave sizes as
    // they are, the finest stands for it.
    const int fine = profile_.division_one_keeps_size ? 64 : 1;
    for (const uint64_t mib : {4, 16, 64, 256}) {
      if (mib > largest()) break;
      for (const int divisions : {4, 8}) {
        Add(Family::kRoundup,
            StrCat("roundup_power2_divisions:[", mib, ":", fine, ",>:", divisions, "]"));
      }
      Add(Family::kRoundup, StrCat("roundup_power2_divisions:[", mib, ":8,>:", fine, "]"));
    }
  }

  void LargeSegment() {
    if (!Knows(ConfKey::kLargeSegmentSizeMb)) return;
    for (const int mib : {32, 64, 128, 256, 512}) {
      Add(Family::kLargeSegment, StrCat("large_segment_size_mb:", mib));
    }
  }

  // Adds the limit that garbage collection is a share of.
  Candidate WithLimit(std::string conf) const {
    Candidate candidate{std::move(conf), std::nullopt};
    if (context_.settings.fraction.has_value() &&
        (*context_.settings.fraction < 1 || profile_.fraction_sticky)) {
      return candidate;
    }
    if (profile_.fraction_sticky) {
      candidate.fraction = 1.0;
    } else if (Knows(ConfKey::kPerProcessMemoryFraction)) {
      StrAppend(&candidate.conf, ",per_process_memory_fraction:", kFraction);
    } else {
      candidate.fraction = kFraction;
    }
    return candidate;
  }
  void Garbage() {
    if (!context_.settings.capacity.has_value()) return;
    for (const double threshold : {0.5, 0.6, 0.7, 0.8, 0.9}) {
      Add(Family::kGarbage, WithLimit(StrCat("garbage_collection_threshold:", threshold)));
    }
  }

  void Pairs() {
    const std::vector<Single> splits = Best(Family::kMaxSplit, 2);
    const std::vector<Single> roundups = Best(Family::kRoundup, 4);
    const std::vector<Single> segments = Best(Family::kLargeSegment, 2);
    const std::vector<Single> garbage = Best(Family::kGarbage, 1);
    const std::vector<Single> expandable = Best(Family::kExpandable, 1);
    Join(expandable, roundups);
    Join(splits, roundups);
    Join(splits, garbage);
    Join(roundups, segments);
    Join(roundups, garbage);
    Join(splits, segments);
    if (Knows(ConfKey::kMaxNonSplitRoundingMb)) {
      for (const Single& split : splits) {
        for (const int mib : {64, 256, 1024}) {
          Add(Family::kMaxSplit, StrCat(split.candidate.conf, ",max_non_split_rounding_mb:", mib));
        }
      }
    }
  }

  void NearBestMaxSplit() {
    const std::vector<Single> best = Best(Family::kMaxSplit, 1);
    if (best.empty()) return;
    const std::string& conf = best[0].candidate.conf;
    uint64_t mib = 0;
    for (const uint64_t tried : split_tried_) {
      const std::string head = StrCat("max_split_size_mb:", tried);
      if (conf == head || conf.rfind(head + ",", 0) == 0) mib = tried;
    }
    if (mib == 0) return;
    const auto at = split_tried_.find(mib);
    const uint64_t below = at == split_tried_.begin() ? mib : *std::prev(at);
    const uint64_t above = std::next(at) == split_tried_.end() ? mib : *std::next(at);
    for (const uint64_t parts : {1, 2}) {
      AddMaxSplit(below + (mib - below) * parts / 3);
      AddMaxSplit(mib + (above - mib) * parts / 3);
    }
  }

  void Add(Family family, std::string conf) {
    Add(family, Candidate{std::move(conf), std::nullopt});
  }
  // Adds a candidate unless the release rejects it or its meaning was already tried.
  void Add(Family family, Candidate candidate) {
    const bool is_cut = most_ < kMaxSearch && added_[family] >= most_ / kFamilies;
    if (tried_.size() >= most_ || is_cut) return;
    const absl::StatusOr<ReplaySettings> settings = SettingsFor(context_.settings, candidate);
    if (!settings.ok()) return;
    Tried meaning{settings->config, settings->fraction};
    meaning.config.conf.clear();
    for (Tried& tried : tried_) {
      AllocatorConfig config = tried.config;
      config.conf.clear();
      config.backend_loaded = meaning.config.backend_loaded;
      if (config == meaning.config && tried.fraction == meaning.fraction) return;
    }
    tried_.push_back(std::move(meaning));
    ++added_[family];
    waiting_.push_back({family, std::move(candidate)});
  }

  void Join(const std::vector<Single>& left, const std::vector<Single>& right) {
    for (const Single& a : left) {
      for (const Single& b : right) {
        Candidate both{StrCat(a.candidate.conf, ",", b.candidate.conf), b.candidate.fraction};
        if (a.candidate.fraction.has_value()) both.fraction = a.candidate.fraction;
        Add(a.family, std::move(both));
      }
    }
  }

  void Try() {
    std::vector<Candidate> candidates;
    for (const Single& single : waiting_) candidates.push_back(single.candidate);
    std::vector<SweepRow> rows = Sweep(context_, candidates, rows_);
    for (size_t i = 0; i < rows.size(); ++i) {
      families_[waiting_[i].family].push_back(rows[i]);
      rows_.push_back(std::move(rows[i]));
    }
    waiting_.clear();
  }

  std::vector<Single> Best(Family family, size_t count) {
    std::vector<SweepRow>& rows = families_[family];
    std::sort(rows.begin(), rows.end(), RanksBefore);
    std::vector<Single> best;
    for (size_t i = 0; i < std::min(count, rows.size()); ++i) {
      best.push_back({family, {rows[i].conf, rows[i].fraction}});
    }
    return best;
  }

  const SweepContext& context_;
  const TorchProfile& profile_;
  const std::map<uint64_t, uint64_t> sizes_;
  const size_t most_;
  std::map<Family, size_t> added_;
  std::set<uint64_t> split_tried_;
  std::vector<Tried> tried_;
  std::vector<Single> waiting_;
  std::map<Family, std::vector<SweepRow>> families_;
  std::vector<SweepRow> rows_;
};

}  // namespace

size_t MaxSearch(const Schedule& schedule) {
  const uint64_t requests = std::max<uint64_t>(schedule.requests().size(), 1);
  return std::clamp(static_cast<size_t>(kMaxSearchRequests / requests), kMinSearch, kMaxSearch);
}

std::vector<SweepRow> SearchConf(const SweepContext& context) { return ConfSearch(context).Find(); }

}  // namespace memreplay
