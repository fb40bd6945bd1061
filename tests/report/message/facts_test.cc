#include "report/message/facts.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "hardware/cards.h"
#include "report/message/advice.h"
#include "report/message/amount.h"
#include "report/message/explain.h"
#include "report/message/judge.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

Facts FactsOf(std::string_view text) {
  LogScan scan;
  scan.Add(text);
  return ReadFacts(scan.Finish());
}

// Returns a traceback of these frames that ends where memory ran out.
std::string Traceback(std::string_view frames) {
  return StrCat("Traceback (most recent call last):\n", frames,
                "CUDA out of memory. Tried to allocate 1.00 GiB");
}

// Returns the user's frame in a text that has one.
SourceFrame FrameOf(std::string_view text) {
  const Facts facts = FactsOf(text);
  EXPECT_TRUE(facts.frame.has_value());
  return facts.frame.value_or(SourceFrame());
}

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;

TEST(Amount, UnitsAndRounding) {
  EXPECT_EQ(ReadAmount("1.50 GiB")->bytes, kGiB + kGiB / 2);
  EXPECT_EQ(ReadAmount("1.50 GiB")->rounding, 5368709);
  EXPECT_EQ(ReadAmount("512 bytes")->bytes, 512);
  EXPECT_EQ(ReadAmount("512 bytes")->rounding, 0);
  EXPECT_EQ(ReadAmount("31451456kB")->bytes, int64_t{31451456} << 10);
  EXPECT_EQ(ReadAmount("72GB.")->bytes, 72 * kGiB);
  EXPECT_EQ(ReadAmount("3MiB |")->rounding, kMiB / 2);
  EXPECT_EQ(ReadAmount("1,50 GiB")->bytes, int64_t{3} << 29);
  EXPECT_EQ(ReadAmount("25,600,000 bytes")->bytes, 25600000);
  EXPECT_EQ(ReadAmountBackwards("of 1900,25 MiB")->bytes, 1900 * 1048576 + 262144);
  EXPECT_EQ(ReadAmountBackwards("(GPU 0,12.00 GiB")->bytes, int64_t{12} << 30);
  EXPECT_FALSE(ReadAmount("153,700,88kB").has_value());
  EXPECT_FALSE(ReadAmount("4 Boxes").has_value());
  EXPECT_FALSE(ReadAmount("4").has_value());
  EXPECT_EQ(ReadAmount("4", kGiB)->bytes, 4 * kGiB);
  EXPECT_FALSE(ReadAmount("-4 GiB").has_value());
  EXPECT_FALSE(ReadAmount("17179869184.00 GiB").has_value());
  EXPECT_EQ(ReadAmountBackwards("(GPU 0; 15.78 GiB")->bytes, ReadAmount("15.78 GiB")->bytes);
  EXPECT_EQ(ReadAmountBackwards("(24.0 GiB")->bytes, 24 * kGiB);
  EXPECT_FALSE(ReadAmountBackwards("nothing").has_value());
}

TEST(ReadFacts, OfToday) {
  const Facts facts = FactsOf(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total "
      "capacity of 178.35 GiB of which 1.68 GiB is free. Process 4711 has 176.66 GiB memory in "
      "use. Process 12 has 1.00 MiB memory in use. Of the allocated\nmemory 159.21 GiB is "
      "allocated by "
      "PyTorch, with 418.00 MiB allocated in private pools (e.g., CUDA Graphs), and 16.57 GiB is "
      "reserved "
      "by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
      "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.");
  EXPECT_EQ(facts.gpu, 1);
  EXPECT_EQ(facts[Quantity::kTried]->bytes, 2 * kGiB);
  EXPECT_EQ(facts[Quantity::kFree]->bytes, 1803886264);
  EXPECT_EQ(facts[Quantity::kPrivatePools]->bytes, 418 * kMiB);
  ASSERT_EQ(facts.processes.size(), 2u);
  EXPECT_EQ(facts.processes[0].pid, 4711);
  EXPECT_EQ(facts.conf, "");  // advice is not a setting
  const Sums sums = Add(facts);
  EXPECT_EQ(sums.own_pid, 4711);
  EXPECT_EQ(sums.others.bytes, kMiB);
  EXPECT_EQ(sums.obtainable->bytes, sums.unallocated->bytes + facts[Quantity::kFree]->bytes);
  EXPECT_EQ(sums.obtainable->rounding, 2 * 5368709);
}

