// Runs the same schedules through the same allocators, on a simulated device and through a driver:
// every event, address and statistic must agree.
#include <dirent.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cuda/cuda_device.h"
#include "cuda/verify.h"
#include "gtest/gtest.h"
#include "sim/device/simulated_device.h"
#include "sim/model/caching_allocator.h"
#include "sim/model/direct_allocator.h"
#include "sim/run/run.h"
#include "tests/cuda/fake_driver/fake_driver.h"
#include "tests/sim/support/program_generator.h"
#include "trace/formats/open_trace.h"
#include "trace/schedule/schedule.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

const std::string kFolder = "tests/data/conformance/";

std::vector<std::string> Programs() {
  std::vector<std::string> names;
  DIR* folder = opendir(kFolder.c_str());
  if (folder == nullptr) return names;
  const std::string ending = ".jsonl";
  while (const dirent* entry = readdir(folder)) {
    const std::string file = entry->d_name;
    if (file.ends_with(ending)) names.push_back(file.substr(0, file.size() - ending.size()));
  }
  closedir(folder);
  std::sort(names.begin(), names.end());
  return names;
}

class Recorder final : public Observer {
 public:
  void OnEvent(const Event& event) override {
    lines.push_back(StrCat(EventKindName(event.kind), " id ", event.id, " at ",
                           event.address.value(), " size ", event.size.value(), " of ",
                           event.block_size.value(), " on ", event.stream));
  }
  std::vector<std::string> lines;
};

struct Outcome {
  std::vector<std::string> events;
  std::vector<std::pair<std::string, int64_t>> statistics;
  uint64_t ooms = 0;
  DeviceCalls calls;
};

template <typename AnyDevice>
Outcome RunOn(AnyDevice& device, const Schedule& schedule, bool direct, Observer* watcher) {
  const Trace& trace = schedule.trace();
  const TorchProfile& profile = DefaultTorchProfile();
  AllocatorConfig config;
  const std::string conf = trace.settings.has_value() ? trace.settings->conf : "";
  ParseAllocatorConf(conf, profile, &config).IgnoreError();  // an outcome in PyTorch too
  CachingAllocatorOptions options;
  options.streams = trace.streams;
  options.pools = trace.pools;
  std::unique_ptr<Allocator> allocator;
  if (direct) {
    allocator = std::make_unique<DirectAllocator>(device);
  } else {
    allocator = std::make_unique<CachingAllocator>(profile, config, device, options);
  }
  if (trace.memory_fraction.has_value()) {
    EXPECT_TRUE(allocator->SetMemoryFraction(*trace.memory_fraction).ok());
  }
  Outcome outcome;
  Recorder recorder;
  ObserverList observers = {&recorder};
  if (watcher != nullptr) observers.Add(watcher);
  outcome.ooms = Run(schedule, *allocator, observers).ooms;
  outcome.events = std::move(recorder.lines);
  for (const auto& [name, value] : FlatStatistics(allocator->statistics(), profile)) {
    outcome.statistics.emplace_back(std::string(name), value);
  }
  outcome.calls = device.calls();
  return outcome;
}

enum class Kind { kCachingByLimit, kCachingByBallast, kDirect };

void Compare(const std::shared_ptr<const Trace>& trace, Kind kind) {
  const Schedule schedule = Schedule::Build(trace, 0);
  // The driver counts in whole units, so that a ballast can leave only those.
  Bytes capacity = trace->total_memory.value_or(GiB(80));
  if (kind == Kind::kCachingByBallast) capacity = RoundUp(capacity, MiB(2));
  const bool explicit_completion = trace->completion == Completion::kExplicit;
  SimulatedDevice simulated(
      SimulatedDevice::Options{.capacity = capacity, .explicit_completion = explicit_completion});
  const Outcome expected = RunOn(simulated, schedule, kind == Kind::kDirect, nullptr);

  const FakeDriver fake(RoundUp(capacity, GiB(1)) + GiB(1));
  {
    const auto context = fake.NewContext();
    const auto verifier = BlockVerifier::Create(*context);
    ASSERT_TRUE(verifier.ok());
    const auto device = CudaDevice::Create(
        *context,
        {.capacity = capacity,
         .by = kind == Kind::kCachingByBallast ? CapacityBy::kBallast : CapacityBy::kLimit,
         .explicit_completion = explicit_completion});
    ASSERT_TRUE(device.ok()) << ToStd(device.status().message());
    const Outcome outcome = RunOn(**device, schedule, kind == Kind::kDirect, verifier->get());
    EXPECT_EQ(outcome.events, expected.events);
    EXPECT_EQ(outcome.statistics, expected.statistics);
    EXPECT_EQ(outcome.ooms, expected.ooms);
    EXPECT_EQ(outcome.calls, expected.calls);
    EXPECT_TRUE((*device)->status().ok()) << ToStd((*device)->status().message());
    (*verifier)->CheckLive();
    EXPECT_EQ((*verifier)->bad_blocks(), 0u) << (*verifier)->bad()[0].Text();
    EXPECT_EQ((*verifier)->blocks_checked(), (*verifier)->blocks_filled());
  }
  EXPECT_EQ(fake.Leaks(), "");
}

