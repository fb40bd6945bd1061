#include "sim/whatif/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sim/whatif/smallest_capacity.h"
#include "sim/workload/lifetimes.h"
#include "trace/formats/open_trace.h"

namespace memreplay {
namespace {

constexpr char kServing[] = "tests/data/serving.jsonl";

// A schedule, and what a sweep of it needs.
struct Subject {
  explicit Subject(const std::string& name, const SettingsRequest& request = {})
      : Subject(std::make_shared<const Trace>(Read(name)), request) {}
  explicit Subject(std::shared_ptr<const Trace> given, const SettingsRequest& request = {})
      : trace(std::move(given)),
        settings(*ResolveSettings(*trace, request)),
        study(std::make_shared<Study>(Schedule::Build(trace, 0), settings)),
        schedule(study->schedule()) {}

  static Trace Read(const std::string& name) {
    absl::StatusOr<Trace> trace = OpenTrace(name);
    EXPECT_TRUE(trace.ok()) << trace.status();
    return *std::move(trace);
  }
  SweepContext context(size_t threads = 1) const {
    return {*study, settings, StartPolicy::kRecorded, threads};
  }
  SweepRow Row(const std::string& conf) const {
    const std::vector<Candidate> candidates = {{conf, std::nullopt}};
    return Sweep(context(), candidates)[0];
  }

