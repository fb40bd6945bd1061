#include "cli/flags/record_flags.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "hardware/cards.h"
#include "record/card/model/options.h"
#include "record/unpack.h"
#include "report/words/sizes.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {

namespace {

// Returns what the simulated GPU reads for `text`.
absl::StatusOr<std::string> CardOptionValue(const card::CardOption& option, std::string_view text) {
  if (option.kind == card::CardOption::kCount) {
    uint64_t number = 0;
    if (!absl::SimpleAtoi(ToAbsl(text), &number) || number < option.min || number > option.max) {
      return InvalidArgument("expected ", option.min, " to ", option.max, ", found \"", text, "\"");
    }
    return StrCat(number);
  }
  if (option.kind == card::CardOption::kWord) {
    for (const absl::string_view word : absl::StrSplit(ToAbsl(option.values), '|')) {
      if (ToAbsl(text) == word) return std::string(text);
      const size_t colon = word.find(':');  // "up:SIZE"
      if (colon == word.npos || text.substr(0, colon + 1) != ToStd(word.substr(0, colon + 1)))
        continue;
      const absl::StatusOr<Bytes> size = ParseSize(text.substr(colon + 1));
      if (size.ok()) return StrCat(text.substr(0, colon + 1), size->value());
    }
    return InvalidArgument("expected ", option.values, ", found \"", text, "\"");
  }
  const bool or_name = option.values.find("NAME") != std::string_view::npos;
  ASSIGN_OR_RETURN(const Bytes size, or_name ? ParseMemory(text) : ParseSize(text));
  if (size.value() < option.min || size.value() > option.max) {
    return InvalidArgument("expected ", FormatSize(Bytes(option.min)), " to ",
                           FormatSize(Bytes(option.max)), ", found \"", text, "\"");
  }
  return StrCat(size.value());
}

// Returns "its memory ... (default: the table's)", in lines of --help.
std::string HelpOf(const card::CardOption& option) {
  constexpr size_t kWidth = 72;
  std::string text, line;
  for (const absl::string_view word :
       absl::StrSplit(StrCat(option.help, " (default: ", option.by_default, ")"), ' ')) {
    if (!line.empty() && line.size() + 1 + word.size() > kWidth) {
      StrAppend(&text, line, "\n");
      line.clear();
    }
    StrAppend(&line, line.empty() ? "" : " ", ToStd(word));
  }
  return text + line;
}

}  // namespace

absl::StatusOr<Bytes> ParseMemory(std::string_view text) {
  // A name has priority over a number of bytes: "4090".
  std::string unknown;
  const std::optional<Card> card = FindCard(text, &unknown);
  if (card.has_value()) return Bytes(card->memory);
  const absl::StatusOr<Bytes> size = ParseSize(text);
  return size.ok() ? size : NeitherSizeNorGpu(text, unknown);
}

void AddRecordFlags(RecordOptions* run, FlagSet* flags) {
  for (const card::CardOption* option : card::kCardOptions) {
    if (option->flag.empty()) continue;
    flags->AddParsed(option->flag, option->values, HelpOf(*option),
                     [run, option](std::string_view text) {
                       const absl::StatusOr<std::string> value = CardOptionValue(*option, text);
                       if (value.ok()) run->card_options[std::string(option->variable)] = *value;
                       return value.status();
                     });
  }
  flags->AddNumber("ranks", "N", &run->ranks,
                   "the single process of the script stands for one rank of a job of N");
  flags->AddNumber("rank", "K", &run->rank, "which rank (default: 0)");
  flags->AddFraction("dynamic-fraction", &run->dynamic_fraction,
                     "the share of a tensor's elements that is assumed for a size that depends\n"
                     "on unknown values (default: 1)");
  flags->AddNumber("unknown-limit", "N", &run->unknown_limit,
                   "how often one line may read an unknown value (default: 10000)");
  flags->AddSwitch("no-values", &run->no_values,
                   "do not compute the values of small tensors either");
  flags->AddSwitch("no-notes", &run->no_notes,
                   "leave out of the snapshot which modules ran and which memory is\n"
                   "parameters, gradients or the optimizer's");
  flags->AddSwitch("fast-init", &run->fast_init,
                   "skip the initialisation of large weights on the CPU");
  flags->AddNumber("steps", "N", &run->steps,
                   "end the script after N steps of an optimizer, where it begins the next", 1);
  flags->AddText("python", "PATH", &run->python,
                 "the Python interpreter for scripts; the default is the one next to\n"
                 "memreplay if it has PyTorch, else python3");
}

