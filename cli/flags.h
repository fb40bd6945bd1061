// A small typed flag parser: each command owns a FlagSet, so that --help and
// errors are about that command alone.
#ifndef MEMREPLAY_CLI_FLAGS_H_
#define MEMREPLAY_CLI_FLAGS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cli/help_text.h"
#include "trace/value/units.h"

namespace memreplay {

// The flags of a command: what they are called, where their values go, and the help about them.
class FlagSet {
 public:
  // `usage` is what follows the program's name: "replay FILE... [flags]".
  // `description` is shown by --help, wrapped by its author.
  FlagSet(std::string usage, std::string description);

  // Registers --name. `help` is one sentence without a full stop; `value` is
  // the placeholder shown ("SIZE"). Targets keep their value if not given.
  void AddSwitch(std::string_view name, bool* target, std::string_view help);
  void AddText(std::string_view name, std::string_view value, std::string* target,
               std::string_view help);
  void AddOptionalText(std::string_view name, std::string_view value,
                       std::optional<std::string>* target, std::string_view help);
  // May be given several times; the values in order.
  void AddTexts(std::string_view name, std::string_view value, std::vector<std::string>* target,
                std::string_view help);
  void AddSize(std::string_view name, std::optional<Bytes>* target, std::string_view help);
  void AddNumber(std::string_view name, std::string_view value, std::optional<int64_t>* target,
                 std::string_view help);
  // A decimal number; the range is the target's affair.
  void AddFraction(std::string_view name, std::optional<double>* target, std::string_view help);
  // Anything else: `set` reads the value. `repeats`: may be given several times.
  void AddParsed(std::string_view name, std::string_view value, std::string_view help,
                 std::function<absl::Status(std::string_view)> set, bool repeats = false);
  // "-o" for a flag that is registered already.
  void AddShort(char letter, std::string_view name);
  // One of `choices`.
  void AddChoice(std::string_view name, const std::vector<std::string>& choices,
                 std::string* target, std::string_view help);

  // `--name value`, `--name=value`, `-o value` (AddShort()), switches also `--name=false`; `--`
  // ends the flags; `-` alone is an argument. Returns what is not a flag, in order.
  // --help and -h set help_requested() and end parsing.
  // Errors: InvalidArgument: unknown flag (with the nearest known one), missing
  // or unreadable value, a flag given twice.
  absl::StatusOr<std::vector<std::string>> Parse(absl::Span<const std::string> args);
  // The same for a command line that ends in another program's: flags end before the first
  // argument or an `-m`, and all from there on is returned as it is.
  absl::StatusOr<std::vector<std::string>> ParseLeading(absl::Span<const std::string> args);

  bool help_requested() const { return help_requested_; }
  std::string Help() const;
  // What Help() says, as values.
  HelpText Describe() const;

 private:
  struct Flag {
    std::string name;
    std::string value;  // placeholder; empty for switches
    std::string help;
    std::function<absl::Status(std::string_view)> set;
    bool given = false;
    bool repeats = false;
    char letter = 0;  // of its short form; 0: none
  };
  void Add(std::string_view name, std::string_view value, std::string_view help,
           std::function<absl::Status(std::string_view)> set);
  Flag* Find(std::string_view name);
  absl::Status UnknownFlag(std::string_view name) const;

  std::string usage_;
  std::string description_;
  std::vector<Flag> flags_;
  bool help_requested_ = false;
};

// The candidate nearest to `word` by edit distance, if near enough to be what
// was meant; else empty.
std::string_view NearestWord(std::string_view word, absl::Span<const std::string_view> candidates);

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_FLAGS_H_
