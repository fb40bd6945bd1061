#include "sim/recording/replay_settings.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "trace/schedule/settings_changes.h"

namespace memreplay {
namespace {

Trace Recording() {
  Trace trace;
  trace.format = "torch_snapshot_pickle";
  trace.devices.emplace_back();
  trace.layout.has_device_traces = true;
  trace.layout.has_allocator_settings = true;
  trace.layout.has_external_annotations = true;
  trace.layout.has_time_us = true;
  trace.layout.has_block_addresses = true;
  trace.layout.has_is_expandable = true;
  trace.settings.emplace();
  trace.settings->conf = "max_split_size_mb:128";
  trace.settings->max_split_size = 128 << 20;
  trace.settings->expandable_segments = true;  // set by other means
  trace.settings->roundup_power2_divisions = {{1, 4}, {2, 8}, {32768, 2}};
  return trace;
}

Trace Program(const std::string& conf) {
  Trace trace;
  trace.is_program = true;
  trace.devices.emplace_back();
  trace.settings.emplace();
  trace.settings->conf = conf;
  trace.total_memory = GiB(1);
  trace.memory_fraction = 0.5;
  return trace;
}

void AddSettingsEvent(Trace& trace, const std::string& conf) {
  Event& event = trace.devices[0].events.emplace_back();
  event.kind = EventKind::kSettings;
  event.text_or_stack = trace.strings.Intern(conf);
}

void AddNote(Trace& trace, uint64_t event, const std::string& conf, size_t device = 0) {
  MemoryNote note;
  note.kind = NoteKind::kSettings;
  note.event = event;
  note.name = trace.strings.Intern(conf);
  trace.devices[device].notes.push_back(note);
}

TEST(ResolveSettings, NotedChangesSayWhatTheRecordingBeganWith) {
  Trace trace = Recording();
  trace.devices.emplace_back().device = 1;
  for (size_t device = 0; device < 2; ++device) {
    AddNote(trace, 0, "expandable_segments:True,max_split_size_mb:100", device);
    AddNote(trace, 0, "garbage_collection_threshold:0.5", device);
    AddNote(trace, 9 * device, "max_split_size_mb:24", device);
    AddNote(trace, 12, "garbage_collection_threshold:0.5", device);
  }
  // The third came after the first event of device 1, so the first two are what both began with.
  const auto settings = ResolveSettings(trace, {});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->config, settings->recorded_config);
  EXPECT_EQ(settings->config.conf, "garbage_collection_threshold:0.5");
  EXPECT_TRUE(settings->config.expandable_segments);
  EXPECT_EQ(settings->config.max_split_size, kUnlimited);  // each text resets it
  EXPECT_EQ(settings->config.garbage_collection_threshold, 0.5);
  ASSERT_EQ(settings->notes.size(), 1u);
  EXPECT_EQ(settings->notes[0],
            "the script changed the allocator's settings 2 times: at event 0 to "
            "max_split_size_mb:24, at event 12 to garbage_collection_threshold:0.5");

  const std::vector<SettingsChange> changes =
      SettingsChanges(trace.devices[1], SettingsAtStart(trace));
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].event, 9u);
  EXPECT_EQ(trace.strings[changes[0].text], "max_split_size_mb:24");
  EXPECT_FALSE(changes[0].is_restoring);
  EXPECT_TRUE(changes[1].is_restoring);
}

TEST(ResolveSettings, ANotedMemoryFractionIsAChangeAmongTheTexts) {
  Trace trace = Recording();
  AddNote(trace, 0, "");
  AddNote(trace, 4, "0.5");
  trace.devices[0].notes.back().kind = NoteKind::kFraction;
  trace.devices[0].notes.back().address = Address(GiB(8).value());
  AddNote(trace, 7, "");
  const auto settings = ResolveSettings(trace, {});
  ASSERT_TRUE(settings.ok()) << settings.status();
  ASSERT_EQ(settings->notes.size(), 1u);
  EXPECT_EQ(settings->notes[0],
            "the script changed the allocator's settings 2 times: at event 4 to a memory fraction "
            "of 0.5, at event 7 to the defaults");
  const std::vector<SettingsChange> changes =
      SettingsChanges(trace.devices[0], SettingsAtStart(trace));
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].kind, EventKind::kFraction);
  EXPECT_EQ(changes[0].fraction_of, GiB(8));
  EXPECT_EQ(changes[1].kind, EventKind::kSettings);
  EXPECT_TRUE(changes[1].is_restoring);
}