TEST(Add, ALimitCountsWhatIsReserved) {
  const Facts facts = FactsOf(
      "CUDA out of memory. Tried to allocate 40.00 MiB. GPU 0 has a total capacity of 16.00 GiB of "
      "which "
      "15.00 GiB is free. 100.00 MiB allowed; Of the allocated memory 70.00 MiB is allocated by "
      "PyTorch, and "
      "10.00 MiB is reserved by PyTorch but unallocated.");
  const Sums sums = Add(facts);
  EXPECT_EQ(sums.grantable->bytes, 20 * kMiB);
  EXPECT_EQ(sums.obtainable->bytes, 30 * kMiB);
}

TEST(ReadFacts, SettingsInForce) {
  EXPECT_EQ(
      FactsOf(
          "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\nCUDA out of memory. Tried to "
          "allocate 1 GiB")
          .conf,
      "expandable_segments:True");
  EXPECT_EQ(FactsOf("os.environ[\"PYTORCH_CUDA_ALLOC_CONF\"] = \"max_split_size_mb:128\"\nCUDA out "
                    "of memory. "
                    "Tried to allocate 1 GiB")
                .conf,
            "max_split_size_mb:128");
  EXPECT_EQ(FactsOf("os.environ.setdefault('PYTORCH_CUDA_ALLOC_CONF', "
                    "'expandable_segments:True')\nCUDA out of "
                    "memory. Tried to allocate 1 GiB")
                .conf,
            "expandable_segments:True");
}

TEST(ReadTraceback, TheInnermostFrameOfTheUser) {
  const Facts facts = FactsOf(
      Traceback("  File \"/w/train.py\", line 88, in <module>\n    main()\n"
                "  File \"/w/train.py\", line 71, in main\n    loss = model(x)\n"
                "  File \"/v/lib/python3.11/site-packages/torch/nn/functional.py\", line 3029, in "
                "cross_entropy\n"
                "    return torch._C._nn.cross_entropy_loss(input)\n"));
  ASSERT_TRUE(facts.frame.has_value());
  EXPECT_EQ(facts.frame->file, "/w/train.py");
  EXPECT_EQ(facts.frame->line, 71);
  EXPECT_EQ(facts.frame->function, "main");
  EXPECT_EQ(facts.frame->code, "loss = model(x)");
  EXPECT_EQ(facts.script, "/w/train.py");
  EXPECT_TRUE(facts[FrameHint::kLoss]);
  EXPECT_FALSE(facts[FrameHint::kBackward]);
}

TEST(ReadFrames, ShowWhatATracebackShows) {
  const std::string message = "CUDA out of memory. Tried to allocate 1.00 GiB";
  LogScan scan;
  scan.Add(message);
  const Facts facts =
      ReadFacts(scan.Finish(), {{"/w/train.py", 88, "<module>", "main()"},
                                {"/w/train.py", 71, "main", "loss.backward()"},
                                {"/v/site-packages/vllm/engine.py", 5, "step", "x = F.linear(y)"}});
  ASSERT_TRUE(facts.frame.has_value());
  EXPECT_EQ(facts.frame->code, "loss.backward()");
  EXPECT_EQ(facts.script, "/w/train.py");
  EXPECT_FALSE(facts[FrameHint::kBackward]);
  EXPECT_TRUE(facts[Circumstance::kVllm]);
  EXPECT_EQ(facts[Quantity::kTried]->bytes, kGiB);
}

TEST(ReadTraceback, ALineThatCallsBackwardMayFailInForward) {
  const auto is_backward = [](std::string_view code, std::string_view more) {
    return FactsOf(Traceback(StrCat("  File \"/w/train.py\", line 88, in <module>\n    ", code,
                                    "\n", more)))[FrameHint::kBackward];
  };
  const std::string_view linear =
      "  File \"/v/site-packages/torch/nn/modules/linear.py\", line 125, in forward\n"
      "    return F.linear(input, self.weight, self.bias)\n";
  const std::string_view tensor =
      "  File \"/v/site-packages/torch/_tensor.py\", line 626, in backward\n"
      "    torch.autograd.backward(\n";
  EXPECT_FALSE(is_backward("model(x).sum().backward()", linear));
  EXPECT_FALSE(is_backward("model(x).sum().backward()", ""));
  EXPECT_TRUE(is_backward("model(x).sum().backward()", tensor));
  EXPECT_TRUE(is_backward("loss.backward()", ""));
  EXPECT_TRUE(is_backward("self.loss.backward(retain_graph=True)", tensor));
}

