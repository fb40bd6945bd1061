#include "cli/flags/help_text.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/flags/completion.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

std::vector<std::string> LinesOf(std::string_view text) {
  return absl::StrSplit(ToAbsl(text), '\n');
}

// Returns the words after `--name` and `-x`, each with its choices.
std::string BashChoices(const HelpText& help) {
  std::string text;
  for (const HelpFlag& flag : help.flags) {
    if (flag.value.empty()) continue;
    const std::vector<std::string> choices = flag.choices();
    StrAppend(&text, "        --", flag.name,
              flag.letter != 0 ? StrCat("|-", std::string(1, flag.letter)) : "",
              choices.empty() ? ") files=1;;\n"
                              : StrCat(") words='", absl::StrJoin(choices, " "), "'; return;;\n"));
  }
  return text;
}

// Returns the second words of the forms of a command.
std::vector<std::string> FormsOf(std::string_view command,
                                 const std::vector<CommandHelp>& commands) {
  std::vector<std::string> words;
  const std::string beginning = StrCat(command, " ");
  for (const CommandHelp& other : commands) {
    if (other.name.starts_with(beginning)) words.push_back(other.name.substr(beginning.size()));
  }
  return words;
}

std::string Quoted(std::string_view text, bool is_zsh) {
  std::string quoted = absl::StrReplaceAll(ToAbsl(text), {{"'", is_zsh ? "'\\''" : "\\'"}});
  if (is_zsh) quoted = absl::StrReplaceAll(quoted, {{"[", "\\["}, {"]", "\\]"}, {":", "\\:"}});
  return quoted;
}

std::string Roff(std::string_view text) {
  std::string out = absl::StrReplaceAll(ToAbsl(text), {{"\\", "\\e"}, {"-", "\\-"}});
  if (!out.empty() && (out[0] == '.' || out[0] == '\'')) out.insert(0, "\\&");
  return out;
}

// Appends the lines unchanged.
void RoffLines(std::string_view text, std::string* out) {
  StrAppend(out, ".nf\n");
  std::string stripped(text);
  while (!stripped.empty() && stripped.back() == '\n') stripped.pop_back();
  for (const std::string& line : LinesOf(stripped)) StrAppend(out, Roff(line), "\n");
  StrAppend(out, ".fi\n");
}

}  // namespace

std::vector<std::string> HelpFlag::choices() const {
  if (value.find('|') == value.npos) return {};
  return absl::StrSplit(value, '|');
}

std::vector<std::string> HelpText::operands() const {
  const std::string_view rest =
      std::string_view(usage).substr(std::min(usage.find(' '), usage.size()));
  const std::string_view word = rest.substr(0, rest.find(' ', 1));
  if (word.find('|') == word.npos ||
      word.find_first_not_of(" |abcdefghijklmnopqrstuvwxyz") != word.npos) {
    return {};
  }
  return absl::StrSplit(ToAbsl(word.substr(1)), '|');
}

std::string BashCompletion(const std::vector<CommandHelp>& commands) {
  std::vector<std::string> names;
  std::string cases, forms;
  for (const CommandHelp& command : commands) {
    if (!command.is_form()) names.push_back(command.name);
    if (const auto words = FormsOf(command.name, commands); !words.empty()) {
      StrAppend(&forms, "    ", command.name, ") forms='", absl::StrJoin(words, " "), "' ;;\n");
    }
    std::vector<std::string> words = {"--help"};
    for (const HelpFlag& flag : command.help.flags) words.push_back("--" + flag.name);
    StrAppend(&cases, "    '", command.name, "')\n      flags='", absl::StrJoin(words, " "), "'\n");
    if (const std::string choices = BashChoices(command.help); !choices.empty()) {
      StrAppend(&cases, "      case $previous in\n", choices, "      esac\n");
    }
    if (const auto operands = command.help.operands(); !operands.empty()) {
      StrAppend(&cases, "      [[ $current != -* ]] && words='", absl::StrJoin(operands, " "),
                "'\n");
    }
    StrAppend(&cases, "      ;;\n");
  }
  const std::string all = absl::StrJoin(names, " ");
  return absl::StrReplaceAll(ToAbsl(kBashCompletion),
                             {{"@ALL@", all}, {"@CASES@", cases}, {"@FORMS@", forms}});
}

