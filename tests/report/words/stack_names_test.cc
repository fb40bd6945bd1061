#include "report/words/stack_names.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <set>

namespace memreplay {
namespace {

struct MadeFrame {
  const char* file;
  const char* name;
  uint32_t line;
};

uint32_t Stack(Trace& trace, const std::vector<MadeFrame>& frames) {
  std::vector<uint32_t> indexes;
  for (const MadeFrame& frame : frames) {
    indexes.push_back(trace.stacks.InternFrame(
        {trace.strings.Intern(frame.file), trace.strings.Intern(frame.name), frame.line}));
  }
  return trace.stacks.InternStack(indexes);
}

constexpr MadeFrame kUnwind = {"??", "torch::unwind::unwind()", 0};
constexpr MadeFrame kLinear = {"/env/lib/python3.10/site-packages/torch/nn/modules/linear.py",
                               "forward", 116};
constexpr MadeFrame kTrain = {"/home/me/project/train.py", "<module>", 7};
constexpr MadeFrame kModel = {"/home/me/project/src/model.py", "attend", 42};

TEST(StackNames, TheInnermostFrameOfTheProgramsOwn) {
  Trace trace;
  const uint32_t stack = Stack(trace, {kUnwind, kLinear, kModel, kTrain});
  const proto::Stack text = StackNames(trace).Of(stack);
  EXPECT_EQ(text.summary(), "src/model.py:42 attend");
  EXPECT_EQ(text.depth(), 4);
  ASSERT_EQ(text.frames_size(), 4);
  EXPECT_EQ(text.frames(0), "torch::unwind::unwind()");
  EXPECT_EQ(text.frames(1),
            "/env/lib/python3.10/site-packages/torch/nn/modules/linear.py:116 forward");
  ASSERT_EQ(text.own_size(), 2);
  EXPECT_EQ(text.own(0), 2);
  EXPECT_EQ(text.own(1), 3);
}

TEST(StackNames, TheLibraryThatItCallsStandsBehindIt) {
  Trace trace;
  const uint32_t stack = Stack(
      trace,
      {kLinear, {"/env/lib/python3.12/site-packages/einops/einops.py", "einsum", 532}, kModel});
  EXPECT_EQ(StackNames(trace).Label(stack), "src/model.py:42 attend > einops/einops.py:532 einsum");
}

TEST(StackNames, AnEnvironmentInADirectoryCalledTorchIsNotPyTorch) {
  Trace trace;
  const uint32_t stack =
      Stack(trace, {{"/home/me/torch/lib/python3.10/site-packages/einx/einx.py", "dot", 3}});
  EXPECT_EQ(StackNames(trace).Label(stack), "einx/einx.py:3 dot");
}

TEST(StackNames, PythonsOwnLibraryIsNobodysCode) {
  for (const char* file :
       {"/usr/lib/python3.10/copy.py", "C:\\uv\\cpython-3.10.1-none\\lib\\copy.py",
        "C:\\Python310\\Lib\\copy.py", "/tmp/torchinductor_me/ab/cab123.py"}) {
    EXPECT_EQ(OriginOf(file), FrameOrigin::kMachinery) << file;
  }
  for (const char* file : {"/home/me/lib/model.py", "train.py", "<ipython-input-3-abc>",
                           "C:\\research\\lib\\train.py", "/tmp/ipykernel_12/34.py"}) {
    EXPECT_EQ(OriginOf(file), FrameOrigin::kOwn) << file;
  }
  EXPECT_EQ(OriginOf("RegisterCUDA.cpp"), FrameOrigin::kNative);
  EXPECT_EQ(OriginOf("??"), FrameOrigin::kNative);
}

TEST(StackNames, PyTorchsPythonWhereThereIsNoOther) {
  Trace trace;
  const uint32_t stack =
      Stack(trace, {{"??", "at::empty", 0}, {"/env/site-packages/torch/optim/adam.py", "step", 9}});
  EXPECT_EQ(StackNames(trace).Label(stack), "torch/optim/adam.py:9 step");
}

TEST(StackNames, WithoutPythonWhatAskedTheAllocator) {
  Trace trace;
  const uint32_t stack = Stack(trace, {kUnwind,
                                       {"??", "c10::StorageImpl::StorageImpl()", 0},
                                       {"??", "at::native::mul_out(at::Tensor const&)", 0}});
  EXPECT_EQ(StackNames(trace).Label(stack), "at::native::mul_out");
}

TEST(StackNames, OfTheBackwardPassNodeAndOperator) {
  Trace trace;
  const uint32_t stack = Stack(
      trace,
      {kUnwind,
       {"RegisterCUDA.cpp", "at::(anonymous namespace)::structured_bmm::set_output(long)", 0},
       {"??", "at::_ops::bmm::call(at::Tensor const&, at::Tensor const&)", 0},
       {"??", "torch::autograd::generated::BmmBackward0::apply(std::vector<at::Tensor>&&)", 0},
       {"??", "torch::autograd::Engine::thread_main()", 0}});
  EXPECT_EQ(StackNames(trace).Label(stack), "BmmBackward0 > aten::bmm");
}

TEST(StackNames, FunctionsHaveTheNamesThatPeopleKnow) {
  Trace trace;
  const uint32_t handle =
      Stack(trace, {kUnwind, {"??", "at::cuda::getCurrentCUDABlasHandle()", 0}});
  const uint32_t linear =
      Stack(trace, {kUnwind,
                    {"??",
                     "at::(anonymous namespace)::structured_addmm_out_cuda_functional::"
                     "set_output_raw_strided(long)",
                     0}});
  const uint32_t product =
      Stack(trace, {kUnwind, {"??", "at::meta::structured_mm::meta(at::Tensor const&)", 0}});
  StackNames names(trace);
  EXPECT_EQ(names.Label(handle), "cuBLAS workspace");
  EXPECT_EQ(names.Label(linear), "aten::linear");
  EXPECT_EQ(names.Label(product), "aten::mm");
}

TEST(StackNames, WindowsPathsAreShortenedToo) {
  Trace trace;
  const uint32_t stack = Stack(trace, {{"C:\\research\\project\\cezo\\server.py", "train", 3}});
  EXPECT_EQ(StackNames(trace).Label(stack), "cezo\\server.py:3 train");
}

TEST(StackNames, DeepLibrariesKeepTheirName) {
  Trace trace;
  const uint32_t stack = Stack(
      trace, {{"/x/dist-packages/megatron/core/models/common/language/module.py", "setup", 14}});
  EXPECT_EQ(StackNames(trace).Label(stack),
            "megatron/.../models/common/language/module.py:14 setup");
}

TEST(StackNames, NothingWasRecorded) {
  const Trace trace;
  const proto::Stack text = StackNames(trace).Of(kNoStack);
  EXPECT_EQ(text.summary(), "no stack recorded");
  EXPECT_EQ(text.depth(), 0);
  EXPECT_TRUE(text.frames().empty());
}

TEST(StackNames, OperatorsTellStacksOfALineApart) {
  Trace trace;
  const uint32_t mul = Stack(trace, {{"??", "at::_ops::mul_Tensor::call()", 0}, kModel});
  const uint32_t div = Stack(trace, {{"??", "at::_ops::div_Tensor::call()", 0}, kModel});
  StackNames names(trace);
  EXPECT_EQ(names.Label(mul), "src/model.py:42 attend > aten::mul_Tensor");
  EXPECT_EQ(names.Label(div), "src/model.py:42 attend > aten::div_Tensor");
  EXPECT_EQ(names.Line(mul), names.Line(div));
}

// Of "linear" both, in the end another.
TEST(StackNames, InnerOperatorsTellWhatTheOuterDoesNot) {
  Trace trace;
  const MadeFrame linear = {"??", "at::_ops::linear::call()", 0};
  const MadeFrame wrap = {"??", "c10::impl::wrap_kernel_functor_unboxed_<>::call()", 0};
  const uint32_t add =
      Stack(trace, {kUnwind, {"??", "at::_ops::addmm::call()", 0}, wrap, linear, kModel});
  const uint32_t cat = Stack(trace, {kUnwind, {"??", "at::_ops::cat::call()", 0}, linear, kModel});
  StackNames names(trace);
  EXPECT_EQ(names.Label(add), "src/model.py:42 attend > aten::addmm");
  EXPECT_EQ(names.Label(cat), "src/model.py:42 attend > aten::cat");
}

TEST(StackNames, CallersTellStacksOfALineApart) {
  Trace trace;
  const uint32_t query =
      Stack(trace, {kModel, {"/home/me/project/src/block.py", "query", 5}, kTrain});
  const uint32_t key = Stack(trace, {kModel, {"/home/me/project/src/block.py", "key", 6}, kTrain});
  StackNames names(trace);
  EXPECT_EQ(names.Label(query), "src/model.py:42 attend, from src/block.py:5 query");
  EXPECT_EQ(names.Label(key), "src/model.py:42 attend, from src/block.py:6 key");
}

TEST(StackNames, NoTwoAreAlikeHoweverDeepTheyDiffer) {
  Trace trace;
  std::vector<uint32_t> stacks;
  for (uint32_t i = 0; i < 64; ++i) {  // binary counters of callers, and of C++ frames
    std::vector<MadeFrame> callers = {kModel};
    std::vector<MadeFrame> native = {kModel};
    for (uint32_t bit = 0; bit < 6; ++bit) {
      callers.push_back({"/home/me/layer.py", "forward", 10 * bit + (i >> bit & 1) + 1});
      native.insert(native.begin(), {"??", (i >> bit & 1) != 0 ? "f()" : "g()", 0});
    }
    stacks.push_back(Stack(trace, callers));
    stacks.push_back(Stack(trace, native));
  }
  StackNames names(trace);
  std::set<std::string> labels;
  for (const uint32_t stack : stacks) labels.insert(names.Label(stack));
  EXPECT_EQ(labels.size(), stacks.size());
}

TEST(StackNames, KeepsAllFrames) {
  Trace trace;
  std::vector<uint32_t> frames;
  for (uint32_t line = 1; line <= 40; ++line) {
    frames.push_back(
        trace.stacks.InternFrame({trace.strings.Intern("a.py"), trace.strings.Intern("f"), line}));
  }
  const uint32_t stack = trace.stacks.InternStack(frames);
  const proto::Stack text = StackNames(trace).Of(stack);
  EXPECT_EQ(text.depth(), 40);
  ASSERT_EQ(text.frames_size(), 40);
  EXPECT_EQ(text.frames(39), "a.py:40 f");
  EXPECT_TRUE(StackHas(text, "A.PY:40"));
  EXPECT_FALSE(StackHas(text, "b.py"));
}

TEST(StackNames, WhatIsNoTextIsMadeOne) {
  Trace trace;
  const uint32_t stack = Stack(trace, {{"a\x01"
                                        "b.py",
                                        "\xff", 1}});
  EXPECT_EQ(StackNames(trace).Label(stack), "a?b.py:1 ?");
}

TEST(TagOf, OfAProgramAlone) {
  Trace trace;
  const uint32_t tagged = Stack(trace, {{"weight", "layer0", 0}});
  EXPECT_EQ(TagOf(trace, tagged), "");
  trace.is_program = true;
  EXPECT_EQ(TagOf(trace, tagged), "weight");
  EXPECT_EQ(StackNames(trace).Label(tagged), "weight layer0");
  EXPECT_EQ(TagOf(trace, Stack(trace, {{"a.py", "f", 3}})), "");
  EXPECT_EQ(TagOf(trace, kNoStack), "");
}

}  // namespace
}  // namespace memreplay
