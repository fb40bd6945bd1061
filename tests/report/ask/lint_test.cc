#include "gtest/gtest.h"
#include "report/ask/settings_text.h"
#include "report/text/render.h"

namespace memreplay {
namespace {

TEST(LintReport, ErrorsAreCountedAndMakeTheAnswerBad) {
  const proto::Report report =
      LintReport("max_split_size_mb:20,foo:1", **FindTorchProfile("2.6"), true);
  EXPECT_EQ(report.command(), "lint");
  EXPECT_TRUE(HasErrors(report.lint()));
  EXPECT_EQ(RenderLintText(report.lint()),
            "PyTorch 2.6 (given) rejects these settings: 2 errors, 0 warnings\n"
            "  error: foo: no release knows this key; PyTorch 2.6 raises an error\n"
            "  error: max_split_size_mb: expected more than 20, found \"20\"; this is an error in "
            "PyTorch 2.6\n"
            "  note: any later settings string, whatever it sets, first resets to the default: "
            "max_split_size_mb\n"
            "  note: PyTorch 2.6 reads PYTORCH_CUDA_ALLOC_CONF and no other variable "
            "(PYTORCH_ALLOC_CONF begins with 2.10)\n");
}

TEST(LintReport, WarningsDoNot) {
  const proto::Report report = LintReport("max_split_size_mb:128,expandable_segments:True",
                                          **FindTorchProfile("2.11"), false);
  EXPECT_FALSE(HasErrors(report.lint()));
  EXPECT_EQ(RenderLintText(report.lint())
                .find("PyTorch 2.11 (the default) accepts these settings: 0 errors, 1 warning\n"),
            0u);
  EXPECT_EQ(report.lint().torch().release(), "2.11");
}

TEST(LintReport, UnprintableBytesAreMadeFitForAReport) {
  const proto::Report report = LintReport("\xff\x01:1", **FindTorchProfile("2.11"), true);
  EXPECT_EQ(report.lint().conf(), "??:1");
}

}  // namespace
}  // namespace memreplay