std::string ZshCompletion(const std::vector<CommandHelp>& commands) {
  std::string names, cases, forms, helps;
  for (const CommandHelp& command : commands) {
    if (!command.is_form()) {
      StrAppend(&names, "    '", command.name, ":", Quoted(command.summary, true), "'\n");
    }
    const std::string words = absl::StrJoin(FormsOf(command.name, commands), " ");
    if (!words.empty()) {
      StrAppend(&forms, "    ", command.name, ") forms=(", words, ") ;;\n");
      StrAppend(&helps, "    ", command.name, ") compadd ", words, " ;;\n");
    }
    StrAppend(&cases, "    '", command.name, "')\n      _arguments '--help[show the help]'");
    if (!words.empty()) {
      StrAppend(&cases, " \\\n        '1:file or form:{_alternative \"forms:form:(", words,
                ")\" \"files:file:_files\"}'");
    }
    for (const HelpFlag& flag : command.help.flags) {
      const std::string text = StrCat("[", Quoted(flag.help, true), "]");
      const std::vector<std::string> choices = flag.choices();
      const std::string value = flag.value.empty() ? ""
                                : !choices.empty()
                                    ? StrCat(":", flag.name, ":(", absl::StrJoin(choices, " "), ")")
                                    : StrCat(":", Quoted(flag.value, true), ":_files");
      StrAppend(&cases, " \\\n        '", flag.repeats ? "*" : "", "--", flag.name, text, value,
                "'");
      if (flag.letter != 0) {
        StrAppend(&cases, " \\\n        '-", std::string(1, flag.letter), text, value, "'");
      }
    }
    const std::vector<std::string> operands = command.help.operands();
    StrAppend(
        &cases, " \\\n        '*:",
        operands.empty() ? "file:_files" : StrCat("what:(", absl::StrJoin(operands, " "), ")"),
        "'\n      ;;\n");
  }
  return absl::StrReplaceAll(
      ToAbsl(kZshCompletion),
      {{"@CASES@", cases}, {"@FORMS@", forms}, {"@HELPS@", helps}, {"@NAMES@", names}});
}

std::string FishCompletion(const std::vector<CommandHelp>& commands) {
  std::string text = "# fish completion of memreplay; made by memreplay completion fish.\n";
  for (const CommandHelp& command : commands) {
    const std::string first = command.name.substr(0, command.name.find(' '));
    const std::string seen = StrCat("__fish_seen_subcommand_from ", first);
    const std::string forms = absl::StrJoin(FormsOf(first, commands), " ");
    const std::string no_form = StrCat(seen, "; and not __fish_seen_subcommand_from ", forms);
    std::string condition = forms.empty() ? seen : no_form;
    if (command.is_form()) {
      const std::string second = command.name.substr(first.size() + 1);
      condition = StrCat(seen, "; and __fish_seen_subcommand_from ", second);
      StrAppend(&text, "complete -c memreplay -n '", no_form, "' -a ", second, " -d '",
                Quoted(command.summary, false), "'\n");
    } else {
      StrAppend(&text, "complete -c memreplay -n __fish_use_subcommand -f -a ", command.name,
                " -d '", Quoted(command.summary, false), "'\n");
    }
    if (const auto operands = command.help.operands(); !operands.empty()) {
      StrAppend(&text, "complete -c memreplay -n '", condition, "' -f -a '",
                absl::StrJoin(operands, " "), "'\n");
    }
    for (const HelpFlag& flag : command.help.flags) {
      const std::vector<std::string> choices = flag.choices();
      StrAppend(&text, "complete -c memreplay -n '", condition, "' -l ", flag.name,
                flag.letter != 0 ? StrCat(" -s ", std::string(1, flag.letter)) : "",
                flag.value.empty() ? ""
                : !choices.empty() ? StrCat(" -x -a '", absl::StrJoin(choices, " "), "'")
                                   : " -r",
                " -d '", Quoted(flag.help, false), "'\n");
    }
  }
  return text;
}

std::string ManPage(const std::vector<CommandHelp>& commands, std::string_view version,
                    std::string_view program_help) {
  std::string out = StrCat(
      ".\\\" Made by memreplay completion man.\n"
      ".TH MEMREPLAY 1 \"\" \"memreplay ",
      Roff(version),
      "\" \"User Commands\"\n"
      ".SH NAME\n"
      "memreplay \\- replays the GPU memory requests of a PyTorch script\n"
      ".SH SYNOPSIS\n"
      ".B memreplay\n"
      ".I COMMAND\n"
      "[ARGUMENTS]\n"
      ".SH DESCRIPTION\n");
  RoffLines(program_help, &out);
  StrAppend(&out, ".SH COMMANDS\n");
  std::string usage;
  for (const CommandHelp& command : commands) {
    // The form that a command has by itself is described already.
    if (command.is_form() && command.help.usage == usage) continue;
    usage = command.help.usage;
    StrAppend(&out, ".SS memreplay ",
              Roff(command.help.usage.empty() ? command.name : command.help.usage), "\n");
    RoffLines(command.help.description.empty() ? command.summary : command.help.description, &out);
    for (const HelpFlag& flag : command.help.flags) {
      StrAppend(&out, ".TP\n\\fB",
                flag.letter != 0 ? StrCat("\\-", std::string(1, flag.letter), "\\fR, \\fB") : "",
                "\\-\\-", Roff(flag.name), "\\fR",
                flag.value.empty() ? "" : StrCat(" \\fI", Roff(flag.value), "\\fR"), "\n",
                Roff(flag.help), "\n");
    }
  }
  return out;
}

}  // namespace memreplay
