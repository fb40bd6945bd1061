#include "cli/flags/flags.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "trace/value/strings.h"

namespace memreplay {
namespace {

struct Parsed {
  bool json = false;
  std::string out;
  std::optional<std::string> conf;
  std::optional<Bytes> capacity;
  std::optional<int64_t> device;
  std::string start = "exact";
  absl::StatusOr<std::vector<std::string>> arguments;
  bool help = false;
  std::string help_text;
};

Parsed Parse(const std::vector<std::string>& args) {
  Parsed p;
  FlagSet flags("replay FILE... [flags]", "Replays.");
  flags.AddSwitch("json", &p.json, "print JSON");
  flags.AddText("events-out", "FILE", &p.out, "write events to FILE");
  flags.AddText("conf", "CONF", &p.conf, "settings");
  flags.AddSize("capacity", &p.capacity, "size of the device");
  flags.AddNumber("device", "N", &p.device, "only this device");
  flags.AddChoice("start", {"exact", "empty"}, &p.start, "start state");
  p.arguments = flags.Parse(args);
  p.help = flags.help_requested();
  p.help_text = flags.Help();
  return p;
}

std::string ErrorOf(const std::vector<std::string>& args) {
  return std::string(Parse(args).arguments.status().message());
}

TEST(Flags, ReadsEveryType) {
  const Parsed p = Parse({"a", "--json", "--events-out=x", "--conf", "", "--capacity", "80GiB", "-",
                          "--device=-1", "--start", "empty", "--", "--b"});
  ASSERT_TRUE(p.arguments.ok()) << p.arguments.status();
  EXPECT_EQ(*p.arguments, (std::vector<std::string>{"a", "-", "--b"}));
  EXPECT_TRUE(p.json);
  EXPECT_EQ(p.out, "x");
  EXPECT_EQ(p.conf, "");
  EXPECT_EQ(p.capacity, GiB(80));
  EXPECT_EQ(p.device, -1);
  EXPECT_EQ(p.start, "empty");
}

TEST(Flags, LeavesWhatIsNotGiven) {
  const Parsed p = Parse({"--json=false"});
  ASSERT_TRUE(p.arguments.ok());
  EXPECT_FALSE(p.json);
  EXPECT_FALSE(p.conf.has_value());
  EXPECT_FALSE(p.capacity.has_value());
  EXPECT_EQ(p.start, "exact");
}

TEST(Flags, ErrorsSayWhatWasMeant) {
  EXPECT_EQ(ErrorOf({"--jsno"}), "unknown flag --jsno; did you mean --json?");
  EXPECT_EQ(ErrorOf({"--cap=1"}), "unknown flag --cap; did you mean --capacity?");
  EXPECT_EQ(ErrorOf({"--quux"}), "unknown flag --quux; --help lists the flags");
  EXPECT_EQ(ErrorOf({"-json"}), "unknown flag -json; flags begin with --");
  EXPECT_EQ(ErrorOf({"--conf"}), "--conf requires a value: CONF");
  EXPECT_EQ(ErrorOf({"--json", "--json"}), "--json is given twice");
  EXPECT_EQ(ErrorOf({"--json=maybe"}), "--json: expected true or false, found 'maybe'");
  EXPECT_EQ(ErrorOf({"--device=one"}), "--device: expected a number, found 'one'");
  EXPECT_EQ(ErrorOf({"--start=warm"}), "--start: expected exact|empty, found 'warm'");
  EXPECT_EQ(ErrorOf({"--capacity=much"}),
            "--capacity: expected a size such as 80GiB, 512MiB, 12GB or a number of bytes, found "
            "'much'");
}

// Of the script: asked about first, so that --json=? is its own as well.
TEST(Flags, ArgumentsOfAnotherProgram) {
  bool json = false;
  std::vector<std::string> taken;
  FlagSet flags("advise -- PROGRAM", "Advises.");
  flags.AddSwitch("json", &json, "print JSON");
  std::optional<int64_t> patch;
  flags.AddNumber("patch", "N", &patch, "print a patch");
  flags.AddOthers([&](std::string_view name, std::string_view value) -> absl::StatusOr<bool> {
    if (value == "0") return absl::InvalidArgumentError("expected at least 1");
    if (value != "?" && flags.Resembles(name)) return false;
    taken.push_back(StrCat(name, " ", value));
    return true;
  });
  const auto rest =
      flags.ParseLeading({"--batch_size=64", "--batch=8", "--json", "--bs=?", "--", "train.py"});
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_EQ(*rest, (std::vector<std::string>{"train.py"}));
  EXPECT_EQ(taken, (std::vector<std::string>{"batch_size 64", "batch 8", "bs ?"}));
  EXPECT_TRUE(json);
  EXPECT_FALSE(flags.Parse({"--jsno=1"}).ok());
  EXPECT_FALSE(flags.Parse({"--ptach=1"}).ok());
  EXPECT_EQ(flags.Parse({"--bs=0"}).status().message(), "expected at least 1");
  EXPECT_EQ(taken.size(), 3u);
}

// What stands behind the script's name is the script's, however it is written.
TEST(Flags, TheScriptKeepsItsOwnWords) {
  const std::vector<std::vector<std::string>> scripts = {
      {"t.py", "--memory-limit", "20GiB", "--json", "--help", "--", "-x"},
      {"torchrun", "--nproc-per-node", "2", "t.py", "--memory-limit=5"},
      {"-m", "module", "--version", "-h"},
      {"A=B", "t.py", "--memory-limit"}};
  for (const std::vector<std::string>& script : scripts) {
    for (const std::vector<std::string>& before : std::vector<std::vector<std::string>>{
             {"--json", "--out", "x"}, {"--memory-limit", "0", "--"}}) {
      bool json = false;
      std::string out;
      FlagSet flags("record PROGRAM", "Records.");
      flags.AddSwitch("json", &json, "print JSON");
      flags.AddText("out", "FILE", &out, "where to");
      std::vector<std::string> words = before;
      words.insert(words.end(), script.begin(), script.end());
      const auto rest = flags.ParseLeading(words);
      ASSERT_TRUE(rest.ok()) << rest.status();
      EXPECT_EQ(*rest, script);
      EXPECT_FALSE(flags.help_requested());
      EXPECT_EQ(flags.EndOfLeading(words), before.back() == "--" ? 2u : before.size());
    }
  }
  FlagSet flags("record PROGRAM", "Records.");
  EXPECT_TRUE(flags.ParseLeading({"--help", "t.py"}).ok());
  EXPECT_TRUE(flags.help_requested());
}

TEST(Flags, HelpIsFoundAnywhereBeforeTheDashes) {
  EXPECT_TRUE(Parse({"a", "--nonsense", "--device", "x", "-h"}).help);
  EXPECT_TRUE(Parse({"--conf", "--help"}).help);
  const Parsed p = Parse({"a", "--", "--help"});
  EXPECT_FALSE(p.help);
  EXPECT_EQ(*p.arguments, (std::vector<std::string>{"a", "--help"}));
}

TEST(Flags, EveryCommandHasTheMemoryLimit) {
  EXPECT_EQ(ErrorOf({"--memory-lim", "5GiB"}),
            "unknown flag --memory-lim; did you mean --memory-limit?");
  EXPECT_EQ(ErrorOf({"a", "--memory-limit"}), "--memory-limit requires a value: SIZE");
  EXPECT_EQ(ErrorOf({"--memory-limit=1", "a"}),
            "--memory-limit: expected at least 64 MiB, or 0 for none, found 1 bytes");
  EXPECT_NE(ErrorOf({"--memory-limit", "much"}).find("expected a size"), std::string::npos);
  EXPECT_TRUE(Parse({"a", "--memory-limit", "0"}).arguments.ok());
}

TEST(Flags, AFlagIsNoValue) {
  EXPECT_EQ(ErrorOf({"--events-out", "--json"}),
            "--events-out requires a value: FILE; found the flag --json");
  EXPECT_EQ(Parse({"--events-out=--json"}).out, "--json");
}

TEST(Flags, OnlyKnownOnesAreTaken) {
  bool json = false;
  FlagSet flags("fleet", "");
  flags.AddSwitch("json", &json, "print JSON");
  const auto rest = flags.ParseKnown(
      {"s3://x", "--memory-limit", "0", "--out", "y", "-h", "--json", "--", "--json"});
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_EQ(*rest, (std::vector<std::string>{"s3://x", "--out", "y", "-h", "--", "--json"}));
  EXPECT_TRUE(json);
}

TEST(Flags, HelpListsEachFlag) {
  const Parsed p = Parse({"--help", "--nonsense"});
  ASSERT_TRUE(p.arguments.ok());
  EXPECT_TRUE(p.help);
  EXPECT_EQ(p.help_text,
            "usage: memreplay replay FILE... [flags]\n"
            "\n"
            "Replays.\n"
            "\n"
            "flags:\n"
            "  --json                  print JSON\n"
            "  --events-out FILE       write events to FILE\n"
            "  --conf CONF             settings\n"
            "  --capacity SIZE         size of the device\n"
            "  --device N              only this device\n"
            "  --start exact|empty     start state\n");
}

}  // namespace
}  // namespace memreplay
