#include "sim/category/meanings.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/category/category_table.h"
#include "tests/trace/support/recording.h"

namespace memreplay {
namespace {

using ::testing::ElementsAre;
using testing::Recording;

// Returns the stack of frames given by file and name, innermost first.
uint32_t StackOf(Trace& trace, const std::vector<std::pair<std::string, std::string>>& frames) {
  std::vector<uint32_t> indexes;
  for (const auto& [file, name] : frames) {
    indexes.push_back(
        trace.stacks.InternFrame({trace.strings.Intern(file), trace.strings.Intern(name), 7}));
  }
  return trace.stacks.InternStack(indexes);
}

constexpr char kModule[] = "/x/torch/nn/modules/module.py";

struct Stacks {
  explicit Stacks(Trace& trace)
      : load(StackOf(trace, {{kModule, "convert"}, {kModule, "to"}, {"train.py", "<module>"}})),
        forward(StackOf(trace, {{"model.py", "forward"},
                                {kModule, "_call_impl"},
                                {kModule, "_wrapped_call_impl"},
                                {"train.py", "step"}})),
        evaluation(StackOf(trace, {{"model.py", "forward"},
                                   {kModule, "_call_impl"},
                                   {kModule, "_wrapped_call_impl"},
                                   {"train.py", "evaluate"}})),
        linear(StackOf(trace, {{"/x/torch/nn/modules/linear.py", "forward"},
                               {kModule, "_call_impl"},
                               {kModule, "_wrapped_call_impl"},
                               {"train.py", "step"}})),
        state(StackOf(trace, {{"/x/torch/optim/adamw.py", "_init_group"},
                              {"/x/torch/optim/adamw.py", "step"},
                              {"train.py", "step"}})),
        step(StackOf(trace, {{"/x/torch/optim/adamw.py", "step"}, {"train.py", "step"}})),
        user(StackOf(trace, {{"train.py", "batch"}, {"train.py", "<module>"}})) {}
  uint32_t load, forward, evaluation, linear, state, step, user;
};

std::vector<std::string> Words(const Meanings& meanings) {
  std::vector<std::string> words;
  for (const Meaning& meaning : meanings.of) {
    words.push_back(std::string(CategoryName(meaning.category)) + " by " +
                    std::string(EvidenceName(meaning.evidence)) + " in " +
                    std::string(PhaseName(meaning.phase)) + " " + std::to_string(meaning.step));
  }
  return words;
}

// Returns one training step and an evaluation, with the parameter of 4096 bytes at address 1 MiB.
Recording TrainingStep() {
  Recording recording;
  const Stacks stacks(recording.trace());
  constexpr uint64_t kAt = 1 << 20;
  recording.Stack(stacks.load).Alloc(kAt, 4096);           // 0: parameter
  recording.Stack(stacks.user).Alloc(2 * kAt, 600);        // 1: input
  recording.Stack(stacks.forward).Alloc(3 * kAt, 10'000);  // 2: saved
  recording.Alloc(4 * kAt, 700).Free(4 * kAt, 700);        // 3: temporary
  recording.Stack(stacks.linear).Alloc(5 * kAt, 2048);     // 4: a copy in 16 bits
  recording.Alloc(15 * kAt, 2048);                         // 5: the product, of the same size
  recording.Alloc(16 * kAt, 64).Free(16 * kAt, 64);        // 6: its workspace
  recording.Stack(kNoStack).Alloc(6 * kAt, 9000);          // 7: gradient of an activation
  recording.Free(3 * kAt, 10'000).Alloc(7 * kAt, 4096);    // 8: gradient
  recording.Free(6 * kAt, 9000).Free(5 * kAt, 2048).Free(15 * kAt, 2048);
  recording.Stack(stacks.state).Alloc(8 * kAt, 4096);                       // 9: state
  recording.Alloc(9 * kAt, 4096);                                           // 10: state
  recording.Stack(stacks.step).Alloc(10 * kAt, 4096).Free(10 * kAt, 4096);  // 11: temporary
  recording.Free(7 * kAt, 4096).Free(2 * kAt, 600);
  recording.Stack(stacks.evaluation).Alloc(11 * kAt, 5000);  // 12: temporary of an evaluation
  recording.Alloc(12 * kAt, 5000).Free(11 * kAt, 5000).Free(12 * kAt, 5000);  // 13
  return recording;
}

TEST(Meanings, AreInferredFromStacksLifetimesAndSizes) {
  const Meanings meanings = FindMeanings(TrainingStep().Build());
  EXPECT_FALSE(meanings.is_noted);
  EXPECT_TRUE(meanings.trains);
  EXPECT_THAT(
      Words(meanings),
      ElementsAre("parameter by stack in load 1", "input by lifetime in other 1",
                  "activation by lifetime in forward 1", "temporary by lifetime in forward 1",
                  "copy by size in forward 1", "activation by lifetime in forward 1",
                  "temporary by lifetime in forward 1", "temporary by lifetime in backward 1",
                  "gradient by size in backward 1", "optimizer_state by stack in optimizer 1",
                  "optimizer_state by stack in optimizer 1", "temporary by lifetime in optimizer 1",
                  "temporary by lifetime in evaluation 2",
                  "temporary by lifetime in evaluation 2"));
}

TEST(Meanings, AreTheSameWithoutRequests) {
  Recording recording = TrainingStep();
  recording.Free(12 << 20, 300).Oom(5, 1 << 20).Alloc(13 << 20, 700);  // the first was there before
  const Schedule whole = recording.Build();
  const Schedule recorded = Schedule::BuildRecorded(whole.shared_trace(), 0);
  EXPECT_FALSE(whole.requests().empty());
  EXPECT_TRUE(recorded.requests().empty());
  EXPECT_EQ(recorded.allocation_count(), whole.allocation_count());
  EXPECT_EQ(recorded.is_cold(), whole.is_cold());
  EXPECT_EQ(recorded.start_allocations().size(), whole.start_allocations().size());
  EXPECT_EQ(Words(FindMeanings(recorded)), Words(FindMeanings(whole)));
}

TEST(Meanings, OfWhatWasThereBeforeTheRecording) {
  Recording recording;
  Trace& trace = recording.trace();
  const uint32_t cache = StackOf(
      trace, {{"vllm/worker/cache_engine.py", "_allocate_kv_cache"}, {"vllm/engine.py", "start"}});
  recording.Segment(1 << 20, 64 << 20);
  recording.Block(8'519'680, 8'519'680);  // cuBLAS's, by its size
  recording.Block(40 << 20, 40 << 20);
  trace.devices[0].final_state[0].blocks[1].stack = cache;
  recording.Block(512, 512);
  EXPECT_THAT(Words(FindMeanings(recording.Build())),
              ElementsAre("workspace by size in load 0", "cache by stack in load 0",
                          "unknown by none in load 0"));
}

// A server whose model is compiled has no phases when it makes its cache.
TEST(Meanings, ACacheIsOneInEveryPhase) {
  Recording recording;
  Trace& trace = recording.trace();
  const Stacks stacks(trace);
  const uint32_t cache = StackOf(trace, {{"vllm/worker.py", "_allocate_kv_cache_tensors"}});
  recording.SegmentAlloc(1 << 20, 20 << 20).Stack(stacks.load).Alloc(1 << 20, 4 << 20);
  recording.Stack(cache).Alloc(5 << 20, 4 << 20);
  EXPECT_EQ(Words(FindMeanings(recording.Build()))[1], "cache by stack in other 1");

  Recording before_a_pass;
  const Stacks other(before_a_pass.trace());
  before_a_pass.SegmentAlloc(1 << 20, 20 << 20)
      .Stack(StackOf(before_a_pass.trace(), {{"vllm/worker.py", "_allocate_kv_cache_tensors"}}))
      .Alloc(1 << 20, 4 << 20)
      .Stack(other.evaluation)
      .Alloc(9 << 20, 512)
      .Free(9 << 20, 512);
  EXPECT_EQ(Words(FindMeanings(before_a_pass.Build()))[0], "cache by stack in load 1");
}

TEST(Meanings, ARecordingWithoutPassesHasNoPhaseBeforeThem) {
  Recording recording;
  const Stacks stacks(recording.trace());
  recording.SegmentAlloc(1 << 20, 2 << 20).Stack(stacks.user).Alloc(1 << 20, 4096);
  const Meanings meanings = FindMeanings(recording.Build());
  ASSERT_EQ(meanings.phases.size(), 1U);
  EXPECT_EQ(meanings.phases[0].phase, Phase::kOther);
}

TEST(Meanings, AreToldByNotes) {
  Recording recording = TrainingStep();
  Trace& trace = recording.trace();
  const auto text = [&](std::string_view name) { return trace.strings.Intern(name); };
  constexpr uint64_t kAt = 1 << 20;
  // Events: 0 alloc 0, 1 alloc 1, 2 alloc 2, 3-5 temporary, 6 copy, 7 product, 8-10 workspace, 11
  // alloc 7 ...
  trace.devices[0].notes = {
      {NoteKind::kForward, text("Net"), 2, Address()},
      {NoteKind::kParameter, text("h.0.weight"), 2, Address(kAt)},
      {NoteKind::kInput, 0, 2, Address(2 * kAt)},
      {NoteKind::kModule, text("h.0"), 3, Address()},
      {NoteKind::kEnd, 0, 6, Address()},
      {NoteKind::kEnd, 0, 11, Address()},
      {NoteKind::kBackward, 0, 11, Address()},
      {NoteKind::kEnd, 0, 21, Address()},
      {NoteKind::kGradient, text("h.0.weight"), 21, Address(7 * kAt)},
      {NoteKind::kOptimizer, text("AdamW"), 21, Address()},
      {NoteKind::kEnd, 0, 26, Address()},
      {NoteKind::kOptimizerState, text("h.0.weight.exp_avg"), 26, Address(8 * kAt)},
      {NoteKind::kEvaluation, text("Net"), 30, Address()},
  };
  const Schedule schedule = recording.Build();
  const Meanings meanings = FindMeanings(schedule);
  EXPECT_TRUE(meanings.is_noted);
  const std::vector<std::string> words = Words(meanings);
  EXPECT_EQ(words[0], "parameter by told in other 1");
  EXPECT_EQ(words[1], "input by told in other 1");
  EXPECT_EQ(words[2], "activation by lifetime in forward 1");
  EXPECT_EQ(words[3], "temporary by lifetime in forward 1");
  EXPECT_EQ(words[8], "gradient by told in backward 1");
  EXPECT_EQ(words[9], "optimizer_state by told in optimizer 1");
  EXPECT_EQ(words[12], "temporary by lifetime in evaluation 2");
  const auto module = [&](size_t id) { return meanings.modules[meanings.of[id].module]; };
  EXPECT_EQ(module(0), "h.0");
  EXPECT_EQ(module(2), "Net");
  EXPECT_EQ(module(3), "h.0");
  EXPECT_EQ(module(8), "h.0");
  EXPECT_EQ(module(8), "h.0");
  // Without the notes the stacks say the same of what they know.
  EXPECT_EQ(FindMeanings(schedule, false).of[8].category, Category::kGradient);
}

TEST(Meanings, SavedActivationsOfAPassThatRanOutOfMemory) {
  Recording recording;
  const Stacks stacks(recording.trace());
  recording.Stack(stacks.load).Alloc(1 << 20, 4096);
  recording.Stack(stacks.forward).Alloc(2 << 20, 10'000).Alloc(3 << 20, 10'000);
  recording.Oom(1 << 20, 50'000);
  recording.Stack(kNoStack).Free(2 << 20, 10'000).Free(3 << 20, 10'000);
  const Meanings meanings = FindMeanings(recording.Build());
  EXPECT_EQ(meanings.of[1].category, Category::kActivation);
  EXPECT_EQ(meanings.of[1].phase, Phase::kForward);
}

TEST(Meanings, NothingIsKnownWithoutFrames) {
  Recording recording;
  recording.Alloc(1 << 20, 4096).Alloc(2 << 20, 4096).Free(1 << 20, 4096);
  const Meanings meanings = FindMeanings(recording.Build());
  EXPECT_EQ(meanings.of[1].category, Category::kUnknown);
  EXPECT_EQ(meanings.of[1].evidence, Evidence::kNone);
  EXPECT_FALSE(meanings.trains);
}

// What was there before the recording: one of a size for each gradient is the parameter, two more
// are its moments.
TEST(Meanings, SizesPairAParameterWithItsGradientAndMoments) {
  Recording recording;
  const Stacks stacks(recording.trace());
  constexpr uint64_t kAt = 1 << 20;
  recording.Stack(stacks.forward).Alloc(3 * kAt, 10'000);
  recording.Stack(kNoStack).Alloc(7 * kAt, 4096).Free(3 * kAt, 10'000);
  recording.Stack(stacks.step).Alloc(10 * kAt, 512).Free(10 * kAt, 512);
  recording.Free(7 * kAt, 4096);
  recording.Segment(20 * kAt, 4 * 4096)
      .Block(4096, 4096)
      .Block(4096, 4096)
      .Block(4096, 4096)
      .FreeBlock(4096);
  const Schedule schedule = recording.Build();
  ASSERT_EQ(schedule.start_allocations().size(), 3u);
  const Meanings meanings = FindMeanings(schedule);
  std::vector<Category> found;
  for (const StartAllocation& start : schedule.start_allocations()) {
    found.push_back(meanings.of[start.id].category);
    EXPECT_EQ(meanings.of[start.id].evidence, Evidence::kSize);
  }
  EXPECT_THAT(found, ElementsAre(Category::kParameter, Category::kOptimizerState,
                                 Category::kOptimizerState));
}

constexpr uint64_t kMib = 1 << 20;

// Returns the stack of a line within a module that train.py calls.
uint32_t Layer(Trace& trace, const std::string& line,
               const std::vector<std::pair<std::string, std::string>>& inner = {}) {
  auto frames = inner;
  frames.insert(frames.end(), {{"model.py", line},
                               {kModule, "_call_impl"},
                               {"model.py", "forward"},
                               {kModule, "_call_impl"},
                               {"train.py", "<module>"}});
  return StackOf(trace, frames);
}

// A pass of eight layers, each with a result of 4096 bytes and one of 8192 that the next reads.
// Without gradients each is freed by the next layer, else all when the result is dropped.
void AddPass(Recording& recording, bool keeps, uint64_t at) {
  for (uint64_t i = 0; i < 8; ++i) {
    const uint32_t line = Layer(recording.trace(), "layer" + std::to_string(i));
    recording.Stack(line).Alloc(at + 2 * i * kMib, 4096).Alloc(at + (2 * i + 1) * kMib, 8192);
    if (keeps || i == 0) continue;
    recording.Free(at + 2 * (i - 1) * kMib, 4096).Free(at + (2 * i - 1) * kMib, 8192);
  }
  for (uint64_t i = keeps ? 0 : 7; i < 8; ++i) {
    recording.Free(at + 2 * i * kMib, 4096).Free(at + (2 * i + 1) * kMib, 8192);
  }
}

TEST(Meanings, PassesThatKeepWhatNoBackwardPassUses) {
  for (const bool keeps : {true, false}) {
    Recording recording;
    AddPass(recording, keeps, 100 * kMib);
    AddPass(recording, keeps, 200 * kMib);
    const Meanings meanings = FindMeanings(recording.Build());
    const Category category = keeps ? Category::kActivation : Category::kTemporary;
    for (size_t id = 0; id + 2 < 16; ++id) {
      EXPECT_EQ(meanings.of[id].category, category) << id;
      EXPECT_EQ(meanings.of[16 + id].category, category) << id;
    }
    EXPECT_FALSE(meanings.trains);
    ASSERT_EQ(meanings.phases.size(), keeps ? 2u : 1u);
    EXPECT_EQ(meanings.phases[0].phase, keeps ? Phase::kForward : Phase::kEvaluation);
    EXPECT_EQ(meanings.phases[0].is_in_vain, keeps);
  }
}

// The same in training: an evaluation that keeps it, and one that does not.
TEST(Meanings, AnEvaluationWithGradientsBetweenSteps) {
  for (const bool keeps : {true, false}) {
    Recording recording;
    const Stacks stacks(recording.trace());
    for (int step = 0; step < 2; ++step) {
      recording.Stack(stacks.forward).Alloc(3 * kMib, 10'000);
      recording.Stack(kNoStack).Alloc(7 * kMib, 4096).Free(3 * kMib, 10'000);
      recording.Stack(stacks.step).Alloc(10 * kMib, 512).Free(10 * kMib, 512);
      recording.Free(7 * kMib, 4096);
      AddPass(recording, keeps, 100 * kMib);
    }
    const Meanings meanings = FindMeanings(recording.Build());
    EXPECT_EQ(meanings.of[3].phase, keeps ? Phase::kForward : Phase::kEvaluation);
    EXPECT_EQ(meanings.of[5].category, keeps ? Category::kActivation : Category::kTemporary);
    EXPECT_EQ(meanings.of[0].category, Category::kActivation);  // of training
    ASSERT_EQ(meanings.phases[0].phase, Phase::kForward);
    EXPECT_FALSE(meanings.phases[0].is_in_vain);  // though backward follows its last allocation
  }
}

TEST(Meanings, WhatAutogradAccumulatesIsAGradient) {
  Recording recording;
  Trace& trace = recording.trace();
  const Stacks stacks(trace);
  const std::pair<std::string, std::string> engine = {
      "??", "torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask>)"};
  const std::pair<std::string, std::string> accumulate = {
      "??", "torch::autograd::AccumulateGrad::apply(std::vector<at::Tensor>&&)"};
  recording.Stack(stacks.load).Alloc(kMib, 512);  // of another size
  recording.Stack(stacks.forward).Alloc(3 * kMib, 10'000);
  recording.Stack(StackOf(trace, {accumulate, engine})).Alloc(4 * kMib, 4096);             // 2
  recording.Stack(StackOf(trace, {engine})).Alloc(5 * kMib, 4096).Free(3 * kMib, 10'000);  // 3
  recording.Stack(StackOf(trace, {{"ddp.py", "hook"}, accumulate, engine})).Alloc(6 * kMib, 4096);
  recording.Free(5 * kMib, 4096).Free(6 * kMib, 4096);
  recording.Stack(stacks.step).Alloc(10 * kMib, 512).Free(10 * kMib, 512);
  const Meanings meanings = FindMeanings(recording.Build());
  EXPECT_EQ(Words(meanings)[2], "gradient by stack in backward 1");
  EXPECT_NE(meanings.of[3].category, Category::kGradient);  // a gradient of an activation
  EXPECT_NE(meanings.of[4].category, Category::kGradient);  // what a hook makes
}

TEST(Meanings, AutocastCopiesWeights) {
  Recording recording;
  Trace& trace = recording.trace();
  const Stacks stacks(trace);
  const std::vector<std::pair<std::string, std::string>> cast = {
      {"autocast_mode.cpp", "at::autocast::cached_cast(c10::ScalarType, at::Tensor const&)"}};
  recording.Stack(stacks.load).Alloc(kMib, 4096);
  recording.Stack(Layer(trace, "a", cast)).Alloc(2 * kMib, 2048);  // of the weight
  recording.Stack(Layer(trace, "b", cast)).Alloc(3 * kMib, 3000);  // of an activation
  recording.Stack(Layer(trace, "b")).Alloc(4 * kMib, 2048);        // the product
  recording.Stack(kNoStack).Alloc(7 * kMib, 4096).Free(2 * kMib, 2048).Free(3 * kMib, 3000);
  recording.Free(4 * kMib, 2048).Alloc(8 * kMib, 512);
  const Meanings meanings = FindMeanings(recording.Build());
  EXPECT_EQ(Words(meanings)[1], "copy by stack in forward 1");
  EXPECT_EQ(Words(meanings)[2], "activation by lifetime in forward 1");
  EXPECT_EQ(Words(meanings)[3], "activation by lifetime in forward 1");
}

// What the script computes outside of modules, or again in a checkpoint of its own, is freed by
// autograd while the script waits.
TEST(Meanings, WhatBackwardFreesOfTheScriptsOwnIsAnActivation) {
  Recording recording;
  const Stacks stacks(recording.trace());
  recording.Stack(stacks.user).Alloc(kMib, 9000).Alloc(2 * kMib, 600);
  recording.Stack(stacks.forward).Alloc(3 * kMib, 10'000);
  recording.Stack(stacks.user).Alloc(4 * kMib, 7000);
  recording.Stack(kNoStack).Alloc(7 * kMib, 4096).Free(4 * kMib, 7000).Free(kMib, 9000);
  recording.Alloc(8 * kMib, 512).Free(8 * kMib, 512).Free(3 * kMib, 10'000);
  recording.Stack(stacks.step).Alloc(10 * kMib, 512).Free(10 * kMib, 512).Free(2 * kMib, 600);
  const Meanings meanings = FindMeanings(recording.Build());
  EXPECT_EQ(meanings.of[0].category, Category::kActivation);
  EXPECT_EQ(meanings.of[1].category, Category::kInput);  // the script frees it
  EXPECT_EQ(meanings.of[3].category, Category::kActivation);
}

// FSDP gathers weights under torch.no_grad() within the call of a module, and its wrapper's
// forward() is on the stack of all that the model computes.
TEST(Meanings, AWrapperThatCommunicatesDoesNotMakeThePassAnother) {
  Recording recording;
  Trace& trace = recording.trace();
  const std::string fsdp = "/x/torch/distributed/fsdp/fully_sharded_data_parallel.py";
  const uint32_t gather = StackOf(trace, {{"/x/torch/distributed/fsdp/_fully_shard/c.py", "gather"},
                                          {"/x/torch/utils/_contextlib.py", "decorate_context"},
                                          {"/x/torch/distributed/fsdp/s.py", "_pre_forward"},
                                          {kModule, "_call_impl"},
                                          {"train.py", "step"}});
  const uint32_t inside = StackOf(trace, {{"model.py", "forward"},
                                          {kModule, "_call_impl"},
                                          {fsdp, "forward"},
                                          {kModule, "_call_impl"},
                                          {"train.py", "step"}});
  const uint32_t evaluated = StackOf(trace, {{"model.py", "forward"},
                                             {kModule, "_call_impl"},
                                             {"eval.py", "evaluate"},
                                             {"/x/torch/utils/_contextlib.py", "decorate_context"},
                                             {"train.py", "<module>"}});
  recording.Stack(gather).Alloc(kMib, 4096).Stack(inside).Alloc(2 * kMib, 10'000);
  recording.Free(kMib, 4096).Stack(kNoStack).Alloc(7 * kMib, 700).Free(2 * kMib, 10'000);
  recording.Free(7 * kMib, 700).Stack(evaluated).Alloc(3 * kMib, 512).Free(3 * kMib, 512);
  const Meanings meanings = FindMeanings(recording.Build());
  EXPECT_EQ(Words(meanings)[0], "communication by stack in forward 1");
  EXPECT_EQ(Words(meanings)[1], "activation by lifetime in forward 1");
  EXPECT_EQ(meanings.of[3].phase, Phase::kEvaluation);
}

TEST(Meanings, ALossThatMakesGradientsInForward) {
  Recording recording;
  Trace& trace = recording.trace();
  const auto loss = [&](const std::string& file, const std::string& name) {
    return Layer(trace, "forward", {{file, name}});
  };
  const std::string liger = "liger_kernel/ops/fused_linear_cross_entropy.py";
  recording.Stack(loss(liger, "fused_linear_cross_entropy_forward")).Alloc(2 * kMib, 8192);
  recording.Stack(loss("loss/cross_entropy.py", "forward")).Alloc(3 * kMib, 8192);
  recording.Stack(kNoStack).Alloc(7 * kMib, 700).Free(2 * kMib, 8192).Free(3 * kMib, 8192);
  const Meanings meanings = FindMeanings(recording.Build());
  EXPECT_EQ(meanings.of[0].category, Category::kGradient);
  EXPECT_EQ(meanings.of[1].category, Category::kLogits);
}

TEST(CategoryTable, AddsUpAndNamesEachPhaseOnce) {
  const Schedule schedule = TrainingStep().Build();
  const CategoryTable table = CategoriesOverTime(schedule, FindMeanings(schedule));
  std::vector<std::string> phases;
  for (const CategoryPeak& peak : table.phases) {
    phases.emplace_back(PhaseName(peak.phase));
    Bytes sum;
    for (const Bytes bytes : peak.bytes) sum += bytes;
    EXPECT_EQ(sum, peak.live) << PhaseName(peak.phase);
  }
  EXPECT_THAT(phases,
              ElementsAre("load", "forward", "backward", "optimizer", "evaluation", "other"));
  // Parameter, input, copy, its product, the activation and the gradient of it.
  EXPECT_EQ(table.peak.live, Bytes(4096 + 600 + 2048 + 2048 + 10'000 + 9000));
  EXPECT_EQ(table.peak.phase, Phase::kBackward);
  Bytes known;
  for (const Bytes bytes : table.evidence) known += bytes;
  EXPECT_EQ(known, table.peak.live);
}

TEST(CategoryTable, ModulesHoldThoseInsideThem) {
  Recording recording;
  Trace& trace = recording.trace();
  const auto text = [&](std::string_view name) { return trace.strings.Intern(name); };
  recording.Alloc(1 << 20, 1000).Alloc(2 << 20, 2000).Free(1 << 20, 1000).Alloc(3 << 20, 4000);
  trace.devices[0].notes = {{NoteKind::kModule, text("h.0.attn"), 0, Address()},
                            {NoteKind::kEnd, 0, 1, Address()},
                            {NoteKind::kModule, text("h.0.mlp"), 1, Address()},
                            {NoteKind::kEnd, 0, 5, Address()}};
  const Schedule schedule = recording.Build();
  const CategoryTable table = CategoriesOverTime(schedule, FindMeanings(schedule));
  std::vector<std::string> rows;
  for (const ModuleUse& use : table.modules) {
    rows.push_back(use.path + " " + std::to_string(use.at_peak.value()) + " " +
                   std::to_string(use.most.value()));
  }
  EXPECT_THAT(rows, ElementsAre(" 0 0", "h 6000 6000", "h.0 6000 6000", "h.0.attn 0 1000",
                                "h.0.mlp 6000 6000"));
}

// Where memory runs out in a run, nothing of what comes after it counts.
TEST(CategoryTable, EndsBeforeAnEventWhereAskedTo) {
  const Schedule schedule = TrainingStep().Build();
  const Meanings meanings = FindMeanings(schedule);
  const CategoryTable table = CategoriesOverTime(schedule, meanings, 3);
  EXPECT_EQ(table.peak.live, Bytes(4096 + 600 + 10'000));
  EXPECT_EQ(table.peak.event, 3U);
  EXPECT_EQ(table.peak.phase, Phase::kForward);
  EXPECT_EQ(table.peak.bytes[static_cast<size_t>(Category::kActivation)], Bytes(10'000));
  EXPECT_EQ(table.live.size(), 3U);
  // The moment before the fourth allocation, although more was live in between.
  EXPECT_EQ(CategoriesOverTime(schedule, meanings, 5).peak.live, Bytes(4096 + 600 + 10'000));
}

}  // namespace
}  // namespace memreplay
