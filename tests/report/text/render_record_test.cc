#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "report/text/render.h"
#include "report/words/record_faults.h"
#include "tests/fuzz/mutated_message.h"

namespace memreplay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A program that took 3 of the 16 GiB of a simulated GPU.
proto::RecordReport SampleRecord() {
  proto::RecordReport report;
  report.add_program("train.py");
  report.add_program("--batch_size=8");
  proto::RecordedProcess& process = *report.add_processes();
  process.set_torch("2.6.0");
  process.set_python("3.11");
  process.set_seconds(2.5);
  process.set_snapshot("snapshot.pickle");
  proto::RecordedCard& card = *process.add_cards();
  card.set_name("NVIDIA A");
  card.set_capacity(int64_t{16} << 30);
  card.set_peak_reserved(int64_t{3} << 30);
  card.set_peak_allocated(int64_t{2} << 30);
  card.set_outside(64 << 20);
  card.set_spare(int64_t{12} << 30);
  process.mutable_card()->set_reserve(512 << 20);
  process.mutable_card()->set_reserve_reason("--reserve");
  const auto add = [&process](const char* library, int64_t calls) {
    proto::ImaginedCard::Outside& outside = *process.mutable_card()->add_outside();
    outside.set_library(library);
    outside.set_calls(calls);
    outside.set_most(calls);
    return &outside;
  };
  for (const char* function : {"cudaMalloc", "cuMemAddressReserve"}) {
    proto::ImaginedCard::Outside* outside = add("libffi.so.8", 2);
    outside->set_function(function);
    outside->set_peak(48 << 20);
    outside->set_peak_at(7);
  }
  add("libffi.so.8", 3)->set_device(1);
  add("libtorch_cuda.so", 1)->set_object("CUDA context");
  add("", 2)->set_object("cuDNN handle");
  add("libtorch_cuda.so", 37)->set_object("kernel");
  proto::RecordedReplay& replay = *process.add_replays();
  replay.set_events(1);
  replay.set_peak_stack("train.py:7 step");
  replay.set_sentence("all 1 events match");
  return report;
}

constexpr char kFits[] =
    "train.py --batch_size=8 on NVIDIA A (simulated): it fits, 12.0 GiB to spare.\n"
    "  peak reserved      3.00 GiB (3,221,225,472 bytes)\n"
    "  peak allocated     2.00 GiB (2,147,483,648 bytes)\n"
    "  card               16.0 GiB (17,179,869,184 bytes), of which 512 MiB is assumed to be taken "
    "by the CUDA context and others (--reserve)\n"
    "  outside            64.0 MiB allocated outside PyTorch's allocator: at most 48.0 MiB by "
    "libffi.so.8 (ctypes) in 2 calls of cudaMalloc, the peak after 7 events, at most 48.0 MiB of "
    "addresses, not memory, by "
    "libffi.so.8 (ctypes) in 2 calls of cuMemAddressReserve, the peak after 7 events\n"
    "  objects            libtorch_cuda.so 1 CUDA context, 37 kernels; the program 2 cuDNN "
    "handles\n"
    "  peak at            train.py:7 step\n"
    "  replay             all 1 events match\n"
    "  ran                2.5 s, torch 2.6.0, Python 3.11\n"
    "  snapshot           snapshot.pickle\n";

TEST(RenderRecord, TellsWhetherItFits) { EXPECT_EQ(RenderRecord(SampleRecord()).text, kFits); }

TEST(RenderRecord, AddsUpWhatNvidiaSmiShows) {
  proto::RecordReport report = SampleRecord();
  auto& memory = *report.mutable_processes(0)->mutable_cards(0)->mutable_nvidia_smi();
  memory.set_bytes(int64_t{3400} << 20);
  memory.set_low(int64_t{3300} << 20);
  memory.set_high(int64_t{3500} << 20);
  const auto add = [&memory](const char* what, int64_t mib, int64_t low, int64_t high,
                             int reports) {
    auto& part = *memory.add_parts();
    part.set_what(what);
    part.set_bytes(mib << 20);
    part.set_low(low << 20);
    part.set_high(high << 20);
    part.set_reports(reports);
  };
  add("reserved by PyTorch", 3072, 3072, 3072, 0);
  add("context", 328, 228, 428, 24);
  EXPECT_THAT(
      RenderRecord(report).text,
      HasSubstr(
          "  nvidia-smi         about 3.32 GiB for the process at its peak, 3.22 GiB to 3.42 GiB: "
          "3.00 GiB reserved by PyTorch, 328 MiB context (228 MiB to 428 MiB by 24 public "
          "reports)\n"));
}