void SetProgram(std::vector<std::string> words, RecordOptions* run) {
  const auto is_assignment = [](const std::string& word) {
    const std::string_view name = std::string_view(word).substr(0, word.find('='));
    return name.size() < word.size() && !name.empty() && !absl::ascii_isdigit(name[0]) &&
           absl::c_all_of(name, [](char c) { return c == '_' || absl::ascii_isalnum(c); });
  };
  auto first = words.begin();
  for (; first != words.end() && is_assignment(*first); ++first) {
    const size_t equals = first->find('=');
    run->environment[first->substr(0, equals)] = first->substr(equals + 1);
  }
  run->program.assign(first, words.end());
}

bool HasFlag(const std::vector<std::string>& program, std::string_view flag) {
  return absl::c_any_of(
      program, [flag](const std::string& word) { return word.substr(0, word.find('=')) == flag; });
}

absl::Status NoCard(const std::vector<std::string>& program) {
  if (program.size() > 1) {
    return InvalidArgument("expected --card NAME before ", program[0],
                           "; flags stand before the script, and what follows its name is its own");
  }
  return absl::InvalidArgumentError("expected --card NAME; --card list prints the names");
}

absl::Status CheckRemedies(std::string_view flag, const std::vector<std::string>& names) {
  const std::vector<std::string_view> known = RemedyNames();
  for (const std::string& name : names) {
    const std::string_view kind = std::string_view(name).substr(0, name.find(':'));
    if (absl::c_find(known, kind) != known.end()) continue;
    const std::string all =
        absl::StrJoin(std::vector<std::string>(known.begin(), known.end()), ", ");
    return InvalidArgument(flag, ": there is no change ", kind,
                           DidYouMean(kind, known, "", StrCat("; there are ", all)));
  }
  return absl::OkStatus();
}

absl::Status CheckRecordCall(const RecordOptions& run) {
  if (run.program.empty() || run.program == std::vector<std::string>{"-m"}) {
    return absl::InvalidArgumentError(
        "expected a script, such as train.py, -m MODULE or a command that starts Python");
  }
  if (std::string why; !run.card.empty() && !FindCard(run.card, &why).has_value()) {
    return InvalidArgument("--card ", run.card, ": ", why);
  }
  if (run.card.empty() && (!run.card_options.empty() || run.ranks.has_value())) {
    std::string flags;
    for (const card::CardOption* option : card::kCardOptions) {
      if (!option->flag.empty()) StrAppend(&flags, "--", option->flag, ", ");
    }
    return InvalidArgument(flags, "--ranks require --card; they cannot change a real GPU");
  }
  if (run.outside && !run.card.empty()) {
    return absl::InvalidArgumentError(
        "--outside is for a real GPU; with --card, the same is always counted");
  }
  if (run.rank.has_value() && !run.ranks.has_value()) {
    return absl::InvalidArgumentError("--rank requires --ranks");
  }
  if (run.ranks.has_value() &&
      (*run.ranks < 1 || run.rank.value_or(0) < 0 || run.rank.value_or(0) >= *run.ranks)) {
    return InvalidArgument("--rank: expected 0 to ", *run.ranks - 1,
                           ", and at least one of --ranks");
  }
  return CheckRemedies("--remedy", run.remedies);
}

}  // namespace memreplay
