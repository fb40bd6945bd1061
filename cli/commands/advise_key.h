// The argument of a script whose value `advise` varies: --batch_size=64, --batch_size=?, or both.
#pragma once

#include <cstdint>
#include <string>

#include "cli/flags/flags.h"

namespace memreplay {

// What was given of the argument.
struct AdviseKey {
  std::string name;            // "--batch_size"; "": none was given
  int64_t value = 0;           // 64; 0: none was given
  bool finds_largest = false;  // "?" was given
};

// Takes each --NAME=NUMBER and --NAME=? that is no flag of the command.
void AddAdviseKey(FlagSet* flags, AdviseKey* key);

}  // namespace memreplay