  std::shared_ptr<const Trace> trace;
  ReplaySettings settings;
  std::shared_ptr<const Study> study;
  const Schedule& schedule;
};

// Requests of 2 to 60 MiB, freed at random.
Trace RandomProgram(uint32_t seed) {
  std::mt19937 random(seed);
  Trace trace;
  trace.is_program = true;
  trace.streams = {StreamHandle(0)};
  DeviceTrace& device = trace.devices.emplace_back();
  std::vector<uint64_t> live;
  for (uint64_t handle = 1; handle <= 40; ++handle) {
    Event event;
    event.kind = EventKind::kAlloc;
    event.address = Address(handle);
    event.size = MiB(2) * (1 + random() % 30);
    device.events.push_back(event);
    live.push_back(handle);
    while (live.size() > 2 && random() % 5 < 2) {
      const size_t which = random() % live.size();
      event.kind = EventKind::kFree;
      event.address = Address(live[which]);
      device.events.push_back(event);
      live.erase(live.begin() + static_cast<ptrdiff_t>(which));
    }
  }
  return trace;
}

SettingsRequest Torch(std::string version) {
  SettingsRequest request;
  request.torch = std::move(version);
  return request;
}

std::string Describe(const std::vector<SweepRow>& rows) {
  std::string text;
  for (const SweepRow& row : rows) {
    text += row.conf + " " + std::to_string(row.ooms) + " " +
            std::to_string(row.peak_reserved.value()) + " " + std::to_string(row.calls.total()) +
            "\n";
  }
  return text;
}

// pytorch#193400: neither option alone comes near, in no release.
TEST(Mechanisms, MaxSplitWithExpandableSegmentsGrows) {
  for (const char* torch : {"2.1", "2.6", "2.11", "2.15"}) {
    SCOPED_TRACE(torch);
    const Subject growth("examples/waste/growth.txtpb", Torch(torch));
    const SweepRow both = growth.Row("max_split_size_mb:128,expandable_segments:True");
    EXPECT_GT(both.peak_reserved, MiB(13500));
    EXPECT_LT(both.peak_reserved, MiB(14500));
    EXPECT_LT(growth.Row("max_split_size_mb:128").peak_reserved, MiB(500));
    EXPECT_LT(growth.Row("expandable_segments:True").peak_reserved, MiB(500));
    const PeakCause cause = WhyReserved(growth.context(), both);
    EXPECT_EQ(cause.main(), Obstacle::kOversize);
    EXPECT_GT(cause[Obstacle::kOversize].bytes, MiB(13000));
    EXPECT_LT(cause.requested, MiB(128));
  }
}

// vllm#41268: 260 MiB stranded per pair.
TEST(Mechanisms, MaxSplitAvoidsStranding) {
  const Subject stranding("examples/waste/stranding.txtpb");
  const SweepRow as_is = stranding.Row("");
  EXPECT_EQ(as_is.peak_reserved, MiB(20 * 530));
  EXPECT_EQ(stranding.Row("max_split_size_mb:20").peak_reserved, MiB(20 * 270 + 530));
  const PeakCause cause = WhyReserved(stranding.context(), as_is);
  EXPECT_EQ(cause.main(), Obstacle::kSplit);
  EXPECT_EQ(cause[Obstacle::kSplit].largest, MiB(260));
  EXPECT_EQ(cause[Obstacle::kSplit].blocks, 19u);
}

// Megatron-LM#6885.
TEST(Mechanisms, AStrayStreamKeepsItsMemory) {
  const Subject stray("examples/waste/stray_stream.txtpb");
  const SweepRow as_is = stray.Row("");
  EXPECT_GT(as_is.peak_reserved, as_is.peak_allocated + MiB(20900));
  const PeakCause cause = WhyReserved(stray.context(), as_is);
  EXPECT_EQ(cause.main(), Obstacle::kOtherStream);
  EXPECT_EQ(cause[Obstacle::kOtherStream].bytes, MiB(41 * 512));
}

TEST(Sweep, RowsDoNotDependOnTheNumberOfThreads) {
  const Subject serving(kServing);
  const std::string alone = Describe(SearchConf(serving.context(1)));
  EXPECT_EQ(Describe(SearchConf(serving.context(4))), alone);
}

TEST(Sweep, SettingsThatRoundEverySizeAlikeAreOneReplay) {
  // Even numbers of MiB from 2 to 60: divisions of what is smaller or larger mean nothing,
  // and 64 divisions are steps of at most half a MiB.
  const std::vector<Candidate> candidates = {
      {"", std::nullopt},
      {"roundup_power2_divisions:8", std::nullopt},
      {"roundup_power2_divisions:[256:8,>:1]", std::nullopt},
      {"roundup_power2_divisions:[1:1,2:8,>:8]", std::nullopt},
      {"roundup_power2_divisions:4", std::nullopt},
      {"roundup_power2_divisions:64", std::nullopt},
      {"roundup_power2_divisions:8,max_split_size_mb:32", std::nullopt},
      {"roundup_power2_divisions:no", std::nullopt}};
  for (const uint32_t seed : {1u, 2u, 3u}) {
    const Subject subject(std::make_shared<const Trace>(RandomProgram(seed)));
    std::vector<ReplaySettings> settings;
    for (size_t i = 0; i + 1 < candidates.size(); ++i) {
      settings.push_back(*SettingsFor(subject.settings, candidates[i]));
    }
    const std::vector<size_t> first = FirstAlike(subject.schedule, settings);
    EXPECT_EQ(first, (std::vector<size_t>{0, 1, 1, 1, 4, 0, 6}));
    const std::vector<SweepRow> together = Sweep(subject.context(2), candidates);
    for (size_t i = 0; i < candidates.size(); ++i) {
      const SweepRow alone = subject.Row(candidates[i].conf);
      EXPECT_EQ(together[i].conf, alone.conf);
      EXPECT_EQ(together[i].refused, alone.refused);
      EXPECT_TRUE(together[i].config == alone.config);
      EXPECT_EQ(Describe({together[i]}), Describe({alone}));
      EXPECT_EQ(together[i].at_peak, alone.at_peak);
      EXPECT_EQ(together[i].cause_event, alone.cause_event);
    }
  }
}

TEST(Sweep, TheSizeOfLargeSegmentsMattersWhereSeveralBlocksShareOne) {
  const std::vector<Candidate> candidates = {
      {"", std::nullopt},
      {"large_segment_size_mb:64", std::nullopt},
      {"expandable_segments:True", std::nullopt},
      {"expandable_segments:True,large_segment_size_mb:64", std::nullopt}};
  const auto first_of = [&](const Subject& subject) {
    std::vector<ReplaySettings> settings;
    for (const Candidate& candidate : candidates) {
      settings.push_back(*SettingsFor(subject.settings, candidate));
    }
    return FirstAlike(subject.schedule, settings);
  };
  const Subject from_2_mib(std::make_shared<const Trace>(RandomProgram(1)));
  EXPECT_EQ(first_of(from_2_mib), (std::vector<size_t>{0, 1, 2, 3}));
  const Subject from_260_mib("examples/waste/stranding.txtpb");
  EXPECT_EQ(first_of(from_260_mib), (std::vector<size_t>{0, 0, 2, 3}));
  const std::vector<SweepRow> together = Sweep(from_260_mib.context(2), candidates);
  for (size_t i = 0; i < candidates.size(); ++i) {
    const SweepRow alone = from_260_mib.Row(candidates[i].conf);
    EXPECT_TRUE(together[i].config == alone.config);
    EXPECT_EQ(Describe({together[i]}), Describe({alone}));
  }
}

// Returns the same requests after one of 400 MiB, which is freed and serves many of them.
Trace AfterALargeOne(Trace trace) {
  std::vector<Event> events;
  for (const EventKind kind : {EventKind::kAlloc, EventKind::kFree}) {
    Event event;
    event.kind = kind;
    event.address = Address(1'000'000);
    event.size = MiB(400);
    events.push_back(event);
  }
  for (const Event& event : trace.devices[0].events) events.push_back(event);
  EventList all;
  for (const Event& event : events) all.push_back(event);
  trace.devices[0].events = std::move(all);
  return trace;
}

TEST(SearchConf, SharesOnlyRunsThatAreTheSame) {
  int shared = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const Subject subject(std::make_shared<const Trace>(AfterALargeOne(RandomProgram(seed))));
    const ReplaySettings larger =
        *SettingsFor(subject.settings, {"large_segment_size_mb:64", std::nullopt});
    const std::vector<SweepRow> known = {subject.Row("")};
    const std::vector<ReplaySettings> both = {subject.settings, larger};
    EXPECT_EQ(FirstAlike(subject.schedule, both), (std::vector<size_t>{0, 1}));
    const bool is_shared = FirstAlike(subject.schedule, both, known)[1] == 0;
    EXPECT_EQ(is_shared, !known[0].needs_large_segment_size);
    shared += is_shared ? 1 : 0;
    for (const SweepRow& row : SearchConf(subject.context())) {
      EXPECT_EQ(Describe({row}), Describe({subject.Row(row.conf)}));
    }
  }
  EXPECT_GT(shared, 0);
  EXPECT_LT(shared, 20);
}

TEST(Sweep, WhatIsKnownIsNotReplayed) {
  const Subject subject("examples/waste/stranding.txtpb");
  std::vector<SweepRow> known = {subject.Row("")};
  known[0].peak_reserved = MiB(1);  // no replay gives this
  const Candidate same = {"large_segment_size_mb:64", std::nullopt};
  const std::vector<SweepRow> rows = Sweep(subject.context(1), absl::MakeSpan(&same, 1), known);
  EXPECT_EQ(rows[0].peak_reserved, MiB(1));
  EXPECT_EQ(rows[0].conf, same.conf);
  EXPECT_TRUE(rows[0].config == subject.Row(same.conf).config);
}

TEST(Sweep, ARowIsWhatAReplayGives) {
  const Subject serving(kServing);
  SettingsRequest request;
  request.conf = "max_split_size_mb:64";
  const auto settings = ResolveSettings(*serving.trace, request);
  ASSERT_TRUE(settings.ok());
  const auto replay = ReplayWhatIf(serving.schedule, *settings);
  ASSERT_TRUE(replay.ok());
  const SweepRow row = serving.Row("max_split_size_mb:64");
  EXPECT_EQ(row.peak_reserved, replay->peak.reserved());
  EXPECT_EQ(row.peak_allocated, replay->peak.allocated());
  EXPECT_EQ(row.at_peak.reserved(), row.peak_reserved);
  EXPECT_EQ(row.calls.segment_allocs, static_cast<uint64_t>(replay->statistics.num_device_alloc));
  EXPECT_EQ(row.ooms, 0u);
}

TEST(Sweep, SaysWhatTheReleaseRefuses) {
  const Subject serving(kServing, Torch("2.0"));
  const SweepRow row = serving.Row("expandable_segments:True");
  EXPECT_NE(row.refused, "");
  EXPECT_FALSE(row.survives());
  EXPECT_TRUE(RanksBefore(serving.Row("max_split_size_mb:64"), row));
}

TEST(Sweep, TellsWhereMemoryRunsOut) {
  SettingsRequest request;
  request.capacity = GiB(2);
  const Subject stranding("examples/waste/stranding.txtpb", request);
  const SweepRow row = stranding.Row("");
  EXPECT_GT(row.ooms, 0u);
  // Three blocks of 530 MiB fit into 2048 MiB. A layer is four requests, its mark
  // the first.
  ASSERT_TRUE(row.first_oom.has_value());
  EXPECT_EQ(stranding.schedule.requests()[*row.first_oom].size, MiB(530));
  EXPECT_EQ(*row.first_oom, 3u * 4 + 1);
  EXPECT_GT(row.alloc_retries, 0u);
}

TEST(SearchConf, IsBoundedSortedAndWithoutHarm) {
  for (const char* torch : {"2.0", "2.3", "2.6", "2.9", "2.11", "2.15"}) {
    SCOPED_TRACE(torch);
    const Subject serving(kServing, Torch(torch));
    const std::vector<SweepRow> rows = SearchConf(serving.context(2));
    EXPECT_GT(rows.size(), 20u);
    EXPECT_LE(rows.size(), kMaxSearch);
    EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(), RanksBefore));
    EXPECT_EQ(std::count_if(rows.begin(), rows.end(),
                            [](const SweepRow& row) { return row.conf.empty(); }),
              1);
    for (const SweepRow& row : rows) {
      EXPECT_EQ(row.refused, "") << row.conf;
      EXPECT_FALSE(row.config.expandable_segments && row.config.max_split_size != kUnlimited)
          << row.conf;
    }
  }
}

