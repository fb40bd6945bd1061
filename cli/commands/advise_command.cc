// memreplay advise: about a script (advise_script_command.cc) or a recording
// (advise_recording_command.cc).
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "cli/commands/advise_key.h"
#include "cli/commands/command.h"
#include "experiment/script_search.h"
#include "trace/bytes/json_scanner.h"
#include "trace/value/strings.h"

namespace memreplay {

void AddAdviseKey(FlagSet* flags, AdviseKey* key) {
  flags->AddOthers(
      [flags, key](std::string_view name, std::string_view value) -> absl::StatusOr<bool> {
        const std::optional<int64_t> number = ParseInt64(value);
        if (value != "?" && (!number.has_value() || flags->Resembles(name))) return false;
        const std::string given = StrCat("--", name);
        if (!key->name.empty() && key->name != given) {
          return absl::InvalidArgumentError(
              StrCat("expected one argument of the script, found ", key->name, " and ", given));
        }
        key->name = given;
        if (value == "?") {
          key->finds_largest = true;
          return true;
        }
        if (*number < 1 || *number > ScriptSearch::kMaxValue || key->value != 0) {
          return absl::InvalidArgumentError(
              StrCat(given, ": expected one value from 1 to 2^40, found ", value,
                     key->value != 0 ? StrCat(" and ", key->value) : std::string()));
        }
        key->value = *number;
        return true;
      });
}

absl::StatusOr<int> RunAdvise(const CommandLine& line) {
  return FindCommand(FormOfAdvise(line.args))->run(line);
}

}  // namespace memreplay