TEST(RenderRecord, ReportsPinnedMemoryByLine) {
  proto::RecordReport report = SampleRecord();
  auto& pinned = *report.mutable_processes(0)->mutable_card()->mutable_pinned();
  pinned.set_peak(64 << 20);
  pinned.set_blocks(1);
  pinned.set_limit(int64_t{1} << 30);
  pinned.set_unrounded_peak(33 << 20);
  auto& line = *pinned.add_lines();
  line.set_place("train.py:12");
  line.set_requested(33 << 20);
  line.set_held(64 << 20);
  line.set_blocks(1);
  EXPECT_THAT(
      RenderRecord(report).text,
      HasSubstr(
          "  pinned             64.0 MiB (67,108,864 bytes) of host memory at the peak, in 1 "
          "block; it "
          "fits, 960 MiB of the 1.00 GiB of --host-memory to spare; PyTorch, which rounds requests "
          "up "
          "and keeps freed blocks, needed it for 33.0 MiB; with pinned_max_round_threshold_mb:1 "
          "(PyTorch 2.13 and newer) 33.0 MiB; unpinned memory and other processes are not counted\n"
          "  - train.py:12: 33.0 MiB requested, 64.0 MiB pinned in 1 block\n"));
  pinned.set_refused(2);
  EXPECT_THAT(RenderRecord(report).text,
              HasSubstr("in 1 block; HOST MEMORY RAN OUT: 2 requests exceeded the 1.00 GiB "
                        "of --host-memory; "));
  pinned.set_limit(0);
  pinned.set_from_gpu(1);
  pinned.set_unrounded_peak(0);
  pinned.set_unmodelled("pinned_reserve_segment_size_mb");
  const std::string shared = RenderRecord(report).text;
  EXPECT_THAT(
      shared,
      HasSubstr("2 requests exceeded what the GPU, whose memory is the host's, had left; "));
  EXPECT_THAT(shared,
              HasSubstr("; what pinned_max_round_threshold_mb:1 would change is unknown, because "
                        "pinned_reserve_segment_size_mb is not modelled; it comes out of the GPU's "
                        "memory, which is "
                        "the host's; unpinned memory and other processes are not counted\n"));
  pinned.set_refused(0);
  pinned.set_limit(0);
  pinned.set_peak(1 << 20);
  EXPECT_THAT(RenderRecord(report).text, HasSubstr("  pinned "));
  pinned.set_peak((1 << 20) - 1);
  EXPECT_THAT(RenderRecord(report).text, Not(HasSubstr("  pinned ")));
}

TEST(RenderRecord, SaysThatItWasStopped) {
  proto::RecordReport report = SampleRecord();
  report.set_stopped_by("SIGTERM");
  EXPECT_THAT(RenderRecord(report).text,
              HasSubstr(": stopped by SIGTERM; up to there it reserved 3.00 GiB, with 12.0 "
                        "GiB left, and the whole run may need more.\n"));
  report.clear_stopped_by();
  report.mutable_processes(0)->set_stopped_after_steps(2);
  EXPECT_THAT(RenderRecord(report).text, HasSubstr(": stopped by --steps; up to there"));
}

// Only a script that ran to its end, and of which memory did not run out, fits.
TEST(RenderRecord, WhatFailedDoesNotFit) {
  const auto verdict = [](proto::RecordReport report) {
    FindRecordFaults(&report);
    EXPECT_TRUE(report.is_lower_bound());
    EXPECT_FALSE(report.faults().empty());
    const std::string text = RenderRecord(report).text;
    EXPECT_THAT(text, Not(HasSubstr(": it fits")));
    EXPECT_THAT(text, Not(HasSubstr("to spare")));
    return text.substr(0, text.find('\n'));
  };
  const std::string begin = "train.py --batch_size=8 on NVIDIA A (simulated): ";
  const std::string up_to_there =
      "; up to there it reserved 3.00 GiB, with 12.0 GiB left, and the whole run may need more.";
  proto::RecordReport report = SampleRecord();
  report.set_exit_status(1);
  EXPECT_EQ(verdict(report), begin + "the script ended with status 1" + up_to_there);
  report.set_refusal("No available memory for the cache blocks");
  EXPECT_EQ(verdict(report),
            begin + "NOT ENOUGH MEMORY: No available memory for the cache blocks.");
  report.clear_refusal();
  report.mutable_processes(0)->set_error("KeyError");
  EXPECT_EQ(verdict(report), begin + "stopped by an error, KeyError" + up_to_there);
  report.mutable_processes(0)->set_refusal("ValueError: No available memory");
  EXPECT_EQ(verdict(report), begin + "NOT ENOUGH MEMORY: ValueError: No available memory.");
  report.mutable_processes(0)->clear_refusal();
  report.mutable_processes(0)->set_ooms(1);
  EXPECT_EQ(verdict(report),
            begin + "OUT OF MEMORY 1 time, and the script continued until KeyError.");
  report.mutable_processes(0)->clear_error();
  EXPECT_EQ(verdict(report), begin + "OUT OF MEMORY 1 time, and the script ended with status 1.");
}

