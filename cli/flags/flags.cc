#include "cli/flags/flags.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "cli/io/guards.h"
#include "report/words/sizes.h"
#include "report/words/text.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {

std::string DidYouMean(std::string_view word, absl::Span<const std::string_view> candidates,
                       std::string_view prefix, std::string_view otherwise) {
  const std::string_view nearest = NearestWord(word, candidates);
  if (nearest.empty()) return std::string(otherwise);
  return StrCat("; did you mean ", prefix, nearest, "?");
}

bool AsksForHelp(absl::Span<const std::string> args) {
  return std::any_of(args.begin(), absl::c_find(args, "--"),
                     [](const std::string& word) { return word == "--help" || word == "-h"; });
}

FlagSet::FlagSet(std::string usage, std::string_view description)
    : usage_(std::move(usage)), description_(absl::StripSuffix(ToAbsl(description), "\n")) {
  AddUnlisted("memory-limit", "SIZE",
              "stop when more memory of this machine is needed; 0: no limit",
              [](std::string_view text) {
                const absl::StatusOr<Bytes> size = ParseSize(text);
                return size.ok() ? LimitMemory(size->value()) : size.status();
              });
  flags_.back().repeats = false;
}

void FlagSet::Add(std::string_view name, std::string_view value, std::string_view help,
                  std::function<absl::Status(std::string_view)> set) {
  flags_.push_back({std::string(name), std::string(value), std::string(help), std::move(set)});
}

void FlagSet::AddSwitch(std::string_view name, bool* target, std::string_view help) {
  Add(name, "", help, [target](std::string_view text) {
    return absl::SimpleAtob(ToAbsl(text), target)
               ? absl::OkStatus()
               : InvalidArgument("expected true or false, found '", text, "'");
  });
}

void FlagSet::AddTexts(std::string_view name, std::string_view value,
                       std::vector<std::string>* target, std::string_view help) {
  Add(name, value, help, [target](std::string_view text) {
    target->emplace_back(text);
    return absl::OkStatus();
  });
  flags_.back().repeats = true;
}

void FlagSet::AddSize(std::string_view name, std::optional<Bytes>* target, std::string_view help) {
  Add(name, "SIZE", help, [target](std::string_view text) {
    ASSIGN_OR_RETURN(*target, ParseSize(text));
    return absl::OkStatus();
  });
}

void FlagSet::AddParsed(std::string_view name, std::string_view value, std::string_view help,
                        std::function<absl::Status(std::string_view)> set, bool repeats) {
  Add(name, value, help, std::move(set));
  flags_.back().repeats = repeats;
}

void FlagSet::AddNumber(std::string_view name, std::string_view value,
                        std::optional<int64_t>* target, std::string_view help, int64_t min) {
  Add(name, value, help, [target, min](std::string_view text) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(ToAbsl(text), &number)) {
      return InvalidArgument("expected a number, found '", text, "'");
    }
    if (number < min) return InvalidArgument("expected at least ", min, ", found ", number);
    *target = number;
    return absl::OkStatus();
  });
}

void FlagSet::AddFraction(std::string_view name, std::optional<double>* target,
                          std::string_view help) {
  Add(name, "X", help, [target](std::string_view text) {
    double number = 0;
    if (!absl::SimpleAtod(ToAbsl(text), &number) || !(number >= 0 && number <= 1)) {
      return InvalidArgument("expected a number from 0 to 1, found '", text, "'");
    }
    *target = number;
    return absl::OkStatus();
  });
}

void FlagSet::AddChoice(std::string_view name, const std::vector<std::string>& choices,
                        std::string* target, std::string_view help) {
  const std::string placeholder = absl::StrJoin(choices, "|");
  Add(name, placeholder, help, [target, choices, placeholder](std::string_view text) {
    if (absl::c_find(choices, text) == choices.end()) {
      return InvalidArgument("expected ", placeholder, ", found '", text, "'");
    }
    *target = std::string(text);
    return absl::OkStatus();
  });
}

