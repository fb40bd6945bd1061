// A small parser of typed flags. Each command owns a FlagSet, so that --help and errors are about
// that command alone.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cli/flags/help_text.h"
#include "trace/value/units.h"

namespace memreplay {

// Returns whether --help or -h is among the words before "--".
bool AsksForHelp(absl::Span<const std::string> args);

// The flags of a command: what they are called, where their values go, and the help about them.
// Each has --memory-limit as well, which takes effect as it is read, and may have others that
// Help() leaves out because they are described elsewhere.
class FlagSet {
 public:
  // `usage` is what follows the binary's name: "replay FILE... [flags]".
  // `description` is shown by --help, wrapped by its author; its last line may end in a newline.
  FlagSet(std::string usage, std::string_view description);

  // Registers --name. `help` is one sentence without a full stop; `value` is
  // the placeholder shown ("SIZE"). Targets keep their value if not given.
  void AddSwitch(std::string_view name, bool* target, std::string_view help);
  // `target` is a string, or one that may be absent.
  template <typename Target>
  void AddText(std::string_view name, std::string_view value, Target* target,
               std::string_view help) {
    Add(name, value, help, [target](std::string_view text) {
      *target = std::string(text);
      return absl::OkStatus();
    });
  }
  // The flag may be given several times; `target` receives the values in order.
  void AddTexts(std::string_view name, std::string_view value, std::vector<std::string>* target,
                std::string_view help);
  void AddSize(std::string_view name, std::optional<Bytes>* target, std::string_view help);
  // Errors: no number, or one below `min`.
  void AddNumber(std::string_view name, std::string_view value, std::optional<int64_t>* target,
                 std::string_view help, int64_t min = std::numeric_limits<int64_t>::min());
  // Reads a decimal number from 0 to 1.
  void AddFraction(std::string_view name, std::optional<double>* target, std::string_view help);
  // Registers a flag whose value `set` reads. With `repeats` it may be given several times.
  void AddParsed(std::string_view name, std::string_view value, std::string_view help,
                 std::function<absl::Status(std::string_view)> set, bool repeats = false);
  // Registers a flag that Help() leaves out, and that may be given several times. It replaces one
  // of that name.
  void AddUnlisted(std::string_view name, std::string_view value, std::string_view help,
                   std::function<absl::Status(std::string_view)> set);
  // What is wrong with a flag that is unknown; where `explain` returns OK, the usual is said.
  void AddUnknown(std::function<absl::Status(std::string_view name)> explain);
  // Words for another program: `take` is asked about each --NAME=VALUE before it is looked up, and
  // returns whether it has taken it.
  void AddOthers(
      std::function<absl::StatusOr<bool>(std::string_view name, std::string_view value)> take);
  // Adds a short form, such as "-o", to a flag that is registered already.
  void AddShort(char letter, std::string_view name);
  // The value is one of `choices`.
  void AddChoice(std::string_view name, const std::vector<std::string>& choices,
                 std::string* target, std::string_view help);

  // Reads `--name value`, `--name=value`, `-o value` (AddShort()) and, for switches,
  // `--name=false`. `--` ends the flags; `-` alone is an argument. Where --help or -h is among
  // them, sets help_requested() and reads nothing else. Returns the arguments that are not flags,
  // in order. Errors: InvalidArgument for an unknown flag (with the nearest known one), a missing
  // or unreadable value, a flag given twice.
  absl::StatusOr<std::vector<std::string>> Parse(absl::Span<const std::string> args);
  // Does the same for a command line that ends in that of another program: flags end before the
  // first argument or `-m`, and everything from there on is returned unchanged.
  absl::StatusOr<std::vector<std::string>> ParseLeading(absl::Span<const std::string> args);
  // Returns where the flags end in such a command line.
  size_t EndOfLeading(absl::Span<const std::string> args) const;
  // Reads only those flags that are known; every other word is returned unchanged.
  absl::StatusOr<std::vector<std::string>> ParseKnown(absl::Span<const std::string> args);

  bool help_requested() const { return help_requested_; }
  bool Has(std::string_view name) const { return Find(name) != nullptr; }
  bool IsGiven(std::string_view name) const { return Has(name) && Find(name)->given; }
  // Whether --name is one of these flags, or so close to one that it is probably a typing error. A
  // name with an underscore, or with another first letter, is none.
  bool Resembles(std::string_view name) const;
  std::string Help() const;
  // Returns the content of Help() as values, with the flags that it leaves out at the end.
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
    bool is_listed = true;
  };
  void Add(std::string_view name, std::string_view value, std::string_view help,
           std::function<absl::Status(std::string_view)> set);
  const Flag* Find(std::string_view name) const;
  Flag* Find(std::string_view name) { return const_cast<Flag*>(std::as_const(*this).Find(name)); }
  std::vector<std::string_view> Names() const;
  absl::Status UnknownFlag(std::string_view name) const;

  std::string usage_;
  std::string description_;
  std::vector<Flag> flags_;
  std::function<absl::StatusOr<bool>(std::string_view, std::string_view)> take_other_;
  std::function<absl::Status(std::string_view)> explain_unknown_;
  bool help_requested_ = false;
};

// Returns "; did you mean --json?" of the candidate nearest to a word, with `prefix` in front of
// it, or `otherwise` if none is near.
std::string DidYouMean(std::string_view word, absl::Span<const std::string_view> candidates,
                       std::string_view prefix = "", std::string_view otherwise = "");

}  // namespace memreplay
