#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "report/ask/replay.h"
#include "report/device/device_report.h"
#include "sim/recording/replay_settings.h"
#include "sim/study/study.h"

namespace memreplay {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

// A training step: 8 GiB activations, half of them by one line, and 3 GiB parameters.
proto::DeviceReport TrainingStep() {
  proto::DeviceReport device;
  device.set_mode(proto::Mode::as_recorded);
  device.set_events(100);
  device.set_exact_until_event(100);
  device.set_peak_reserved_bytes(12 * kGiB);
  device.mutable_fidelity()->set_compared_events(100);
  device.mutable_fidelity()->set_matched_events(100);
  proto::Categories& categories = *device.mutable_categories();
  categories.set_peak_bytes(11 * kGiB);
  categories.set_peak_phase("backward");
  categories.set_peak_step(2);
  categories.set_peak_event(50);
  (*categories.mutable_bytes_by_category())["activation"] = 8 * kGiB;
  (*categories.mutable_bytes_by_category())["parameter"] = 2 * kGiB;
  (*categories.mutable_bytes_by_category())["buffer"] = kGiB;
  categories.add_phases()->set_step(2);
  categories.add_phases()->set_step(2);
  proto::Categories::Line& line = *categories.add_lines();
  line.set_category("activation");
  line.set_line("model.py:7 forward");
  line.set_live_bytes(4 * kGiB);
  line.set_allocations(24);
  line.set_has_stack(true);
  return device;
}

// The parts of the diagnosis, a line each.
std::string Said(const proto::DeviceReport& device) {
  const proto::Diagnosis said = DiagnosisOf(device);
  EXPECT_LE(said.what().size(), 90) << said.what();
  return absl::StrCat(said.what(), "\n", said.why(), "\n", said.do_());
}

constexpr char kHolders[] =
    "8.00 GiB activations (4.00 GiB of it by model.py:7 forward in 24 allocations), 3.00 GiB "
    "parameters";

TEST(Diagnosis, SaysThePeakWhatHoldsItAndWhetherSettingsHelp) {
  proto::DeviceReport device = TrainingStep();
  const std::string peak =
      absl::StrCat("Peak 11.0 GiB in the backward pass of step 2.\n", kHolders, ". ");
  EXPECT_EQ(Said(device), peak + "Fragmentation is no issue (8 %).\n");
  device.set_peak_reserved_bytes(20 * kGiB);
  EXPECT_EQ(Said(device), peak +
                              "Of the 20.0 GiB reserved, 45 % is unused.\nmemreplay sweep finds "
                              "out whether settings help.");
}

TEST(Diagnosis, WhatWasReservedBeforeTheRecordingIsNoMatterOfSettings) {
  proto::DeviceReport device = TrainingStep();
  device.set_peak_reserved_bytes(20 * kGiB);
  device.mutable_inventory()->set_start_reserved_bytes(20 * kGiB);
  EXPECT_EQ(Said(device), absl::StrCat("Peak 11.0 GiB in the backward pass of step 2.\n", kHolders,
                                       ". Of the 20.0 GiB reserved, 45 % is unused; all of it was "
                                       "reserved before the recording began.\n"));
  device.mutable_inventory()->set_start_reserved_bytes(19 * kGiB);
  EXPECT_NE(Said(device).find("memreplay sweep finds out"), std::string::npos);
}

TEST(Diagnosis, ActivationsThatNoBackwardPassUses) {
  proto::DeviceReport device = TrainingStep();
  device.mutable_categories()->set_peak_phase("forward");
  device.mutable_categories()->set_peak_in_vain(true);
  EXPECT_EQ(
      Said(device),
      "Peak 11.0 GiB in the forward pass of step 2.\n8.00 GiB activations kept for a backward "
      "pass that does not come (4.00 GiB of it by model.py:7 forward in 24 allocations), "
      "3.00 GiB parameters. Fragmentation is no issue (8 %).\n"
      "Run the pass under torch.no_grad(), which does not keep them.");
}

// What the live process said of holders is the cause, and their remedy is what to do.
TEST(Diagnosis, WhoHoldsMemoryComesFirst) {
  proto::DeviceReport device = TrainingStep();
  proto::Holding::Growth& growth = *device.mutable_holding()->mutable_growth();
  growth.set_step("step of AdamW");
  growth.set_bytes(18 << 20);
  growth.set_steps(4);
  proto::Holding::Holder& holder = *growth.add_holders();
  holder.set_path("list `losses` in main() (train.py:12)");
  holder.set_bytes(72 << 20);
  holder.set_tensors(4);
  holder.set_remedy("append loss.item()");
  EXPECT_EQ(Said(device),
            absl::StrCat("Grows 18.0 MiB with each step of AdamW.\nHeld: 72.0 MiB by list `losses` "
                         "in main() (train.py:12), 4 tensors. Peak 11.0 GiB in the backward pass "
                         "of step 2. ",
                         kHolders, ". Fragmentation is no issue (8 %).\n",
                         "To free it: append loss.item()."));
  growth.set_step(absl::StrCat("evaluation of ", std::string(40, 'x'),
                               ", which is a long name for a module that is evaluated"));
  EXPECT_NE(Said(device).find("Which is a long name for a module that is evaluated. Held: "),
            std::string::npos)
      << Said(device);
}

// Nobody need be told to do what was done.
TEST(Diagnosis, DoesNotAdviseWhatWasDone) {
  proto::DeviceReport device = TrainingStep();
  device.set_peak_reserved_bytes(20 * kGiB);
  device.mutable_sweep();
  EXPECT_EQ(Said(device).find("memreplay sweep"), std::string::npos);

  device = TrainingStep();
  device.mutable_categories()->mutable_bytes_by_category()->clear();
  (*device.mutable_categories()->mutable_bytes_by_category())["unknown"] = 11 * kGiB;
  EXPECT_NE(Said(device).find("memreplay record"), std::string::npos);
  device.mutable_torch()->set_reason(proto::TorchProfileChoice::in_file);
  EXPECT_EQ(Said(device).find("memreplay record"), std::string::npos);
  device.set_mode(proto::Mode::oom);
  device.mutable_oom()->set_verdict(proto::Verdict::none);
  EXPECT_EQ(Said(device).find("memreplay record"), std::string::npos);
  device.mutable_torch()->set_reason(proto::TorchProfileChoice::layout);
  EXPECT_NE(Said(device).find("memreplay record"), std::string::npos);
}

TEST(Diagnosis, AReplayThatDiffersComesFirst) {
  proto::DeviceReport device = TrainingStep();
  device.mutable_fidelity()->set_matched_events(90);
  device.mutable_fidelity()->mutable_first_divergence()->set_index(90);
  EXPECT_EQ(Said(device).rfind("THE REPLAY DIFFERS FROM THE RECORDING: 90 of 100 events and "
                               "all 0 final blocks match.\nPeak 11.0 GiB",
                               0),
            0)
      << Said(device);
}

TEST(Diagnosis, ARecordingOfAnNpuIsNamedFirst) {
  proto::DeviceReport device = TrainingStep();
  device.add_notes(std::string(kNpuNote));
  const std::string named = "Recorded on an Ascend NPU, whose allocator is not modelled.\n";
  EXPECT_EQ(Said(device).rfind(named + "Peak 11.0 GiB", 0), 0) << Said(device);
  device.mutable_fidelity()->set_matched_events(90);
  device.mutable_fidelity()->mutable_first_divergence()->set_index(90);
  EXPECT_EQ(Said(device).rfind(named + "THE REPLAY DIFFERS FROM THE RECORDING: 90", 0), 0)
      << Said(device);
}

// Reads the file itself, as inspect and replay do.
TEST(Diagnosis, AFileWithFramesOfTorchNpuIsRecognised) {
  const auto trace = std::make_shared<Trace>();
  trace->strings.Intern("/usr/lib/python3/site-packages/torch_npu/npu/memory.py");
  trace->devices.emplace_back();
  absl::StatusOr<OpenedFile> opened = StudyTrace(trace, {});
  ASSERT_TRUE(opened.ok()) << opened.status();
  const absl::StatusOr<proto::DeviceReport> report =
      AskInspect(*opened->devices[0], InspectQuestion());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(Said(*report).rfind("Recorded on an Ascend NPU", 0), 0) << Said(*report);
}

TEST(Diagnosis, SaysWhyMemoryRanOutWhatHeldItAndWhatToDo) {
  proto::DeviceReport device = TrainingStep();
  device.mutable_categories()->set_at_out_of_memory(true);
  proto::OutOfMemory& oom = *device.mutable_oom();
  oom.set_verdict(proto::Verdict::true_shortage);
  oom.set_sentence("2.00 GiB requested, even without fragmentation 1.00 GiB short");
  oom.mutable_steps()->set_steps(9);
  oom.mutable_steps()->set_growth_bytes_per_step(kGiB);
  oom.mutable_steps()->set_may_be_layers(true);
  const std::string why = absl::StrCat(
      "MEMORY SHORTAGE: 2.00 GiB requested, even without fragmentation 1.00 GiB short.\n"
      "11.0 GiB was live in the backward pass of step 2: ",
      kHolders, ", after 9 repeats that kept 1.00 GiB each (perhaps the layers of one pass).\n");
  EXPECT_EQ(Said(device), why +
                              "No setting helps; to need less, use a smaller batch or activation "
                              "checkpointing.");
  device.mutable_advice()->add_rows()->set_change("activation checkpointing of Block");
  device.mutable_advice()->add_serving_rows(0);
  EXPECT_EQ(Said(device), why +
                              "Activation checkpointing of Block would have served it (by the "
                              "recording, edited and replayed).");
}

TEST(Diagnosis, SaysWhichSettingsWouldHaveServedARequest) {
  proto::DeviceReport device = TrainingStep();
  proto::OutOfMemory& oom = *device.mutable_oom();
  oom.set_verdict(proto::Verdict::fragmentation);
  oom.set_sentence("2.00 GiB refused; 3.00 GiB is free, in pieces too small");
  const auto what_to_do = [&] { return DiagnosisOf(device).do_(); };
  proto::Counterfactual& setting = *oom.add_counterfactuals();
  setting.set_kind(proto::Counterfactual::setting);
  setting.set_change("expandable_segments:True");
  setting.set_served(true);
  EXPECT_EQ(what_to_do(),
            "Settings below would have served this request, but not all that follow (simulated).");
  oom.set_verdict(proto::Verdict::too_large);
  EXPECT_EQ(what_to_do(),
            "No setting helps; to need less, use a smaller batch or activation checkpointing.");
  oom.set_verdict(proto::Verdict::fragmentation);
  setting.set_survives(true);
  EXPECT_EQ(what_to_do(), "With expandable_segments:True it would have been served (simulated).");
  oom.set_verdict(proto::Verdict::leak);
  oom.mutable_leak()->mutable_stack()->set_summary("train.py:12");
  EXPECT_EQ(what_to_do(),
            "Free at the end of each step what comes from train.py:12; expandable_segments:True "
            "only postpones it.");
}

// What a recording began with has no category, and more of it than is known.
TEST(Diagnosis, SaysHowToLearnMoreWhereMostIsUnknown) {
  proto::DeviceReport device = TrainingStep();
  proto::Categories& categories = *device.mutable_categories();
  categories.mutable_bytes_by_category()->clear();
  (*categories.mutable_bytes_by_category())["unknown"] = 10 * kGiB;
  (*categories.mutable_bytes_by_category())["temporary"] = kGiB;
  categories.set_start_unknown_bytes(9 * kGiB);
  EXPECT_EQ(Said(device),
            "Peak 11.0 GiB in the backward pass of step 2.\n10.0 GiB unknown (9.00 GiB of it "
            "allocated before the recording began), 1.00 GiB temporaries. Fragmentation is no "
            "issue (8 %).\nTo learn more, start recording before the model is created.");
  for (const int64_t entries : {1000, 10000, 25000, 65536, 100000, 1000000}) {
    device.set_events(entries);
    EXPECT_NE(Said(device).find(absl::StrCat("(max_entries=", entries, ") is full")),
              std::string::npos);
  }
  for (const int64_t events : {999, 1100, 10001, 123000}) {
    device.set_events(events);
    EXPECT_EQ(Said(device).find("max_entries"), std::string::npos) << events;
  }
}

TEST(Diagnosis, AFileWithoutAnOutOfMemorySaysWhatHoldsMemoryAndHowToCatchOne) {
  proto::DeviceReport device = TrainingStep();
  device.set_mode(proto::Mode::oom);
  device.mutable_recorded()->set_peak_reserved_bytes(12 * kGiB);
  device.mutable_oom()->set_verdict(proto::Verdict::none);
  device.mutable_oom()->set_sentence("the recording did not run out of memory");
  EXPECT_EQ(Said(device),
            "The recording did not run out of memory.\nPeak 11.0 GiB in the backward pass of step "
            "2. " +
                std::string(kHolders) +
                ". Fragmentation is no issue (8 %).\nTo catch the event, record with "
                "memreplay.recording() or memreplay record: they write the snapshot at the moment "
                "memory runs out.");
}

TEST(Diagnosis, AWhatIfSaysWhatItComesToFirst) {
  proto::DeviceReport device = TrainingStep();
  device.set_mode(proto::Mode::what_if);
  device.mutable_recorded()->set_peak_reserved_bytes(24 * kGiB);
  EXPECT_EQ(Said(device),
            "Peak reserved 12.0 GiB instead of 24.0 GiB (-50.0 %); no out of memory.\nAt most 11.0 "
            "GiB is live in the backward pass of step 2: " +
                std::string(kHolders) + ". Fragmentation is no issue (8 %).\n");
}

}  // namespace
}  // namespace memreplay