TEST(SearchConf, TriesFewerSettingsOnALongSchedule) {
  Trace trace;
  trace.is_program = true;
  trace.streams = {StreamHandle(0)};
  EventList& events = trace.devices.emplace_back().events;
  for (uint64_t i = 0; i < 2'000'000; ++i) {
    Event event;
    event.kind = i % 2 == 0 ? EventKind::kAlloc : EventKind::kFree;
    event.address = Address(1 + i / 2);
    event.size = MiB(1);
    events.push_back(event);
  }
  const Subject subject(std::make_shared<const Trace>(std::move(trace)));
  EXPECT_EQ(MaxSearch(subject.schedule), (1u << 27) / 2'000'000);
  EXPECT_EQ(MaxSearch(Subject(kServing).schedule), kMaxSearch);
}

TEST(SearchConf, FindsWhatTheMechanismNeeds) {
  const Subject stranding("examples/waste/stranding.txtpb");
  const std::vector<SweepRow> rows = SearchConf(stranding.context(2));
  EXPECT_EQ(rows[0].conf, "expandable_segments:True");
  const auto split = std::find_if(rows.begin(), rows.end(), [](const SweepRow& row) {
    return row.conf == "max_split_size_mb:20";
  });
  ASSERT_NE(split, rows.end());
  EXPECT_LT(split->peak_reserved, MiB(6000));
}