void FlagSet::AddUnlisted(std::string_view name, std::string_view value, std::string_view help,
                          std::function<absl::Status(std::string_view)> set) {
  AddParsed(name, value, help, std::move(set), /*repeats=*/true);
  flags_.back().is_listed = false;
}

void FlagSet::AddUnknown(std::function<absl::Status(std::string_view)> explain) {
  explain_unknown_ = std::move(explain);
}

void FlagSet::AddOthers(
    std::function<absl::StatusOr<bool>(std::string_view, std::string_view)> take) {
  take_other_ = std::move(take);
}

void FlagSet::AddShort(char letter, std::string_view name) { Find(name)->letter = letter; }

const FlagSet::Flag* FlagSet::Find(std::string_view name) const {
  const auto found = std::find_if(flags_.rbegin(), flags_.rend(),
                                  [name](const Flag& flag) { return flag.name == name; });
  return found == flags_.rend() ? nullptr : &*found;
}

std::vector<std::string_view> FlagSet::Names() const {
  std::vector<std::string_view> names = {"help"};
  for (const Flag& flag : flags_) names.push_back(flag.name);
  return names;
}

bool FlagSet::Resembles(std::string_view name) const {
  constexpr size_t kShort = 3;  // letters, which are close to too much
  const std::string_view nearest = NearestWord(name, Names());
  if (nearest == name) return true;
  // --batch is near --patch, and no typing error: the first letter is rarely mistyped.
  return !nearest.empty() && name.size() > kShort && name.find('_') == name.npos &&
         nearest.front() == name.front();
}

absl::Status FlagSet::UnknownFlag(std::string_view name) const {
  if (explain_unknown_ != nullptr) RETURN_IF_ERROR(explain_unknown_(name));
  return InvalidArgument("unknown flag --", name,
                         DidYouMean(name, Names(), "--", "; --help lists the flags"));
}

size_t FlagSet::EndOfLeading(absl::Span<const std::string> args) const {
  size_t end = 0;
  while (end < args.size() && args[end].size() > 1 && args[end][0] == '-' && args[end] != "-m" &&
         args[end] != "--") {
    // A flag without '=' takes the next word, if it takes any.
    const std::string_view arg = args[end];
    const auto takes_next = [&arg](const Flag& flag) {
      return !flag.value.empty() &&
             (arg.substr(1) == std::string_view(&flag.letter, 1) || arg.substr(2) == flag.name);
    };
    end += absl::c_any_of(flags_, takes_next) ? 2 : 1;
  }
  return std::min(end, args.size());
}

absl::StatusOr<std::vector<std::string>> FlagSet::ParseLeading(absl::Span<const std::string> args) {
  size_t end = EndOfLeading(args);
  absl::StatusOr<std::vector<std::string>> arguments = Parse(args.subspan(0, end));
  if (!arguments.ok()) return arguments;
  if (end < args.size() && args[end] == "--") ++end;
  arguments->insert(arguments->end(), args.begin() + end, args.end());
  return arguments;
}

absl::StatusOr<std::vector<std::string>> FlagSet::ParseKnown(absl::Span<const std::string> args) {
  std::vector<std::string> known, others;
  for (size_t at = 0; at < args.size(); ++at) {
    if (args[at] == "--") {
      others.insert(others.end(), args.begin() + at, args.end());
      break;
    }
    const std::string_view arg = args[at];
    const size_t equals = arg.find('=');
    const Flag* const flag = arg.starts_with("--") ? Find(arg.substr(2, equals - 2)) : nullptr;
    std::vector<std::string>& words = flag == nullptr ? others : known;
    words.emplace_back(arg);
    if (flag != nullptr && equals == arg.npos && !flag->value.empty() && at + 1 < args.size()) {
      words.push_back(args[++at]);
    }
  }
  const absl::StatusOr<std::vector<std::string>> read = Parse(known);
  if (!read.ok()) return read;
  return others;
}

