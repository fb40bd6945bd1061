#include "report/words/answer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace memreplay {
namespace {

std::string TextOf(const std::vector<Line>& lines) {
  Text text;
  text.AddAll(lines);
  return text.text;
}

TEST(Unseen, NothingIsAWholeRun) {
  EXPECT_TRUE(UnseenLines(proto::Unseen()).empty());
  EXPECT_FALSE(IsLowerBound(proto::Unseen()));
  EXPECT_EQ(AtLeast(proto::Unseen(), /*survives=*/true), "");
}

TEST(Unseen, TellsWhatWouldHaveComeAndWhatStepsLeave) {
  proto::Unseen unseen;
  unseen.set_ooms(1);
  unseen.set_first_oom_event(1117);
  const std::string begin =
      "  LOWER BOUND: the recording ran out of memory at event 1,117, so what would have followed "
      "is not in the file";
  EXPECT_EQ(TextOf(UnseenLines(unseen)), begin + ".\n");
  unseen.set_steps(9);
  unseen.set_growth_bytes_per_step(int64_t{9} << 28);
  EXPECT_EQ(TextOf(UnseenLines(unseen)),
            begin +
                "; each of the 9 steps before it left 2.25 GiB more live, and "
                "further steps may need as much again.\n");
  unseen.set_may_be_layers(true);
  EXPECT_NE(
      TextOf(UnseenLines(unseen)).find("9 repeats before it (perhaps the layers of one pass) left"),
      std::string::npos);
  unseen.set_growth_bytes_per_step(0);
  EXPECT_NE(TextOf(UnseenLines(unseen)).find("left nothing behind"), std::string::npos);
  unseen.set_ooms(3);
  EXPECT_NE(TextOf(UnseenLines(unseen)).find("ran out of memory 3 times, first at event 1,117,"),
            std::string::npos);
}

TEST(Unseen, TellsWhatEndedTheScript) {
  proto::Unseen unseen;
  unseen.set_first_oom_event(-1);
  unseen.set_ended("ValueError: too large (train.py:33)");
  EXPECT_TRUE(IsLowerBound(unseen));
  EXPECT_EQ(TextOf(UnseenLines(unseen)),
            "  LOWER BOUND: its script ended by ValueError: too large (train.py:33), so a whole "
            "run may need more.\n");
}

TEST(Unseen, TellsWhatCameBefore) {
  proto::Unseen unseen;
  unseen.set_first_oom_event(-1);
  unseen.set_has_events(true);
  unseen.set_start_allocations(75);
  unseen.set_start_requested_bytes(3 << 20);
  unseen.set_start_reserved_bytes(20 << 20);
  EXPECT_TRUE(IsLowerBound(unseen));
  EXPECT_EQ(AtLeast(unseen, /*survives=*/true), "at least ");
  EXPECT_EQ(TextOf(UnseenLines(unseen)),
            "  LOWER BOUND: the recording began with 3.00 MiB live in 75 allocations and 20.0 MiB "
            "reserved; what happened before is not in the file.\n");
  unseen.set_has_events(false);
  EXPECT_NE(TextOf(UnseenLines(unseen)).find("no requests were recorded, only the final state"),
            std::string::npos);
}

TEST(Unseen, APassWithoutItsEndIsALowerBound) {
  proto::Unseen unseen;
  unseen.set_ends_in_pass(true);
  EXPECT_TRUE(IsLowerBound(unseen));
  EXPECT_NE(TextOf(UnseenLines(unseen)).find("ends before the backward pass"), std::string::npos);
}

// A run that runs out itself is no lower bound of anything.
TEST(Unseen, AtLeastIsSaidOfWhatSurvives) {
  proto::DeviceReport device;
  device.set_mode(proto::Mode::what_if);
  device.set_peak_reserved_bytes(3 << 20);
  device.mutable_unseen()->set_ooms(1);
  EXPECT_EQ(AnswerSentence(device),
            "peak reserved at least 3.00 MiB; no out of memory in what was recorded");
  device.set_ooms(1);
  EXPECT_EQ(AnswerSentence(device), "peak reserved 3.00 MiB; OUT OF MEMORY 1 time");
}

TEST(AnswerLines, AreTheDiagnosisTheProblemsAndTheCaveats) {
  proto::DeviceReport device;
  device.set_device(1);
  device.mutable_diagnosis()->set_what("Fine.");
  EXPECT_EQ(TextOf(AnswerLines(device)), "device 1: Fine.\n");
  EXPECT_EQ(AnswerLines(device)[0].tone, Tone::kAnswer);
  device.set_mode(proto::Mode::oom);
  device.mutable_diagnosis()->set_what("FRAGMENTATION: in pieces.");
  device.mutable_diagnosis()->set_why("8.00 GiB was live.");
  device.mutable_diagnosis()->set_do_("Use one stream.");
  device.mutable_oom()->set_verdict(proto::Verdict::fragmentation);
  device.add_faults("out of memory: fragmentation");  // which the diagnosis says
  device.add_faults("the file contradicts itself 1 time: a free of nothing.");
  device.mutable_unseen()->set_ooms(1);
  EXPECT_EQ(
      TextOf(AnswerLines(device)),
      "device 1: FRAGMENTATION: in pieces.\n"
      "  why: 8.00 GiB was live.\n"
      "  do: Use one stream.\n"
      "  PROBLEM: the file contradicts itself 1 time: a free of nothing.\n"
      "  LOWER BOUND: the recording ran out of memory at event 0, so what would have followed "
      "is not in the file.\n");
  EXPECT_EQ(AnswerLines(device)[0].tone, Tone::kBadAnswer);
  EXPECT_EQ(AnswerLines(device)[3].tone, Tone::kBad);
}

TEST(NothingLine, SaysWhyAFileMayHaveNoDevice) {
  proto::Report report;
  EXPECT_NE(NothingLine(report).find("was the snapshot taken before CUDA was used"),
            std::string::npos);
  report.add_devices();
  EXPECT_EQ(NothingLine(report), "");
}

}  // namespace
}  // namespace memreplay