// A rank that was well is no rank of which the whole run is known.
TEST(RenderRecord, WhereOneRankFailsNoneFits) {
  proto::RecordReport report = SampleRecord();
  report.mutable_processes(0)->set_name("rank 0");
  *report.add_processes() = report.processes(0);
  report.mutable_processes(1)->set_name("rank 1");
  report.mutable_processes(1)->set_error("ValueError");
  report.mutable_processes(1)->set_refusal("ValueError: No available memory");
  report.set_refusal("ValueError: No available memory");
  report.set_exit_status(1);
  const std::string text = RenderRecord(report).text;
  EXPECT_THAT(text, HasSubstr("rank 1: train.py --batch_size=8 on NVIDIA A (simulated): NOT "
                              "ENOUGH MEMORY: ValueError: No available memory.\n"));
  EXPECT_THAT(text, Not(HasSubstr("it fits")));
}

TEST(RenderRecord, ListsWhereGraphsBreakAndWhatWasCompiledAgain) {
  proto::RecordReport report = SampleRecord();
  proto::Compilations& made = *report.mutable_processes(0)->mutable_compilations();
  made.set_graphs(4);
  EXPECT_THAT(RenderRecord(report).text,
              HasSubstr("  torch.compile      4 graphs, 0 graph breaks, 0 recompilations\n"));
  for (int i = 0; i < 12; ++i) {
    auto& row = *made.add_breaks();
    row.set_place("train.py:9");
    row.set_reason("call_function print");
    row.set_times(2);
  }
  auto& again = *made.add_recompilations();
  again.set_place("train.py:5");
  again.set_reason(std::string(500, 'x'));
  again.set_times(1);
  const std::string text = RenderRecord(report).text;
  EXPECT_THAT(text, HasSubstr("  torch.compile      4 graphs, 24 graph breaks, 1 recompilation\n"
                              "  - train.py:9: the graph broke 2 times: call_function print\n"));
  EXPECT_THAT(text, HasSubstr("  - 2 more places, which --json lists\n"));
  EXPECT_THAT(
      text,
      HasSubstr("  - train.py:5: the function that begins here was compiled again 1 time: xxx"));
  EXPECT_THAT(text, Not(HasSubstr(std::string(200, 'x'))));
}

TEST(RenderRecord, ListsEveryAssumptionAndTheFirstValues) {
  proto::RecordReport report = SampleRecord();
  proto::RecordedProcess& process = *report.mutable_processes(0);
  for (int i = 0; i < 20; ++i) {
    auto& assumption = *process.mutable_card()->add_assumptions();
    assumption.set_what("a workspace of 0 bytes");
    assumption.set_calls(i + 1);
    auto& asked = *process.mutable_values()->add_asked();
    asked.set_place("train.py:9");
    asked.set_what("item");
    asked.set_times(20 - i);
    asked.set_answer("0.5");
  }
  auto& unknown = *process.mutable_card()->add_unknown();
  unknown.set_library("libcuda.so.1");
  unknown.set_name("cuNew");
  unknown.set_calls(1);
  unknown.set_answer("not supported");
  const std::string text = RenderRecord(report).text;
  EXPECT_THAT(text, StartsWith(kFits));
  EXPECT_THAT(text, HasSubstr("\n  - a workspace of 0 bytes, 1 call\n"));
  EXPECT_THAT(text, HasSubstr("\n  - a workspace of 0 bytes, 20 calls\n"));
  EXPECT_THAT(text,
              HasSubstr("\n  - cuNew of libcuda.so.1 is not modelled: not supported, 1 call\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "\n  - train.py:9 read a value that was never computed (item), 11 times, and got 0.5\n"
          "  - 10 more lines read such values; --json lists them\n"));
}