absl::StatusOr<std::vector<std::string>> FlagSet::Parse(absl::Span<const std::string> args) {
  std::vector<std::string> arguments;
  help_requested_ = AsksForHelp(args);
  if (help_requested_) return arguments;
  for (size_t at = 0; at < args.size(); ++at) {
    std::string_view arg = args[at];
    if (arg == "--") {
      arguments.insert(arguments.end(), args.begin() + at + 1, args.end());
      break;
    }
    if (arg.size() < 2 || arg[0] != '-') {
      arguments.emplace_back(arg);
      continue;
    }
    const auto has_letter = [&arg](const Flag& candidate) {
      return arg.size() == 2 && candidate.letter == arg[1];
    };
    const auto short_form = absl::c_find_if(flags_, has_letter);
    if (arg.substr(0, 2) != "--" && short_form == flags_.end()) {
      return InvalidArgument("unknown flag ", arg, "; flags begin with --");
    }
    const size_t equals = arg.find('=');
    const std::string_view name = short_form != flags_.end()
                                      ? std::string_view(short_form->name)
                                      : arg.substr(2, equals == arg.npos ? equals : equals - 2);
    if (take_other_ != nullptr && equals != arg.npos) {
      ASSIGN_OR_RETURN(const bool taken, take_other_(name, arg.substr(equals + 1)));
      if (taken) continue;
    }
    Flag* flag = Find(name);
    if (flag == nullptr) {
      const absl::Status unknown = UnknownFlag(name);
      if (take_other_ == nullptr || equals != arg.npos) return unknown;
      return InvalidArgument(ToStd(unknown.message()), "; an argument of the ",
                             "script is written --", name, "=VALUE");
    }
    if (flag->given && !flag->repeats) return InvalidArgument("--", name, " is given twice");
    flag->given = true;
    std::string_view value;
    if (equals != std::string_view::npos) {
      value = arg.substr(equals + 1);
    } else if (flag->value.empty()) {
      value = "true";
    } else if (at + 1 == args.size()) {
      return InvalidArgument("--", name, " requires a value: ", flag->value);
    } else {
      value = args[++at];
      if (value.starts_with("--") && Has(value.substr(2, value.find('=') - 2))) {
        return InvalidArgument("--", name, " requires a value: ", flag->value, "; found the flag ",
                               value);
      }
    }
    const absl::Status set = flag->set(value);
    if (!set.ok()) return InvalidArgument("--", name, ": ", ToStd(set.message()));
  }
  return arguments;
}

HelpText FlagSet::Describe() const {
  HelpText help;
  const size_t line_end = std::min(usage_.find('\n'), usage_.size());
  help.usage = usage_.substr(0, line_end);
  if (line_end < usage_.size()) help.description = StrCat(usage_.substr(line_end + 1), "\n\n");
  StrAppend(&help.description, description_, "\n");
  for (const bool is_listed : {true, false}) {
    for (const Flag& flag : flags_) {
      if (flag.is_listed != is_listed) continue;
      help.flags.push_back({flag.name, flag.value, absl::StrReplaceAll(flag.help, {{"\n", " "}}),
                            flag.letter, flag.repeats});
    }
  }
  return help;
}

std::string FlagSet::Help() const {
  std::string text = StrCat("usage: memreplay ", usage_, "\n\n", description_, "\n");
  constexpr size_t kColumn = 26;
  const std::string margin(kColumn, ' ');
  bool is_first = true;
  for (const Flag& flag : flags_) {
    if (!flag.is_listed) continue;
    if (std::exchange(is_first, false)) StrAppend(&text, "\nflags:\n");
    std::string left =
        StrCat("  ", flag.letter == 0 ? "" : StrCat("-", std::string(1, flag.letter), ", "), "--",
               flag.name);
    if (!flag.value.empty()) StrAppend(&left, " ", flag.value);
    StrAppend(&text, left,
              left.size() + 2 > kColumn ? StrCat("\n", margin) : margin.substr(left.size()),
              absl::StrReplaceAll(flag.help, {{"\n", StrCat("\n", margin)}}), "\n");
  }
  return text;
}

}  // namespace memreplay