TEST(ResolveSettings, APoolForOutOfMemoryIsNamedAsNotModelled) {
  Trace trace = Recording();
  AddNote(trace, 4, "no_split");
  trace.devices[0].notes.back().kind = NoteKind::kPool;
  EXPECT_TRUE(ResolveSettings(trace, {})->notes.empty());
  AddNote(trace, 5, "no_split,use_on_oom");
  trace.devices[0].notes.back().kind = NoteKind::kPool;
  const auto settings = ResolveSettings(trace, {});
  ASSERT_EQ(settings->notes.size(), 1u);
  EXPECT_NE(settings->notes[0].find("use_on_oom=True, which is not modelled"), std::string::npos);
}

TEST(ResolveSettings, TheReleaseIsTheOneThatTheFileSays) {
  for (const bool is_program : {false, true}) {
    Trace trace = is_program ? Program("") : Recording();
    trace.torch_version = "2.4.1+cu121";
    const auto settings = ResolveSettings(trace, {});
    ASSERT_TRUE(settings.ok()) << settings.status();
    EXPECT_EQ(settings->torch.profile->release, "2.4");
    EXPECT_FALSE(settings->torch.inferred());
    EXPECT_EQ(settings->as_recorded, !trace.is_program);
    SettingsRequest other;
    other.torch = "2.6";
    EXPECT_EQ(ResolveSettings(trace, other)->torch.profile->release, "2.6");
    trace.torch_version = "99.1";  // of nobody that is known
    EXPECT_EQ(ResolveSettings(trace, {})->torch.inferred(), !trace.is_program);
  }
}

TEST(ResolveSettings, AsRecordedTakesWhatTheFileLists) {
  const auto settings = ResolveSettings(Recording(), {});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_TRUE(settings->as_recorded);
  EXPECT_TRUE(settings->torch.inferred());
  EXPECT_EQ(settings->config.max_split_size, MiB(128));
  EXPECT_TRUE(settings->config.expandable_segments);
  EXPECT_EQ(settings->config.roundup_power2_divisions[0], 4u);
  EXPECT_EQ(settings->config.roundup_power2_divisions[1], 8u);
  EXPECT_EQ(settings->config.roundup_power2_divisions[15], 2u);
  EXPECT_FALSE(settings->capacity.has_value());
}

TEST(ResolveSettings, RecordedTextThatIsRefusedLeavesTheListedValues) {
  Trace trace = Recording();
  trace.settings->conf = "no_such_key:1";
  const auto settings = ResolveSettings(trace, {});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->config.max_split_size, MiB(128));
  ASSERT_EQ(settings->notes.size(), 1u);
  EXPECT_NE(settings->notes[0].find("rejects the settings 'no_such_key:1'"), std::string::npos);
}

TEST(ResolveSettings, AnyRequestMakesItAWhatIf) {
  SettingsRequest request;
  request.conf = "";
  auto settings = ResolveSettings(Recording(), request);
  ASSERT_TRUE(settings.ok());
  EXPECT_FALSE(settings->as_recorded);
  EXPECT_EQ(settings->config.max_split_size, kUnlimited);
  EXPECT_FALSE(settings->config.expandable_segments);
  EXPECT_TRUE(settings->recorded_config.expandable_segments);

  request = {};
  request.torch = "2.6.0";
  settings = ResolveSettings(Recording(), request);
  ASSERT_TRUE(settings.ok());
  EXPECT_FALSE(settings->as_recorded);
  EXPECT_EQ(settings->torch.profile->release, "2.6");
  EXPECT_EQ(settings->torch.reason, ProfileReason::kGiven);
  EXPECT_TRUE(settings->config.expandable_segments);  // still the recording's

  request = {};
  request.capacity = GiB(2);
  settings = ResolveSettings(Recording(), request);
  ASSERT_TRUE(settings.ok());
  EXPECT_FALSE(settings->as_recorded);
  EXPECT_EQ(settings->capacity, GiB(2));
}

