#include <gtest/gtest.h>

#include "report/words/answer.h"

namespace memreplay {
namespace {

using Choice = proto::TorchProfileChoice;

Choice ChoiceOf(Choice::Reason reason) {
  Choice choice;
  choice.set_release("2.6");
  choice.set_reason(reason);
  return choice;
}

TEST(TorchReason, OfAReleaseThatIsNotInferred) {
  EXPECT_EQ(TorchReason(ChoiceOf(Choice::given)), "given");
  EXPECT_EQ(TorchReason(ChoiceOf(Choice::in_file)), "according to the file");
  EXPECT_EQ(TorchReason(ChoiceOf(Choice::unnamed)), "not in the file; the default");
  EXPECT_EQ(TorchReason(ChoiceOf(Choice::no_file)), "the default");
}

TEST(TorchReason, OfALayout) {
  Choice choice = ChoiceOf(Choice::layout);
  EXPECT_EQ(TorchReason(choice),
            "inferred: the file does not identify its release; assumed to be 2.6");
  choice.add_fitting("2.6");
  EXPECT_EQ(TorchReason(choice), "inferred: layout of 2.6");
  choice.add_evidence("its settings");
  choice.add_evidence("no compile_context");
  EXPECT_EQ(TorchReason(choice), "inferred: layout of 2.6 (its settings, no compile_context)");
  choice.add_fitting("2.7");
  EXPECT_EQ(TorchReason(choice),
            "inferred: layout of 2.6 to 2.7 (its settings, no compile_context); assumed to be 2.6");
}

TEST(TorchReason, OfALayoutThatNoReleaseWrites) {
  EXPECT_EQ(TorchReason(ChoiceOf(Choice::newest_key)),
            "inferred: layout of no release; assumed to be the oldest release with all its keys, "
            "2.6");
  EXPECT_EQ(TorchReason(ChoiceOf(Choice::unknown_layout)),
            "inferred: layout of no release; assumed to be 2.6");
}

TEST(TorchReason, OfWhatTheRecordingShows) {
  Choice choice = ChoiceOf(Choice::reproduces);
  choice.add_fitting("2.5");
  choice.add_fitting("2.7");
  choice.set_rejected("2.7");
  choice.set_rejected_at_event(12);
  EXPECT_EQ(TorchReason(choice),
            "inferred: layout of 2.5 to 2.7; assumed to be 2.6, the newest release that reproduces "
            "it: 2.7 would behave differently at event 12");
  choice.set_reason(Choice::reproduces_most);
  EXPECT_EQ(
      TorchReason(choice),
      "inferred: layout of 2.5 to 2.7; assumed to be 2.6, the release that reproduces most of "
      "it: 2.7 would behave differently at event 12");
}

}  // namespace
}  // namespace memreplay
