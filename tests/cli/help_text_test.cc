#include "cli/flags/help_text.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "cli/flags/flags.h"

namespace memreplay {
namespace {

std::vector<CommandHelp> Commands() {
  std::string until;
  FlagSet of_script("look script PROGRAM", "Looks at a script.");
  of_script.AddText("until", "TEXT", &until, "stop there");
  bool deep = false;
  std::string start = "recorded";
  std::optional<std::string> output;
  FlagSet flags("look FILE... [flags]", "Looks at a file.\n\nIt's [quick].");
  flags.AddSwitch("deep", &deep, "look longer,\nand tell more");
  flags.AddChoice("start", {"recorded", "fresh"}, &start, "what is there first");
  flags.AddText("output", "PAGE", &output, "where to write");
  flags.AddShort('o', "output");
  return {{"look", "looks at a file", flags.Describe()},
          {"look script", "looks at a script", of_script.Describe()},
          {"fleet", "many jobs", {}},
          {"paint", "paints", FlagSet("paint red|blue", "").Describe()}};
}

std::string Shell(const std::string& command) {
  std::string out;
  std::FILE* pipe = popen(command.c_str(), "r");
  char buffer[4096];
  while (const size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, got);
  pclose(pipe);
  return out;
}

std::string Written(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

TEST(FlagSet, DescribesItself) {
  const HelpText help = Commands()[0].help;
  EXPECT_EQ(help.usage, "look FILE... [flags]");
  EXPECT_EQ(help.description, "Looks at a file.\n\nIt's [quick].\n");
  ASSERT_EQ(help.flags.size(), 4u);
  EXPECT_EQ(help.flags[0].name, "deep");
  EXPECT_EQ(help.flags[0].value, "");
  EXPECT_EQ(help.flags[0].help, "look longer, and tell more");
  EXPECT_EQ(help.flags[1].choices(), (std::vector<std::string>{"recorded", "fresh"}));
  EXPECT_EQ(help.flags[2].name, "output");
  EXPECT_EQ(help.flags[2].letter, 'o');
  EXPECT_EQ(help.flags[2].value, "PAGE");
  EXPECT_EQ(help.flags[3].name, "memory-limit");  // not in the text of the help
}

TEST(BashCompletion, CompletesInBash) {
  const std::string script = Written("completion.bash", BashCompletion(Commands()));
  const auto complete = [&](const std::string& words) {
    return Shell("bash -c 'source " + script + "; COMP_WORDS=(memreplay " + words +
                 "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _memreplay; echo \"${COMPREPLY[@]}\"'");
  };
  EXPECT_EQ(complete("lo"), "look\n");
  EXPECT_EQ(complete("help fl"), "fleet\n");
  EXPECT_EQ(complete("look --d"), "--deep\n");
  EXPECT_EQ(complete("look --start f"), "fresh\n");
  EXPECT_EQ(complete("look scri"), "script\n");
  EXPECT_EQ(complete("look script --unt"), "--until\n");
  EXPECT_EQ(complete("look script --d"), "\n");
  EXPECT_EQ(complete("help look s"), "script\n");
  EXPECT_EQ(complete("paint b"), "blue\n");
  EXPECT_EQ(complete("look " + script.substr(0, script.size() - 3)), script + "\n");
}

// The shells that are installed read their scripts without complaint.
TEST(Completion, IsOfTheShellsLanguage) {
  const std::string zsh = Written("_memreplay", ZshCompletion(Commands()));
  const std::string fish = Written("memreplay.fish", FishCompletion(Commands()));
  EXPECT_EQ(Shell("command -v zsh >/dev/null && zsh -n " + zsh + " 2>&1"), "");
  EXPECT_EQ(Shell("command -v fish >/dev/null && fish -n " + fish + " 2>&1"), "");
  EXPECT_NE(ZshCompletion(Commands()).find("'--start[what is there first]:start:(recorded fresh)'"),
            std::string::npos);
  EXPECT_NE(FishCompletion(Commands()).find("-l output -s o -r -d 'where to write'"),
            std::string::npos);
}

// What is typed, and what the line shows after the key Tab.
TEST(ZshCompletion, CompletesInZsh) {
  if (Shell("command -v zsh").empty()) GTEST_SKIP() << "zsh is not installed";
  Written("_memreplay", ZshCompletion(Commands()));
  const std::string setup =
      Written("setup.zsh",
              "PS1=; fpath=(" + testing::TempDir() +
                  " $fpath); autoload -Uz compinit; compinit -u -D\n"
                  "finish() { print -r -- \"RESULT[$BUFFER]\"; exit }\n"
                  "zle -N finish; bindkey '^X' finish; bindkey '^I' complete-word; print READY\n");
  const std::string script = Written(
      "complete.zsh",
      "zmodload zsh/zpty\n"
      "zpty z zsh -f -i; zpty -w z 'source " +
          setup +
          "'\n"
          "while zpty -r z line; do [[ $line == *READY* ]] && break; done\n"
          "zpty -w -n z \"$1\"$'\\t\\x18'\n"
          "while zpty -r z line; do\n"
          "  [[ $line == *RESULT\\[* ]] && { print -rn -- ${${line##*RESULT}%%\\]*}; break }\n"
          "done\n");
  const auto complete = [&](const std::string& words) {
    return Shell("timeout 60 zsh -f " + script + " '" + words + "'");
  };
  EXPECT_EQ(complete("memreplay lo"), "[memreplay look ");
  EXPECT_EQ(complete("memreplay help fl"), "[memreplay help fleet ");
  EXPECT_EQ(complete("memreplay look --d"), "[memreplay look --deep ");
  EXPECT_EQ(complete("memreplay look --start f"), "[memreplay look --start fresh ");
  EXPECT_EQ(complete("memreplay look scri"), "[memreplay look script ");
  EXPECT_EQ(complete("memreplay look script --unt"), "[memreplay look script --until ");
  EXPECT_EQ(complete("memreplay help look s"), "[memreplay help look script ");
  EXPECT_EQ(complete("memreplay paint r"), "[memreplay paint red ");
}

TEST(FishCompletion, CompletesInFish) {
  if (Shell("command -v fish").empty()) GTEST_SKIP() << "fish is not installed";
  const std::string script = Written("memreplay.fish", FishCompletion(Commands()));
  const auto complete = [&](const std::string& words) {
    return Shell("HOME=" + testing::TempDir() + " fish --no-config -c 'source " + script +
                 "; complete -C \"" + words + "\"' | cut -f 1");
  };
  EXPECT_EQ(complete("memreplay lo"), "look\n");
  EXPECT_EQ(complete("memreplay look --d"), "--deep\n");
  EXPECT_EQ(complete("memreplay look --start f"), "fresh\n");
  EXPECT_EQ(complete("memreplay look scri"), "script\n");
  EXPECT_EQ(complete("memreplay look script --unt"), "--until\n");
  EXPECT_EQ(complete("memreplay look script --dee"), "");
  EXPECT_EQ(complete("memreplay paint r"), "red\n");
}

TEST(ManPage, HasAllCommandsAndFlags) {
  const std::string page = ManPage(Commands(), "1.2", "memreplay replays.\n.dot\n");
  EXPECT_NE(page.find(".SS memreplay look FILE... [flags]\n"), std::string::npos);
  EXPECT_NE(page.find(".SS memreplay look script PROGRAM\n"), std::string::npos);
  EXPECT_NE(page.find("\\fB\\-\\-until\\fR"), std::string::npos);
  EXPECT_NE(page.find(".TP\n\\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fIPAGE\\fR\nwhere to write\n"),
            std::string::npos);
  EXPECT_NE(page.find("\n\\&.dot\n"), std::string::npos);
  const std::string path = Written("memreplay.1", page);
  EXPECT_EQ(
      Shell("command -v man >/dev/null && LC_ALL=C man --warnings -l " + path + " 2>&1 >/dev/null"),
      "");
}

}  // namespace
}  // namespace memreplay
