// Tests the way from rows of a sweep to the report and its text.
#include "report/ask/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/ask/fit.h"
#include "report/ask/oom.h"
#include "report/device/device_report.h"
#include "report/text/render.h"
#include "report/words/answer.h"

namespace memreplay {
namespace {

const TorchProfile& Profile() { return **FindTorchProfile("2.11"); }

SweepRow Row(const std::string& conf, uint64_t reserved_mib, uint64_t calls = 100) {
  SweepRow row;
  row.conf = conf;
  EXPECT_TRUE(ParseAllocatorConf(conf, Profile(), &row.config).ok());
  row.peak_reserved = MiB(reserved_mib);
  row.peak_allocated = MiB(600);
  row.at_peak[UsageKind::kReserved] = row.peak_reserved;
  row.at_peak[UsageKind::kAllocated] = MiB(500);
  row.calls.segment_allocs = calls;
  return row;
}

// A program of two requests: the second makes reserved memory peak.
Schedule Program(const std::string& torch_version) {
  auto trace = std::make_shared<Trace>();
  trace->torch_version = torch_version;
  trace->is_program = true;
  trace->streams = {StreamHandle(0), StreamHandle(5)};
  const uint32_t frame = trace->stacks.InternFrame(
      {trace->strings.Intern("/home/me/project/train.py"), trace->strings.Intern("step"), 12});
  const uint32_t stack = trace->stacks.InternStack({&frame, 1});
  DeviceTrace& device = trace->devices.emplace_back();
  for (uint64_t handle = 1; handle <= 2; ++handle) {
    Event alloc;
    alloc.kind = EventKind::kAlloc;
    alloc.address = Address(handle);
    alloc.size = MiB(300);
    alloc.text_or_stack = stack;
    device.events.push_back(alloc);
  }
  return Schedule::Build(std::move(trace), 0);
}

proto::DeviceReport Report(const SweepAnswer& answer, const std::string& torch_version = "") {
  proto::DeviceReport report;
  report.mutable_inventory()->set_is_program(true);
  AddSweep(answer, Program(torch_version), Profile(), &report);
  return report;
}

SweepAnswer Searched(std::vector<SweepRow> rows, SweepRow current) {
  SweepAnswer answer;
  answer.searched = true;
  answer.rows = std::move(rows);
  answer.current = std::move(current);
  return answer;
}

TEST(AddSweep, FillsARow) {
  SweepRow row = Row("max_split_size_mb:64", 1000, 7);
  row.calls.waits = 3;
  row.alloc_retries = 2;
  row.ooms = 4;
  row.first_oom = 1;
  const proto::DeviceReport report = Report(Searched({row}, Row("", 1200)));
  ASSERT_EQ(report.sweep().rows_size(), 1);
  const proto::SweepRow& filled = report.sweep().rows(0);
  EXPECT_EQ(report.mode(), proto::Mode::sweep);
  EXPECT_EQ(filled.conf(), "max_split_size_mb:64");
  EXPECT_TRUE(filled.oom());
  EXPECT_EQ(filled.ooms(), 4);
  EXPECT_EQ(filled.first_oom_event(), 1);
  EXPECT_EQ(filled.reserved_minus_allocated_bytes(), 500 << 20);
  EXPECT_DOUBLE_EQ(filled.fragmentation(), 0.5);
  EXPECT_EQ(filled.device_calls(), 10);
  EXPECT_EQ(filled.calls().cuda_malloc(), 7);
  EXPECT_EQ(filled.calls().synchronize(), 3);
  EXPECT_FALSE(filled.is_current());
  EXPECT_EQ(report.sweep().current().peak_reserved_bytes(), 1200 << 20);
  EXPECT_TRUE(report.sweep().current().is_current());
}

TEST(AddSweep, CountsWhatComesToTheSame) {
  const std::vector<SweepRow> rows = {Row("", 800), Row("max_split_size_mb:64", 800),
                                      Row("max_split_size_mb:32", 800),
                                      Row("max_split_size_mb:21", 900)};
  const proto::DeviceReport report = Report(Searched(rows, rows[3]));
  EXPECT_EQ(report.sweep().ties(), 2);
  EXPECT_TRUE(SweepSentence(report.sweep(), report.unseen())
                  .ends_with("(-11.1 %); 2 others give the same result"))
      << SweepSentence(report.sweep(), report.unseen());
  const proto::DeviceReport alike = Report(Searched({rows[0], rows[1]}, rows[0]));
  EXPECT_TRUE(SweepSentence(alike.sweep(), alike.unseen())
                  .ends_with(", the current settings; all others give the same result"))
      << SweepSentence(alike.sweep(), alike.unseen());
}

// If two settings come to the same, the one with a key less is suggested; none is for one percent.
TEST(AddSweep, SuggestsTheSimplest) {
  const SweepRow current = Row("", 1000);
  const std::vector<SweepRow> rows = {
      Row("expandable_segments:True,roundup_power2_divisions:8", 799),
      Row("expandable_segments:True", 800), Row("max_split_size_mb:64", 995), current};
  const proto::DeviceReport report = Report(Searched(rows, current));
  ASSERT_EQ(report.sweep().suggestions_size(), 1);
  const auto& suggestion = report.sweep().suggestions(0);
  ASSERT_EQ(suggestion.lines_size(), 1);
  EXPECT_EQ(suggestion.lines(0), "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
  EXPECT_EQ(suggestion.risks_size(), 1);
  EXPECT_EQ(Report(Searched(rows, current), "2.11.0+rocm7.0").sweep().suggestions(0).lines(0),
            "export PYTORCH_HIP_ALLOC_CONF=expandable_segments:True");
}

TEST(AddSweep, NeverSuggestsTheHarmfulPairNorWhatRunsOut) {
  SweepRow current = Row("", 1000);
  SweepRow runs_out = Row("max_split_size_mb:64", 100);
  runs_out.ooms = 1;
  const std::vector<SweepRow> rows = {Row("expandable_segments:True,max_split_size_mb:64", 500),
                                      current, runs_out};
  const proto::DeviceReport report = Report(Searched(rows, current));
  EXPECT_EQ(report.sweep().suggestions_size(), 0);
  EXPECT_NE(RenderSweep(report).text.find("HARMFUL PAIR"), std::string::npos);
}

TEST(AddSweep, TellsWhoAskedAndWhatLayThere) {
  SweepAnswer answer = Searched({Row("", 1000)}, Row("", 1000));
  PeakCause cause;
  cause.known = true;
  cause.requested = MiB(300);
  cause.id = 1;
  cause.stack = 1;
  CachedBytes& cached = cause.cached[static_cast<size_t>(Obstacle::kSplit)];
  cached.bytes = MiB(480);
  cached.blocks = 4;
  cached.largest = MiB(200);
  cached.largest_address = Address(0x7000);
  answer.current_cause = cause;
  const proto::DeviceReport report = Report(answer);
  const proto::PeakCause& told = report.sweep().current().cause();
  EXPECT_EQ(told.main(), proto::PeakCause::split);
  EXPECT_EQ(told.event_index(), 1);
  EXPECT_EQ(told.stack().summary(), "project/train.py:12 step");
  ASSERT_EQ(told.cached_size(), 1);
  EXPECT_EQ(told.cached(0).largest_address(), 0x7000);
  EXPECT_NE(CauseSentence(report.sweep().current())
                .find("when 300 MiB was requested on stream 0 by project/train.py:12 step at "
                      "event 1, 480 MiB was cached in 4 blocks (the largest 200 MiB) that are "
                      "remainders"),
            std::string::npos)
      << CauseSentence(report.sweep().current());
}

TEST(CauseSentence, NoneWhereLittleIsUnusedOrNothingKnown) {
  proto::SweepRow row;
  EXPECT_EQ(CauseSentence(row), "");
  row.mutable_cause()->set_main(proto::PeakCause::split);
  row.set_fragmentation(0.1);
  EXPECT_EQ(CauseSentence(row), "");
}

TEST(RisksOf, DefaultsHaveNone) {
  EXPECT_TRUE(RisksOf(AllocatorConfig(), std::nullopt).empty());
  EXPECT_EQ(RisksOf(AllocatorConfig(), 0.95).size(), 1u);
}

TEST(AskFit, SaysThatNotAllSizesWereTried) {
  auto trace = std::make_shared<Trace>();
  trace->is_program = true;
  trace->streams = {StreamHandle(0)};
  EventList& events = trace->devices.emplace_back().events;
  // Each size is larger than all that is cached.
  uint64_t handle = 0;
  const auto allocate_and_free = [&](Bytes size) {
    ++handle;
    for (const EventKind kind : {EventKind::kAlloc, EventKind::kFree}) {
      Event event;
      event.kind = kind;
      event.address = Address(handle);
      event.size = size;
      events.push_back(event);
    }
  };
  for (uint64_t i = 1; i <= 80; ++i) allocate_and_free(MiB(100) * i);
  while (events.size() < 2'000'000) allocate_and_free(MiB(1));
  SettingsRequest request;
  const absl::StatusOr<ReplaySettings> settings = ResolveSettings(*trace, request);
  ASSERT_TRUE(settings.ok());
  const Study study(Schedule::Build(trace, 0), *settings);
  const absl::StatusOr<proto::DeviceReport> report = AskFit(study, {""}, 1);
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report->fits().rows_size(), 1);
  const proto::Fits::Row& row = report->fits().rows(0);
  EXPECT_LE(row.probes_size(), 20);
  EXPECT_GE(row.smallest_bytes(), int64_t{8000} << 20);
  ASSERT_EQ(report->notes_size(), 1);
  EXPECT_EQ(report->notes(0).substr(0, 94),
            "for each of the settings and each order of addresses, at most 20 sizes were tried, "
            "because eac");
}

TEST(OomReport, SaysThatNotAllSizesWereTried) {
  auto trace = std::make_shared<Trace>();
  trace->is_program = true;
  trace->streams = {StreamHandle(0)};
  Event& alloc = trace->devices.emplace_back().events.emplace_back();
  alloc.kind = EventKind::kAlloc;
  alloc.address = Address(1);
  alloc.size = MiB(100);
  const Schedule schedule = Schedule::Build(trace, 0);
  SettingsRequest request;
  request.capacity = MiB(50);
  const absl::StatusOr<ReplaySettings> settings = ResolveSettings(*trace, request);
  ASSERT_TRUE(settings.ok());
  absl::StatusOr<std::optional<OomAnalysis>> analysis = AnalyseOom(schedule, *settings);
  ASSERT_TRUE(analysis.ok() && analysis->has_value());
  const auto notes = [&] {
    const proto::OutOfMemory oom = OomReport(schedule, *settings, &**analysis, OomReportOptions());
    std::string all;
    for (const std::string& note : oom.notes()) all += note + "\n";
    return all;
  };
  const std::string said = "at most 40,000,000 sizes of the device were tried";
  EXPECT_EQ(notes().find(said), std::string::npos) << notes();
  std::vector<Counterfactual>& tried = (*analysis)->counterfactuals;
  const auto memory = std::find_if(tried.begin(), tried.end(), [](const Counterfactual& change) {
    return change.kind == ChangeKind::kMemory;
  });
  ASSERT_NE(memory, tried.end());
  memory->is_cut = true;
  EXPECT_NE(notes().find(said), std::string::npos) << notes();
}

TEST(RenderFits, ShowsTheEdge) {
  FitRow row;
  row.is_current = true;
  row.found.capacity = MiB(100);
  row.found.safe_capacity = MiB(104);
  row.other_order.safe_capacity = MiB(106);
  row.found.unlimited_peak_reserved = MiB(120);
  for (const uint64_t mib : {96, 98, 100, 102, 104}) {
    CapacityProbe probe;
    probe.capacity = MiB(mib);
    probe.survives = mib == 100 || mib == 104;  // not monotone
    probe.ooms = probe.survives ? 0 : 1;
    row.found.probes.push_back(probe);
  }
  proto::DeviceReport report;
  AddFits({row}, PeakLive(), Packing(), &report);
  EXPECT_EQ(report.fits().rows(0).safe_bytes(), 104 << 20);
  EXPECT_EQ(FitSentence(report.fits(), report.unseen()),
            "needs 104 MiB (100 MiB also works, but not every size above it; 106 MiB with "
            "addresses in the opposite order) under default settings");
  const std::string text = RenderFits(report).text;
  EXPECT_NE(text.find("100 MiB  104,857,600             no"), std::string::npos) << text;
  EXPECT_NE(text.find("102 MiB  106,954,752         1 time"), std::string::npos) << text;
}

// Nobody should change settings for 1.5 %, nor for fewer driver calls.
TEST(AddSweep, SuggestsNothingForLess) {
  SweepRow current = Row("", 1000, 100);
  const std::vector<SweepRow> rows = {Row("expandable_segments:True", 985, 2), current};
  const proto::DeviceReport report = Report(Searched(rows, current));
  EXPECT_EQ(report.sweep().suggestions_size(), 0);
  EXPECT_EQ(SweepSentence(report.sweep(), report.unseen()),
            "none of 2 settings is worth a change: peak reserved 1000 MiB under the current "
            "settings, default settings, 985 MiB at best");
}

TEST(AddSweep, ARecordingWithoutEventsHasNoBest) {
  proto::DeviceReport report;
  report.set_mode(proto::Mode::sweep);
  report.mutable_sweep();
  *report.mutable_diagnosis() = DiagnosisOf(report);
  report.add_faults("memory");
  EXPECT_EQ(RenderSweep(report).text,
            "device 0: No events were recorded, so no setting can be tried.\n"
            "  PROBLEM: memory.\n");
}

}  // namespace
}  // namespace memreplay