TEST(RenderRecord, SaysFirstThatATextEndedEarly) {
  proto::RecordReport report = SampleRecord();
  for (const int64_t times : {1, 3}) {
    auto& generation = *report.mutable_processes(0)->mutable_values()->add_generations();
    generation.set_place("generate.py:9");
    generation.set_tokens(times);
    generation.set_of(2000);
    generation.set_times(times);
  }
  const std::string text = RenderRecord(report).text;
  EXPECT_THAT(
      text,
      StartsWith("train.py --batch_size=8 on NVIDIA A (simulated): it fits, 12.0 GiB to spare.\n"
                 "Generation ended early: generate.py:9 got 1 of 2,000 tokens, because a token "
                 "that was never "
                 "computed is one that ends a text; eos_token_id=None generates all of them.\n"
                 "Generation ended early: generate.py:9 got 3 of 2,000 tokens, 3 times, because"));
}

TEST(RenderRecord, OutOfMemoryTellsWhatToAskNext) {
  proto::RecordReport report = SampleRecord();
  proto::RecordedProcess& process = *report.mutable_processes(0);
  process.set_ooms(1);
  process.set_error("OutOfMemoryError");
  report.add_faults("out of memory 1 time");
  report.add_faults("OutOfMemoryError: a long text ...");
  const std::string text = RenderRecord(report).text;
  EXPECT_THAT(
      text, StartsWith("train.py --batch_size=8 on NVIDIA A (simulated): OUT OF MEMORY 1 time.\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "  PROBLEM: out of memory 1 time.\n  PROBLEM: OutOfMemoryError: a long text ...\n\n"
          "  memreplay oom snapshot.pickle   reports what held the memory and what would help;\n"));
}

TEST(RenderRecord, OfSeveralCardsThoseThatWereUsed) {
  proto::RecordReport report = SampleRecord();
  proto::RecordedProcess& process = *report.mutable_processes(0);
  process.add_cards()->set_spare(int64_t{15} << 30);
  proto::RecordedCard& third = *process.add_cards();
  third = process.cards(0);
  third.set_spare(1 << 30);
  const std::string text = RenderRecord(report).text;
  EXPECT_THAT(text, HasSubstr(": it fits, 1.00 GiB to spare.\n  device 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("device 1")));
  EXPECT_THAT(text, HasSubstr("  device 2\n"));
}

TEST(RenderRecord, WithoutAGpuNothingIsRecorded) {
  proto::RecordReport report;
  report.add_program("hello\x1b[2J.py");
  EXPECT_EQ(RenderRecord(report).text,
            "hello?[2J.py: none of its processes allocated GPU memory, so nothing was recorded.\n");
}

// Sets each text of a message, and of those in it, to `text`.
void SetTexts(const std::string& text, google::protobuf::Message* message) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int size = field->is_repeated() ? reflection.FieldSize(*message, field) : 1;
    for (int i = 0; i < size; ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        field->is_repeated() ? reflection.SetRepeatedString(message, field, i, text)
                             : reflection.SetString(message, field, text);
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        SetTexts(text, field->is_repeated() ? reflection.MutableRepeatedMessage(message, field, i)
                                            : reflection.MutableMessage(message, field));
      }
    }
  }
}

// Whatever a process wrote (the name of an exception's class may be any text), and whichever two
// of its fields are missing.
TEST(RenderRecord, NoTextOfAProcessReachesTheTerminalAsItIs) {
  proto::RecordReport full;
  fuzz::FillMessage(&full);
  SetTexts("\x1b[31m", &full);
  full.clear_explanation();  // no text of a process: ExplainFacts() cleans what it quotes
  const google::protobuf::Descriptor& type = *proto::RecordedProcess::descriptor();
  for (int first = 0; first < type.field_count(); ++first) {
    for (int second = first; second < type.field_count(); ++second) {
      proto::RecordReport report = full;
      for (proto::RecordedProcess& process : *report.mutable_processes()) {
        process.GetReflection()->ClearField(&process, type.field(first));
        process.GetReflection()->ClearField(&process, type.field(second));
      }
      FindRecordFaults(&report);
      const std::string text = RenderRecord(report).text;
      EXPECT_EQ(text.find('\x1b'), std::string::npos)
          << "without " << type.field(first)->name() << " and " << type.field(second)->name()
          << ":\n"
          << text;
    }
  }
}

}  // namespace
}  // namespace memreplay
