#include "report/message/log_scan.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <ctime>
#include <random>
#include <string>

#include "report/message/explain.h"
#include "report/text/render.h"
#include "report/words/record_faults.h"

namespace memreplay {
namespace {

constexpr char kFailure[] =
    "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 150.00 MiB. GPU 3 has "
    "a "
    "total capacity of 23.64 GiB of which 60.00 MiB is free. Including non-PyTorch memory, this "
    "process "
    "has 23.56 GiB memory in use. Of the allocated memory 22.80 GiB is allocated by PyTorch, and "
    "200.00 "
    "MiB is reserved by PyTorch but unallocated.\n";

double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

int64_t PeakKilobytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// Returns lines as a training run prints them.
std::string LogText(size_t bytes) {
  std::string text;
  std::mt19937 random(7);
  while (text.size() < bytes) {
    text += "2026-11-22 18:00:" + std::to_string(random() % 60) + " INFO train.py:120 step " +
            std::to_string(random() % 100000) + " loss 2." + std::to_string(random() % 10000) +
            " memory 21.4 GiB, tokens per second " + std::to_string(random() % 90000) + "\n";
  }
  return text;
}

TEST(WordSearch, FindsAllAndOnlyThem) {
  const std::vector<std::string_view> words = {"abcdefghi", "bcdefghij", "cdefghijklmnop"};
  const WordSearch search(words);
  std::vector<std::pair<size_t, size_t>> found;
  search.Find("xabcdefghijklmnoabcdefghi",
              [&](size_t at, size_t word) { found.emplace_back(at, word); });
  const std::vector<std::pair<size_t, size_t>> expected = {{1, 0}, {2, 1}, {16, 0}};
  EXPECT_EQ(found, expected);
}

// Does the same by looking for each word at each place.
TEST(WordSearch, AgreesWithTheSimpleSearch) {
  const std::vector<std::string_view> words = {"aabab", "babaa", "aaaaaaa", "bbab"};
  const WordSearch search(words);
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (int i = 0; i < 200; ++i) text += random() % 2 == 0 ? 'a' : 'b';
    size_t expected = 0, found = 0;
    for (const std::string_view word : words) {
      for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
        ++expected;
      }
    }
    search.Find(text, [&](size_t at, size_t word) {
      EXPECT_EQ(text.substr(at, words[word].size()), words[word]);
      ++found;
    });
    EXPECT_EQ(found, expected);
  }
}

TEST(LogScan, PiecesOfAnySizeGiveTheSame) {
  const std::string log = LogText(3 << 20) + kFailure + LogText(100 << 10);
  LogScan whole;
  whole.Add(log);
  const LogExtract expected = whole.Finish();
  ASSERT_NE(expected.form, nullptr);
  for (const size_t step : {size_t{1000}, size_t{4096}, size_t{65537}, size_t{1} << 20}) {
    LogScan pieces;
    for (size_t at = 0; at < log.size(); at += step)
      pieces.Add(std::string_view(log).substr(at, step));
    const LogExtract extract = pieces.Finish();
    EXPECT_EQ(extract.form, expected.form);
    EXPECT_EQ(extract.window.substr(extract.anchor), expected.window.substr(expected.anchor))
        << step;
    EXPECT_EQ(extract.failures, 1);
  }
}

TEST(LogScan, AFailureAcrossTwoStepsIsWhole) {
  // The steps are of 1 MiB in addition to what is kept; the failure lies on every part of the
  // border.
  const std::string lines = LogText((1 << 20) + (48 << 10));
  for (size_t shift = 0; shift < 1200; shift += 100) {
    const std::string log = lines.substr(shift) + kFailure + lines + lines;
    const auto report = ExplainText(log);
    ASSERT_TRUE(report.ok()) << shift;
    EXPECT_EQ(report->explanation().verdict(), proto::Explanation::full) << shift;
    EXPECT_EQ(report->explanation().gpu(), 3) << shift;
    EXPECT_EQ(report->explanation().rank(), 3) << shift;
  }
}

TEST(LogScan, WhatIsKnownOfASimulatedGpuIsNotMissedInTheText) {
  const std::string_view text =
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total "
      "capacity of 11.76 GiB of which 2.97 GiB is free. Of the allocated memory 8.00 GiB is "
      "allocated by PyTorch, and 2.00 MiB is reserved by PyTorch but unallocated.";
  for (const bool knows_outside : {false, true}) {
    const auto report = ExplainText(StrCat(text, "\n", knows_outside ? kAssumedOutside : ""));
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->explanation().ShortDebugString().find("in no line of the text") ==
                  std::string::npos,
              knows_outside);
  }
}