TEST(SearchConf, CollectsGarbageOnlyUnderALimit) {
  SettingsRequest request;
  const auto collects = [](const std::vector<SweepRow>& rows) {
    return std::any_of(rows.begin(), rows.end(), [](const SweepRow& row) {
      return row.config.garbage_collection_threshold > 0;
    });
  };
  Subject growth("examples/waste/growth.txtpb", Torch("2.6"));
  const std::vector<SweepRow> limited = SearchConf(growth.context());
  EXPECT_TRUE(collects(limited));
  for (const SweepRow& row : limited) {
    EXPECT_EQ(row.config.garbage_collection_threshold > 0, row.fraction.has_value()) << row.conf;
  }
  growth.settings.capacity.reset();
  EXPECT_FALSE(collects(SearchConf(growth.context())));
}

constexpr uint64_t kManySizes = 1'000'000;

TEST(FindSmallestCapacity, TriesNoMoreSizesThanAllowed) {
  EXPECT_EQ(MaxSizes(0), 40'000'000u);
  EXPECT_EQ(MaxSizes(3'000'000), 13u);
  EXPECT_EQ(MaxSizes(uint64_t{1} << 40), 8u);
  const Subject stranding("examples/waste/stranding.txtpb");
  for (const char* conf : {"", "expandable_segments:True", "max_split_size_mb:20"}) {
    const auto settings = SettingsFor(stranding.settings, {conf, std::nullopt});
    ASSERT_TRUE(settings.ok());
    const auto find = [&](uint64_t max_sizes) {
      return FindSmallestCapacity(stranding.context(), *settings, MiB(5400), max_sizes);
    };
    const SmallestCapacity all = find(kManySizes);
    EXPECT_FALSE(all.is_cut);
    for (uint64_t most = 8; most < all.probes.size(); ++most) {
      SCOPED_TRACE(absl::StrCat(conf, ", ", most));
      const SmallestCapacity found = find(most);
      EXPECT_LE(found.probes.size(), most);
      EXPECT_TRUE(found.is_cut);
      // What it names was tried and survives, and no claim contradicts the search of all sizes.
      const auto survives = [&](std::optional<Bytes> capacity) {
        return std::any_of(found.probes.begin(), found.probes.end(), [&](const auto& probe) {
          return probe.capacity == capacity && probe.survives;
        });
      };
      EXPECT_TRUE(survives(found.capacity));
      EXPECT_TRUE(survives(found.safe_capacity));
      EXPECT_GE(found.capacity, all.capacity);
      EXPECT_TRUE(!found.is_smallest || found.capacity == all.capacity);
      EXPECT_TRUE(found.proven_until.has_value() || found.safe_capacity >= all.safe_capacity);
    }
  }
}

