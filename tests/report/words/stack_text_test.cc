#include "report/words/stack_text.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace memreplay {
namespace {

struct MadeFrame {
  const char* file;
  const char* name;
  uint32_t line;
};

uint32_t Stack(Trace& trace, std::initializer_list<MadeFrame> frames) {
  std::vector<uint32_t> indexes;
  for (const MadeFrame& frame : frames) {
    indexes.push_back(trace.stacks.InternFrame(
        {trace.strings.Intern(frame.file), trace.strings.Intern(frame.name), frame.line}));
  }
  return trace.stacks.InternStack(indexes);
}

TEST(StackOf, NamesTheInnermostFrameOfTheProgramsOwn) {
  Trace trace;
  const uint32_t stack =
      Stack(trace, {{"??", "torch::unwind::unwind()", 0},
                    {"/env/site-packages/torch/nn/modules/linear.py", "forward", 116},
                    {"/home/me/project/src/model.py", "attend", 42},
                    {"/home/me/project/train.py", "<module>", 7}});
  const proto::Stack text = StackOf(trace, stack);
  EXPECT_EQ(text.summary(), "project/src/model.py:42 attend");
  EXPECT_EQ(text.depth(), 4);
  ASSERT_EQ(text.frames_size(), 4);
  EXPECT_EQ(text.frames(0), "torch::unwind::unwind()");
  EXPECT_EQ(text.frames(1), "/env/site-packages/torch/nn/modules/linear.py:116 forward");
}

TEST(StackOf, TakesPyTorchsPythonWhereThereIsNoOther) {
  Trace trace;
  const uint32_t stack =
      Stack(trace, {{"??", "at::empty", 0}, {"/env/site-packages/torch/optim/adam.py", "step", 9}});
  EXPECT_EQ(StackOf(trace, stack).summary(), "torch/optim/adam.py:9 step");
}

TEST(StackOf, WithoutPythonWhatAskedTheAllocator) {
  Trace trace;
  const uint32_t stack = Stack(trace, {{"??", "torch::unwind::unwind()", 0},
                                       {"??", "c10::StorageImpl::StorageImpl()", 0},
                                       {"??", "at::native::mul_out", 0}});
  EXPECT_EQ(StackOf(trace, stack).summary(), "at::native::mul_out");
}

TEST(StackOf, WindowsPathsAreShortenedToo) {
  Trace trace;
  const uint32_t stack = Stack(trace, {{"C:\\research\\project\\cezo\\server.py", "train", 3}});
  EXPECT_EQ(StackOf(trace, stack).summary(), "project\\cezo\\server.py:3 train");
}

TEST(StackOf, NothingWasRecorded) {
  const Trace trace;
  const proto::Stack text = StackOf(trace, kNoStack);
  EXPECT_EQ(text.summary(), "no stack recorded");
  EXPECT_EQ(text.depth(), 0);
  EXPECT_TRUE(text.frames().empty());
}

TEST(StackOf, KeepsTheInnermostFramesOfADeepOne) {
  Trace trace;
  std::vector<uint32_t> frames;
  for (uint32_t line = 1; line <= 40; ++line) {
    frames.push_back(
        trace.stacks.InternFrame({trace.strings.Intern("a.py"), trace.strings.Intern("f"), line}));
  }
  const proto::Stack text = StackOf(trace, trace.stacks.InternStack(frames));
  EXPECT_EQ(text.depth(), 40);
  ASSERT_EQ(text.frames_size(), kMaxFrames);
  EXPECT_EQ(text.frames(0), "a.py:1 f");
}

TEST(StackOf, WhatIsNoTextIsMadeOne) {
  Trace trace;
  const uint32_t stack = Stack(trace, {{"a\x01"
                                        "b.py",
                                        "\xff", 1}});
  EXPECT_EQ(StackOf(trace, stack).summary(), "a?b.py:1 ?");
}

TEST(TagOf, OfAProgramAlone) {
  Trace trace;
  const uint32_t tagged = Stack(trace, {{"weight", "layer0", 0}});
  EXPECT_EQ(TagOf(trace, tagged), "");
  trace.is_program = true;
  EXPECT_EQ(TagOf(trace, tagged), "weight");
  EXPECT_EQ(TagOf(trace, Stack(trace, {{"a.py", "f", 3}})), "");
  EXPECT_EQ(TagOf(trace, kNoStack), "");
}

}  // namespace
}  // namespace memreplay