TEST(LogScan, AnAnswerOfRecordInALogIsReadAsSuch) {
  const std::string failure =
      "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB of "
      "which 793.26 MiB is free. Of the allocated memory 22.26 GiB is allocated by PyTorch, and "
      "13.84 MiB is reserved by PyTorch but unallocated.";
  const std::string script = StrCat(
      "Traceback (most recent call last):\n  File \"train.py\", line 11, in <module>\n"
      "    loss.backward()\n  File \"/c/memreplay_record/values/mode.py\", line 1, in f\n"
      "    softmax(query)\ntorch.OutOfMemoryError: ",
      failure, "\n");
  const auto alone = ExplainText(script);
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_NE(alone->ShortDebugString().find("memreplay record"), std::string::npos);
  ASSERT_EQ(alone->explanation().frame_sentences_size(), 1) << alone->ShortDebugString();
  EXPECT_NE(alone->explanation().frame_sentences(0).find("backward"), std::string::npos);

  proto::RecordReport report;
  proto::RecordedProcess& process = *report.add_processes();
  process.set_ooms(1);
  process.set_snapshot("snapshot.pickle");
  process.mutable_card()->set_reserve(640 << 20);
  process.add_cards()->set_capacity(24 << 20);
  report.add_faults(StrCat("OutOfMemoryError: ", failure, " (train.py:11)"));
  const auto saved = ExplainText(StrCat(script, RenderRecord(report).text));
  ASSERT_TRUE(saved.ok()) << saved.status();
  const proto::Explanation& explained = saved->explanation();
  EXPECT_EQ(explained.failures(), 1);
  EXPECT_EQ(explained.frame().line(), 11);
  EXPECT_EQ(explained.ShortDebugString().find("in no line of the text"), std::string::npos);
  for (const auto& action : explained.actions()) {
    EXPECT_TRUE(action.kind() != "record" && action.kind() != "snapshot") << action.sentence();
  }
}

TEST(LogScan, ATableWithoutItsPeakIsExplainedByWhatItHas) {
  const auto report = ExplainText(
      "|                  PyTorch CUDA memory summary, device ID 0                 |\n"
      "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n"
      "| Allocated memory      |   1024 MiB |   2?2 B    |    920 GiB |    898 GiB |\n"
      "| GPU reserved memory   |  22528 MiB |  30100 MiB |  30100 MiB |   7600 MiB |\n");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->explanation().verdict(), proto::Explanation::fragmentation);
  EXPECT_TRUE(report->explanation().sentence().starts_with(
      "PyTorch holds 22.0 GiB, 21.0 GiB of it in no tensor: 95.5 % lies in pieces;"))
      << report->explanation().sentence();
}

TEST(LogScan, TheLastOfManyIsExplained) {
  std::string log;
  for (int i = 0; i < 50; ++i) log += LogText(10 << 10) + kFailure;
  std::string last = kFailure;
  last.replace(last.find("GPU 3"), 5, "GPU 5");
  log += last;
  const auto report = ExplainText(log);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->explanation().gpu(), 5);
  EXPECT_EQ(report->explanation().failures(), 51);
  EXPECT_EQ(report->explanation().different_failures(), 2);
}

TEST(LogScan, WhatFollowsIsNoFailureOfItsOwn) {
  const auto report = ExplainText(std::string(kFailure) + LogText(20 << 10) +
                                  "api.py:874] failed (exitcode: -9) local_rank: 0 (pid: 99)\n");
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->explanation().verdict(), proto::Explanation::full);
}

TEST(LogScan, WhatComesMuchLaterIs) {
  const auto report = ExplainText(std::string(kFailure) + LogText(1 << 20) +
                                  "api.py:874] failed (exitcode: -9) local_rank: 0 (pid: 99)\n");
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->explanation().verdict(), proto::Explanation::host);
}

// The bound is 500 MB in two seconds of an idle core's time. It leaves room for sanitizers and a
// slow machine, and is far below what one search for each of the words would take.
TEST(LogScan, IsFastAndBounded) {
  const std::string text = LogText(8 << 20);
  LogScan scan;
  scan.Add(text);
  const int64_t before = PeakKilobytes();
  const double begin = CpuSeconds();
  for (int i = 0; i < 16; ++i) scan.Add(text);  // 128 MiB
  scan.Add(kFailure);
  const LogExtract extract = scan.Finish();
  const double seconds = CpuSeconds() - begin;
  ASSERT_NE(extract.form, nullptr);
  EXPECT_LT(seconds, 6.0);
  EXPECT_LT(PeakKilobytes() - before, 8 << 10);
  RecordProperty("seconds_of_128_MiB", std::to_string(seconds));
}

