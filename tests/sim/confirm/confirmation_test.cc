// Compares predicted and measured runs, on devices that are honest, that place memory elsewhere,
// and that lie.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/confirm/device_run.h"
#include "tests/sim/support/awkward_device.h"
#include "tests/sim/support/made_recording.h"
#include "tests/sim/support/program_generator.h"

namespace memreplay {
namespace {

using testing::AwkwardDevice;

struct Prepared {
  std::shared_ptr<const Trace> trace;
  std::optional<Schedule> schedule;
  ReplaySettings settings;
  RunPlan plan;

  Prepared(Trace made, const SettingsRequest& request, RunBackend backend = RunBackend::kNative) {
    Prepare(std::make_shared<const Trace>(std::move(made)), request, backend);
  }
  Prepared(std::shared_ptr<const Trace> made, const SettingsRequest& request) {
    Prepare(std::move(made), request, RunBackend::kNative);
  }

 private:
  void Prepare(std::shared_ptr<const Trace> made, const SettingsRequest& request,
               RunBackend backend) {
    trace = std::move(made);
    schedule.emplace(Schedule::Build(trace, 0));
    auto resolved = ResolveSettings(*trace, request);
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    settings = *std::move(resolved);
    settings.order = AddressOrder::kUpwards;  // as an AwkwardDevice that is not descending
    plan.schedule = &*schedule;
    plan.settings = &settings;
    plan.backend = backend;
  }
};

Event Alloc(uint64_t handle, Bytes size) {
  Event event;
  event.kind = EventKind::kAlloc;
  event.address = Address(handle);
  event.size = size;
  return event;
}

Event Free(uint64_t handle) {
  Event event;
  event.kind = EventKind::kFree;
  event.address = Address(handle);
  return event;
}

Trace Program(std::vector<Event> events) {
  Trace trace;
  trace.is_program = true;
  trace.streams = {StreamHandle(0)};
  trace.devices.emplace_back().events = std::move(events);
  return trace;
}

// Two equal blocks in two segments are free: the layout decides which one comes first.
Trace Tie() {
  return Program({Alloc(1, MiB(40)), Alloc(2, MiB(40)), Free(1), Free(2), Alloc(3, MiB(40)),
                  Alloc(4, MiB(12)), Free(3)});
}

MeasuredRun Measure(const Prepared& prepared, const AwkwardDevice::Ways& ways) {
  AwkwardDevice device(ways);
  const auto predicted = RunSimulated(prepared.plan, device.TotalMemory(), device.FreeMemory());
  EXPECT_TRUE(predicted.ok()) << predicted.status();
  auto run = RunOnDevice(prepared.plan, device);
  EXPECT_TRUE(run.ok()) << run.status();
  auto measured = CompareWithPrediction(prepared.plan, *predicted, *std::move(run));
  EXPECT_TRUE(measured.ok()) << measured.status();
  return *std::move(measured);
}

class BackendTest : public ::testing::TestWithParam<RunBackend> {};

TEST_P(BackendTest, AnHonestDeviceIsConfirmedOnRandomPrograms) {
  for (int seed = 1; seed <= 30; ++seed) {
    const Mix mix = static_cast<Mix>(seed % static_cast<int>(Mix::kCount));
    const memreplay::Program program = GenerateProgram(mix, static_cast<uint64_t>(seed), 300);
    const Prepared prepared(ToTrace(program), {}, GetParam());
    AwkwardDevice::Ways ways;
    ways.capacity = program.total == Bytes() ? GiB(8) : program.total;
    ways.explicit_completion = program.explicit_completion;
    const MeasuredRun measured = Measure(prepared, ways);
    EXPECT_TRUE(measured.as_predicted.all_equal()) << MixName(mix) << " " << seed;
    EXPECT_TRUE(measured.agrees()) << MixName(mix) << " " << seed;
    EXPECT_EQ(measured.run.used_at_end, 0);
    EXPECT_EQ(measured.largest_used_difference, 0);
    EXPECT_EQ(measured.placed_peak_reserved, measured.run.peak.reserved());
  }
}

INSTANTIATE_TEST_SUITE_P(All, BackendTest,
                         ::testing::Values(RunBackend::kNative, RunBackend::kDirect,
                                           RunBackend::kAsync));

// The run may differ in nothing but the addresses of the device.
TEST(Confirmation, AnotherLayoutIsExplainedByItsAddresses) {
  int parted = 0;
  for (int seed = 1; seed <= 60; ++seed) {
    const Mix mix = static_cast<Mix>(seed % static_cast<int>(Mix::kCount));
    const memreplay::Program program = GenerateProgram(mix, static_cast<uint64_t>(seed), 300);
    SettingsRequest request;
    request.torch = "2.11";  // the lowest address first
    const Prepared prepared(ToTrace(program), request);
    AwkwardDevice::Ways ways;
    ways.capacity = program.total == Bytes() ? GiB(8) : program.total;
    ways.explicit_completion = program.explicit_completion;
    ways.descending = true;
    const MeasuredRun measured = Measure(prepared, ways);
    parted += !measured.as_predicted.all_equal();
    EXPECT_TRUE(measured.with_addresses.all_equal())
        << MixName(mix) << " " << seed << ": "
        << (measured.with_addresses.first->measured.has_value()
                ? DescribeDecision(*measured.with_addresses.first->measured)
                : "nothing more");
    EXPECT_EQ(measured.placed_peak_reserved, measured.run.peak.reserved());
    EXPECT_EQ(measured.run.used_at_end, 0);
  }
  EXPECT_GT(parted, 5) << "these programs have no ties";
}

TEST(Confirmation, ATieIsBrokenByTheLayoutOnly) {
  SettingsRequest request;
  request.torch = "2.6";  // the lowest address first
  const Prepared prepared(Tie(), request);
  AwkwardDevice::Ways ways;
  ways.descending = true;
  const MeasuredRun measured = Measure(prepared, ways);
  ASSERT_TRUE(measured.as_predicted.first.has_value());
  EXPECT_EQ(measured.as_predicted.first->request, 4u);
  EXPECT_EQ(measured.as_predicted.first->predicted->place.region, 0u);
  EXPECT_EQ(measured.as_predicted.first->measured->place.region, 1u);
  EXPECT_TRUE(measured.agrees());

  request.torch = "2.13";  // the oldest segment first, wherever it lies
  EXPECT_TRUE(Measure(Prepared(Tie(), request), ways).as_predicted.all_equal());
}

TEST(Confirmation, ARefusalThatWasNotPredictedIsAFault) {
  const Prepared prepared(Tie(), {});
  AwkwardDevice::Ways ways;
  ways.refuse = 1;
  const MeasuredRun measured = Measure(prepared, ways);
  EXPECT_FALSE(measured.agrees());
  // Nothing was cached: trying again is all that PyTorch does, and no event shows it.
  EXPECT_TRUE(measured.with_addresses.all_equal());
  ASSERT_TRUE(measured.calls_differ.has_value());
  EXPECT_EQ(measured.calls_differ->measured->request, 1u);
  EXPECT_FALSE(measured.calls_differ->measured->granted);
  EXPECT_TRUE(measured.calls_differ->predicted->granted);
  EXPECT_EQ(measured.run.used_at_end, 0);

  // If it is refused for good it is an out of memory, and decisions differ.
  ways.refuse.reset();
  ways.refuse_from = 1;
  const MeasuredRun refused = Measure(prepared, ways);
  EXPECT_FALSE(refused.agrees());
  ASSERT_TRUE(refused.with_addresses.first.has_value());
  EXPECT_EQ(refused.with_addresses.first->request, 1u);
  EXPECT_EQ(refused.with_addresses.first->measured->event.kind, EventKind::kOom);
  ASSERT_EQ(refused.run.ooms.size(), 2u);
  EXPECT_EQ(refused.run.ooms[0].size, MiB(40));
  EXPECT_EQ(refused.run.ooms[0].free, GiB(8) - MiB(40));
}

TEST(Confirmation, OverlappingSegmentsAreAFault) {
  const Prepared prepared(Program({Alloc(1, MiB(40)), Alloc(2, MiB(40))}), {});
  AwkwardDevice::Ways ways;
  ways.overlap = 1;
  const MeasuredRun measured = Measure(prepared, ways);
  ASSERT_TRUE(measured.run.violation.has_value());
  EXPECT_FALSE(measured.agrees());
}

TEST(Confirmation, StreamsThatCompleteLateAreAFault) {
  Event use;
  use.kind = EventKind::kRecordStream;
  use.address = Address(1);
  use.stream = 1;
  Trace trace = Program({Alloc(1, MiB(40)), use, Free(1), Alloc(2, MiB(40))});
  trace.streams.push_back(StreamHandle(1));
  const Prepared prepared(std::move(trace), {});
  AwkwardDevice::Ways ways;
  EXPECT_TRUE(Measure(prepared, ways).agrees());
  ways.slow_streams = true;
  const MeasuredRun measured = Measure(prepared, ways);
  EXPECT_FALSE(measured.agrees());
  EXPECT_EQ(measured.with_addresses.first->request, 3u);
}

TEST(Confirmation, TheDriversOverheadIsToldNotJudged) {
  const Prepared prepared(Tie(), {});
  AwkwardDevice::Ways ways;
  ways.overhead = MiB(2);
  const MeasuredRun measured = Measure(prepared, ways);
  EXPECT_TRUE(measured.agrees());
  EXPECT_EQ(measured.largest_used_difference, 4 << 20);  // two segments
  EXPECT_EQ(measured.run.peak_used - measured.placed_peak_used, 4 << 20);
  EXPECT_EQ(measured.calls_compared, 2u);
}

TEST(Confirmation, AStoppedRunGivesEverythingBack) {
  class StopAt final : public Intervention {
   public:
    Next BeforeRequest(size_t request, Allocator&, Observer&) override {
      return request == 3 ? Next::kStop : Next::kApply;
    }
  };
  for (const char* conf : {"", "expandable_segments:True"}) {
    SettingsRequest request;
    request.conf = conf;
    const Prepared prepared(Tie(), request);
    AwkwardDevice device({});
    const Bytes free = device.FreeMemory();
    StopAt stop;
    RunWatch watch;
    watch.intervention = &stop;
    const auto run = RunOnDevice(prepared.plan, device, std::move(watch));
    ASSERT_TRUE(run.ok());
    EXPECT_EQ(run->moments.requests, 3u);
    EXPECT_EQ(run->used_at_end, 0);
    EXPECT_EQ(device.FreeMemory(), free);
  }
}

TEST(FindShortage, NamesWhatIsNeeded) {
  const Prepared prepared(Tie(), {});
  const auto look = [&](Bytes total, Bytes free, std::optional<Bytes> asked) {
    const Bytes on = asked.value_or(total);
    const auto predicted = RunSimulated(prepared.plan, on, asked.value_or(free));
    EXPECT_TRUE(predicted.ok());
    return FindShortage(prepared.plan, *predicted, free, asked, 0);
  };
  EXPECT_FALSE(look(GiB(1), GiB(1), std::nullopt).has_value());
  const auto small = look(GiB(1), MiB(64), std::nullopt);
  ASSERT_TRUE(small.has_value());
  EXPECT_EQ(small->needed, MiB(40 + 40).signed_value());
  EXPECT_FALSE(small->at_least);
  EXPECT_EQ(small->request, 1u);
  // The schedule is meant to run out of memory on a small device.
  EXPECT_FALSE(look(GiB(1), GiB(1), MiB(64)).has_value());
  // This GPU cannot stand for a device of that size.
  const auto asked = look(GiB(1), MiB(64), GiB(1));
  ASSERT_TRUE(asked.has_value());
  EXPECT_EQ(asked->needed, MiB(40 + 40).signed_value());
}

TEST(PlanStart, AWarmRecordingBeginsWithItsSegments) {
  testing::Made made;
  made.seed = 3;
  Prepared prepared(testing::WithoutHead(made, 300), {});
  PlanStart(StartPolicy::kRecorded, GiB(64), GiB(64), &prepared.plan);
  EXPECT_EQ(prepared.plan.start, StartPolicy::kRecorded);
  EXPECT_FALSE(prepared.plan.start_segments.empty());
  AwkwardDevice::Ways ways;
  ways.capacity = GiB(64);
  ways.explicit_completion = true;
  EXPECT_TRUE(Measure(prepared, ways).as_predicted.all_equal());
  ways.descending = true;
  EXPECT_TRUE(Measure(prepared, ways).with_addresses.all_equal());

  PlanStart(StartPolicy::kRecorded, MiB(64), MiB(64), &prepared.plan);
  EXPECT_EQ(prepared.plan.start, StartPolicy::kFresh);
  EXPECT_FALSE(prepared.plan.start_note.empty());
}

TEST(RequestTimes, NeverDecreaseAndBeginAtZero) {
  testing::Made made;
  made.requests = 50;
  EXPECT_TRUE(RequestTimes(*Prepared(testing::MakeRecording(made), {}).schedule).empty())
      << "no times recorded";
  Trace trace = testing::MakeRecording(made);
  std::vector<int64_t>& times = trace.devices[0].time_us;
  for (size_t i = 0; i < trace.devices[0].events.size(); ++i) {
    times.push_back(1000 + static_cast<int64_t>(i) * 10);
  }
  times[20] = 5;  // a clock that was set back
  const Prepared prepared(std::move(trace), {});
  const std::vector<int64_t> by_request = RequestTimes(*prepared.schedule);
  ASSERT_EQ(by_request.size(), prepared.schedule->requests().size());
  EXPECT_EQ(by_request.front(), 0);
  EXPECT_GT(by_request.back(), 200);
  for (size_t i = 1; i < by_request.size(); ++i) EXPECT_LE(by_request[i - 1], by_request[i]);
  EXPECT_TRUE(RequestTimes(*Prepared(Tie(), {}).schedule).empty());
}

}  // namespace
}  // namespace memreplay
