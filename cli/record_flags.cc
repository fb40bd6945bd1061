#include "cli/record_flags.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "hardware/cards.h"
#include "record/card/options.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {

namespace {

// Returns what the simulated GPU reads for `text`.
absl::StatusOr<std::string> CardOptionValue(const card::CardOption& option, std::string_view text) {
  if (option.kind == card::CardOption::kCount) {
    uint64_t number = 0;
    if (!absl::SimpleAtoi(ToAbsl(text), &number) || number < option.min || number > option.max) {
      return absl::InvalidArgumentError(
          StrCat("expected ", option.min, " to ", option.max, ", found \"", text, "\""));
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
    return absl::InvalidArgumentError(StrCat("expected ", option.values, ", found \"", text, "\""));
  }
  const bool or_name = option.values.find("NAME") != std::string_view::npos;
  const absl::StatusOr<Bytes> size = or_name ? ParseMemory(text) : ParseSize(text);
  if (!size.ok()) return size.status();
  if (size->value() < option.min || size->value() > option.max) {
    return absl::InvalidArgumentError(StrCat("expected ", FormatSize(Bytes(option.min)), " to ",
                                             FormatSize(Bytes(option.max)), ", found \"", text,
                                             "\""));
  }
  return StrCat(size->value());
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
  if (size.ok()) return size;
  return absl::InvalidArgumentError(
      StrCat(ToStd(size.status().message()), "; as the name of a GPU: ", unknown));
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
                   "end the script after N steps of an optimizer, where it begins the next");
  flags->AddText("python", "PATH", &run->python,
                 "the Python interpreter for scripts; the default is the one next to\n"
                 "memreplay if it has PyTorch, else python3");
}

absl::Status CheckRecordCall(const RecordOptions& run) {
  if (run.program.empty() || run.program == std::vector<std::string>{"-m"}) {
    return absl::InvalidArgumentError("no PROGRAM given; see memreplay record --help");
  }
  if (std::string why; !run.card.empty() && !FindCard(run.card, &why).has_value()) {
    return absl::InvalidArgumentError(StrCat("--card ", run.card, ": ", why));
  }
  if (run.card.empty() && (!run.card_options.empty() || run.ranks.has_value())) {
    std::string flags;
    for (const card::CardOption* option : card::kCardOptions) {
      if (!option->flag.empty()) StrAppend(&flags, "--", option->flag, ", ");
    }
    return absl::InvalidArgumentError(
        StrCat(flags, "--ranks require --card; they cannot change a real GPU"));
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
    return absl::InvalidArgumentError(
        StrCat("--rank: expected 0 to ", *run.ranks - 1, ", and at least one of --ranks"));
  }
  if (run.steps.value_or(1) < 1) {
    return absl::InvalidArgumentError(StrCat("--steps: expected at least 1, found ", *run.steps));
  }
  return absl::OkStatus();
}

}  // namespace memreplay