// Runs the whole schedule, whatever the driver does, and sets `status` to the first error.
void RunToTheEnd(const FakeDriver& fake, const Schedule& schedule, absl::Status* status) {
  const auto context = fake.NewContext();
  {
    const auto device = CudaDevice::Create(
        *context, {.capacity = schedule.trace().total_memory.value_or(GiB(80)),
                   .explicit_completion = schedule.trace().completion == Completion::kExplicit});
    if (device.ok()) {
      RunOn(**device, schedule, false, nullptr);
    } else {
      *status = device.status();
    }
  }
  if (status->ok()) *status = context->status();
}

// The driver fails once, at the first, a middle or the last call of each kind: the allocator
// continues as long as requests come.
void FailEachCall(const std::shared_ptr<const Trace>& trace) {
  const Schedule schedule = Schedule::Build(trace, 0);
  const Bytes card = RoundUp(trace->total_memory.value_or(GiB(80)), GiB(1));
  for (const char* const name :
       {"cuMemAlloc", "cuMemFree", "cuMemAddressReserve", "cuMemAddressFree", "cuMemCreate",
        "cuMemRelease", "cuMemMap", "cuMemUnmap", "cuMemSetAccess", "cuMemGetInfo",
        "cuStreamCreate", "cuEventCreate", "cuEventRecord", "cuEventSynchronize"}) {
    uint64_t calls = 0;
    {
      const FakeDriver sound(card);
      absl::Status status;
      RunToTheEnd(sound, schedule, &status);
      ASSERT_EQ(status, absl::OkStatus());
      calls = sound.Calls(name);
    }
    const std::set<uint64_t> which = {std::min<uint64_t>(calls, 1), calls / 2, calls};
    for (const uint64_t nth : which) {
      if (nth == 0) continue;
      SCOPED_TRACE(StrCat("call ", nth, " of ", name));
      const FakeDriver fake(card);
      fake.Fail(name, nth, CUDA_ERROR_UNKNOWN);
      absl::Status status;
      RunToTheEnd(fake, schedule, &status);
      EXPECT_NE(status.message().find(name), absl::string_view::npos) << status;
      EXPECT_EQ(fake.Leaks(), "");
    }
  }
}

class CudaReplayTest : public testing::TestWithParam<std::tuple<std::string, Kind>> {};

TEST_P(CudaReplayTest, DecisionsAreThoseOfTheSimulation) {
  const auto& [program, kind] = GetParam();
  absl::StatusOr<Trace> opened = OpenTrace(kFolder + program + ".jsonl");
  ASSERT_TRUE(opened.ok()) << ToStd(opened.status().message());
  Compare(std::make_shared<const Trace>(*std::move(opened)), kind);
}

class CudaRandomTest : public testing::TestWithParam<Mix> {
 protected:
  static constexpr int kSteps = 200;
  static constexpr uint64_t kSeeds = 3;
  std::shared_ptr<const Trace> Make(uint64_t seed) const {
    return std::make_shared<const Trace>(ToTrace(GenerateProgram(GetParam(), seed, kSteps)));
  }
};

TEST_P(CudaRandomTest, DecisionsAreThoseOfTheSimulation) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    for (const Kind kind : {Kind::kCachingByLimit, Kind::kCachingByBallast, Kind::kDirect}) {
      SCOPED_TRACE(StrCat("seed ", seed, ", kind ", static_cast<int>(kind)));
      Compare(Make(seed), kind);
    }
  }
}

TEST_P(CudaRandomTest, AFailingDriverEndsNothingButTheGrants) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    FailEachCall(Make(seed));
  }
}

std::vector<Mix> AllMixes() {
  std::vector<Mix> mixes;
  for (int i = 0; i < static_cast<int>(Mix::kCount); ++i) mixes.push_back(static_cast<Mix>(i));
  return mixes;
}
INSTANTIATE_TEST_SUITE_P(Mixes, CudaRandomTest, testing::ValuesIn(AllMixes()),
                         [](const auto& mix) { return std::string(MixName(mix.param)); });

std::string TestName(const testing::TestParamInfo<CudaReplayTest::ParamType>& param) {
  std::string name = std::get<0>(param.param);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  switch (std::get<1>(param.param)) {
    case Kind::kCachingByLimit: return name + "_limit";
    case Kind::kCachingByBallast: return name + "_ballast";
    case Kind::kDirect: return name + "_direct";
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, CudaReplayTest,
                         testing::Combine(testing::ValuesIn(Programs()),
                                          testing::Values(Kind::kCachingByLimit,
                                                          Kind::kCachingByBallast, Kind::kDirect)),
                         TestName);

}  // namespace
}  // namespace memreplay