TEST(ReadTraceback, FramesOfTheRecorderAreNotTheUsers) {
  const SourceFrame frame = FrameOf(Traceback(
      "  File \"/w/train.py\", line 3, in work\n    return x + y\n"
      "  File \"/root/.cache/memreplay/record-1/python/memreplay_record/values/mode.py\", line "
      "320, "
      "in _compute\n    result = call(*args, **kwargs)\n"));
  EXPECT_EQ(frame.file, "/w/train.py");
}

TEST(ReadTraceback, AnErrorAfterAFrameWithoutSourceIsNoCode) {
  for (const std::string_view line : {"  File \"/w/train.py\", line 7, in <module>\n",
                                      "File \"/w/train.py\", line 7, in <module>\n"}) {
    const SourceFrame frame =
        FrameOf(StrCat(line, "OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB"));
    EXPECT_EQ(frame.line, 7);
    EXPECT_EQ(frame.code, "");
  }
}

TEST(ReadNvidiaSmi, NamesAndBytesOfTheCard) {
  const Facts facts = FactsOf(
      "| NVIDIA-SMI 560.35.03   Driver Version: 560.35.03   CUDA Version: 12.6 |\n"
      "|   0  Tesla T4       Off |   00000000:00:04.0 Off |   0 |\n"
      "| N/A   39C    P8   9W /  70W |   100MiB /  15360MiB |  0%  Default |\n"
      "|   1  NVIDIA GeForce RTX 4090  Off |   00000000:01:00.0 Off |   0 |\n"
      "|  0%   39C    P8   22W /  450W |   23101MiB /  24564MiB |  0%  Default |\n"
      "| Processes: |\n"
      "|    0   N/A  N/A      11      C   other                20344MiB |\n"
      "|    1   N/A  N/A    3240      C   /opt/my python       20344MiB |\n"
      "CUDA out of memory. Tried to allocate 1 MiB (GPU 1; ");
  EXPECT_EQ(facts.card, "NVIDIA GeForce RTX 4090");
  EXPECT_EQ(facts[Quantity::kCardUsed]->bytes, 23101 * kMiB);
  ASSERT_EQ(facts.processes.size(), 1u);
  EXPECT_EQ(facts.processes[0].pid, 3240);
  EXPECT_EQ(facts.processes[0].name, "/opt/my python");
}

TEST(Advise, NvidiaSmiIsNotRequestedWhereItsTableIs) {
  const std::string error = "RuntimeError: CUDA error: out of memory\n";
  const std::string table = "| NVIDIA-SMI 560.35.03   Driver Version: 560.35.03 |\n";
  EXPECT_NE(ExplainText(error)->explanation().sentence().find("nvidia-smi"), std::string::npos);
  EXPECT_EQ(ExplainText(error + table)->explanation().sentence().find("nvidia-smi"),
            std::string::npos);
}

// The name given to `record --card` must be a card that it knows.
TEST(CardFlags, AreKnown) {
  for (const std::string_view flag : CardFlags()) {
    std::string error;
    const std::optional<Card> found = FindCard(flag, &error);
    ASSERT_TRUE(found.has_value()) << flag << ": " << error;
    EXPECT_EQ(found->name, flag);
  }
}

// docs/oom.md has a row for each form, with the release that brought it.
TEST(Forms, AreAllInTheDocs) {
  std::ifstream file("docs/oom.md");
  const std::string docs{std::istreambuf_iterator<char>(file), {}};
  for (const Form& form : Forms()) {
    if (form.kind == FormKind::kMention || form.kind == FormKind::kNone) continue;
    const std::string row = "| " + std::string(form.name) + " | " + std::string(form.since) + " |";
    EXPECT_NE(docs.find(row), std::string::npos) << row;
  }
}

}  // namespace
}  // namespace memreplay