TEST(ResolveSettings, ProgramsBringTheirHeader) {
  const Trace trace = Program("max_split_size_mb:64");
  auto settings = ResolveSettings(trace, {});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_FALSE(settings->as_recorded);
  EXPECT_EQ(settings->torch.profile, &DefaultTorchProfile());
  EXPECT_EQ(settings->config.max_split_size, MiB(64));
  EXPECT_EQ(settings->capacity, GiB(1));
  EXPECT_EQ(settings->fraction, 0.5);

  SettingsRequest request;
  request.conf = "max_split_size_mb:32";
  request.capacity = MiB(100);
  request.fraction = 1.0;
  settings = ResolveSettings(trace, request);
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->config.max_split_size, MiB(32));
  EXPECT_EQ(settings->capacity, MiB(100));
  EXPECT_EQ(settings->fraction, 1.0);

  // A header that is refused is no matter where a flag takes its place.
  EXPECT_FALSE(ResolveSettings(Program("no_such_key:1"), {}).ok());
  EXPECT_TRUE(ResolveSettings(Program("no_such_key:1"), request).ok());
}

TEST(ResolveSettings, RefusesWhatPyTorchRejects) {
  const auto error = [](const Trace& trace, const SettingsRequest& request) {
    return std::string(ResolveSettings(trace, request).status().message());
  };
  SettingsRequest request;
  request.conf = "no_such_key:1";
  EXPECT_NE(error(Recording(), request).find("rejects 'no_such_key:1'"), std::string::npos);
  request = {};
  request.torch = "1.0";
  EXPECT_NE(error(Recording(), request).find("1.0"), std::string::npos);
  request = {};
  request.fraction = 1.5;
  EXPECT_NE(error(Recording(), request).find("expected a number from 0 to 1, found 1.5"),
            std::string::npos);

  // The schedule itself answers for what it changes on its way and PyTorch rejects.
  Trace program = Program("");
  AddSettingsEvent(program, "no_such_key:1");
  EXPECT_TRUE(ResolveSettings(program, {}).ok());
}

TEST(ResolveSettings, SaysThatTheAsyncBackendIsApproximate) {
  SettingsRequest request;
  request.conf = "backend:cudaMallocAsync";
  const absl::StatusOr<ReplaySettings> settings = ResolveSettings(Recording(), request);
  ASSERT_TRUE(settings.ok());
  ASSERT_EQ(settings->notes.size(), 1u);
  EXPECT_NE(settings->notes[0].find("approximate"), std::string::npos);
}

TEST(ResolveSettings, FollowsTheOrderOfAddressesThatTheFileSays) {
  Trace trace = Recording();
  EXPECT_EQ(OrderOf(trace), AddressOrder::kChunksDownwards);
  trace.addresses_ascend = true;
  EXPECT_EQ(OrderOf(trace), AddressOrder::kUpwards);
}

TEST(ResolveSettings, SaysThatAnNpuHasAnotherAllocator) {
  Trace trace = Recording();
  EXPECT_FALSE(IsOfNpu(trace));
  trace.strings.Intern("/usr/lib/python3/site-packages/torch_npu/npu/memory.py");
  const absl::StatusOr<ReplaySettings> settings = ResolveSettings(trace, {});
  ASSERT_TRUE(settings.ok()) << settings.status();
  ASSERT_EQ(settings->notes.size(), 1U);
  EXPECT_NE(settings->notes[0].find("Ascend NPU"), std::string::npos);
}

}  // namespace
}  // namespace memreplay
