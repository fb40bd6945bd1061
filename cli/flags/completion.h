// The completion scripts of completion/*.in, where the lists of commands and flags are still
// @NAMES@.
#pragma once

#include <string_view>

namespace memreplay {

extern const std::string_view kBashCompletion;
extern const std::string_view kZshCompletion;

}  // namespace memreplay
