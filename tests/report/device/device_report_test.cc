#include "report/device/device_report.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "report/device/inventory.h"
#include "report/words/verdict.h"
#include "report/words/version.h"

namespace memreplay {
namespace {

Event Make(EventKind kind, uint64_t address, uint64_t size) {
  Event event;
  event.kind = kind;
  event.address = Address(address);
  event.size = Bytes(size);
  return event;
}

// A complete recording of one allocation on a device numbered 3.
std::shared_ptr<Trace> Recording() {
  auto trace = std::make_shared<Trace>();
  trace->format = "flat_jsonl";
  trace->streams = {StreamHandle(0)};
  DeviceTrace& device = trace->devices.emplace_back();
  device.device = 3;
  device.events = {Make(EventKind::kSegmentAlloc, 0x7f0000000000, 2 << 20),
                   Make(EventKind::kAlloc, 0x7f0000000000, 1000)};
  trace->diagnostics.Add(DiagnosticKind::kUnknownKey, 77, "key '\xff'");
  return trace;
}

ReplaySettings Settings(const Trace& trace, const SettingsRequest& request) {
  auto settings = ResolveSettings(trace, request);
  EXPECT_TRUE(settings.ok()) << settings.status();
  return *std::move(settings);
}

proto::DeviceReport Replay(const std::shared_ptr<const Trace>& trace) {
  const Study study(Schedule::Build(trace, 0), Settings(*trace, {}));
  return ReportReplay(study, DescribeContents(*trace, 0).peaks, study.AsRecorded());
}

TEST(StartReport, KeepsContext) {
  const auto trace = Recording();
  const proto::Report report = StartReport("replay", "dir/a\xff.pickle", *trace);
  EXPECT_EQ(report.schema_version(), kReportSchemaVersion);
  EXPECT_EQ(report.tool_version(), kVersion);
  EXPECT_EQ(report.command(), "replay");
  EXPECT_EQ(report.file(), "dir/a?.pickle");
  EXPECT_EQ(report.format(), "flat_jsonl");
  EXPECT_EQ(FailedReport("replay", "f", "f: is empty").error(), "f: is empty");
}

TEST(ReportReplay, WhatTheRecordedPyTorchRejectedIsNoFault) {
  const auto trace = Recording();
  trace->torch_version = "2.6.0+cu124";
  for (const std::string conf : {"", "max_split_size_mb:20"}) {
    MemoryNote note;
    note.kind = NoteKind::kSettings;
    note.event = conf.empty() ? 0 : 2;
    note.name = trace->strings.Intern(conf);
    trace->devices[0].notes.push_back(note);
  }
  trace->devices[0].events.push_back(Make(EventKind::kAlloc, 0x7f0000000000 + 1024, 1000));
  const proto::DeviceReport report = Replay(trace);
  EXPECT_EQ(report.failures_size(), 0);
  EXPECT_EQ(report.fidelity().matched_events(), 3);
  ASSERT_EQ(report.notes_size(), 1);
  EXPECT_EQ(report.notes(0),
            "the script changed the allocator's settings 1 time: at event 2 to "
            "max_split_size_mb:20 (which PyTorch 2.6 rejects)");
  // Another release accepts them; one that does not would raise an exception that was not recorded.
  trace->torch_version = "2.15.0+cu130";
  SettingsRequest older;
  older.torch = "2.6";
  const Study study(Schedule::Build(trace, 0), Settings(*trace, older));
  const proto::DeviceReport what_if = ReportReplay(study, {}, study.AsRecorded());
  EXPECT_EQ(what_if.failures_size(), 1);
}

TEST(ReportReplay, HoldsWhatTheIssueAsksFor) {
  const proto::DeviceReport report = Replay(Recording());
  EXPECT_EQ(report.device(), 3);
  EXPECT_EQ(report.mode(), proto::Mode::as_recorded);
  EXPECT_EQ(report.torch_profile(), report.torch().release());
  EXPECT_TRUE(report.torch().inferred());
  EXPECT_EQ(report.events(), 2);
  EXPECT_EQ(report.fidelity().compared_events(), 2);
  EXPECT_EQ(report.fidelity().matched_events(), 2);
  EXPECT_TRUE(report.has_fidelity());
  EXPECT_FALSE(report.fidelity().has_first_divergence());
  EXPECT_EQ(report.exact_until_event(), 2);
  EXPECT_EQ(report.peak_allocated_bytes(), 1024);
  EXPECT_EQ(report.peak_requested_bytes(), 1000);
  EXPECT_EQ(report.peak_reserved_bytes(), 2 << 20);
  EXPECT_EQ(report.recorded().peak_reserved_bytes(), 2 << 20);
  EXPECT_EQ(report.statistics().at("allocated_bytes.all.peak"), 1024);
  ASSERT_EQ(report.segments_size(), 1);
  EXPECT_EQ(report.segments(0).blocks_size(), 2);
  EXPECT_TRUE(FindFaults(report).empty());
  bool unknown_key = false;
  for (const proto::Diagnostic& diagnostic : report.diagnostics()) {
    if (diagnostic.name() != "unknown_key") continue;
    unknown_key = true;
    EXPECT_EQ(diagnostic.severity(), proto::Diagnostic::info);
    EXPECT_EQ(diagnostic.places(0).position(), 77);
    EXPECT_EQ(diagnostic.places(0).detail(), "key '?'");
  }
  EXPECT_TRUE(unknown_key);
}

TEST(ReportReplay, TellsADivergence) {
  const auto trace = Recording();
  trace->devices[0].events[1].address = Address(0x7f0000000200);
  const proto::DeviceReport report = Replay(trace);
  EXPECT_EQ(report.fidelity().matched_events(), 1);
  ASSERT_TRUE(report.fidelity().has_first_divergence());
  const proto::Divergence& divergence = report.fidelity().first_divergence();
  EXPECT_EQ(divergence.index(), 1);
  EXPECT_EQ(divergence.recorded().addr(), 0x7f0000000200);
  EXPECT_EQ(divergence.simulated().addr(), 0x7f0000000000);
  EXPECT_EQ(report.exact_until_event(), 1);
  EXPECT_FALSE(report.exactness_reason().empty());
  EXPECT_FALSE(FindFaults(report).empty());
}

TEST(ReportWhatIf, ComparesWithTheRecording) {
  const auto trace = Recording();
  const Schedule schedule = Schedule::Build(trace, 0);
  SettingsRequest request;
  request.capacity = MiB(1);
  const ReplaySettings settings = Settings(*trace, request);
  const auto result = ReplayWhatIf(schedule, settings);
  ASSERT_TRUE(result.ok());
  const proto::DeviceReport report =
      ReportWhatIf(schedule, settings, DescribeContents(*trace, 0).peaks, *result);
  EXPECT_EQ(report.mode(), proto::Mode::what_if);
  EXPECT_EQ(report.capacity_bytes(), 1 << 20);
  EXPECT_EQ(report.ooms(), 1);
  EXPECT_EQ(report.recorded().ooms(), 0);
  EXPECT_EQ(report.fidelity().compared_events(), 0);
  EXPECT_TRUE(report.has_fidelity());
  EXPECT_FALSE(report.fidelity().has_first_divergence());
  ASSERT_EQ(FindFaults(report).size(), 1u);
  EXPECT_EQ(FindFaults(report)[0], "out of memory 1 time, first at event 1");
}

TEST(ReportContents, SimulatesNothing) {
  const auto trace = Recording();
  const auto torch = ChooseProfile(*trace, std::nullopt);
  ASSERT_TRUE(torch.ok());
  const proto::DeviceReport report = ReportContents(*trace, 0, *torch);
  EXPECT_EQ(report.mode(), proto::Mode::inspect);
  EXPECT_EQ(report.events(), 2);
  EXPECT_EQ(report.inventory().actions().at("alloc"), 1);
  EXPECT_EQ(report.recorded().peak_requested_bytes(), 1000);
  EXPECT_EQ(report.segments_size(), 0);
  EXPECT_FALSE(report.has_fragmentation());  // the file has no final state
}

}  // namespace
}  // namespace memreplay
