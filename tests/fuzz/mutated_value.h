// Values as Python has them, in which something is as no program writes it.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "tests/trace/support/py_value.h"

namespace memreplay::fuzz {

// Returns `value` with one to four changes: a number at the edges of what 64 bits hold, another
// type, another value of it in its place, a key or an element that is missing, there twice or many
// times, or elsewhere. `below` returns a choice, a number below its argument.
Py MutateValue(Py value, absl::FunctionRef<uint64_t(uint64_t)> below);

}  // namespace memreplay::fuzz