TEST(FindSmallestCapacity, IsWhatTryingEverySizeFinds) {
  const Subject stranding("examples/waste/stranding.txtpb");
  for (const char* conf : {"", "expandable_segments:True", "max_split_size_mb:20"}) {
    SCOPED_TRACE(conf);
    const auto settings = SettingsFor(stranding.settings, {conf, std::nullopt});
    ASSERT_TRUE(settings.ok());
    const SmallestCapacity found =
        FindSmallestCapacity(stranding.context(), *settings, MiB(5400), kManySizes);
    std::optional<Bytes> smallest;
    for (Bytes capacity = MiB(5400); !smallest.has_value() && capacity < MiB(12000);
         capacity += MiB(2)) {
      ReplaySettings trial = *settings;
      trial.capacity = capacity;
      if (ReplayRow(stranding.context(), trial).survives()) smallest = capacity;
    }
    EXPECT_EQ(found.capacity, smallest);
    ASSERT_TRUE(found.capacity.has_value());
    EXPECT_GE(*found.safe_capacity, *found.capacity);
    ASSERT_TRUE(found.without_retries.has_value());
    EXPECT_GE(*found.without_retries, *found.capacity);
    EXPECT_TRUE(std::is_sorted(
        found.probes.begin(), found.probes.end(),
        [](const CapacityProbe& a, const CapacityProbe& b) { return a.capacity < b.capacity; }));
  }
}

// This schedule survives on a device and not on a larger one, where it caches longer what then does
// not fit.
TEST(FindSmallestCapacity, WhereSurvivalIsNotMonotone) {
  int found_some = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const Subject subject(std::make_shared<const Trace>(RandomProgram(seed)));
    const Bytes least = PeakLiveOf(LifetimesOf(subject.schedule)).requested;
    const Bytes unlimited = subject.Row("").peak_reserved;
    const auto survives = [&](Bytes capacity) {
      ReplaySettings trial = subject.settings;
      trial.capacity = capacity;
      return ReplayRow(subject.context(), trial).survives();
    };
    // This tries every device, one by one.
    bool is_monotone = true;
    std::optional<Bytes> smallest, safe;
    for (Bytes capacity = RoundUp(least, MiB(2)); capacity <= unlimited; capacity += MiB(2)) {
      if (survives(capacity)) {
        if (!smallest.has_value()) smallest = capacity;
        if (!safe.has_value()) safe = capacity;
      } else {
        is_monotone &= !smallest.has_value();
        safe.reset();
      }
    }
    if (is_monotone) continue;
    ++found_some;
    SCOPED_TRACE(seed);
    const SmallestCapacity found =
        FindSmallestCapacity(subject.context(), subject.settings, least, kManySizes);
    EXPECT_EQ(found.capacity, smallest);
    EXPECT_TRUE(found.is_smallest);
    EXPECT_EQ(found.safe_capacity, safe);
    EXPECT_EQ(found.proven_until, std::nullopt);
    EXPECT_EQ(found.without_retries, unlimited);
    for (const CapacityProbe& probe : found.probes) {
      EXPECT_EQ(probe.survives, survives(probe.capacity)) << probe.capacity.value();
      if (!probe.same_until.has_value()) continue;
      EXPECT_EQ(probe.survives, survives(*probe.same_until - Bytes(1)));
    }
  }
  EXPECT_GT(found_some, 0);
}

}  // namespace
}  // namespace memreplay