TEST(LogScan, AnchorsEverywhereAreNoSlower) {
  std::string text;
  while (text.size() < (4u << 20)) text += "Tried to allocate out of memory ";
  LogScan scan;
  const double begin = CpuSeconds();
  for (int i = 0; i < 4; ++i) scan.Add(text);  // 16 MiB
  (void)scan.Finish();
  EXPECT_LT(CpuSeconds() - begin, 6.0);
}

TEST(Explain, HostileTextIsSafeToPrint) {
  const std::string bells = "\x1b[31m\x1b]0;title\x07\xc2\x9b\xe2\x80\xae\xff\xfe";
  const std::string text = "  File \"/home/" + bells + "/x.py\", line 3, in " + bells +
                           "\n    y = f('" + bells + "')\nNVIDIA RTX " + bells + "9\n" + bells +
                           kFailure + "PYTORCH_CUDA_ALLOC_CONF=" + bells +
                           "expandable_segments:True" + bells;
  const auto report = ExplainText(text);
  ASSERT_TRUE(report.ok());
  const std::string shown = RenderExplanationText(report->explanation());
  for (const char c : shown) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
  EXPECT_EQ(shown.find("\xe2\x80\xae"), std::string::npos);
  EXPECT_EQ(shown.find('\xff'), std::string::npos);
}

TEST(Explain, LinesOfTenMegabytesAndZeros) {
  std::string text(10 << 20, 'x');
  text += kFailure;
  text += std::string(10 << 20, '\0');
  const double begin = CpuSeconds();
  const auto report = ExplainText(text);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->explanation().verdict(), proto::Explanation::full);
  EXPECT_LT(RenderExplanationText(report->explanation()).size(), 10000u);
  EXPECT_LT(CpuSeconds() - begin, 6.0);
}

TEST(Explain, HugeAndSillyNumbersAreNone) {
  for (const std::string text : {"CUDA out of memory. Tried to allocate 99999999999999999999999999 "
                                 "GiB. GPU 99999999999 has a "
                                 "total capacity of 1e400 GiB of which -5 GiB is free. Process "
                                 "99999999999999999999 has 1 GiB "
                                 "memory in use.",
                                 "CUDA out of memory. Tried to allocate 1.2.3 GiB (GPU 0; 0 bytes "
                                 "total capacity; 0 bytes already "
                                 "allocated; 0 bytes free; 0 bytes reserved in total by PyTorch)",
                                 "Free memory on device (0/0 GiB) on startup is less than desired "
                                 "GPU memory utilization (0, 0 GiB)"}) {
    const auto report = ExplainText(text);
    ASSERT_TRUE(report.ok());
    EXPECT_FALSE(RenderExplanationText(report->explanation()).empty());
  }
}

TEST(Explain, NothingAboutMemoryIsAnError) {
  for (const std::string text :
       {"", "no such thing", "KeyError: 'lr'\n",
        "ValueError: no such file\nIf you encounter CUDA out of memory errors, try --tile.",
        "W bfc_allocator.cc:366 Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.00GiB "
        "with freed_by_count=0. The caller indicates that this is not a failure, but this may mean "
        "that there could be performance gains if more memory were available.",
        "INFO gpu_worker.py: lower max_num_seqs to avoid running out of memory. Server is up.",
        "ncclUnhandledCudaError: unhandled cuda error (run with NCCL_DEBUG=INFO for details)\n"
        "Cuda failure 1 'invalid argument'",
        "node1:70:81 [0] transport.cc:99 NCCL WARN Cuda failure 999 'unknown error'\n"
        "ncclUnhandledCudaError: unhandled cuda error, NCCL version 2.21.5",
        "Indexing.cu:1236: block: [3,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n"
        "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate`",
        "Runtime error during autotuning: out of resource: shared memory, Required: 131072, "
        "Hardware limit: 101376. Ignoring this choice.",
        "ImportError: libgomp.so.1: cannot allocate memory in static TLS block: there is not "
        "enough "
        "memory for it",
        "OSError: [Errno 28] No space left on device\n$ df -h\nFilesystem Size Used Avail Use% "
        "Mounted on\ntmpfs 7.9G 92M 7.8G 2% /dev/shm",
        "What to do about CUDA out of memory errors: a page of failures",
        "The process was Killed by me"}) {
    EXPECT_EQ(ExplainText(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace memreplay
