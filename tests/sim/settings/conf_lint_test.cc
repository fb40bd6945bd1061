#include "sim/settings/conf_lint.h"

#include <algorithm>
#include <string>

#include "gtest/gtest.h"

namespace memreplay {
namespace {

std::vector<LintFinding> Lint(const char* conf, const char* release = "2.11") {
  return LintAllocatorConf(conf, **FindTorchProfile(release));
}

// "warning max_split_size_mb: together with ..." of each finding.
std::string Text(const std::vector<LintFinding>& findings) {
  std::string text;
  for (const LintFinding& finding : findings) {
    text += finding.severity == LintSeverity::kNote      ? "note "
            : finding.severity == LintSeverity::kWarning ? "warning "
                                                         : "error ";
    text += finding.key + ": " + finding.sentence + "\n";
  }
  return text;
}

bool Says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Findings beyond the note of the variables.
size_t Count(const char* conf, const char* release = "2.11") {
  return Lint(conf, release).size() - 1;
}

TEST(ConfLint, NothingToSay) {
  EXPECT_EQ(Count(""), 0u);
  EXPECT_EQ(Count("expandable_segments:True"), 0u);
  EXPECT_EQ(Count("expandable_segments:True", "2.1"), 0u);
  EXPECT_EQ(Text(Lint("", "2.11")),
            "note : PyTorch 2.11 reads PYTORCH_CUDA_ALLOC_CONF, else PYTORCH_HIP_ALLOC_CONF, else "
            "PYTORCH_ALLOC_CONF\n");
  EXPECT_EQ(Text(Lint("", "2.9")),
            "note : PyTorch 2.9 reads PYTORCH_CUDA_ALLOC_CONF and no other variable "
            "(PYTORCH_ALLOC_CONF begins with 2.10)\n");
}

TEST(ConfLint, ErrorsComeFirstAndNameTheRelease) {
  const auto findings = Lint("max_split_size_mb:40,large_segment_size_mb:64", "2.10");
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].severity, LintSeverity::kError);
  EXPECT_EQ(findings[0].key, "large_segment_size_mb");
  EXPECT_EQ(findings[0].sentence,
            "PyTorch 2.10 does not know this key and raises an error; it is read from 2.11 on");
  EXPECT_EQ(std::count_if(findings.begin(), findings.end(),
                          [](const LintFinding& finding) {
                            return finding.severity == LintSeverity::kError;
                          }),
            1);
}

TEST(ConfLint, MisspelledKeys) {
  EXPECT_TRUE(Says(Text(Lint("max_split_size:128")), "did you mean max_split_size_mb?"));
  EXPECT_TRUE(Says(Text(Lint("expandable_segment:True")), "did you mean expandable_segments?"));
  EXPECT_FALSE(Says(Text(Lint("foo:1")), "did you mean"));
  // Both wrong keys are reported, though PyTorch stops at the first.
  const std::string text = Text(Lint("foo:1,bar:2"));
  EXPECT_TRUE(Says(text, "error foo:"));
  EXPECT_TRUE(Says(text, "error bar:"));
}

TEST(ConfLint, RangesAndGrammar) {
  EXPECT_TRUE(Says(Text(Lint("max_split_size_mb:20", "2.6")),
                   "error max_split_size_mb: expected more than 20, found \"20\""));
  EXPECT_EQ(Lint("max_split_size_mb:20", "2.11")[0].severity, LintSeverity::kNote);
  EXPECT_TRUE(Says(Text(Lint("max_split_size_mb:40,,expandable_segments:True")), "found \",\""));
  EXPECT_TRUE(Says(Text(Lint("roundup_power2_divisions:[1:2", "2.6")), "reads past the end"));
}

TEST(ConfLint, LooseSeparators) {
  EXPECT_TRUE(Says(Text(Lint("expandable_segments:True]", "2.11")), "does not check separators"));
  EXPECT_FALSE(Says(Text(Lint("expandable_segments:True", "2.11")), "separators"));
  EXPECT_TRUE(Says(Text(Lint("expandable_segments:True]", "2.9")), "error expandable_segments"));
}

TEST(ConfLint, HarmfulPair) {
  for (const char* release : {"2.1", "2.9", "2.15"}) {
    EXPECT_TRUE(Says(Text(Lint("max_split_size_mb:128,expandable_segments:True", release)),
                     "warning max_split_size_mb: can make reserved memory grow without bound "
                     "together with expandable_segments"))
        << release;
  }
  EXPECT_FALSE(Says(Text(Lint("max_split_size_mb:128,expandable_segments:False")), "together"));
}

TEST(ConfLint, KeysWithoutEffect) {
  EXPECT_TRUE(
      Says(Text(Lint("garbage_collection_threshold:0.8", "2.9")), "with any value, also 1.0"));
  EXPECT_TRUE(Says(Text(Lint("garbage_collection_threshold:0.8", "2.10")),
                   "per_process_memory_fraction below 1"));
  EXPECT_FALSE(
      Says(Text(Lint("garbage_collection_threshold:0.8,per_process_memory_fraction:0.9", "2.10")),
           "has no effect"));
  EXPECT_TRUE(Says(Text(Lint("max_non_split_rounding_mb:40")), "has no effect without"));
  EXPECT_TRUE(Says(Text(Lint("expandable_segments_reserve:0.5", "2.15")), "has no effect without"));
  EXPECT_TRUE(Says(Text(Lint("max_split_size_mb:40,max_split_size_mb:50")), "more than once"));
  EXPECT_TRUE(Says(Text(Lint("backend:cudaMallocAsync,max_split_size_mb:40")),
                   "backend:cudaMallocAsync ignores max_split_size_mb"));
  EXPECT_TRUE(Says(Text(Lint("max_split_size_mb:-1")), "larger than any device"));
}

TEST(ConfLint, RoundingWaste) {
  EXPECT_TRUE(Says(Text(Lint("roundup_power2_divisions:2")),
                   "warning roundup_power2_divisions: 2 "
                   "divisions make a block up to 50 %"));
  EXPECT_TRUE(Says(Text(Lint("roundup_power2_divisions:[64:8,>:4]")), "up to 25 %"));
  EXPECT_TRUE(Says(Text(Lint("roundup_power2_divisions:1", "2.3")), "unrounded"));
  EXPECT_TRUE(Says(Text(Lint("roundup_power2_divisions:1", "2.4")), "change nothing"));
}

TEST(ConfLint, KeysThatLaterStringsForget) {
  EXPECT_TRUE(Says(Text(Lint("max_split_size_mb:40,max_non_split_rounding_mb:40", "2.11")),
                   "default: max_split_size_mb, max_non_split_rounding_mb"));
  EXPECT_TRUE(Says(Text(Lint("max_split_size_mb:40,max_non_split_rounding_mb:40", "2.10")),
                   "default: max_split_size_mb\n"));
}

TEST(ConfLint, AWholeAssignment) {
  EXPECT_EQ(Count("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"), 0u);
  EXPECT_TRUE(Says(Text(Lint("PYTORCH_ALLOC_CONF=expandable_segments:True", "2.9")),
                   "error PYTORCH_ALLOC_CONF: PyTorch 2.9 does not read this variable"));
  EXPECT_EQ(Count("PYTORCH_ALLOC_CONF=expandable_segments:True", "2.10"), 0u);
}

}  // namespace
}  // namespace memreplay
